//! The mixed load: callers that submit on one node and decide, withdraw or wait on others.

use std::{
    collections::{BTreeMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use crate::{
    Failure,
    args::ClusterArgs,
    clients::{
        keep_alive::KeepAlive,
        messages,
        template::{Submission, scattered_id},
    },
    servers::gateway::Gateway,
    stopwatch::Stopwatch,
};

/// How often a request that is answered with 503 and `Retry-After` is sent.
const MAX_ATTEMPTS: u32 = 10;

/// A connection that was idle for longer is not used again: a gateway closes it after 30 s.
const MAX_IDLE: Duration = Duration::from_secs(20);

/// The states that an exchange may have in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Pending,
    Withdrawn,
    /// Decided, and delivered once the enforcer has acknowledged it.
    Decided,
    /// Its decision or withdrawal was not accepted, so nothing is known.
    Any,
}

/// What the gateways have accepted.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    pub(super) submitted: Vec<(String, Expected)>,
    pub(super) decided: HashSet<String>,
}

/// Responses that are no success.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// 503 with `Retry-After`, after which the request was sent again.
    pub(super) retried: u64,
    /// Everything else, by what was called and what came back.
    pub(super) by_kind: BTreeMap<String, u64>,
}

/// What all callers share.
pub(super) struct Load {
    args: ClusterArgs,
    addresses: Vec<SocketAddr>,
    enforcer_key: String,
    approver_key: String,
    next: AtomicU64,
    found: Mutex<(Accepted, Errors)>,
}

impl Load {
    pub(super) fn new(args: &ClusterArgs, nodes: &[Gateway]) -> Arc<Self> {
        Arc::new(Self {
            args: args.clone(),
            addresses: nodes.iter().map(|node| node.address).collect(),
            enforcer_key: nodes[0].enforcer_key.clone(),
            approver_key: nodes[0].approver_key.clone(),
            next: AtomicU64::new(0),
            found: Mutex::default(),
        })
    }

    pub(super) async fn run(self: &Arc<Self>, length: Duration) -> Result<(), Failure> {
        let (watch, began) = (Stopwatch::start(), Instant::now());
        let mut callers = JoinSet::new();
        for number in 0..self.args.in_flight {
            let load = Arc::clone(self);
            callers.spawn(async move {
                let mut caller = Caller::new(&load, number);
                loop {
                    let exchange = load.next.fetch_add(1, Ordering::Relaxed);
                    let due = Duration::from_nanos(exchange * 1_000_000_000 / load.args.rate);
                    if due >= length || watch.elapsed() >= length {
                        return;
                    }
                    sleep_until(began + due).await;
                    caller.exchange(exchange).await;
                }
            });
        }
        while let Some(caller) = callers.join_next().await {
            caller?;
        }
        Ok(())
    }

    pub(super) fn finish(&self) -> (Accepted, Errors) {
        std::mem::take(&mut *self.found.lock())
    }

    fn note(&self, note: impl FnOnce(&mut Accepted, &mut Errors)) {
        let (accepted, errors) = &mut *self.found.lock();
        note(accepted, errors);
    }
}

/// One enforcer that submits on one node, and its approver on the next one. [`super::enforcers`] listens on the one after.
struct Caller<'a> {
    load: &'a Load,
    submission: Submission,
    enforcer: String,
    submits: Node,
    decides: Node,
    waits: Node,
}

struct Node {
    address: SocketAddr,
    connection: Option<KeepAlive>,
    used: Stopwatch,
}

impl<'a> Caller<'a> {
    fn new(load: &'a Load, number: u64) -> Self {
        let enforcer = number % load.args.enforcers;
        let node = |after: usize| {
            let at = (usize::try_from(enforcer).unwrap_or_default() + after) % load.addresses.len();
            Node { address: load.addresses[at], connection: None, used: Stopwatch::start() }
        };
        let (enforcer, approver) = (messages::enforcer(enforcer), messages::approver(number));
        let submission = Submission::new(&load.enforcer_key, &enforcer, &approver, load.args.bytes);
        Self { load, submission, enforcer, submits: node(0), decides: node(1), waits: node(3) }
    }

    /// One of ten stays pending, one is withdrawn, one is also waited for; the others are decided.
    async fn exchange(&mut self, number: u64) {
        let request = scattered_id(number);
        let load = self.load;
        if !self.submits.call(load, "submit", self.submission.with_number(number)).await {
            return;
        }
        let expected = match number % 10 {
            0 => Expected::Pending,
            1 => {
                let withdrawal = messages::withdrawal(&load.enforcer_key, &request, &self.enforcer);
                match self.decides.call(load, "withdraw", &withdrawal).await {
                    true => Expected::Withdrawn,
                    false => Expected::Any,
                }
            }
            case => {
                let decision = messages::decision_of(&load.approver_key, &request);
                let decided = self.decides.call(load, "decide", &decision).await;
                if decided && case == 2 {
                    self.waits.call(load, "wait", &messages::wait(&load.enforcer_key, &request)).await;
                }
                if decided { Expected::Decided } else { Expected::Any }
            }
        };
        load.note(|accepted, _| {
            if expected == Expected::Decided {
                accepted.decided.insert(request.clone());
            }
            accepted.submitted.push((request, expected));
        });
    }
}

impl Node {
    /// Whether it was accepted.
    async fn call(&mut self, load: &Load, step: &str, request: &[u8]) -> bool {
        for _ in 0..MAX_ATTEMPTS {
            let outcome = match self.connected().await {
                Ok(connection) => connection.call(request).await,
                Err(error) => Err(error),
            };
            let kind = match outcome {
                Ok(response) if (200..=299).contains(&response.status) => return true,
                Ok(response) => match retry_after(response.head).filter(|_| response.status == 503) {
                    Some(delay) => {
                        load.note(|_, errors| errors.retried += 1);
                        self.connection = None;
                        sleep(delay).await;
                        continue;
                    }
                    None => format!("{step}: {}", response.status),
                },
                Err(error) => format!("{step}: {:?}", error.kind()),
            };
            self.connection = None;
            load.note(|_, errors| *errors.by_kind.entry(kind).or_default() += 1);
            return false;
        }
        load.note(|_, errors| {
            *errors.by_kind.entry(format!("{step}: 503 {MAX_ATTEMPTS} times")).or_default() += 1;
        });
        false
    }

    async fn connected(&mut self) -> std::io::Result<&mut KeepAlive> {
        if self.used.elapsed() > MAX_IDLE {
            self.connection = None;
        }
        self.used = Stopwatch::start();
        if self.connection.is_none() {
            self.connection = Some(KeepAlive::open(self.address).await?);
        }
        self.connection.as_mut().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
    }
}

/// The value of `Retry-After`, at most a second, so that a caller does not stay idle for long.
fn retry_after(head: &[u8]) -> Option<Duration> {
    let head = std::str::from_utf8(head).ok()?.to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("retry-after:"))?;
    let seconds: u64 = value.trim().parse().ok()?;
    Some(Duration::from_secs(seconds.min(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_of_seconds_is_a_retry_after() {
        let head = |value: &str| format!("HTTP/1.1 503 Service Unavailable\r\nRetry-After: {value}\r\n\r\n");
        assert_eq!(retry_after(head("0").as_bytes()), Some(Duration::ZERO));
        assert_eq!(retry_after(head("5").as_bytes()), Some(Duration::from_secs(1)));
        assert_eq!(retry_after(head("soon").as_bytes()), None);
        assert_eq!(retry_after(b"HTTP/1.1 503 Service Unavailable\r\n\r\n"), None);
    }
}
