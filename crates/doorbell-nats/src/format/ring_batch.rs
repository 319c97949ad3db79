//! The message to all nodes: what is to be read again.

use countersign_core::{
    notify::Ring,
    store::{Key, Kind, MailboxKey},
};

use countersign_wire::limits::MAX_ID;

use super::{
    field::{MAX_TEXT, Malformed, Reader, Writer},
    session::{Challenge, Session},
};

/// Rings of one message.
pub const MAX_RINGS: usize = 8 << 10;

/// Answers to challenges of one message.
pub const MAX_ANSWERS: usize = 64;

/// Repeats what `to` has asked for, which proves that the sender runs now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub to: Session,
    pub challenge: Challenge,
}

/// One message to all nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RingBatch {
    /// One more with each batch of its sender, also with one that could not be sent: a gap says that something is missing.
    pub number: u64,
    pub answers: Vec<Answer>,
    /// The same as in [`countersign_core::notify::Announcement`].
    pub timeline: u64,
    /// None in a message that only says that its sender runs.
    pub rings: Vec<(Ring, u64)>,
}

impl RingBatch {
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let number = reader.number()?;
        let answers = (0..reader.count(MAX_ANSWERS)?)
            .map(|_| Ok(Answer { to: reader.array()?, challenge: reader.array()? }))
            .collect::<Result<_, _>>()?;
        let timeline = reader.number()?;
        let rings = (0..reader.count(MAX_RINGS)?).map(|_| ring(&mut reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { number, answers, timeline, rings })
    }

    /// `None` if something in it is longer than a message may have.
    pub fn encode(&self) -> Option<Vec<u8>> {
        (self.rings.len() <= MAX_RINGS && self.answers.len() <= MAX_ANSWERS).then_some(())?;
        let mut writer = Writer::default();
        writer.number(self.number);
        writer.number(self.answers.len() as u64);
        for answer in &self.answers {
            writer.array(&answer.to);
            writer.array(&answer.challenge);
        }
        writer.number(self.timeline);
        writer.number(self.rings.len() as u64);
        for (ring, number) in &self.rings {
            ring_size(ring)?;
            encode_ring(&mut writer, ring);
            writer.number(*number);
        }
        Some(writer.0)
    }
}

/// What a ring takes in a message, at most; `None` if a name is too long for one.
pub(crate) fn ring_size(ring: &Ring) -> Option<usize> {
    // A tag, three lengths, a kind and a number.
    const AROUND: usize = 1 + 3 * 3 + 2 + 10;
    let (tenant, name) = match ring {
        // A mailbox is an id and a short prefix.
        Ring::Mailbox(key) => (&key.tenant, MAX_ID + 3),
        Ring::Record(tenant, key) => (tenant, key.id.len()),
        Ring::Ended(key, request_id) => (&key.tenant, MAX_ID + 3 + request_id.as_str().len()),
    };
    (name <= MAX_TEXT).then(|| AROUND + tenant.as_str().len() + name)
}

const MAILBOX: u8 = 0;
const RECORD: u8 = 1;
const ENDED: u8 = 2;

fn encode_ring(writer: &mut Writer, ring: &Ring) {
    match ring {
        Ring::Mailbox(MailboxKey { tenant, mailbox }) => {
            writer.byte(MAILBOX);
            writer.text(tenant.as_str());
            writer.text(&mailbox.to_string());
        }
        Ring::Record(tenant, key) => {
            writer.byte(RECORD);
            writer.text(tenant.as_str());
            encode_key(writer, key);
        }
        Ring::Ended(MailboxKey { tenant, mailbox }, request_id) => {
            writer.byte(ENDED);
            writer.text(tenant.as_str());
            writer.text(&mailbox.to_string());
            writer.text(request_id.as_str());
        }
    }
}

fn ring(reader: &mut Reader<'_>) -> Result<(Ring, u64), Malformed> {
    let ring = match reader.byte()? {
        MAILBOX => Ring::Mailbox(MailboxKey { tenant: reader.parsed()?, mailbox: reader.parsed()? }),
        RECORD => Ring::Record(reader.parsed()?, key(reader)?),
        ENDED => {
            let mailbox = MailboxKey { tenant: reader.parsed()?, mailbox: reader.parsed()? };
            Ring::Ended(mailbox, reader.parsed()?)
        }
        _ => return Err(Malformed),
    };
    Ok((ring, reader.number()?))
}

pub(super) fn encode_key(writer: &mut Writer, key: &Key) {
    writer.number(u64::from(key.kind.number().unsigned_abs()));
    writer.text(&key.id);
}

pub(super) fn key(reader: &mut Reader<'_>) -> Result<Key, Malformed> {
    let kind = i16::try_from(reader.number()?).ok().and_then(Kind::from_number).ok_or(Malformed)?;
    match reader.text()? {
        "" => Err(Malformed),
        id => Ok(Key { kind, id: id.to_owned() }),
    }
}
