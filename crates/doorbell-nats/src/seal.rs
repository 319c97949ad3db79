//! What is around each message: who sent it, its counter, and the seal.
//!
//! A sender has a key for each of the two classes of messages, derived from the cluster's secret, the cell, its node id
//! and a session that is random for each attachment. So the counter alone is a nonce that never repeats under a key. The
//! subject is authenticated too: what was sent to all, or to one node, opens nowhere else.

use aes_gcm::{
    Aes256Gcm, KeyInit as _,
    aead::{Aead as _, Payload},
};
use countersign_core::model::channels::NodeId;
use countersign_wire::mac::MacKey;

use crate::{
    counters::Dropped,
    format::{MAX_MESSAGE, Session},
    subjects::{Cell, is_node_id},
};

/// The version of everything in this crate that travels.
const VERSION: u8 = 2;

/// Version, class, session, counter, and the length of the node's id.
const FIXED_HEADER: usize = 1 + 1 + 16 + 8 + 1;

/// Bytes of the tag at the end.
const TAG: usize = 16;

/// Bytes of the longest message with everything around it.
const MAX_SEALED: usize = FIXED_HEADER + u8::MAX as usize + MAX_MESSAGE + TAG;

/// Which of the two subjects a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    Rings = 1,
    Node = 2,
}

/// The secret that all nodes share, and the cell in which they use it.
#[derive(Debug, Clone)]
pub(crate) struct ClusterKey {
    key: MacKey,
    cell: Cell,
}

/// The two keys of one sender.
pub(crate) struct SenderKeys {
    rings: Aes256Gcm,
    node: Aes256Gcm,
}

impl std::fmt::Debug for SenderKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SenderKeys(…)")
    }
}

impl ClusterKey {
    pub(crate) fn new(key: MacKey, cell: Cell) -> Self {
        Self { key, cell }
    }

    pub(crate) fn sender(&self, node: &NodeId, session: &Session) -> SenderKeys {
        let cipher = |class: Class| {
            let parts = [&[VERSION, class as u8], self.cell.as_str().as_bytes(), node.0.as_bytes(), session];
            Aes256Gcm::new(&self.key.derive("doorbell message", &parts).into())
        };
        SenderKeys { rings: cipher(Class::Rings), node: cipher(Class::Node) }
    }
}

impl SenderKeys {
    fn of(&self, class: Class) -> &Aes256Gcm {
        match class {
            Class::Rings => &self.rings,
            Class::Node => &self.node,
        }
    }
}

/// What precedes the encrypted part, in plain text and authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) node: NodeId,
    pub(crate) session: Session,
    /// One more with each message of the sender, of either class.
    pub(crate) counter: u64,
}

/// A message as it arrived, with a header that nobody has vouched for yet.
#[derive(Debug)]
pub(crate) struct Sealed<'a> {
    pub(crate) header: Header,
    class: Class,
    head: &'a [u8],
    encrypted: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// Reads the header of a message that arrived on the subject of `class`.
    pub(crate) fn parse(bytes: &'a [u8], class: Class) -> Result<Self, Dropped> {
        if bytes.len() > MAX_SEALED {
            return Err(Dropped::Malformed);
        }
        if bytes.first().is_some_and(|version| *version != VERSION) {
            return Err(Dropped::OtherVersion);
        }
        Self::parse_header(bytes, class).ok_or(Dropped::Malformed)
    }

    fn parse_header(bytes: &'a [u8], class: Class) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk::<FIXED_HEADER>()?;
        let (session, counter) = fixed[2..FIXED_HEADER - 1].split_first_chunk::<16>()?;
        let (node, encrypted) = rest.split_at_checked(fixed[FIXED_HEADER - 1].into())?;
        let node = std::str::from_utf8(node).ok().filter(|node| is_node_id(node))?;
        let is_whole = fixed[1] == class as u8 && encrypted.len() >= TAG;
        is_whole.then_some(())?;
        let header = Header {
            node: NodeId(node.to_owned()),
            session: *session,
            counter: u64::from_be_bytes(counter.try_into().ok()?),
        };
        Some(Self { header, class, head: &bytes[..bytes.len() - encrypted.len()], encrypted })
    }

    /// Decrypts what was sealed for `subject`.
    pub(crate) fn open(&self, keys: &SenderKeys, subject: &str) -> Result<Vec<u8>, Dropped> {
        let aad = associated_data(self.head, subject);
        let payload = Payload { msg: self.encrypted, aad: &aad };
        keys.of(self.class).decrypt(&nonce(self.header.counter).into(), payload).map_err(|_| Dropped::Forged)
    }
}

fn nonce(counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_be_bytes());
    nonce
}

fn associated_data(head: &[u8], subject: &str) -> Vec<u8> {
    [head, subject.as_bytes()].concat()
}

/// Seals the messages of one attachment.
#[derive(Debug)]
pub(crate) struct Sealer {
    node: NodeId,
    session: Session,
    counter: u64,
    keys: SenderKeys,
}

impl Sealer {
    pub(crate) fn new(key: &ClusterKey, node: NodeId, session: Session) -> Self {
        let keys = key.sender(&node, &session);
        Self { node, session, counter: 0, keys }
    }

    /// `None` if it is too long, or all counters are used up.
    pub(crate) fn seal(&mut self, class: Class, subject: &str, message: &[u8]) -> Option<Vec<u8>> {
        (message.len() <= MAX_MESSAGE).then_some(())?;
        self.counter = self.counter.checked_add(1)?;
        let mut sealed = Vec::with_capacity(FIXED_HEADER + self.node.0.len() + message.len() + TAG);
        sealed.extend([VERSION, class as u8]);
        sealed.extend(self.session);
        sealed.extend(self.counter.to_be_bytes());
        sealed.push(u8::try_from(self.node.0.len()).ok()?);
        sealed.extend(self.node.0.as_bytes());
        let aad = associated_data(&sealed, subject);
        let payload = Payload { msg: message, aad: &aad };
        sealed.extend(self.keys.of(class).encrypt(&nonce(self.counter).into(), payload).ok()?);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cell: &str) -> ClusterKey {
        ClusterKey::new(MacKey::new([7; 32]), Cell::new(cell).unwrap())
    }

    fn node() -> NodeId {
        NodeId("node-1".to_owned())
    }

    fn open(key: &ClusterKey, class: Class, subject: &str, bytes: &[u8]) -> Result<Vec<u8>, Dropped> {
        let sealed = Sealed::parse(bytes, class)?;
        sealed.open(&key.sender(&sealed.header.node, &sealed.header.session), subject)
    }

    #[test]
    fn a_message_opens_on_its_own_subject_in_its_own_cell_and_nowhere_else() {
        let (key, elsewhere) = (key("main"), key("other"));
        let mut sealer = Sealer::new(&key, node(), [1; 16]);
        let to_all = sealer.seal(Class::Rings, "a", b"text").unwrap();
        let to_one = sealer.seal(Class::Node, "b", b"text").unwrap();
        assert_eq!(open(&key, Class::Rings, "a", &to_all), Ok(b"text".to_vec()));
        assert_eq!(open(&key, Class::Node, "b", &to_one), Ok(b"text".to_vec()));
        assert_eq!(open(&key, Class::Node, "c", &to_one), Err(Dropped::Forged), "another node");
        assert_eq!(open(&key, Class::Node, "a", &to_all), Err(Dropped::Malformed), "the other class");
        let mut moved = to_all.clone();
        moved[1] = Class::Node as u8;
        assert_eq!(open(&key, Class::Node, "a", &moved), Err(Dropped::Forged), "a changed class");
        assert_eq!(open(&elsewhere, Class::Rings, "a", &to_all), Err(Dropped::Forged));
        let stranger = ClusterKey::new(MacKey::new([8; 32]), Cell::new("main").unwrap());
        assert_eq!(open(&stranger, Class::Rings, "a", &to_all), Err(Dropped::Forged));
    }

    #[test]
    fn no_byte_can_be_changed_or_cut_off() {
        let key = key("main");
        let sealed = Sealer::new(&key, node(), [1; 16]).seal(Class::Rings, "a", b"text").unwrap();
        for index in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[index] ^= 1 << bit;
                open(&key, Class::Rings, "a", &changed).unwrap_err();
            }
            open(&key, Class::Rings, "a", &sealed[..index]).unwrap_err();
        }
        open(&key, Class::Rings, "a", &[&sealed[..], b"x"].concat()).unwrap_err();
    }

    #[test]
    fn the_same_text_is_never_sealed_alike() {
        let key = key("main");
        let mut sealer = Sealer::new(&key, node(), [1; 16]);
        let encrypted = |sealed: &[u8]| Sealed::parse(sealed, Class::Rings).unwrap().encrypted.to_vec();
        let first = encrypted(&sealer.seal(Class::Rings, "a", b"text").unwrap());
        assert_ne!(first, encrypted(&sealer.seal(Class::Rings, "a", b"text").unwrap()), "the next counter");
        let mut restarted = Sealer::new(&key, node(), [2; 16]);
        assert_ne!(first, encrypted(&restarted.seal(Class::Rings, "a", b"text").unwrap()), "another session");
    }

    #[test]
    fn what_is_too_long_is_neither_sealed_nor_opened() {
        let mut sealer = Sealer::new(&key("main"), node(), [1; 16]);
        assert!(sealer.seal(Class::Rings, "a", &vec![0; MAX_MESSAGE]).is_some());
        assert!(sealer.seal(Class::Rings, "a", &vec![0; MAX_MESSAGE + 1]).is_none());
        let long = vec![VERSION; MAX_SEALED + 1];
        assert_eq!(Sealed::parse(&long, Class::Rings).unwrap_err(), Dropped::Malformed);
        assert_eq!(Sealed::parse(&[9; 100], Class::Rings).unwrap_err(), Dropped::OtherVersion);
    }
}
