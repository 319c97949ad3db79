//! Asks for what waits: an approver's inbox, or the answers to an enforcer's requests. It makes up for what another
//! device has acknowledged, says what has ended, and is the transport when there is no other.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_wire::{envelope::Envelope, exchange::ExchangeState, id::RequestId};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, watch},
    time::{sleep, timeout},
};

use super::message::Pushed;
use crate::{
    ends::approver::MAX_PAGES,
    gateway::{
        answers::Page,
        http::{Call, CallError, Http, segment},
    },
    identity::profile::Party,
};

/// Two listings are at least this far apart.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// A listing that failed is tried again after this time, if it is not due earlier.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// How long a gateway may hold a wait for a decision that it has.
const HELD: Duration = Duration::from_secs(1);

/// When the next listing is due.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// How often; `None` while there is no connection.
    pub(super) every: Option<Duration>,
    /// How many listings were asked for besides.
    pub(super) asked_for: u64,
}

/// What a listing finds.
#[derive(Debug)]
pub(super) enum Listed {
    /// The listing of this number begins.
    Begun(u64),
    /// A message that waits.
    Item(Pushed),
    /// A request that is waited for has ended, in this state if the gateway says it.
    Ended(RequestId, Option<ExchangeState>),
    /// The listing has ended; `true` if everything that waits was in it.
    Done(bool),
    /// The gateway did not answer, or refused.
    Failed(CallError),
}

/// The requests whose answers an enforcer waits for.
pub(super) type Watched = Arc<Mutex<BTreeSet<RequestId>>>;

/// Lists when it is time, until the receiver is gone.
pub(super) struct Lister {
    pub(super) http: Http,
    pub(super) party: Party,
    pub(super) watched: Watched,
    /// How many listings have begun. It is counted here: when the receiver reads it, the listing may be long done.
    pub(super) begun: Arc<AtomicU64>,
    pub(super) pace: watch::Receiver<Pace>,
    pub(super) found: mpsc::Sender<Listed>,
}

/// The receiver is gone.
struct Unheard;

impl Lister {
    pub(super) async fn run(mut self) {
        loop {
            let every = self.pace.borrow_and_update().every;
            if let Some(every) = every {
                let Ok(is_listed) = self.list().await else { return };
                sleep(MIN_PAUSE).await;
                let every = if is_listed { every } else { every.min(RETRY_AFTER) };
                let changed = timeout(every.saturating_sub(MIN_PAUSE), self.pace.changed()).await;
                if let Ok(Err(_)) = changed {
                    return;
                }
            } else if self.pace.changed().await.is_err() {
                return;
            }
        }
    }

    async fn report(&self, listed: Listed) -> Result<(), Unheard> {
        self.found.send(listed).await.map_err(|_| Unheard)
    }

    /// Lists once; returns whether that succeeded.
    async fn list(&self) -> Result<bool, Unheard> {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        self.report(Listed::Begun(number)).await?;
        let listed = match &self.party {
            Party::Approver(id) => self.list_inbox(id.as_str()).await?,
            Party::Enforcer(_) => self.list_watched().await?,
        };
        let is_listed = listed.is_ok();
        self.report(listed.map_or_else(Listed::Failed, Listed::Done)).await?;
        Ok(is_listed)
    }

    async fn list_inbox(&self, id: &str) -> Result<Result<bool, CallError>, Unheard> {
        let path = format!("/v1/approvers/{}/inbox?limit=200", segment(id));
        let mut cursor = None::<String>;
        for _ in 0..MAX_PAGES {
            let more = cursor.map(|cursor| format!("&cursor={}", segment(&cursor))).unwrap_or_default();
            let page = match self.http.send(&Call::get(format!("{path}{more}"))).await {
                Ok(answer) => answer.envelope().and_then(|envelope| items(&envelope)),
                Err(error) => Err(error),
            };
            let (items, next) = match page {
                Ok(page) => page,
                Err(error) => return Ok(Err(error)),
            };
            for item in items {
                self.report(Listed::Item(item)).await?;
            }
            cursor = next;
            if cursor.is_none() {
                return Ok(Ok(true));
            }
        }
        Ok(Ok(false))
    }

    async fn list_watched(&self) -> Result<Result<bool, CallError>, Unheard> {
        let watched = self.watched.lock().clone();
        for request_id in watched {
            match self.became_of(request_id).await {
                Ok(Some(listed)) => self.report(listed).await?,
                Ok(None) => {}
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(true))
    }

    /// What became of a request: its answer, that it has ended, or `None` while it waits. A wait could be held, so the state is
    /// asked for first.
    async fn became_of(&self, request_id: RequestId) -> Result<Option<Listed>, CallError> {
        let word = match self.http.exchange_once(&request_id).await {
            Err(CallError::Refused { status: 404, .. }) => return Ok(Some(Listed::Ended(request_id, None))),
            word => word?,
        };
        if word.state == ExchangeState::PendingApproval {
            return Ok(None);
        }
        if !word.is_decided() {
            return Ok(Some(Listed::Ended(request_id, Some(word.state))));
        }
        let path = format!("/v1/exchanges/{}/wait?timeout=1", segment(request_id.as_str()));
        let answer = self.http.send(&Call::get(path).held_for(HELD)).await?;
        if answer.status != 200 {
            // It is decided, so the decision comes.
            return Ok(None);
        }
        let pushed = String::from_utf8(answer.body).ok().and_then(Pushed::read);
        pushed.map(|pushed| Some(Listed::Item(pushed))).ok_or(CallError::NotUnderstood)
    }
}

/// The items of a page, and the cursor of the next one.
fn items(envelope: &Envelope<'_>) -> Result<(Vec<Pushed>, Option<String>), CallError> {
    let page = envelope.body.view::<Page<'_>>().map_err(|_| CallError::NotUnderstood)?.into_view();
    let pushed = |item: &Envelope<'_>| serde_json::to_string(item).ok().and_then(Pushed::read);
    let items: Option<Vec<Pushed>> = page.items.iter().map(pushed).collect();
    Ok((items.ok_or(CallError::NotUnderstood)?, page.next_cursor))
}
