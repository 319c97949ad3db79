//! Where requests come from.

use std::{future::Future, sync::Arc, time::Duration};

use countersign_agents::tool::{exit::Failure, gateway_error::describe, home::failed};
use countersign_client::{
    approver::{Approver, InboxItem},
    profile::Profile,
};
use tokio::time::{Instant, sleep_until};

/// The pause between two readings of the inbox.
const PAUSE: Duration = Duration::from_secs(2);

/// Something that tells what waits.
pub trait Source: Send {
    /// Waits until it is time, and returns everything that waits then. Dropping the future loses nothing.
    fn next(&mut self) -> impl Future<Output = Result<Vec<InboxItem>, Failure>> + Send;
}

/// Reads the inbox every two seconds.
pub struct Polling {
    approver: Arc<Approver>,
    profile: Profile,
    due: Instant,
}

impl Polling {
    /// The first reading is at once.
    pub fn new(approver: Arc<Approver>, profile: Profile) -> Self {
        Self { approver, profile, due: Instant::now() }
    }
}

impl Source for Polling {
    async fn next(&mut self) -> Result<Vec<InboxItem>, Failure> {
        sleep_until(self.due).await;
        // Pins are read each time: a machine that was revoked meanwhile does not count any more.
        let pins = self.profile.pins().map_err(failed);
        let items = match pins {
            Ok(pins) => self.approver.inbox(&pins).await.map_err(|error| describe(&error)),
            Err(failure) => Err(failure),
        };
        self.due = Instant::now() + PAUSE;
        items
    }
}
