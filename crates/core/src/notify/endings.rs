//! Requests that have left an approver's mailboxes, for clients that want to hear of it at once. Nothing is stored: whoever
//! misses it learns it by reading.

use std::{collections::HashMap, sync::Arc};

use countersign_wire::id::RequestId;
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::store::MailboxKey;

/// What waits for one listener at most. More is dropped.
const MAX_WAITING: usize = 64;

type Queues = HashMap<MailboxKey, Vec<Sender<RequestId>>>;

/// Everybody on one node who listens. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndingListeners {
    queues: Arc<Mutex<Queues>>,
}

impl EndingListeners {
    /// Listens to these mailboxes until it is dropped.
    pub(crate) fn add(&self, mailboxes: Vec<MailboxKey>) -> Endings {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let mut queues = self.queues.lock();
        for mailbox in &mailboxes {
            queues.entry(mailbox.clone()).or_default().push(sender.clone());
        }
        drop(queues);
        Endings { receiver, sender, mailboxes, listeners: self.clone() }
    }

    /// This request has left this mailbox.
    pub(crate) fn ended(&self, mailbox: &MailboxKey, request_id: &RequestId) {
        for listener in self.queues.lock().get(mailbox).into_iter().flatten() {
            // One that does not keep up reads its inbox.
            drop(listener.try_send(request_id.clone()));
        }
    }
}

/// Hears of requests that have left some mailboxes.
#[derive(Debug)]
pub struct Endings {
    receiver: Receiver<RequestId>,
    sender: Sender<RequestId>,
    mailboxes: Vec<MailboxKey>,
    listeners: EndingListeners,
}

impl Endings {
    /// The next one. Cancel-safe.
    pub async fn next(&mut self) -> RequestId {
        match self.receiver.recv().await {
            Some(request_id) => request_id,
            // It has a sender of its own, so this does not happen.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Endings {
    fn drop(&mut self) {
        let mut queues = self.listeners.queues.lock();
        for mailbox in &self.mailboxes {
            if let Some(listening) = queues.get_mut(mailbox) {
                listening.retain(|sender| !sender.same_channel(&self.sender));
                if listening.is_empty() {
                    queues.remove(mailbox);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Mailbox;

    #[tokio::test]
    async fn who_listens_hears_of_its_own_mailboxes_and_the_memory_is_bounded() {
        let listeners = EndingListeners::default();
        let of = |mailbox| MailboxKey { tenant: "acme".parse().unwrap(), mailbox };
        let (ada, shared) = (of(Mailbox::Approver("ada".parse().unwrap())), of(Mailbox::Shared));
        let mut endings = listeners.add(vec![ada.clone(), shared.clone()]);
        let other = listeners.add(vec![shared.clone()]);
        listeners.ended(&ada, &"a".parse().unwrap());
        listeners.ended(&of(Mailbox::Approver("bob".parse().unwrap())), &"b".parse().unwrap());
        listeners.ended(&shared, &"s".parse().unwrap());
        assert_eq!([endings.next().await.as_str(), endings.next().await.as_str()], ["a", "s"]);
        for _ in 0..MAX_WAITING * 2 {
            listeners.ended(&shared, &"s".parse().unwrap());
        }
        assert_eq!(endings.receiver.len(), MAX_WAITING);
        drop((endings, other));
        assert!(listeners.queues.lock().is_empty());
    }
}
