//! Notifies people of requests outside of the protocol: Web Push, `UnifiedPush`, webhooks. What is sent is one fixed text and
//! the ids of requests, which only the device can read; nothing that a request says leaves the gateway here.
//!
//! A notice comes with a submission, or is due again (`countersign_core::notices`). [`Notifier::run`] takes it, asks the
//! gateway whom to notify, sends to each channel and notes what became of it.

pub(crate) mod address;
mod batches;
pub(crate) mod contents;
mod hosts;

mod limits;
mod message;
mod outgoing;
pub(crate) mod sender_keys;
pub(crate) mod web_push;
pub(crate) mod webhook;

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use countersign_core::{
    Error, Gateway,
    model::notification::{Attempt, ChannelId, FailureReason, NotificationChannel, SENDING_TIME, Sent},
    notices::{DueTest, Notice, NoticeQueue},
    random::RandomSource,
    use_cases::notify::NotificationPlan,
};
use countersign_wire::id::{ApproverId, TenantId};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use parking_lot::Mutex;
use reqwest::{
    Url,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc::Receiver},
    time::{Instant, timeout},
};

use crate::{
    clock,
    config::NotificationsConfig,
    metrics::{NotificationOutcome, ServerMetrics},
    random::SystemRandom,
    sealing::Sealer,
};
use address::{Allowed, NotAllowed};
use batches::{Batches, Waiting};
use contents::{Address, ChannelName, Service};
use hosts::{Answer, Hosts, Outcome};
use limits::{FRESH, Limiter, RETRIES};
use message::{Message, content, seconds, topic};
use outgoing::Outgoing;
use sender_keys::SenderKeys;
use web_push::{DeviceKeys, encrypt};

/// Weekly tests that are sent at once.
const TESTS_AT_ONCE: usize = 4;

/// All attempts for a notice are over before another node takes it.
const ATTEMPT_TIME: Duration = SENDING_TIME.saturating_sub(Duration::from_secs(2));

/// How long a channel that has answered waits for the others before it is noted.
const NOTED_AFTER: Duration = Duration::from_millis(250);

/// What was read longer ago is read again before something is sent.
const READ_LATELY: Duration = Duration::from_millis(500);

/// The least time between two tests of one channel.
const TEST_GAP: Duration = Duration::from_secs(3);

const UNREADABLE: Attempt = Attempt::Failed { reason: FailureReason::Unreadable, status: None };

/// Sends what is due to the services that people have named.
#[derive(Debug)]
pub(crate) struct Notifier {
    gateway: Gateway,
    outgoing: Outgoing,
    sealer: Sealer,
    pub(crate) senders: SenderKeys,
    /// Whom push services write to; `None` if nobody is known.
    subject: Option<String>,
    hosts: Hosts,
    batches: Arc<Batches>,
    fresh: Limiter,
    retries: Limiter,
    /// When each channel was last tested.
    tests: Mutex<HashMap<ChannelName, Instant>>,
    metrics: ServerMetrics,
}

/// What became of one channel.
struct Done {
    sent: Sent,
    host: String,
    /// Whether that is to be noted with the channel.
    is_news: bool,
}

impl Notifier {
    pub(crate) fn new(
        config: &NotificationsConfig,
        public_url: &str,
        gateway: Gateway,
        sealer: Sealer,
        metrics: ServerMetrics,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            outgoing: Outgoing::new(config)?,
            senders: SenderKeys::new(gateway.clone(), sealer.clone()),
            subject: config.subject(public_url),
            gateway,
            sealer,
            hosts: Hosts::default(),
            batches: Arc::default(),
            fresh: FRESH.into(),
            retries: RETRIES.into(),
            tests: Mutex::default(),
            metrics,
        })
    }

    /// Which addresses may be called.
    pub(crate) fn check_address(&self, endpoint: &str) -> Result<String, NotAllowed> {
        let allowed: &Allowed = &self.outgoing.allowed;
        let url = allowed.check(endpoint)?;
        url.host_str().map(str::to_owned).ok_or(NotAllowed)
    }

    pub(crate) fn seal(
        &self,
        name: &ChannelName,
        address: &Address,
    ) -> Option<countersign_core::model::own_record::Sealed> {
        self.sealer.seal(&name.sealed_for(), &serde_json::to_vec(address).ok()?)
    }

    pub(crate) fn open(&self, name: &ChannelName, channel: &NotificationChannel) -> Option<Address> {
        let opened = self.sealer.open(&name.sealed_for(), channel.address.as_ref()?)?;
        serde_json::from_slice(&opened.content).ok()
    }

    /// Sends what comes, until the gateway ends.
    pub(crate) async fn run(self: Arc<Self>, NoticeQueue { fresh, due, tests }: NoticeQueue) {
        tokio::join!(
            self.take(fresh, |it| &it.fresh),
            self.take(due, |it| &it.retries),
            self.send_weekly_tests(tests)
        );
    }

    /// Sends the tests that people want by themselves, a few at once.
    async fn send_weekly_tests(self: &Arc<Self>, mut tests: Receiver<DueTest>) {
        let at_once = Arc::new(Semaphore::new(TESTS_AT_ONCE));
        while let Some(test) = tests.recv().await {
            let Ok(permit) = Arc::clone(&at_once).acquire_owned().await else { return };
            let notifier = Arc::clone(self);
            tokio::spawn(async move {
                let sent = timeout(ATTEMPT_TIME, notifier.send_weekly_test(&test)).await;
                if let Ok(Err(error)) = sent {
                    tracing::warn!(%error, "a weekly test was not sent or not noted; it will be retried");
                }
                drop(permit);
            });
        }
    }

    async fn send_weekly_test(&self, DueTest { tenant, approver }: &DueTest) -> Result<(), Error> {
        let known = self.gateway.notifications(tenant, approver).await?;
        // It may have been switched off meanwhile.
        if known.weekly_test.is_none() {
            return Ok(());
        }
        let reachable = known.channels.iter().filter(|channel| channel.address.is_some());
        let send = async |channel: &NotificationChannel| {
            let outcome = self.send(&name(tenant, approver, channel), channel, Message::Test).await;
            (channel.id.clone(), outcome.attempt)
        };
        let attempts: Vec<(ChannelId, Attempt)> =
            reachable.map(send).collect::<FuturesUnordered<_>>().collect().await;
        let _turn = self.retries.writes.acquire().await;
        self.gateway.record_attempts(tenant, approver, &attempts).await?;
        self.gateway.record_weekly_test(tenant, approver).await
    }

    async fn take(self: &Arc<Self>, mut notices: Receiver<Notice>, limiter: fn(&Self) -> &Limiter) {
        while let Some(notice) = notices.recv().await {
            let Ok(permit) = Arc::clone(&limiter(self).at_once).acquire_owned().await else { return };
            tokio::spawn(Arc::clone(self).work(notice, limiter, permit));
        }
    }

    async fn work(
        self: Arc<Self>,
        notice: Notice,
        limiter: fn(&Self) -> &Limiter,
        _permit: OwnedSemaphorePermit,
    ) {
        let limiter = limiter(&self);
        let work = async {
            let Some(plan) = self.plan(limiter, &notice).await? else { return Ok(()) };
            let mut done = self.send_all(limiter, &notice, &plan).await?;
            self.note_channels(limiter, &notice.tenant, &mut done).await;
            let sent = self.in_line(done);
            let _turn = limiter.writes.acquire().await;
            self.gateway.record_notification(&notice, &sent, plan.later).await
        };
        // Whatever is not noted is due again.
        if let Ok(Err(error)) = timeout(ATTEMPT_TIME, work).await {
            tracing::warn!(%error, "a notification was not sent or not noted; it will be retried");
        }
    }

    /// Notifies everybody of the plan. What is done is noted while a slow service still takes its time: others wait to see it.
    async fn send_all(
        &self,
        limiter: &Limiter,
        notice: &Notice,
        plan: &NotificationPlan,
    ) -> Result<Vec<Done>, Error> {
        let mut under_way: FuturesUnordered<_> =
            plan.to.iter().map(|to| self.notify(limiter, notice, plan, to)).collect();
        let (mut all, mut noted) = (Vec::new(), 0);
        loop {
            let patience = if all.len() > noted { NOTED_AFTER } else { ATTEMPT_TIME };
            match timeout(patience, under_way.next()).await {
                Ok(Some(done)) => all.extend(done),
                Ok(None) => return Ok(all),
                Err(_) => {
                    self.note_channels(limiter, &notice.tenant, &mut all).await;
                    let sent: Vec<Sent> = all.iter().map(|done| done.sent.clone()).collect();
                    let _turn = limiter.writes.acquire().await;
                    self.gateway.note_notification(notice, &sent).await?;
                    noted = all.len();
                }
            }
        }
    }

    /// Notes what became of channels, once for each person.
    async fn note_channels(&self, limiter: &Limiter, tenant: &TenantId, all: &mut [Done]) {
        let mut news: BTreeMap<ApproverId, Vec<(ChannelId, Attempt)>> = BTreeMap::new();
        for Done { sent, is_news, .. } in all {
            if mem::take(is_news) {
                news.entry(sent.approver.clone()).or_default().push((sent.channel.clone(), sent.attempt));
            }
        }
        for (approver, attempts) in news {
            let _turn = limiter.writes.acquire().await;
            if let Err(error) = self.gateway.record_attempts(tenant, &approver, &attempts).await {
                tracing::warn!(%error, "what became of a notification was not noted");
            }
        }
    }

    /// All that is tried again of one request, on one host, comes back at one time, and after what waits for that host.
    fn in_line(&self, all: Vec<Done>) -> Vec<Sent> {
        let mut waits: HashMap<String, Duration> = HashMap::new();
        let is_retried =
            |sent: &Sent| matches!(sent.attempt, Attempt::Failed { reason, .. } if reason.is_temporary());
        for Done { sent, host, .. } in all.iter().filter(|done| is_retried(&done.sent)) {
            let wait = waits.entry(host.clone()).or_default();
            *wait = sent.wait.max(*wait);
        }
        for (host, wait) in &mut waits {
            *wait = self.hosts.line_up(host, *wait);
        }
        let in_line = |Done { sent, host, .. }: Done| match waits.get(&host) {
            Some(wait) => Sent { wait: *wait, ..sent },
            None => sent,
        };
        all.into_iter().map(in_line).collect()
    }

    async fn plan(&self, limiter: &Limiter, notice: &Notice) -> Result<Option<NotificationPlan>, Error> {
        let _turn = limiter.reads.acquire().await;
        self.gateway.notification_plan(notice).await
    }

    /// Notifies one person on one channel. `None` if the request has ended meanwhile.
    async fn notify(
        &self,
        limiter: &Limiter,
        notice: &Notice,
        plan: &NotificationPlan,
        (approver, channel): &(ApproverId, NotificationChannel),
    ) -> Option<Done> {
        let (read, was_called) = (Instant::now(), AtomicBool::new(false));
        let name = name(&notice.tenant, approver, channel);
        let (tenant, expires_at) = (&notice.tenant, plan.expires_at);
        let call = async |waiting: Vec<Waiting>| {
            let waiting = match read.elapsed() < READ_LATELY {
                true => waiting,
                false => self.still_waiting(limiter, tenant, waiting).await,
            };
            if waiting.is_empty() {
                return None;
            }
            // What it shares with others is news of the channel only once.
            was_called.store(true, Ordering::Relaxed);
            Some(self.send(&name, channel, Message::Waiting(waiting)).await)
        };
        let waiting = Waiting { request: notice.request_id.clone(), expires_at };
        let Outcome { attempt, wait } = self.batches.send(&name, waiting, call).await?;
        let (approver, label) = (approver.clone(), channel.label.clone());
        let at = plan.now.plus(read.elapsed());
        let is_news = was_called.load(Ordering::Relaxed) && !channel.is_known_to_fail(attempt);
        let sent = Sent { approver, channel: channel.id.clone(), label, attempt, at, wait };
        Some(Done { sent, host: channel.host.clone(), is_news })
    }

    /// Those that still need an answer.
    async fn still_waiting(&self, limiter: &Limiter, tenant: &TenantId, all: Vec<Waiting>) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for one in all {
            let notice = Notice { tenant: tenant.clone(), request_id: one.request.clone() };
            // What can't be read may still wait.
            if !matches!(self.plan(limiter, &notice).await, Ok(None)) {
                waiting.push(one);
            }
        }
        waiting
    }

    /// Sends a visible message that means nothing. Not more often than a person needs it: the address may be anybody's.
    /// `Err` is how long to wait.
    pub(crate) async fn test(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        channel: &NotificationChannel,
    ) -> Result<Attempt, Duration> {
        let name = name(tenant, approver, channel);
        {
            let (mut tests, now) = (self.tests.lock(), Instant::now());
            tests.retain(|_, at: &mut Instant| now.duration_since(*at) < TEST_GAP);
            if let Some(at) = tests.get(&name) {
                return Err(TEST_GAP.saturating_sub(at.elapsed()));
            }
            tests.insert(name.clone(), now);
        }
        let attempt = self.send(&name, channel, Message::Test).await.attempt;
        let noted = [(name.channel.clone(), attempt)];
        if let Err(error) = self.gateway.record_attempts(tenant, approver, &noted).await {
            tracing::warn!(%error, "what became of a notification was not noted");
        }
        Ok(attempt)
    }

    /// One attempt on one channel.
    async fn send(&self, name: &ChannelName, channel: &NotificationChannel, message: Message) -> Outcome {
        let outcome = self.attempt(name, channel, message).await;
        self.metrics.notifications.at(NotificationOutcome::of(outcome.attempt)).inc();
        outcome
    }

    async fn attempt(&self, name: &ChannelName, channel: &NotificationChannel, message: Message) -> Outcome {
        let Some(address) = self.open(name, channel) else { return UNREADABLE.into() };
        let Some(host) = self.outgoing.allowed.check(&address.endpoint).ok().and_then(|url| host(&url))
        else {
            return Attempt::Failed { reason: FailureReason::NotAllowed, status: None }.into();
        };
        match self.hosts.turn(&host, name).await {
            Ok(turn) => turn.end(self.call(name, channel, &address, message).await),
            Err(outcome) => outcome,
        }
    }

    async fn call(
        &self,
        name: &ChannelName,
        channel: &NotificationChannel,
        address: &Address,
        message: Message,
    ) -> Answer {
        self.reseal(name, channel).await;
        match &address.service {
            Service::Push { p256dh, auth, sender } => {
                let Some(keys) = DeviceKeys::parse(p256dh, auth) else { return UNREADABLE.into() };
                self.push(name, address, &keys, sender, &message).await.unwrap_or(UNREADABLE.into())
            }
            Service::Webhook { .. } => self.webhook(address, &message).await,
        }
    }

    /// Encrypts the address again if the gateway has a newer key.
    async fn reseal(&self, name: &ChannelName, channel: &NotificationChannel) {
        let Some(sealed) = &channel.address else { return };
        let opened = self.sealer.open(&name.sealed_for(), sealed).filter(|opened| !opened.is_newest);
        let Some(opened) = opened else { return };
        if let Some(again) = self.sealer.seal(&name.sealed_for(), &opened.content) {
            drop(self.gateway.reseal_channel(&name.tenant, &name.approver, channel, &again).await);
        }
    }

    /// `None` if the sender's key is no longer there.
    async fn push(
        &self,
        name: &ChannelName,
        address: &Address,
        keys: &DeviceKeys,
        sender: &str,
        message: &Message,
    ) -> Option<Answer> {
        let Ok(senders) = self.senders.get().await else {
            // The store does not answer; that says nothing of the channel.
            return Some(Attempt::Failed { reason: FailureReason::Unreachable, status: None }.into());
        };
        let key = senders.of(sender)?;
        let origin = self.outgoing.allowed.check(&address.endpoint).ok()?.origin().ascii_serialization();
        let now = clock::now();
        let authorization = key.authorization(&origin, self.subject.as_deref(), seconds(now)).ok()?;
        let body = encrypt(keys, content(name, address, message).to_string().as_bytes()).ok()?;
        let ttl = message.ttl(now);
        let answer = self.outgoing.post(&address.endpoint, |request| {
            request
                .header(AUTHORIZATION, authorization)
                .header(CONTENT_ENCODING, "aes128gcm")
                .header(CONTENT_TYPE, "application/octet-stream")
                .header("ttl", ttl.to_string())
                .header("urgency", "high")
                .header("topic", topic(name))
                .body(body)
        });
        Some(answer.await)
    }

    async fn webhook(&self, address: &Address, message: &Message) -> Answer {
        let Service::Webhook { secrets, template, content_type } = &address.service else {
            return UNREADABLE.into();
        };
        let now = clock::now();
        let current = secrets.iter().filter(|secret| secret.until.is_none_or(|until| now < until));
        let secrets: Vec<String> = current.map(|secret| secret.secret.clone()).collect();
        let content_type = content_type.as_deref().unwrap_or("application/json");
        let is_json = content_type.starts_with("application/json");
        let body = webhook::body(template.as_deref(), is_json, message.text(), &address.page);
        let id = format!("msg_{}", (&SystemRandom as &dyn RandomSource).msg_id(now));
        let signatures = webhook::signatures(&secrets, &id, seconds(now), &body);
        let answer = self.outgoing.post(&address.endpoint, |request| {
            request
                .header(CONTENT_TYPE, content_type)
                .header("webhook-id", id)
                .header("webhook-timestamp", seconds(now).to_string())
                .header("webhook-signature", signatures)
                .body(body)
        });
        answer.await
    }
}

/// What counts as one service: a name may have several, on different ports.
fn host(url: &Url) -> Option<String> {
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

fn name(tenant: &TenantId, approver: &ApproverId, channel: &NotificationChannel) -> ChannelName {
    ChannelName { tenant: tenant.clone(), approver: approver.clone(), channel: channel.id.clone() }
}

impl NotificationOutcome {
    fn of(attempt: Attempt) -> Self {
        match attempt {
            Attempt::Accepted => Self::Accepted,
            Attempt::Failed { reason, .. } => match reason {
                FailureReason::Refused => Self::Refused,
                FailureReason::Gone => Self::Gone,
                FailureReason::Unreachable => Self::Unreachable,
                FailureReason::TimedOut => Self::TimedOut,
                FailureReason::Busy => Self::Busy,
                FailureReason::NotAllowed => Self::NotAllowed,
                FailureReason::Unreadable => Self::Unreadable,
            },
        }
    }
}
