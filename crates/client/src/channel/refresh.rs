//! Waiting until an approver asks for a request once more.

use countersign_wire::id::RequestId;

use super::{
    handle::Channel,
    message::{ChannelError, Event, Settings, Transport},
};
use crate::{ends::enforcer::Enforcer, identity::profile::Party};

impl Enforcer {
    /// Waits until an approver asks for one of these requests once more, and returns which. It is the gateway's word; answer
    /// it with [`Enforcer::ask_again`], which also acknowledges it. Everything else that arrives is left for whoever waits
    /// for it. Only a WebSocket carries this.
    pub async fn refreshed(
        &self,
        requests: &[RequestId],
        settings: Settings,
    ) -> Result<RequestId, ChannelError> {
        let settings = Settings { transports: vec![Transport::Websocket], ..settings };
        let party = Party::Enforcer(self.id.clone());
        let mut channel = Channel::open(self.http.clone(), party, self.clock.clone(), settings);
        loop {
            if let Event::Refresh(pushed) = channel.next().await?
                && requests.contains(&pushed.request_id)
            {
                return Ok(pushed.request_id);
            }
        }
    }
}
