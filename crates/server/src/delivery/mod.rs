//! What one channel has to send to its client, whichever transport it uses.

mod channel_guard;
mod subscriber;
mod subscription;

pub(crate) use subscriber::Subscriber;
pub(crate) use subscription::{Subscription, SubscriptionEnded};
