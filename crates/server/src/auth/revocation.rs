//! Whether a credential is still active, for connections that are held open with it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use countersign_core::notify::Listener;
use countersign_wire::id::TenantId;
use tokio::time::{Instant, sleep_until};

use crate::state::SharedState;

/// A check that the store did not answer is retried after this.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A credential that could not be confirmed for this long counts as revoked.
const FAIL_CLOSED_AFTER: Duration = Duration::from_secs(15);

/// What is known of a credential is trusted for this long before a message of its client is acted on.
const CONFIRMED_FOR: Duration = Duration::from_secs(5);

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyStatus {
    Active,
    Revoked,
    /// The store did not answer; it will be asked again.
    Unknown,
    /// The store has not answered for [`FAIL_CLOSED_AFTER`].
    Unconfirmed,
}

/// Listens to the record of a credential, and asks again until there is a definite answer.
pub(crate) struct RevocationWatch {
    app: SharedState,
    tenant: TenantId,
    principal: Arc<str>,
    listener: Listener,
    progress: Mutex<Progress>,
}

#[derive(Debug, Clone, Copy)]
struct Progress {
    /// When the credential was last known to be active.
    confirmed_at: Instant,
    /// When to ask the store; `None` until the listener rings. A time and not a delay: whoever waits for it is cancelled
    /// and starts again whenever the connection has something else to do.
    check_at: Option<Instant>,
}

impl RevocationWatch {
    /// Listens from now on. Call [`RevocationWatch::check`] after this, and not before.
    pub(crate) fn new(app: &SharedState, tenant: &TenantId, principal: &Arc<str>) -> Self {
        let listener = app.gateway.listen_to_key(tenant, principal);
        Self {
            app: app.clone(),
            tenant: tenant.clone(),
            principal: principal.clone(),
            listener,
            progress: Mutex::new(Progress { confirmed_at: Instant::now(), check_at: None }),
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the credential may have been revoked, or is to be asked for again. Holds no permit, so it need not
    /// be polled all the time: a future that waits for a permit and is not polled would keep the permit from others.
    pub(crate) async fn changed(&self) {
        let check_at = self.progress().check_at;
        if let Some(check_at) = check_at {
            return sleep_until(check_at).await;
        }
        self.listener.rung().await;
        // From now on a check is due, until one has a definite answer.
        self.progress().check_at = Some(Instant::now());
    }

    /// Returns when the credential is revoked, or can't be confirmed. Unlike [`RevocationWatch::changed`] it takes read
    /// permits, so it must be polled all the time.
    pub(crate) async fn revoked(&self) {
        loop {
            self.changed().await;
            if matches!(self.check().await, KeyStatus::Revoked | KeyStatus::Unconfirmed) {
                return;
            }
        }
    }

    /// Asks the store. Never behind pushes: revocations have permits of their own.
    pub(crate) async fn check(&self) -> KeyStatus {
        let permit = self.app.revocation_reads.acquire(&self.tenant).await;
        // Boxed, so that an idle connection does not carry the memory for it.
        let active = Box::pin(self.app.gateway.key_is_active(&self.tenant, &self.principal)).await;
        drop(permit);
        let mut progress = self.progress();
        match active {
            Ok(true) => {
                *progress = Progress { confirmed_at: Instant::now(), check_at: None };
                KeyStatus::Active
            }
            Ok(false) => KeyStatus::Revoked,
            Err(error) if progress.confirmed_at.elapsed() < FAIL_CLOSED_AFTER => {
                tracing::warn!(%error, "a credential could not be checked; it will be retried");
                progress.check_at = Some(Instant::now() + RETRY_DELAY);
                KeyStatus::Unknown
            }
            Err(error) => {
                tracing::warn!(%error, "a credential could not be confirmed; its connection is closed");
                KeyStatus::Unconfirmed
            }
        }
    }

    /// As [`RevocationWatch::check`], before a message of the client is acted on; asks only if the last confirmation is
    /// older than [`CONFIRMED_FOR`].
    pub(crate) async fn check_before_acting(&self) -> KeyStatus {
        let Progress { confirmed_at, check_at } = *self.progress();
        match confirmed_at.elapsed() < CONFIRMED_FOR && check_at.is_none() {
            true => KeyStatus::Active,
            false => self.check().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::{Gateway, model::credential::Role, notify::LocalDoorbell, retention::Retention};
    use countersign_testkit::recording_store::RecordingStore;
    use tokio::time::timeout;

    use super::*;
    use crate::{
        random::SystemRandom,
        secrets::Secrets,
        state::{AppState, Settings},
    };

    struct Fixture {
        app: SharedState,
        store: Arc<RecordingStore>,
        tenant: TenantId,
        _folder: tempfile::TempDir,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let options = countersign_store_sqlite::Options::default();
            let file = folder.path().join("db");
            let inner = countersign_store_sqlite::SqliteStore::open(file, options).unwrap();
            let store = RecordingStore::new(Arc::new(inner));
            let doorbell = Arc::new(LocalDoorbell::default());
            let gateway = Gateway::new(store.clone(), doorbell, Arc::new(SystemRandom), Retention::default());
            let id = "gw".parse().unwrap();
            let app = AppState::new(gateway, id, Secrets::random(), Settings::default());
            Self { app, store, tenant: "acme".parse().unwrap(), _folder: folder }
        }

        /// A watch on a key that is revoked just then.
        async fn revoked_watch(&self) -> RevocationWatch {
            let made =
                self.app.gateway.create_key(&self.tenant, Role::Operator, &self.app.mac_key).await.unwrap();
            let watch = RevocationWatch::new(&self.app, &self.tenant, &made.key.key_id().as_str().into());
            assert_eq!(watch.check().await, KeyStatus::Active);
            self.app.gateway.revoke_key(&self.tenant, made.key.key_id()).await.unwrap();
            watch
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_revocation_is_not_lost_when_the_store_fails_at_that_moment() {
        let fixture = Fixture::new();
        for round in 0..100 {
            let watch = fixture.revoked_watch().await;
            fixture.store.set_loads_fail(true);
            watch.changed().await;
            assert_eq!(watch.check().await, KeyStatus::Unknown, "round {round}");
            fixture.store.set_loads_fail(false);
            let asked_again = Instant::now();
            watch.revoked().await;
            assert!(asked_again.elapsed() <= RETRY_DELAY + Duration::from_millis(10), "round {round}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_asks_again_as_soon_as_an_idle_one() {
        let fixture = Fixture::new();
        let watch = fixture.revoked_watch().await;
        fixture.store.set_loads_fail(true);
        watch.changed().await;
        assert_eq!(watch.check().await, KeyStatus::Unknown);
        fixture.store.set_loads_fail(false);
        let started = Instant::now();
        // As a stream does that has a message to send every 100 ms: the future is dropped and made again.
        while timeout(Duration::from_millis(100), watch.changed()).await.is_err() {
            assert!(started.elapsed() < RETRY_DELAY * 2, "never asked again");
        }
        assert_eq!(watch.check().await, KeyStatus::Revoked);
    }

    #[tokio::test(start_paused = true)]
    async fn a_credential_that_can_not_be_confirmed_counts_as_revoked_after_a_bound() {
        let fixture = Fixture::new();
        let watch = fixture.revoked_watch().await;
        fixture.store.set_loads_fail(true);
        let started = Instant::now();
        watch.revoked().await;
        let waited = started.elapsed();
        assert!(waited + RETRY_DELAY >= FAIL_CLOSED_AFTER && waited <= FAIL_CLOSED_AFTER + RETRY_DELAY * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_acted_on_only_with_a_credential_that_was_confirmed_lately() {
        let fixture = Fixture::new();
        let watch = fixture.revoked_watch().await;
        assert_eq!(watch.check_before_acting().await, KeyStatus::Active, "confirmed a moment ago");
        tokio::time::advance(CONFIRMED_FOR).await;
        assert_eq!(
            watch.check_before_acting().await,
            KeyStatus::Revoked,
            "although nobody has polled the ring"
        );
    }
}
