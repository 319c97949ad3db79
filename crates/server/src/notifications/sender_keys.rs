//! The keys by which push services recognise this gateway, the same on all nodes. They are kept in the store, encrypted. A
//! subscription is bound to the key that it was made with, so an older key stays for as long as devices need to notice.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_core::{Gateway, model::own_record::OwnRecord};
use countersign_wire::{failure::Failure, timestamp::Timestamp};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::web_push::SenderKey;
use crate::{error::ApiError, sealing::Sealer};

const RECORD: &str = "notification senders";
const CLAIM: Duration = Duration::from_secs(10);
const ATTEMPTS: usize = 20;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(250);

/// A new key is made after this time, and the one before is kept for the second: a device that is not used for longer asks
/// for a new subscription when it is.
const KEY_LIFE: Duration = Duration::from_hours(365 * 24);
const OVERLAP: Duration = Duration::from_hours(180 * 24);

/// How long a node uses what it has read.
const REMEMBERED: Duration = Duration::from_mins(1);

/// All keys that are in use, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Senders(Vec<SenderKey>);

impl Senders {
    /// The key for new subscriptions.
    pub(crate) fn newest(&self) -> Option<&SenderKey> {
        self.0.first()
    }

    /// The key that a subscription was made with; `None` if it is too old.
    pub(crate) fn of(&self, public: &str) -> Option<&SenderKey> {
        self.0.iter().find(|key| key.public() == public)
    }
}

/// The content of the record, the newest key first.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Contents {
    keys: Vec<StoredKey>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredKey {
    /// The private key, as PKCS#8 in base64.
    key: String,
    made_at: Timestamp,
}

/// Reads the keys, and makes them.
#[derive(Debug)]
pub(crate) struct SenderKeys {
    gateway: Gateway,
    sealer: Sealer,
    known: Mutex<Option<(Instant, Arc<Senders>)>>,
}

impl SenderKeys {
    pub(super) fn new(gateway: Gateway, sealer: Sealer) -> Self {
        Self { gateway, sealer, known: Mutex::default() }
    }

    /// The keys. The first who asks makes one, and whoever asks when the newest is old makes another.
    pub(crate) async fn get(&self) -> Result<Arc<Senders>, ApiError> {
        if let Some((at, known)) = &*self.known.lock()
            && at.elapsed() < REMEMBERED
        {
            return Ok(Arc::clone(known));
        }
        for _ in 0..ATTEMPTS {
            let (record, now) = self.gateway.own_record(RECORD).await?;
            let (contents, is_newest) = self.read(&record);
            let is_current = contents.keys.first().is_some_and(|key| now < key.made_at.plus(KEY_LIFE));
            if is_current && is_newest || !self.renew().await? && !contents.keys.is_empty() {
                let parse = |key: &StoredKey| SenderKey::from_pkcs8(&STANDARD.decode(&key.key).ok()?);
                let senders = Arc::new(Senders(contents.keys.iter().filter_map(parse).collect()));
                *self.known.lock() = Some((Instant::now(), Arc::clone(&senders)));
                return Ok(senders);
            }
            sleep(ATTEMPT_PAUSE).await;
        }
        Err(Failure::Unavailable.into())
    }

    /// The keys, and whether they are encrypted with the newest of the gateway's secrets. What can't be opened, after that
    /// secret was lost, is made anew.
    fn read(&self, record: &OwnRecord) -> (Contents, bool) {
        let opened = record.sealed.as_ref().and_then(|sealed| self.sealer.open(RECORD, sealed));
        let is_newest = opened.as_ref().is_some_and(|opened| opened.is_newest);
        let contents = opened.and_then(|opened| serde_json::from_slice(&opened.content).ok());
        (contents.unwrap_or_default(), is_newest)
    }

    /// Adds a key if the newest is old, and encrypts all of them again; not if another node is about to.
    async fn renew(&self) -> Result<bool, ApiError> {
        if self.gateway.claim_own_record(RECORD, CLAIM).await?.is_none() {
            return Ok(false);
        }
        let key = STANDARD.encode(SenderKey::generate().map_err(|_| Failure::Internal)?);
        let write = |record: &mut OwnRecord, now: Timestamp| {
            let (mut contents, _) = self.read(record);
            contents.keys.retain(|key| now < key.made_at.plus(KEY_LIFE + OVERLAP));
            if contents.keys.first().is_none_or(|newest| now >= newest.made_at.plus(KEY_LIFE)) {
                contents.keys.insert(0, StoredKey { key: key.clone(), made_at: now });
            }
            let text = serde_json::to_vec(&contents).unwrap_or_default();
            record.sealed = self.sealer.seal(RECORD, &text).or(record.sealed.take());
            record.claim = None;
        };
        Ok(self.gateway.write_own_record(RECORD, "notifications.senderKey", write).await?)
    }
}
