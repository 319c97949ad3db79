//! A doorbell whose receiver takes what was handed over before for what is handed over now.

use std::{collections::HashMap, sync::Arc};

use countersign_core::{
    model::channels::NodeId,
    notify::{Announcement, Announcer, Doorbell, HandOver, Receiver},
    store::{Delivery, MailboxKey},
};
use parking_lot::Mutex;

pub(super) struct StaleHandOvers(pub(super) Box<dyn Doorbell>);

impl Doorbell for StaleHandOvers {
    fn attach(&self, node: &NodeId, receiver: Arc<dyn Receiver>) -> Box<dyn Announcer> {
        self.0.attach(node, Arc::new(StaleReceiver { receiver, last: Mutex::default() }))
    }
}

struct StaleReceiver {
    receiver: Arc<dyn Receiver>,
    last: Mutex<HashMap<MailboxKey, Arc<HandOver>>>,
}

impl Receiver for StaleReceiver {
    fn receive(&self, mut announcement: Announcement) {
        let mut last = self.last.lock();
        for (_, hand_over) in &mut announcement.hand_overs {
            let number = hand_over.delivery.number;
            if let Some(before) = last.insert(hand_over.mailbox.clone(), Arc::clone(hand_over)) {
                let delivery = Delivery { number, ..before.delivery.clone() };
                let (mailbox, message) = (before.mailbox.clone(), before.message.clone());
                *hand_over = Arc::new(HandOver { mailbox, delivery, message });
            }
        }
        drop(last);
        self.receiver.receive(announcement);
    }
}
