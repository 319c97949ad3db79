//! The database of the cluster, in either arrangement.

use std::{collections::BTreeMap, path::Path, time::Duration};

use tokio::{task::block_in_place, time::sleep};
use tokio_postgres::NoTls;

use super::{pair::Pair, patroni::Patroni};
use crate::{Failure, stopwatch::Stopwatch};

/// A standby that has to copy all data needs this long at worst.
const REPLICATED_WITHIN: Duration = Duration::from_secs(90);

const CHECK_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) enum Database {
    Pair(Box<Pair>),
    Patroni(Box<Patroni>),
}

impl Database {
    /// Starts it, with disks of this size in `folder`, and its logs in `logs`. Returns when what is written is on a standby too.
    pub(crate) async fn start(
        with_patroni: bool,
        folder: &Path,
        logs: &Path,
        mebibytes: u64,
    ) -> Result<Self, Failure> {
        let database = if with_patroni {
            Self::Patroni(Box::new(Patroni::start(folder, logs, mebibytes).await?))
        } else {
            Self::Pair(Box::new(block_in_place(|| Pair::start(folder, mebibytes))?))
        };
        database.wait_until_replicated().await?;
        Ok(database)
    }

    /// Runs a statement on the primary.
    pub(crate) async fn run(&self, statement: &str) -> Result<(), Failure> {
        let (client, connection) = tokio_postgres::connect(&connection_string(&self.ports()), NoTls).await?;
        let driver = tokio::spawn(connection);
        let ran = client.batch_execute(statement).await;
        driver.abort();
        Ok(ran?)
    }

    /// The ports of all servers.
    pub(crate) fn ports(&self) -> Vec<u16> {
        match self {
            Self::Pair(pair) => pair.ports(),
            Self::Patroni(patroni) => patroni.ports(),
        }
    }

    /// Kills the primary, which is then started again.
    pub(crate) async fn crash(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pair(pair) => block_in_place(|| pair.kill()),
            Self::Patroni(patroni) => patroni.crash_leader().await?,
        }
        Ok(())
    }

    /// Starts the primary again after [`Database::crash`].
    pub(crate) async fn recover(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pair(pair) => block_in_place(|| pair.start_again()),
            Self::Patroni(patroni) => patroni.wait_for_leader().await?,
        }
        self.wait_until_replicated().await
    }

    /// Kills the primary, which does not come back as one.
    pub(crate) async fn lose_primary(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pair(pair) => block_in_place(|| pair.kill()),
            Self::Patroni(patroni) => patroni.lose_leader().await?,
        }
        Ok(())
    }

    /// Makes a standby the primary after [`Database::lose_primary`], and the lost server its standby.
    pub(crate) async fn fail_over(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pair(pair) => {
                sleep(Pair::NOTICED_AFTER).await;
                block_in_place(|| {
                    pair.promote();
                    pair.restore_standby();
                });
            }
            Self::Patroni(patroni) => patroni.replace_leader().await?,
        }
        self.wait_until_replicated().await
    }

    pub(crate) fn can_fill_disk(&self) -> bool {
        match self {
            Self::Pair(pair) => pair.can_fill_disk(),
            Self::Patroni(patroni) => patroni.can_fill_disk(),
        }
    }

    /// Leaves no byte free on the primary's disk.
    pub(crate) async fn fill_disk(&self) -> Result<(), Failure> {
        match self {
            Self::Pair(pair) => block_in_place(|| pair.fill_disk()),
            Self::Patroni(patroni) => patroni.fill_disk().await,
        }
    }

    /// Frees what [`Database::fill_disk`] has filled, and waits until the database is whole again.
    pub(crate) async fn free_disk(&mut self) -> Result<(), Failure> {
        match self {
            Self::Pair(pair) => block_in_place(|| pair.free_disk())?,
            Self::Patroni(patroni) => {
                patroni.free_disks()?;
                patroni.wait_for_leader().await?;
            }
        }
        self.wait_until_replicated().await
    }

    /// How often a former primary was brought back, by the way; empty under Patroni, which chooses by itself.
    pub(crate) fn resyncs(&self) -> BTreeMap<&'static str, u64> {
        match self {
            Self::Pair(pair) => pair.resyncs().clone(),
            Self::Patroni(_) => BTreeMap::new(),
        }
    }

    /// Waits until the primary has a synchronous standby.
    pub(crate) async fn wait_until_replicated(&self) -> Result<(), Failure> {
        let watch = Stopwatch::start();
        loop {
            match self.is_replicated().await {
                Ok(true) => return Ok(()),
                result if watch.elapsed() >= REPLICATED_WITHIN => {
                    return Err(
                        format!("no synchronous standby after {REPLICATED_WITHIN:?}: {result:?}").into()
                    );
                }
                _ => sleep(CHECK_INTERVAL).await,
            }
        }
    }

    async fn is_replicated(&self) -> Result<bool, Failure> {
        if let Self::Patroni(patroni) = self
            && !patroni.has_heir().await
        {
            return Ok(false);
        }
        let url = connection_string(&self.ports());
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        let driver = tokio::spawn(connection);
        let asked = client
            .query_one(
                "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' \
                 AND sync_state IN ('sync', 'quorum') AND application_name <> 'pg_basebackup')",
                &[],
            )
            .await;
        driver.abort();
        Ok(asked?.try_get(0)?)
    }
}

/// Finds the primary among the servers on these ports.
pub(crate) fn connection_string(ports: &[u16]) -> String {
    let hosts = vec!["127.0.0.1"; ports.len()].join(",");
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = ports.join(",");
    format!(
        "host={hosts} port={ports} user=postgres dbname=postgres connect_timeout=2 target_session_attrs=read-write"
    )
}
