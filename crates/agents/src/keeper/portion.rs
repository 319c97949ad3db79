//! What the callers of one account may take. Each account has its own, so none can take what another needs.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::sleep,
};

/// A hook has its question ready when it calls.
const QUESTION_TIME: Duration = Duration::from_secs(5);

/// So many may be sending their questions at once. When more call, those who take longer than usual are hung up on.
const MAX_SENDING: usize = 256;

/// So many more may wait for a place among those who send, where they are not left in the system's own queue.
const MAX_WAITING: usize = 512;

/// How long a caller may take to read its answer.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(5);

/// What sending usually takes, and much more.
pub(super) const PLACE_TIME: Duration = Duration::from_millis(100);

/// So many questions may be open, each with a person or on its way to one.
pub(super) const MAX_OPEN: usize = 512;

/// All questions together may take so many kilobytes.
const MAX_KILOBYTES: usize = 64 << 10;

/// The places of one account.
#[derive(Debug)]
pub(super) struct Portion {
    sending: Arc<Semaphore>,
    waiting: Semaphore,
    /// Whether somebody waits for a place among those who send.
    is_crowded: watch::Sender<bool>,
    pub(super) open: Semaphore,
    pub(super) memory: Semaphore,
}

impl Default for Portion {
    fn default() -> Self {
        Self {
            sending: Arc::new(Semaphore::new(MAX_SENDING)),
            waiting: Semaphore::new(MAX_WAITING),
            is_crowded: watch::channel(false).0,
            open: Semaphore::new(MAX_OPEN),
            memory: Semaphore::new(MAX_KILOBYTES),
        }
    }
}

impl Portion {
    /// A place among those who send. Where there is none, those who take longest lose theirs.
    pub(super) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.sending).try_acquire_owned() {
            return Some(place);
        }
        self.is_crowded.send_replace(true);
        let place = Arc::clone(&self.sending).acquire_owned().await;
        self.is_crowded.send_replace(false);
        place.ok()
    }

    /// As [`Self::place`], and nothing where too many wait for one already.
    pub(super) async fn place_in_turn(&self) -> Option<OwnedSemaphorePermit> {
        let _turn = self.waiting.try_acquire().ok()?;
        self.place().await
    }

    /// Waits until a caller has had its time to send.
    pub(super) async fn sending_time_is_over(&self) {
        let crowded = async {
            sleep(PLACE_TIME).await;
            // The sender lives as long as this.
            drop(self.is_crowded.subscribe().wait_for(|is_crowded| *is_crowded).await);
        };
        tokio::select! {
            () = sleep(QUESTION_TIME) => {}
            () = crowded => {}
        }
    }
}
