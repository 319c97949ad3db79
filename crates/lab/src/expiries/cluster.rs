//! Two nodes on one PostgreSQL with a synchronous standby, whose clock can be moved.

use std::{sync::Arc, time::Duration};

use countersign_core::{
    Gateway,
    notify::LocalDoorbell,
    store::{Change, Key, Kind, Mailbox, MailboxKey, Put, Store},
};
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::{
    gateway_suite::world::{self, Request, request},
    postgres::Postgres,
};
use countersign_wire::{
    Rule,
    id::{ApproverId, TenantId},
    timestamp::Timestamp,
};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

use crate::{Failure, args::ExpiriesArgs};

/// How long exchanges are valid: longer than it takes to submit them.
const VALID_FOR: Duration = Duration::from_mins(10);

/// Exchanges that lapse in a second where one tenant has all of them.
const LAPSE_RATE: u64 = 1_000;

/// Exchanges to submit, which lapse then.
pub(super) struct Lapsed {
    count: u64,
    tenants: u64,
    approvers: u64,
    in_flight: u64,
    /// Between two expiries.
    apart: Duration,
}

impl Lapsed {
    pub(super) fn in_all_tenants(args: &ExpiriesArgs, count: u64) -> Self {
        let ExpiriesArgs { tenants, approvers, in_flight, .. } = *args;
        Self { count, tenants, approvers, in_flight, apart: Duration::ZERO }
    }

    pub(super) fn in_one_tenant(args: &ExpiriesArgs, count: u64) -> Self {
        let apart = Duration::from_secs(1) / u32::try_from(LAPSE_RATE).unwrap_or(1);
        Self { tenants: 1, apart, ..Self::in_all_tenants(args, count) }
    }
}

pub(super) struct Cluster {
    stores: [Arc<dyn Store>; 2],
    nodes: [Gateway; 2],
    clock: Client,
    skew: Duration,
    /// Everywhere where an expired exchange can be listed.
    expired: Vec<MailboxKey>,
    submitted: u64,
}

impl Cluster {
    pub(super) async fn open(primary: &Postgres, args: &ExpiriesArgs) -> Result<Self, Failure> {
        let (clock, connection) = tokio_postgres::connect(&primary.url(), NoTls).await?;
        tokio::spawn(connection);
        clock.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await?;
        clock.batch_execute("SELECT pg_reload_conf()").await?;
        let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while clock.query_one(synchronous, &[]).await?.get::<_, i64>(0) == 0 {}
        let open = async || {
            let store: Arc<dyn Store> = Arc::new(PostgresStore::open(Options::new(primary.url())).await?);
            Ok::<_, Failure>(store)
        };
        let (stores, doorbell) = ([open().await?, open().await?], LocalDoorbell::default());
        let nodes = [1, 2].map(|seed: u64| {
            let store = &stores[usize::from(seed == 2)];
            world::gateway(Arc::clone(store), &doorbell, seed)
        });
        let mut expired = Vec::new();
        for of_tenant in 0..args.tenants {
            for of in 0..args.approvers {
                let mailbox = Mailbox::ExpiredOfApprover(approver(of)?);
                expired.push(MailboxKey { tenant: tenant(of_tenant)?, mailbox });
            }
        }
        Ok(Self { stores, nodes, clock, skew: Duration::ZERO, expired, submitted: 0 })
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.stores[0])
    }

    pub(super) async fn now(&self) -> Result<Timestamp, Failure> {
        Ok(self.stores[0].now().await?)
    }

    /// Submits exchanges, then moves the clock until all of them have lapsed.
    pub(super) async fn lapse(&mut self, lapsed: &Lapsed) -> Result<(), Failure> {
        let first_expiry = self.now().await?.plus(VALID_FOR);
        let mut submissions = JoinSet::new();
        for at in 0..lapsed.count {
            if submissions.len() as u64 >= lapsed.in_flight
                && let Some(submitted) = submissions.join_next().await
            {
                submitted??;
            }
            let (gateway, tenant) = (self.nodes[0].clone(), tenant(at % lapsed.tenants)?);
            let expires_at = first_expiry.plus(lapsed.apart * u32::try_from(at)?);
            let request = Request {
                to: Some(approver(at / lapsed.tenants % lapsed.approvers)?),
                expires_at,
                ..request(&format!("exchange-{}-{at}", self.submitted))
            };
            submissions.spawn(async move { world::submit(&gateway, &tenant, &request).await.map(drop) });
        }
        while let Some(submitted) = submissions.join_next().await {
            submitted??;
        }
        self.submitted += lapsed.count;
        self.skew += VALID_FOR + lapsed.apart * u32::try_from(lapsed.count)?;
        let skew = self.skew.as_micros();
        let set = format!(
            "CREATE OR REPLACE FUNCTION gateway_now() RETURNS bigint LANGUAGE sql VOLATILE AS \
             $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {skew} $$"
        );
        self.clock.batch_execute(&set).await?;
        Ok(())
    }

    /// Sweeps on so many nodes at once until nothing is due; says how much they processed.
    pub(super) async fn sweep(&self, nodes: usize) -> Result<u64, Failure> {
        let mut sweeps = JoinSet::new();
        for node in &self.nodes[..nodes] {
            let node = node.clone();
            sweeps.spawn(async move { node.sweep().await });
        }
        let mut processed = 0;
        while let Some(swept) = sweeps.join_next().await {
            processed += swept??.processed;
        }
        Ok(processed)
    }

    /// Every expired exchange is listed once, and numbers have no gaps.
    pub(super) async fn check_each_expired_once(&self) -> Result<(), Failure> {
        let listed: u64 = self.stores[0].heads(&self.expired).await?.iter().flatten().sum();
        let by_clock = r#"SELECT count(*) FROM audit WHERE position('"to":"expired"'::bytea IN event) > 0"#;
        let audited = self.clock.query_one(by_clock, &[]).await?.get::<_, i64>(0);
        if (listed, u64::try_from(audited)?) != (self.submitted, self.submitted) {
            let submitted = self.submitted;
            return Err(format!("{submitted} lapsed, {listed} listed as expired, {audited} audited").into());
        }
        Ok(())
    }

    /// Adds records of another tenant that are due when all of a backlog but its last is, which is submitted next.
    pub(super) async fn make_due_last(&self, count: u64, backlog: &Lapsed) -> Result<(), Failure> {
        let mut change = Change::new(quiet()?);
        let due_at = self.now().await?.plus(VALID_FOR + backlog.apart * u32::try_from(backlog.count)?);
        for at in 0..count {
            change.puts.push(Put { key: quiet_record(at), content: "{}".into() });
            change.due.push((due_at, quiet_record(at)));
        }
        self.stores[0].commit(change).await?;
        Ok(())
    }

    /// Waits until none of the other tenant's records is there.
    pub(super) async fn wait_until_deleted(&self, count: u64) -> Result<(), Failure> {
        let keys: Vec<Key> = (0..count).map(quiet_record).collect();
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        loop {
            ticks.tick().await;
            let loaded = self.stores[1].load(&quiet()?, &keys).await?;
            if loaded.records.iter().all(Option::is_none) {
                return Ok(());
            }
        }
    }
}

/// A ticket: a record that is deleted when it is due, whatever is in it.
fn quiet_record(at: u64) -> Key {
    Key::new(Kind::Ticket, format_args!("ticket-{at}"))
}

fn quiet() -> Result<TenantId, Rule> {
    TenantId::new("quiet")
}

fn tenant(at: u64) -> Result<TenantId, Rule> {
    TenantId::new(format!("tenant-{at}"))
}

fn approver(at: u64) -> Result<ApproverId, Rule> {
    ApproverId::new(format!("approver-{at}"))
}
