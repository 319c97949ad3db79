//! The message to one node: a challenge, or deliveries that it will probably send.

use std::sync::Arc;

use countersign_core::notify::HandOver;

use super::{
    field::{Malformed, Reader, Writer},
    hand_over::{encode_hand_over, hand_over, hand_over_size},
    session::Challenge,
};

/// Deliveries of one message.
pub const MAX_HAND_OVERS: usize = 1 << 10;

const CHALLENGE: u8 = 0;
const HAND_OVERS: u8 = 1;

/// One message to one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// Asks the node to repeat this to all.
    Challenge(Challenge),
    HandOvers {
        /// The same as in [`countersign_core::notify::Announcement`].
        timeline: u64,
        hand_overs: Vec<Arc<HandOver>>,
    },
}

impl NodeMessage {
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let message = match reader.byte()? {
            CHALLENGE => Self::Challenge(reader.array()?),
            HAND_OVERS => {
                let timeline = reader.number()?;
                let count = reader.count(MAX_HAND_OVERS)?;
                let hand_overs =
                    (0..count).map(|_| hand_over(&mut reader).map(Arc::new)).collect::<Result<_, _>>()?;
                Self::HandOvers { timeline, hand_overs }
            }
            _ => return Err(Malformed),
        };
        reader.end()?;
        Ok(message)
    }

    /// `None` if something in it is longer than a message may have.
    pub fn encode(&self) -> Option<Vec<u8>> {
        match self {
            Self::Challenge(challenge) => Some([&[CHALLENGE], challenge.as_slice()].concat()),
            Self::HandOvers { timeline, hand_overs } => {
                (hand_overs.len() <= MAX_HAND_OVERS).then_some(())?;
                let mut writer = Writer::default();
                writer.byte(HAND_OVERS);
                writer.number(*timeline);
                writer.number(hand_overs.len() as u64);
                for hand_over in hand_overs {
                    hand_over_size(hand_over)?;
                    encode_hand_over(&mut writer, hand_over);
                }
                Some(writer.0)
            }
        }
    }
}
