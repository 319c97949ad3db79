//! Crashes: writers that are killed while they commit, and what must be there afterwards.
//!
//! A test runs itself again as a child that writes ([`child`], [`write_until_killed`]), kills it in the middle
//! ([`acknowledged_until_killed`]) and asks a [`Ledger`] whether the database kept every promise.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    ffi::{OsStr, OsString},
    fmt,
    io::{self, BufRead, BufReader, Write as _},
    ops::{Range, RangeInclusive},
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use countersign_core::store::{
    AuditRow, Change, Delivery, DeliveryQuery, Guard, Key, Kind, Mailbox, MailboxKey, NewDelivery, Outcome,
    PayloadId, Put, Record, Store, StoreError,
};
use countersign_wire::{
    id::{MsgId, TenantId},
    msg_type::MsgType,
    timestamp::Timestamp,
};
use tokio::task::JoinSet;

/// Where a child is to write, in the words of its store.
const WHERE: &str = "COUNTERSIGN_CRASH_CHILD";
/// The first id that it gives.
const FROM: &str = "COUNTERSIGN_CRASH_FROM";
/// More rounds, or fewer, than a test does by itself.
const ROUNDS: &str = "CRASH_ROUNDS";

/// Far more than a round comes to.
const IDS_OF_A_ROUND: u64 = 1_000_000;
const WRITERS: u64 = 16;
const SIGKILL: i32 = 9;
const PAGE: u32 = 1_000;

/// A change that the store said is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// Which one.
    pub id: u64,
    /// The number of its delivery.
    pub number: u64,
}

/// What the store said of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is durable.
    Acked(Acked),
    /// It may be there, all of it, or not.
    Unknown(u64),
    /// Nothing of it was written.
    Refused(u64),
}

impl Told {
    fn id(&self) -> u64 {
        match self {
            Self::Acked(acked) => acked.id,
            Self::Unknown(id) | Self::Refused(id) => *id,
        }
    }
}

/// How many rounds to do: what the environment says, else `by_default`.
pub fn rounds(by_default: u64) -> u64 {
    env::var(ROUNDS).map_or(by_default, |rounds| rounds.parse().expect("CRASH_ROUNDS is a number"))
}

/// The first id of a round. Rounds share a database, and no id is given twice.
pub fn first_id(round: u64) -> u64 {
    round * IDS_OF_A_ROUND
}

/// How many acknowledgements a round waits for before it kills: sometimes few, sometimes so many that the
/// store has tidied up meanwhile.
pub fn enough(round: u64) -> usize {
    usize::try_from(20 + (round * 37) % 400).expect("a small number")
}

/// The tenant of every change.
fn tenant() -> TenantId {
    "crash".parse().expect("an id")
}

fn mailboxes() -> [Mailbox; 2] {
    [Mailbox::Shared, Mailbox::Approver("approver".parse().expect("an id"))]
}

/// Everything of it follows from the id, so that what is found can be compared with what was written.
fn change(id: u64) -> Change {
    let key = Key::new(Kind::Exchange, format_args!("{id:012}"));
    let payload = PayloadId(id.into());
    // PostgreSQL's store writes what is over 64 KB before the commit that needs it.
    let payload_length = if id.is_multiple_of(10) { 100_000 } else { 300 };
    // The newest are due the longest, so that a round gets its own without those of all rounds before.
    let due_at = Timestamp::from_unix_micros(1_600_000_000_000_000 - i64::try_from(id).expect("a small id"));
    let [shared, own] = mailboxes();
    let mut change = Change::new(tenant());
    change.guards.push(Guard::Absent(key.clone()));
    change.puts.push(Put { key: key.clone(), content: bytes_of(!id, 100) });
    change.payloads.push((payload, bytes_of(id, payload_length)));
    change.deliveries.push(NewDelivery {
        mailbox: if id.is_multiple_of(3) { shared } else { own },
        msg_id: MsgId::new(format!("msg-{id}")).expect("an id"),
        msg_type: MsgType::ApprovalRequest,
        subject: key.clone(),
        payload: Some(payload),
        until: due_at,
    });
    change.due.push((due_at, key.clone()));
    change.audit.push(AuditRow { subject: key, event: format!("{{\"id\":{id}}}").into() });
    change
}

/// Bytes that no other seed gives and that don't repeat (`SplitMix64`).
fn bytes_of(seed: u64, length: usize) -> Bytes {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

fn id_of(key: &Key) -> u64 {
    key.id.parse().unwrap_or_else(|_| panic!("nobody wrote {key:?}"))
}

/// Commits changes, several at a time, and tells of each what the store said. A writer ends with its first
/// error, and this with the last writer.
pub async fn write_until_errors(
    store: Arc<dyn Store>,
    from: u64,
    tell: impl Fn(Told) + Clone + Send + 'static,
) {
    let next_id = Arc::new(AtomicU64::new(from));
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next_id, tell) = (Arc::clone(&store), Arc::clone(&next_id), tell.clone());
        writers.spawn(async move {
            loop {
                let id = next_id.fetch_add(1, Ordering::Relaxed);
                match store.commit(change(id)).await {
                    Ok(Outcome::Committed { numbers, .. }) => {
                        tell(Told::Acked(Acked { id, number: numbers[0] }));
                    }
                    Err(StoreError::OutcomeUnknown) => return tell(Told::Unknown(id)),
                    Err(StoreError::Overloaded | StoreError::Unavailable(_)) => {
                        return tell(Told::Refused(id));
                    }
                    strange => panic!("change {id} is new and right, but: {strange:?}"),
                }
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("a writer does not panic");
    }
}

/// Commits the changes with these ids, one after the other.
pub async fn write(store: &dyn Store, ids: Range<u64>) -> Vec<Acked> {
    let mut acked = Vec::new();
    for id in ids {
        match store.commit(change(id)).await {
            Ok(Outcome::Committed { numbers, .. }) => acked.push(Acked { id, number: numbers[0] }),
            other => panic!("change {id} is new and right, but: {other:?}"),
        }
    }
    acked
}

/// The child's work: writes for as long as it lives, and says on its standard output what is acknowledged.
///
/// # Panics
///
/// When the store refuses anything, since nobody but the child has been harmed; and when nobody listens any
/// more, so that no child outlives its test.
pub async fn write_until_killed(store: Arc<dyn Store>, from: u64) {
    // The test harness may have begun a line of its own.
    io::stdout().write_all(b"\n").expect("somebody listens");
    let print = |told: Told| match told {
        // Standard output is buffered by lines: this is one write, and over when it returns.
        Told::Acked(Acked { id, number }) => {
            io::stdout().write_all(format!("acked {id} {number}\n").as_bytes()).expect("somebody listens");
        }
        other => panic!("nothing is wrong with the store, but: {other:?}"),
    };
    write_until_errors(store, from, print).await;
}

/// What a child is asked to do.
#[derive(Debug)]
pub struct Child {
    /// The database, in the words of its store.
    pub database: OsString,
    /// The first id to give.
    pub from: u64,
}

/// What to do if this process is a child: every test that kills asks this first.
pub fn child() -> Option<Child> {
    let database = env::var_os(WHERE)?;
    let from = env::var(FROM).expect("a child is told its first id").parse().expect("a number");
    Some(Child { database, from })
}

/// Runs this program again as a child of the test named `test`, kills it with `kill -9` after `enough`
/// acknowledgements, and returns all that it gave before it was dead.
pub fn acknowledged_until_killed(
    test: &str,
    database: impl AsRef<OsStr>,
    from: u64,
    enough: usize,
) -> Vec<Acked> {
    let mut child = Command::new(env::current_exe().expect("the test is a program"))
        .args(["--exact", test, "--nocapture"])
        .env(WHERE, database)
        .env(FROM, from.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut acked = Vec::new();
    while acked.len() < enough {
        match next_line(&mut output) {
            Some(line) => acked.extend(parse(&line)),
            None => panic!("the child has ended by itself: {:?}", child.wait()),
        }
    }
    child.kill().expect("the child can be killed");
    // What it printed before it was dead counts.
    while let Some(line) = next_line(&mut output) {
        acked.extend(parse(&line));
    }
    let status = child.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(SIGKILL), "the child has ended by itself: {status}");
    acked
}

/// A whole line: half a line at the end is no acknowledgement.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line of text");
    line.ends_with('\n').then_some(line)
}

/// None where the test harness says something.
fn parse(line: &str) -> Option<Acked> {
    let mut numbers = line.strip_prefix("acked ")?.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(id)), Some(Ok(number))) => Some(Acked { id, number }),
        _ => panic!("not an acknowledgement: {line:?}"),
    }
}

/// What a test knows of its database, over all rounds.
#[derive(Debug, Default)]
pub struct Ledger {
    acked: Vec<Acked>,
    heads: [u64; 2],
    rounds: u64,
    found: u64,
}

impl Ledger {
    /// Looks at everything that was written in the next round, whether or not the store said so.
    pub async fn verify_round(&mut self, store: &dyn Store, told: &[Told]) {
        let first = first_id(self.rounds);
        // Each writer may have had one more under way than it could tell of.
        let last = told.iter().map(Told::id).max().unwrap_or(first) + WRITERS;
        let view = View::of(store, first, &self.heads).await;
        self.found += view.check(store, told, Some(first..=last)).await;
        self.heads = view.heads;
        self.rounds += 1;
        self.acked.extend(told.iter().filter_map(|told| match told {
            Told::Acked(acked) => Some(acked),
            _ => None,
        }));
    }

    /// Sweeps what was never committed, then looks at everything of all rounds again.
    pub async fn verify_all(&self, store: &dyn Store) {
        let now = store.now().await.expect("the time");
        store.sweep_orphans(now, u32::MAX).await.expect("a sweep");
        let found = verify(store, &self.acked).await;
        assert_eq!(found, self.found, "changes that were whole in their rounds");
    }

    /// How many changes are in the database, acknowledged or not.
    pub fn found(&self) -> u64 {
        self.found
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acked, rounds, found, .. } = self;
        write!(f, "{rounds} rounds, {} changes acknowledged, {found} found whole", acked.len())
    }
}

/// Panics where something of `acked` is missing or not what was written, where anything at all is half there,
/// and where numbers have gaps. Says how many changes there are.
pub async fn verify(store: &dyn Store, acked: &[Acked]) -> u64 {
    let told: Vec<Told> = acked.iter().copied().map(Told::Acked).collect();
    View::of(store, 0, &[0, 0]).await.check(store, &told, None).await
}

/// What the store has, from one id on.
struct View {
    first: u64,
    heads: [u64; 2],
    records: BTreeMap<u64, Record>,
    deliveries: BTreeMap<u64, Vec<(Mailbox, Delivery)>>,
}

impl View {
    /// `heads` are the numbers before the first.
    async fn of(store: &dyn Store, first: u64, heads: &[u64; 2]) -> Self {
        let mut view = Self { first, heads: *heads, records: BTreeMap::new(), deliveries: BTreeMap::new() };
        view.read_records(store).await;
        for (at, mailbox) in mailboxes().into_iter().enumerate() {
            view.read_mailbox(store, at, &mailbox).await;
        }
        view
    }

    async fn read_records(&mut self, store: &dyn Store) {
        let mut after = self.first.checked_sub(1).map(|id| format!("{id:012}"));
        loop {
            let page = store.scan(&tenant(), Kind::Exchange, after.as_deref(), PAGE).await.expect("records");
            let Some(last) = page.last() else { break };
            after = Some(last.key.id.clone());
            self.records.extend(page.into_iter().map(|record| (id_of(&record.key), record)));
        }
    }

    /// The numbers go on from the head without a gap, to the new one.
    async fn read_mailbox(&mut self, store: &dyn Store, at: usize, mailbox: &Mailbox) {
        loop {
            let query = DeliveryQuery {
                mailbox: mailbox.clone(),
                after: self.heads[at],
                limit: PAGE,
                unless_marked: None,
                only_relevant: false,
            };
            let page = store.deliveries(&tenant(), query).await.expect("deliveries").deliveries;
            if page.is_empty() {
                break;
            }
            for delivery in page {
                assert_eq!(delivery.number, self.heads[at] + 1, "a gap in the numbers of {mailbox}");
                self.heads[at] = delivery.number;
                let of_id = self.deliveries.entry(id_of(&delivery.subject)).or_default();
                of_id.push((mailbox.clone(), delivery));
            }
        }
        let key = MailboxKey { tenant: tenant(), mailbox: mailbox.clone() };
        let heads = store.heads(&[key]).await.expect("a head");
        assert_eq!(heads, [self.heads[at]], "the head of {mailbox} is its highest number");
    }

    /// How many changes are there: all of each, or it panics.
    async fn check(&self, store: &dyn Store, told: &[Told], tried: Option<RangeInclusive<u64>>) -> u64 {
        let told: BTreeMap<u64, &Told> = told.iter().map(|told| (told.id(), told)).collect();
        let mut ids: BTreeSet<u64> = tried.into_iter().flatten().collect();
        ids.extend(told.keys());
        ids.extend(self.records.keys());
        ids.extend(self.deliveries.keys());
        let due = self.due(store, ids.len()).await;
        ids.extend(due.keys());

        let mut found = 0;
        let ids: Vec<u64> = ids.into_iter().collect();
        for ids in ids.chunks(100) {
            let payload_ids: Vec<PayloadId> = ids.iter().map(|id| PayloadId((*id).into())).collect();
            let payloads = store.payloads(&tenant(), &payload_ids).await.expect("payloads");
            for (id, payload) in ids.iter().zip(payloads) {
                let number = self.number_if_whole(*id, payload.as_ref(), due.get(id));
                match (told.get(id), number) {
                    (Some(Told::Acked(acked)), None) => panic!("acknowledged, but gone: {acked:?}"),
                    (Some(Told::Acked(acked)), Some(number)) => {
                        assert_eq!(number, acked.number, "change {id} has another number than it was told");
                    }
                    (Some(Told::Refused(id)), Some(_)) => panic!("change {id} was refused, but is there"),
                    (Some(Told::Refused(_)), None) | (Some(Told::Unknown(_)) | None, _) => {}
                }
                found += u64::from(number.is_some());
            }
        }
        found
    }

    /// What is due, by id; at most `most` can be.
    async fn due(&self, store: &dyn Store, most: usize) -> BTreeMap<u64, Vec<Timestamp>> {
        let limit = u32::try_from(most + 1).expect("a small number");
        let (list, _) = store.due(limit).await.expect("what is due");
        let mut by_id = BTreeMap::<u64, Vec<Timestamp>>::new();
        for due in list.iter().filter(|due| id_of(&due.key) >= self.first) {
            assert_eq!(due.tenant, tenant(), "there is but one tenant");
            by_id.entry(id_of(&due.key)).or_default().push(due.at);
        }
        assert!(by_id.len() <= most, "more is due than was ever written");
        by_id
    }

    /// The number of a change whose parts are all there and as they were written; none where no part is there.
    fn number_if_whole(&self, id: u64, payload: Option<&Bytes>, due: Option<&Vec<Timestamp>>) -> Option<u64> {
        let written = change(id);
        let record = self.records.get(&id);
        let deliveries = self.deliveries.get(&id);
        let parts = [record.is_some(), payload.is_some(), deliveries.is_some(), due.is_some()];
        if parts == [false; 4] {
            return None;
        }
        let (Some(record), Some(payload), Some(deliveries), Some(due)) = (record, payload, deliveries, due)
        else {
            panic!("change {id} is half there: [record, payload, delivery, due] is {parts:?}");
        };
        let Put { key, content } = &written.puts[0];
        let new = Record { key: key.clone(), version: 1, content: content.clone() };
        assert!(*record == new, "the record of change {id} is not what was written");
        assert!(*payload == written.payloads[0].1, "the payload of change {id} is not what was written");
        assert_eq!(due[..], [written.due[0].0], "when change {id} is due");
        let [(mailbox, delivery)] = &deliveries[..] else {
            panic!("change {id} was delivered more than once: {deliveries:?}");
        };
        let delivered = NewDelivery {
            mailbox: mailbox.clone(),
            msg_id: delivery.msg_id.clone(),
            msg_type: delivery.msg_type.clone(),
            subject: delivery.subject.clone(),
            payload: delivery.payload,
            until: delivery.until,
        };
        assert_eq!(delivered, written.deliveries[0], "the delivery of change {id}");
        Some(delivery.number)
    }
}
