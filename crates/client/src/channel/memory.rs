//! Which messages were handed out, so that none is handed out twice. Of bounded size.

use std::collections::HashMap;

use countersign_wire::id::MsgId;
use parking_lot::Mutex;

/// Messages of one generation. Two generations are remembered, so at least this many messages.
const GENERATION: usize = 8_192;

#[derive(Debug, Default)]
struct Generations {
    /// With what each was acknowledged; `None` if it was not.
    current: HashMap<MsgId, Option<&'static str>>,
    previous: HashMap<MsgId, Option<&'static str>>,
}

impl Generations {
    fn insert(&mut self, msg_id: &MsgId, acknowledged: Option<&'static str>) {
        if self.current.len() >= GENERATION {
            self.previous = std::mem::take(&mut self.current);
        }
        self.current.insert(msg_id.clone(), acknowledged);
    }
}

/// The ids of messages that were handed out.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Generations>);

/// Whether a message is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Never,
    /// It was handed out, and perhaps acknowledged with this status.
    Before(Option<&'static str>),
}

impl Memory {
    /// Records a message. One that is seen again is remembered for longer.
    pub(super) fn see(&self, msg_id: &MsgId) -> Seen {
        let mut generations = self.0.lock();
        if let Some(acknowledged) = generations.current.get(msg_id) {
            return Seen::Before(*acknowledged);
        }
        let before = generations.previous.get(msg_id).copied();
        generations.insert(msg_id, before.flatten());
        before.map_or(Seen::Never, Seen::Before)
    }

    /// Records with what a message was acknowledged: if it comes again, the acknowledgement was lost.
    pub(super) fn acknowledge(&self, msg_id: &MsgId, status: &'static str) {
        self.0.lock().insert(msg_id, Some(status));
    }

    /// Forgets a message, so that it is handed out when it comes again.
    pub(super) fn forget(&self, msg_id: &MsgId) {
        let mut generations = self.0.lock();
        generations.current.remove(msg_id);
        generations.previous.remove(msg_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> MsgId {
        format!("m-{number}").parse().unwrap()
    }

    #[test]
    fn a_message_is_new_once_and_the_memory_is_bounded() {
        let memory = Memory::default();
        assert_eq!(memory.see(&id(0)), Seen::Never);
        memory.acknowledge(&id(0), "received");
        for number in 1..100_000 {
            assert_eq!(memory.see(&id(number)), Seen::Never);
            assert_eq!(memory.see(&id(number)), Seen::Before(None));
            if number % 1_000 == 0 {
                assert_eq!(memory.see(&id(0)), Seen::Before(Some("received")), "seen now and then, kept");
            }
        }
        let generations = memory.0.lock();
        assert!(generations.current.len() + generations.previous.len() <= 2 * GENERATION);
    }

    #[test]
    fn what_is_forgotten_is_new() {
        let memory = Memory::default();
        memory.see(&id(1));
        memory.forget(&id(1));
        assert_eq!(memory.see(&id(1)), Seen::Never);
    }
}
