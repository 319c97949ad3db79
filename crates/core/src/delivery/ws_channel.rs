//! What is sent on one WebSocket, and sent again until it is acknowledged: a subscription, under the rules of its session.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    feed::FeedItem,
    message::Message,
    subscription::{ReadPermits, Subscription, SubscriptionEnded},
    ws_session::{Action, MessageRef, WsSession},
};

/// Where a channel's messages go: a socket, or what stands for one in a simulation.
pub trait WsOutput: Send {
    /// Why the connection has to be closed.
    type Closed: From<WsEnded> + Send;

    /// `false` if the message can't be written, which another attempt would not change.
    fn push(&mut self, push: Push<'_>) -> impl Future<Output = Result<bool, Self::Closed>> + Send;

    fn ping(&mut self) -> impl Future<Output = Result<(), Self::Closed>> + Send;
}

/// A message that is sent, for the first time or again.
#[derive(Debug)]
pub struct Push<'a> {
    pub item: &'a FeedItem,
    pub message: Message,
    pub is_first: bool,
    /// When its message began to be fetched.
    pub began: Instant,
}

/// Why nothing more is sent.
#[derive(Debug, thiserror::Error)]
pub enum WsEnded {
    #[error(transparent)]
    Subscription(#[from] SubscriptionEnded),
    #[error("nothing was received for too long")]
    Idle,
}

/// A WebSocket apart from its socket. `now` is the time since the start of the connection.
pub struct WsChannel<P> {
    pub subscription: Subscription<P>,
    pub session: WsSession,
}

impl<P: ReadPermits> WsChannel<P> {
    pub fn new(subscription: Subscription<P>, idle_timeout: Duration) -> Self {
        Self { subscription, session: WsSession::new(idle_timeout) }
    }

    /// Sends what [`Subscription::next`] returned.
    pub async fn send<O: WsOutput>(
        &mut self,
        output: &mut O,
        item: &FeedItem,
        now: Duration,
    ) -> Result<(), O::Closed> {
        self.push(output, item, true, now).await
    }

    /// Pings, redelivers or gives up, whichever is due.
    pub async fn do_due<O: WsOutput>(&mut self, output: &mut O, now: Duration) -> Result<(), O::Closed> {
        for action in self.session.due(now) {
            match action {
                Action::CloseIdle => return Err(WsEnded::Idle.into()),
                Action::Ping => output.ping().await?,
                Action::Redeliver((source, number)) => {
                    match self.subscription.reload(source, number).await.map_err(WsEnded::from)? {
                        Some(item) => self.push(output, &item, false, now).await?,
                        None => self.session.done_with((source, number)),
                    }
                }
            }
        }
        Ok(())
    }

    /// The message is fetched now and not before: a slow client holds one in memory, never a queue.
    async fn push<O: WsOutput>(
        &mut self,
        output: &mut O,
        item: &FeedItem,
        is_first: bool,
        now: Duration,
    ) -> Result<(), O::Closed> {
        let (place, began) = ((item.source, item.delivery.number), Instant::now());
        let message = self.subscription.message(item).await;
        let message = message.map_err(|error| WsEnded::from(SubscriptionEnded::Store(error)))?;
        let Some(message) = message else {
            self.session.done_with(place);
            return Ok(());
        };
        let message_ref =
            MessageRef { request_id: message.request_id.clone(), msg_id: message.msg_id.clone() };
        match output.push(Push { item, message, is_first, began }).await? {
            true => self.session.sent(place, message_ref, now),
            false => self.session.done_with(place),
        }
        Ok(())
    }
}
