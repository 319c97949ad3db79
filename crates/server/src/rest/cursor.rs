//! Cursors of inbox pages: opaque, and valid only for one list of one approver.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use countersign_core::use_cases::inbox::{List, Position};
use countersign_wire::{
    failure::Failure,
    id::{ApproverId, TenantId},
};

use crate::{error::ApiError, secrets::Secret};

const NUMBERS: usize = 16;
const MAC: usize = 16;

/// Signs and checks the cursors of one list of one approver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InboxCursor<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) approver: &'a ApproverId,
    pub(crate) list: List,
}

impl InboxCursor<'_> {
    pub(crate) fn cursor(&self, secret: &Secret, position: Position) -> String {
        let mut bytes = [position.own.to_be_bytes(), position.shared.to_be_bytes()].concat();
        let mac = self.mac(secret, &bytes);
        bytes.extend(mac);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub(crate) fn position(&self, secret: &Secret, cursor: &str) -> Result<Position, ApiError> {
        self.read(secret, cursor).ok_or_else(|| Failure::Cursor.into())
    }

    fn read(&self, secret: &Secret, cursor: &str) -> Option<Position> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (numbers, mac) = bytes.split_at_checked(NUMBERS)?;
        let (own, shared) = numbers.split_first_chunk()?;
        // The numbers are no secret, so there is nothing to learn from how long this takes.
        let position =
            Position { own: u64::from_be_bytes(*own), shared: u64::from_be_bytes(shared.try_into().ok()?) };
        (mac == self.mac(secret, numbers)).then_some(position)
    }

    fn mac(&self, secret: &Secret, numbers: &[u8]) -> [u8; MAC] {
        let list: &[u8] = match self.list {
            List::Active => b"active",
            List::Expired => b"expired",
        };
        let (tenant, approver) = (self.tenant.as_str().as_bytes(), self.approver.as_str().as_bytes());
        let mac = secret.mac("cursor", &[tenant, approver, list, numbers]);
        let mut short = [0; MAC];
        short.copy_from_slice(&mac.as_bytes()[..MAC]);
        short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_only_and_only_unchanged() {
        let secret = Secret::random();
        let (acme, ada): (TenantId, ApproverId) = ("acme".parse().unwrap(), "ada".parse().unwrap());
        let list = InboxCursor { tenant: &acme, approver: &ada, list: List::Active };
        let position = Position { own: 7, shared: u64::MAX };
        let cursor = list.cursor(&secret, position);
        assert_eq!(list.position(&secret, &cursor).unwrap(), position);
        assert!(list.position(&Secret::random(), &cursor).is_err());
        let (other, bob) = ("other".parse().unwrap(), "bob".parse().unwrap());
        for elsewhere in [
            InboxCursor { tenant: &other, ..list },
            InboxCursor { approver: &bob, ..list },
            InboxCursor { list: List::Expired, ..list },
        ] {
            assert!(elsewhere.position(&secret, &cursor).is_err());
        }
        for place in 0..cursor.len() {
            let mut forged = cursor.clone();
            let other = if &forged[place..=place] == "A" { "B" } else { "A" };
            forged.replace_range(place..=place, other);
            assert!(list.position(&secret, &forged).is_err(), "{forged}");
        }
        for nonsense in ["", "A", "!!", &cursor[1..], &format!("{cursor}AAAA")] {
            assert!(list.position(&secret, nonsense).is_err());
        }
    }
}
