//! Randomness is an argument: the operating system's in the gateway, a seeded source in tests.

use countersign_wire::{
    hash::Sha256Hex,
    id::{MsgId, RoutingToken},
    timestamp::Timestamp,
};

use crate::store::PayloadId;

/// A source of unpredictable bytes.
pub trait RandomSource: Send + Sync + 'static {
    fn fill(&self, buffer: &mut [u8]);
}

impl dyn RandomSource {
    fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }

    /// A ULID: sorted by time, unique by its random part.
    pub fn ulid(&self, now: Timestamp) -> ulid::Ulid {
        let millis = u64::try_from(now.unix_micros() / 1_000).unwrap_or_default();
        ulid::Ulid::from_parts(millis, u128::from_be_bytes(self.bytes()))
    }

    pub fn msg_id(&self, now: Timestamp) -> MsgId {
        id(&self.ulid(now).to_string())
    }

    pub fn payload_id(&self, now: Timestamp) -> PayloadId {
        PayloadId(self.ulid(now).into())
    }

    /// 256 random bits as a routing token.
    pub fn routing_token(&self) -> RoutingToken {
        id(&self.secret())
    }

    /// 256 random bits in hex.
    pub fn secret(&self) -> String {
        Sha256Hex::from_bytes(self.bytes()).to_string()
    }

    pub fn byte(&self) -> u8 {
        let [byte] = self.bytes();
        byte
    }
}

/// ULIDs and hex are ids: short, printable, never empty.
fn id<T: std::str::FromStr<Err = countersign_wire::Rule>>(text: &str) -> T {
    match text.parse() {
        Ok(id) => id,
        Err(rule) => unreachable!("{rule}"),
    }
}
