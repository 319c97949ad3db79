//! A primary and its synchronous standby. We kill, promote and rewind them ourselves.

use std::{collections::BTreeMap, path::Path, time::Duration};

use countersign_testkit::postgres::{Postgres, Resync};

use super::disk::Disk;
use crate::Failure;

/// Strict: a primary without its standby acknowledges nothing. Both servers have it, so that it holds after a promotion too.
const SETTINGS: &[&str] = &[
    "synchronous_standby_names=*",
    "synchronous_commit=on",
    "wal_log_hints=on",
    "wal_keep_size=128MB",
    "max_wal_size=128MB",
    // A standby whose primary died asks for its successor this often.
    "wal_retrieve_retry_interval=200ms",
];

/// Two servers, of which one is the primary.
#[derive(Debug)]
pub(crate) struct Pair {
    servers: [Postgres; 2],
    /// After the servers, which are stopped before their disks are unmounted.
    disks: [Disk; 2],
    primary: usize,
    resyncs: BTreeMap<&'static str, u64>,
}

impl Pair {
    pub(crate) fn start(folder: &Path, mebibytes: u64) -> Result<Self, Failure> {
        let disks = [
            Disk::new(folder.join("database-a"), mebibytes)?,
            Disk::new(folder.join("database-b"), mebibytes)?,
        ];
        let primary = Postgres::start_at(disks[0].new_folder()?, SETTINGS);
        let standby = primary.start_standby_at(disks[1].new_folder()?);
        Ok(Self { servers: [primary, standby], disks, primary: 0, resyncs: BTreeMap::new() })
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(Postgres::port).collect()
    }

    pub(crate) fn kill(&mut self) {
        self.servers[self.primary].kill();
    }

    /// Starts the primary again after [`Pair::kill`].
    pub(crate) fn start_again(&mut self) {
        self.servers[self.primary].start_again();
    }

    /// Makes the standby the primary, after [`Pair::kill`].
    pub(crate) fn promote(&mut self) {
        self.primary = 1 - self.primary;
        self.servers[self.primary].promote();
    }

    /// Makes the former primary the standby of the new one.
    pub(crate) fn restore_standby(&mut self) {
        let [first, second] = &mut self.servers;
        let (primary, former) = if self.primary == 0 { (first, second) } else { (second, first) };
        let name = match former.follow(primary) {
            Resync::Rewound => "pg_rewind",
            Resync::CopiedAnew => "base backup",
        };
        *self.resyncs.entry(name).or_default() += 1;
    }

    pub(crate) fn can_fill_disk(&self) -> bool {
        self.disks[0].can_be_filled()
    }

    pub(crate) fn fill_disk(&self) -> Result<(), Failure> {
        self.disks[self.primary].fill()
    }

    /// Frees the disks, and starts a server that has given up on a full one.
    pub(crate) fn free_disk(&mut self) -> Result<(), Failure> {
        for (server, disk) in self.servers.iter_mut().zip(&self.disks) {
            disk.free()?;
            if !server.is_running() {
                server.kill();
                server.start_again();
            }
        }
        Ok(())
    }

    /// How often a former primary was brought back, by the way.
    pub(crate) fn resyncs(&self) -> &BTreeMap<&'static str, u64> {
        &self.resyncs
    }

    /// How long an operator takes to see that the primary is gone.
    pub(crate) const NOTICED_AFTER: Duration = Duration::from_millis(500);
}
