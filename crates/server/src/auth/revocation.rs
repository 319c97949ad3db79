//! Whether a credential is still valid, for connections that are held open with it.

use std::{sync::Arc, time::Duration};

use countersign_core::notify::Listener;
use countersign_wire::{failure::Failure, id::TenantId};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::{api_keys::CheckedKey, error::ApiError, metrics::Rejection, state::SharedState};

/// A check that the store did not answer is retried after this.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A credential that is in doubt for this long counts as revoked.
const FAIL_CLOSED_AFTER: Duration = Duration::from_secs(15);

/// Beyond its expiry a credential is checked for no longer than this: what the store would say is known.
const EXPIRY_CHECK: Duration = Duration::from_secs(2);

/// What is known of a credential is trusted for this long before a message of its client is acted on.
const CONFIRMED_FOR: Duration = Duration::from_secs(5);

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyStatus {
    Active,
    /// It is revoked or has expired.
    Revoked,
    /// The store did not answer; it will be asked again.
    Unknown,
    /// It has been in doubt for [`FAIL_CLOSED_AFTER`].
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
    /// Since when it may have been revoked, and the store has not said; `None` if nothing speaks for it.
    in_doubt_since: Option<Instant>,
    /// When to ask the store; `None` until the listener rings. A time and not a delay: whoever waits for it is cancelled
    /// and starts again whenever the connection has something else to do.
    check_at: Option<Instant>,
    /// When the credential expires; `None` if it does not. Nobody rings for that.
    expires: Option<Instant>,
}

impl Progress {
    fn confirmed(expires: Option<Instant>) -> Self {
        Self { confirmed_at: Instant::now(), in_doubt_since: None, check_at: None, expires }
    }

    fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }

    /// Puts it in doubt, if it is not. Returns until when the store may answer.
    fn begin_check(&mut self) -> Instant {
        let now = Instant::now();
        let deadline = *self.in_doubt_since.get_or_insert(now) + FAIL_CLOSED_AFTER;
        self.expires.map_or(deadline, |expires| deadline.min(expires.max(now) + EXPIRY_CHECK))
    }
}

impl RevocationWatch {
    /// What every connection that is held begins with: listens to the credential, and asks the store afterwards, so that no
    /// revocation falls between the two. An error if the credential is not valid, or nobody knows.
    pub(crate) async fn begin(
        app: &SharedState,
        tenant: &TenantId,
        principal: &Arc<str>,
    ) -> Result<Self, ApiError> {
        let watch = Self::new(app, tenant, principal);
        match watch.check().await {
            KeyStatus::Active => Ok(watch),
            KeyStatus::Revoked => Err(Failure::Unauthenticated.into()),
            KeyStatus::Unknown | KeyStatus::Unconfirmed => {
                Err(ApiError::unavailable(Rejection::StoreUnavailable))
            }
        }
    }

    fn new(app: &SharedState, tenant: &TenantId, principal: &Arc<str>) -> Self {
        let listener = app.gateway.listen_to_key(tenant, principal);
        Self {
            app: app.clone(),
            tenant: tenant.clone(),
            principal: principal.clone(),
            listener,
            // The check says when it expires.
            progress: Mutex::new(Progress::confirmed(None)),
        }
    }

    /// Returns when the credential may have been revoked, expires, or is to be asked for again. Holds no permit, so it need not
    /// be polled all the time: a future that waits for a permit and is not polled would keep the permit from others.
    pub(crate) async fn changed(&self) {
        let Progress { check_at, expires, .. } = *self.progress.lock();
        match (check_at, expires) {
            (Some(check_at), _) => return sleep_until(check_at).await,
            // Boxed, so that a connection whose credential does not expire does not carry the memory for it. That the
            // time has come is as good as a ring.
            (None, Some(expires)) => drop(Box::pin(timeout_at(expires, self.listener.rung())).await),
            (None, None) => drop(self.listener.rung().await),
        }
        // From now on a check is due, until one has a definite answer.
        let mut progress = self.progress.lock();
        progress.check_at = Some(Instant::now());
        progress.in_doubt_since.get_or_insert_with(Instant::now);
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

    /// Asks the store. Never behind pushes: revocations have permits of their own. Never for longer than a credential may
    /// be in doubt, however many others ask.
    pub(crate) async fn check(&self) -> KeyStatus {
        let deadline = self.progress.lock().begin_check();
        // Boxed, so that an idle connection does not carry the memory for it.
        let asking = Box::pin(async {
            let _permit = self.app.revocation_reads.acquire(&self.tenant).await;
            let asked = Instant::now();
            let active = self.app.gateway.active_key(&self.tenant, &self.principal).await?;
            Ok::<_, countersign_core::Error>(active.map(|active| CheckedKey::new(active, asked)))
        });
        let answer = timeout_at(deadline, asking).await;
        let mut progress = self.progress.lock();
        match answer {
            Ok(Ok(Some(active))) => {
                *progress = Progress::confirmed(active.expires);
                KeyStatus::Active
            }
            Ok(Ok(None)) => KeyStatus::Revoked,
            // No answer of the store could make it valid again.
            Ok(Err(_)) | Err(_) if progress.has_expired() => KeyStatus::Revoked,
            Ok(Err(error)) if Instant::now() < deadline => {
                tracing::warn!(%error, "a credential could not be checked; it will be retried");
                progress.check_at = Some(Instant::now() + RETRY_DELAY);
                KeyStatus::Unknown
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("a credential could not be confirmed; its connection is closed");
                KeyStatus::Unconfirmed
            }
        }
    }

    /// As [`RevocationWatch::check`], before a message of the client is acted on, which it is only if this is
    /// [`KeyStatus::Active`]; asks only if the last confirmation is older than [`CONFIRMED_FOR`].
    pub(crate) async fn check_before_acting(&self) -> KeyStatus {
        let progress = *self.progress.lock();
        let Progress { confirmed_at, in_doubt_since, .. } = progress;
        let in_doubt = in_doubt_since.is_some() || self.listener.has_rung();
        let confirmed = confirmed_at.elapsed() < CONFIRMED_FOR && !in_doubt;
        if confirmed && !progress.has_expired() {
            return KeyStatus::Active;
        }
        self.check().await
    }
}

#[cfg(test)]
mod tests {
    use countersign_core::{
        Gateway,
        delivery::change_poller::ChangePoller,
        model::credential::Role,
        notify::LocalDoorbell,
        retention::Retention,
        store::Store as _,
        use_cases::credentials::{KeySpec, NewKey},
    };
    use futures_util::FutureExt as _;
    use tokio::time::timeout;

    use super::*;
    use crate::{random::SystemRandom, test_node::TestNode};

    impl TestNode {
        /// Another node on the same store: its rings don't reach this one, and its reads never fail.
        fn other_node(&self) -> Gateway {
            let doorbell = LocalDoorbell::default();
            Gateway::new(self.inner.clone(), &doorbell, Arc::new(SystemRandom), Retention::default())
        }

        async fn create_key(&self, tenant: &TenantId) -> NewKey {
            self.app.gateway.create_key(tenant, Role::Operator, &self.app.mac_key).await.unwrap()
        }

        /// A watch on a key that is revoked just then.
        async fn revoked_watch(&self) -> RevocationWatch {
            let made = self.create_key(&self.tenant).await;
            let watch = RevocationWatch::new(&self.app, &self.tenant, &made.key.key_id().as_str().into());
            assert_eq!(watch.check().await, KeyStatus::Active);
            self.app.gateway.revoke_key(&self.tenant, made.key.key_id()).await.unwrap();
            watch
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_revocation_is_not_lost_when_the_store_fails_at_that_moment() {
        let fixture = TestNode::new();
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
    async fn a_revocation_by_another_node_is_not_lost_when_the_store_fails_at_that_moment() {
        let fixture = TestNode::new();
        let other = fixture.other_node();
        let mut poller = ChangePoller::default();
        for round in 0..100 {
            let made = fixture.create_key(&fixture.tenant).await;
            let principal = made.key.key_id().as_str().into();
            let watch = RevocationWatch::new(&fixture.app, &fixture.tenant, &principal);
            fixture.app.gateway.poll_changes(&mut poller).await.unwrap();
            // What is new to the poller is told once.
            watch.changed().await;
            assert_eq!(watch.check().await, KeyStatus::Active);
            fixture.app.gateway.poll_changes(&mut poller).await.unwrap();
            assert!(watch.changed().now_or_never().is_none(), "nothing has changed yet");
            other.revoke_key(&fixture.tenant, made.key.key_id()).await.unwrap();
            // Every second round the poll itself fails first.
            if round % 2 == 1 {
                fixture.store.set_loads_fail(true);
                assert!(fixture.app.gateway.poll_changes(&mut poller).await.is_err());
                fixture.store.set_loads_fail(false);
            }
            fixture.app.gateway.poll_changes(&mut poller).await.unwrap();
            fixture.store.set_loads_fail(true);
            watch.changed().await;
            assert_eq!(watch.check().await, KeyStatus::Unknown, "round {round}");
            // The poller has told it once, and does not tell it again.
            fixture.store.set_loads_fail(false);
            fixture.app.gateway.poll_changes(&mut poller).await.unwrap();
            let asked_again = Instant::now();
            watch.revoked().await;
            assert!(asked_again.elapsed() <= RETRY_DELAY + Duration::from_millis(10), "round {round}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_read_tells_all_tenants_of_their_revocations_and_costs_as_much_for_a_hundred_as_for_one() {
        let fixture = TestNode::new();
        let other = fixture.other_node();
        let mut poller = ChangePoller::default();
        let tenants: Vec<TenantId> = (0..100).map(|number| format!("t{number}").parse().unwrap()).collect();
        let mut watches = Vec::new();
        for tenant in &tenants {
            let made = fixture.create_key(tenant).await;
            let watch = RevocationWatch::new(&fixture.app, tenant, &made.key.key_id().as_str().into());
            watches.push((watch, made));
        }
        while fixture.app.gateway.poll_changes(&mut poller).await.unwrap() > 0 {}
        for ((watch, made), tenant) in watches.iter().zip(&tenants) {
            watch.changed().await;
            assert_eq!(watch.check().await, KeyStatus::Active);
            other.revoke_key(tenant, made.key.key_id()).await.unwrap();
        }
        let reads = fixture.store.reads();
        assert_eq!(fixture.app.gateway.poll_changes(&mut poller).await.unwrap(), 100);
        assert_eq!(fixture.store.reads(), reads + 1);
        for (number, (watch, _)) in watches.iter().enumerate() {
            assert!(watch.changed().now_or_never().is_some(), "tenant {number} was not told");
            assert_eq!(watch.check().await, KeyStatus::Revoked);
        }
        let reads = fixture.store.reads();
        assert_eq!(fixture.app.gateway.poll_changes(&mut poller).await.unwrap(), 0, "nothing has changed");
        assert_eq!(fixture.store.reads(), reads + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_connection_asks_again_as_soon_as_an_idle_one() {
        let fixture = TestNode::new();
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
        let fixture = TestNode::new();
        let watch = fixture.revoked_watch().await;
        fixture.store.set_loads_fail(true);
        let started = Instant::now();
        watch.revoked().await;
        let waited = started.elapsed();
        assert!(waited + RETRY_DELAY >= FAIL_CLOSED_AFTER && waited <= FAIL_CLOSED_AFTER + RETRY_DELAY * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_does_not_get_its_turn_counts_as_revoked_after_a_bound() {
        let fixture = TestNode::new();
        let watch = fixture.revoked_watch().await;
        // Others hold every permit, and their reads never end.
        let permits = &fixture.app.revocation_reads;
        let _held = [permits.acquire(&fixture.tenant).await, permits.acquire(&fixture.tenant).await];
        let started = Instant::now();
        watch.revoked().await;
        assert!(started.elapsed() <= FAIL_CLOSED_AFTER + RETRY_DELAY, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_the_store_does_not_close_a_connection_that_was_quiet_for_long() {
        let fixture = TestNode::new();
        let made = fixture.create_key(&fixture.tenant).await;
        let principal = made.key.key_id().as_str().into();
        let watch = RevocationWatch::new(&fixture.app, &fixture.tenant, &principal);
        assert_eq!(watch.check().await, KeyStatus::Active);
        tokio::time::advance(Duration::from_hours(1)).await;
        fixture.store.set_loads_fail(true);
        assert_eq!(watch.check().await, KeyStatus::Unknown);
        assert_eq!(watch.check_before_acting().await, KeyStatus::Unknown, "it must not act, and stays");
        fixture.store.set_loads_fail(false);
        assert_eq!(watch.check().await, KeyStatus::Active);
    }

    impl TestNode {
        /// A watch on a key that is valid for so long.
        async fn expiring_watch(&self, valid: Duration) -> RevocationWatch {
            let expires_at = Some(self.inner.now().await.unwrap().plus(valid));
            let spec = KeySpec { expires_at, ..Role::Operator.into() };
            let made = self.app.gateway.create_key(&self.tenant, spec, &self.app.mac_key).await.unwrap();
            let principal = made.key.key_id().as_str().into();
            RevocationWatch::begin(&self.app, &self.tenant, &principal).await.unwrap()
        }
    }

    /// The store's clock is real, so this test's is too.
    #[tokio::test]
    async fn an_expiry_ends_a_watch_on_time_without_a_ring() {
        let fixture = TestNode::new();
        let valid = Duration::from_secs(5);
        let started = Instant::now();
        let watch = fixture.expiring_watch(valid).await;
        // Without the expiry it would never return.
        timeout(Duration::from_secs(30), watch.revoked()).await.unwrap();
        assert!(started.elapsed() >= valid / 2, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_expiry_needs_no_answer_of_the_store() {
        let fixture = TestNode::new();
        let valid = Duration::from_mins(1);
        let (failing, hanging) = (fixture.expiring_watch(valid).await, fixture.expiring_watch(valid).await);
        assert_eq!(failing.check_before_acting().await, KeyStatus::Active);
        let started = Instant::now();
        fixture.store.set_loads_fail(true);
        failing.revoked().await;
        assert!(started.elapsed() <= valid + Duration::from_millis(10), "{:?}", started.elapsed());
        assert_eq!(failing.check_before_acting().await, KeyStatus::Revoked);
        let permits = &fixture.app.revocation_reads;
        let _held = [permits.acquire(&fixture.tenant).await, permits.acquire(&fixture.tenant).await];
        hanging.revoked().await;
        assert!(started.elapsed() <= valid + EXPIRY_CHECK * 2, "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_not_acted_on_after_the_expiry_of_its_credential_however_lately_it_was_confirmed() {
        let fixture = TestNode::new();
        let watch = fixture.expiring_watch(CONFIRMED_FOR / 2).await;
        assert_eq!(watch.check_before_acting().await, KeyStatus::Active);
        tokio::time::advance(CONFIRMED_FOR / 2).await;
        fixture.store.set_loads_fail(true);
        assert_eq!(watch.check_before_acting().await, KeyStatus::Revoked);
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_not_acted_on_once_a_revocation_has_rung_or_its_confirmation_is_old() {
        let fixture = TestNode::new();
        let here = fixture.revoked_watch().await;
        assert_eq!(here.check_before_acting().await, KeyStatus::Revoked, "although nobody polled the ring");
        let made = fixture.create_key(&fixture.tenant).await;
        let principal = made.key.key_id().as_str().into();
        let elsewhere = RevocationWatch::begin(&fixture.app, &fixture.tenant, &principal).await.unwrap();
        fixture.other_node().revoke_key(&fixture.tenant, made.key.key_id()).await.unwrap();
        assert_eq!(elsewhere.check_before_acting().await, KeyStatus::Active, "confirmed a moment ago");
        tokio::time::advance(CONFIRMED_FOR).await;
        assert_eq!(elsewhere.check_before_acting().await, KeyStatus::Revoked);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_does_not_begin_with_a_key_that_was_revoked_elsewhere_a_moment_ago() {
        let fixture = TestNode::new();
        let made = fixture.create_key(&fixture.tenant).await;
        assert!(fixture.app.keys.active(&made.key).await.unwrap().is_some());
        fixture.other_node().revoke_key(&fixture.tenant, made.key.key_id()).await.unwrap();
        assert!(fixture.app.keys.active(&made.key).await.unwrap().is_some(), "known for five seconds");
        let principal = made.key.key_id().as_str().into();
        let begun = RevocationWatch::begin(&fixture.app, &fixture.tenant, &principal).await;
        assert_eq!(begun.err().unwrap().failure(), Failure::Unauthenticated);
        assert!(fixture.app.keys.active(&made.key).await.unwrap().is_none(), "the check was remembered");
    }
}
