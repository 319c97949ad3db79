//! `serve-in-memory`: the unchanged gateway on a store without durability.

use std::{
    collections::{HashMap, VecDeque},
    io::{self, Write as _},
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    routing::post,
};
use countersign_core::{
    Gateway,
    model::credential::Role,
    notify::{LocalDoorbell, Ring},
    random::RandomSource,
    retention::Retention,
    store::{Change, Key, Kind, Mailbox, MailboxKey, NewDelivery, Outcome, PayloadId, Removal},
};
use countersign_server::{
    assemble,
    config::{Config, RateLimits},
    net::listener,
    random::SystemRandom,
};
use countersign_wire::{id::TenantId, msg_type::MsgType, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::{net::TcpListener, runtime::Runtime};

use super::gateway::{Started, TENANT};
use crate::{Failure, clients::messages, memory_store::MemoryStore};

/// Serves until the process is killed.
pub(crate) fn run() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    Runtime::new()?.block_on(serve(folder.path().to_owned()))
}

async fn serve(data: PathBuf) -> Result<(), Failure> {
    let config = Config { data, rates: RateLimits::off(), ..Config::default() };
    let store = MemoryStore::new(Arc::default(), now);
    let doorbell = LocalDoorbell::default();
    let gateway = Gateway::new(Arc::new(store), &doorbell, Arc::new(SystemRandom), Retention::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let tenant: TenantId = TENANT.parse()?;
    let secrets = assemble::secrets(&config, &gateway).await?;
    let key = async |role| {
        gateway.create_key(&tenant, role, &secrets.mac_key()).await.map(|made| made.key.expose())
    };
    let started = Started {
        url: format!("http://{}", listener.local_addr()?),
        tenant: TENANT.to_owned(),
        operator_key: key(Role::Operator).await?,
        enforcer_key: key(Role::Enforcer(None)).await?,
        approver_key: key(Role::Approver(None)).await?,
    };
    let app = assemble::app(&config, gateway.clone(), secrets.clone())?;
    writeln!(io::stdout(), "{}", serde_json::to_string(&started)?)?;
    let drain = app.drain().clone();
    let publishing = Publishing { gateway, tenant, recent: Arc::default() };
    let mut service = assemble::service(app);
    service.router = service.router.route("/lab/publish/{channel}", post(publish).with_state(publishing));
    listener::serve(listener, service, drain).await;
    Ok(())
}

/// The state of the publish route, which starts the push path after a decision.
#[derive(Clone)]
struct Publishing {
    gateway: Gateway,
    tenant: TenantId,
    /// The last messages of each channel. Nobody acknowledges here, so new messages replace the oldest ones, as in
    /// Nchan, which keeps the same number.
    recent: Arc<Mutex<RecentMessages>>,
}

/// By channel: the numbers and bodies of its last messages, oldest first.
type RecentMessages = HashMap<u64, VecDeque<(u64, PayloadId)>>;

/// Messages buffered per channel, the same as `nchan_message_buffer_length` in our configuration of Nchan.
const BUFFER_LENGTH: usize = 10;

impl Publishing {
    fn oldest(&self, channel: u64) -> Option<(u64, PayloadId)> {
        self.recent
            .lock()
            .get_mut(&channel)
            .filter(|recent| recent.len() >= BUFFER_LENGTH)
            .and_then(VecDeque::pop_front)
    }
}

/// Delivers a body to the mailbox of this channel's enforcer, with the previously decided exchange as subject;
/// the gateway does the rest.
async fn publish(State(to): State<Publishing>, Path(channel): Path<u64>, body: Bytes) -> StatusCode {
    let random: &dyn RandomSource = &SystemRandom;
    let (payload, until) = (random.payload_id(now()), now().plus(Duration::from_hours(1)));
    let Ok(enforcer) = messages::enforcer(channel).parse() else { return StatusCode::BAD_REQUEST };
    let mailbox = Mailbox::Enforcer(enforcer);
    let mut change = Change::new(to.tenant.clone());
    change.payloads.push((payload, body));
    change.deliveries.push(NewDelivery {
        mailbox: mailbox.clone(),
        msg_id: random.msg_id(now()),
        msg_type: MsgType::DecisionDeliver,
        subject: Key::new(Kind::Exchange, messages::request_id(channel)),
        payload: Some(payload),
        until,
    });
    if let Some((number, payload)) = to.oldest(channel) {
        change.removals.push(Removal::ByNumber { mailbox: mailbox.clone(), number });
        change.drop_payloads.push(payload);
    }
    let Ok(Outcome::Committed { numbers, .. }) = to.gateway.store().commit(change).await else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let number = numbers.last().copied().unwrap_or_default();
    to.recent.lock().entry(channel).or_default().push_back((number, payload));
    let mailbox = MailboxKey { tenant: to.tenant.clone(), mailbox };
    to.gateway.wake(&[(Ring::Mailbox(mailbox), number)]);
    StatusCode::ACCEPTED
}

#[expect(clippy::disallowed_methods, reason = "this is the store's clock")]
fn now() -> Timestamp {
    let since_1970: Duration = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}
