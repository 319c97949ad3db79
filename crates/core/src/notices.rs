//! Requests that somebody is to be notified of now, on their way to what sends notifications. In memory only: a notice that
//! is lost is due again, on any node, when its time for sending is over.

use std::{sync::OnceLock, time::Duration};

use countersign_wire::id::{ApproverId, RequestId, TenantId};
use tokio::{
    sync::mpsc::{Receiver, Sender, channel},
    time::{Instant, sleep},
};

/// New notices on their way. Those that find no room are due a little later.
const MAX_FRESH: usize = 10_000;

/// Notices that were due on their way: few, so that a node claims no more than it sends in time.
const MAX_DUE: usize = 256;

/// Notices that are claimed at once. Few: each is a commit, and new requests must not wait for them.
pub(crate) const CLAIMS_AT_ONCE: usize = 2;

/// Weekly tests on their way.
const MAX_TESTS: usize = 64;

/// How often to look for room.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Somebody is to be notified of this request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub tenant: TenantId,
    pub request_id: RequestId,
}

/// A person wants a test now, on all channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueTest {
    pub tenant: TenantId,
    pub approver: ApproverId,
}

/// The way of one node's notices. Nothing is sent by a node where nobody takes them.
#[derive(Debug, Default)]
pub(crate) struct Notices(OnceLock<Senders>);

#[derive(Debug)]
struct Senders {
    fresh: Sender<Notice>,
    due: Sender<Notice>,
    tests: Sender<DueTest>,
}

/// Everything that a node is to send.
#[derive(Debug)]
pub struct NoticeQueue {
    /// New requests, and those that it is somebody's turn for.
    pub fresh: Receiver<Notice>,
    /// What is tried again, or was not sent in time.
    pub due: Receiver<Notice>,
    pub tests: Receiver<DueTest>,
}

impl NoticeQueue {
    /// The next one; new requests come before what is tried again.
    pub async fn next(&mut self) -> Option<Notice> {
        tokio::select! {
            biased;
            Some(notice) = self.fresh.recv() => Some(notice),
            Some(notice) = self.due.recv() => Some(notice),
            else => None,
        }
    }
}

impl Notices {
    /// What takes the notices from now on; `None` if something does already.
    pub(crate) fn take(&self) -> Option<NoticeQueue> {
        let ((to_fresh, fresh), (to_due, due), (to_tests, tests)) =
            (channel(MAX_FRESH), channel(MAX_DUE), channel(MAX_TESTS));
        let senders = Senders { fresh: to_fresh, due: to_due, tests: to_tests };
        self.0.set(senders).ok().map(|()| NoticeQueue { fresh, due, tests })
    }

    /// Whether this node can take on more of what is due, with all that it claims at once.
    pub(crate) fn has_room(&self) -> bool {
        self.0.get().is_some_and(|to| to.due.capacity() >= CLAIMS_AT_ONCE)
    }

    /// Whether this node can take on another test.
    pub(crate) fn has_room_for_test(&self) -> bool {
        self.0.get().is_some_and(|to| to.tests.capacity() > 0)
    }

    /// Whether this node can take on another new one.
    pub(crate) fn has_room_for_fresh(&self) -> bool {
        self.0.get().is_some_and(|to| to.fresh.capacity() > 0)
    }

    /// Waits for room, but not longer than until then, nor where nobody takes notices.
    pub(crate) async fn wait_for_room(&self, until: Instant) {
        while self.0.get().is_some() && !self.has_room() && Instant::now() < until {
            sleep(LOOK_EVERY).await;
        }
    }

    /// A request was submitted, or it is somebody's turn. Never waits.
    pub(crate) fn submitted(&self, notice: Notice) {
        if let Some(to) = self.0.get() {
            drop(to.fresh.try_send(notice));
        }
    }

    /// A notice was due, and is this node's now. Never waits.
    pub(crate) fn claimed(&self, notice: Notice) {
        if let Some(to) = self.0.get() {
            drop(to.due.try_send(notice));
        }
    }

    /// A test was due, and is this node's now. Never waits: one that finds no room is due again.
    pub(crate) fn test_claimed(&self, test: DueTest) {
        if let Some(to) = self.0.get() {
            drop(to.tests.try_send(test));
        }
    }
}
