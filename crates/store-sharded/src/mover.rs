//! Moves a tenant. Each step may be the last of a mover that is killed: whoever asks for the same move again goes on from
//! there, and several may do so at once.
//!
//! | step | shard | until then |
//! |---|---|---|
//! | the tenant is arriving | the new one | nothing has changed for anybody |
//! | it is leaving: nobody writes to it any more | the old one | it can be taken back |
//! | all of it is copied, and nobody reads it there any more | both | the same |
//! | it is here | the new one | after this there is no way back but another move |
//! | it has left, and what was there is deleted | the old one | |

use std::{sync::Arc, time::Duration};

use countersign_core::store::{
    CargoPosition, Epoch, Relocation, Residence, ResidenceState, Shard, Store as _, StoreError,
};
use countersign_wire::{id::TenantId, timestamp::Timestamp};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{error::MoveError, placement::Whereabouts, sharded::ShardedStore};

/// Rows that are deleted from each table at once.
const CLEAR_CHUNK: u32 = 1_000;

/// One in so many of the time for which nodes believe a shard is waited longer than that: their clocks and ours may run at
/// different speeds.
const MARGIN: u32 = 10;

/// How far the clock of a shard may be behind that of the other. So long the tenant would wait for it.
const MAX_BEHIND: Duration = Duration::from_secs(30);
const CLOCK_INTERVAL: Duration = Duration::from_millis(100);

/// What a move has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub rows: u64,
    /// As they travel, which is more than they take in the database.
    pub bytes: u64,
}

/// How a move ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moved {
    /// It was on that shard already, or was taken back before anything else could happen to it.
    WasThere,
    /// It is there, and this mover has copied so much.
    Arrived(Progress),
}

/// The shards of one move, and the residence of the tenant in the middle of it.
struct Move<'s> {
    tenant: &'s TenantId,
    from: Side<'s>,
    to: Side<'s>,
    epoch: Epoch,
}

struct Side<'s> {
    number: Shard,
    name: &'s str,
    store: &'s Arc<dyn Relocation>,
}

impl Side<'_> {
    fn failed(&self, source: StoreError) -> MoveError {
        match source {
            StoreError::Moved => MoveError::Contended,
            source => MoveError::Store { name: self.name.to_owned(), source },
        }
    }

    /// Fails if somebody else has changed it to something else first.
    async fn change(
        &self,
        tenant: &TenantId,
        from: Option<Residence>,
        to: Residence,
    ) -> Result<(), MoveError> {
        let is = self.store.change_residence(tenant, from, to).await.map_err(|error| self.failed(error))?;
        if is == Some(to) { Ok(()) } else { Err(MoveError::Contended) }
    }

    async fn residence(&self, tenant: &TenantId) -> Result<Option<Residence>, MoveError> {
        self.store.residence(tenant).await.map_err(|error| self.failed(error))
    }

    async fn clear(&self, tenant: &TenantId, residence: Residence) -> Result<(), MoveError> {
        let cleared = || self.store.clear(tenant, residence, CLEAR_CHUNK);
        while cleared().await.map_err(|error| self.failed(error))? > 0 {}
        Ok(())
    }

    async fn now(&self) -> Result<Timestamp, MoveError> {
        self.store.now().await.map_err(|error| self.failed(error))
    }
}

impl Move<'_> {
    fn leaving(&self) -> Residence {
        Residence { epoch: self.epoch, state: ResidenceState::Leaving { to: self.to.number } }
    }

    fn arriving(&self) -> Residence {
        Residence { epoch: self.epoch, state: ResidenceState::Arriving { from: self.from.number } }
    }

    fn left(&self) -> Residence {
        Residence { epoch: self.epoch, state: ResidenceState::Left { to: self.to.number } }
    }

    fn here(&self) -> Residence {
        Residence { epoch: self.epoch, state: ResidenceState::Here }
    }

    /// From the first step to the last before the tenant can't be written to.
    async fn start(&self, before: Option<Residence>) -> Result<(), MoveError> {
        self.check_clock(self.from.now().await?, self.to.now().await?)?;
        let there = self.to.residence(self.tenant).await?;
        self.to.change(self.tenant, there, self.arriving()).await?;
        // What an earlier move has left behind.
        self.to.clear(self.tenant, self.arriving()).await?;
        self.from.change(self.tenant, before, self.leaving()).await
    }

    /// From there to the end.
    async fn finish(
        &self,
        believed_for: Duration,
        report: &(dyn Fn(Progress) + Sync),
    ) -> Result<Progress, MoveError> {
        // Whoever has asked the old shard before this moment may still believe that the tenant is there.
        let nobody_reads = Instant::now() + believed_for + believed_for / MARGIN;
        let left_at = self.from.now().await?;
        let progress = self.copy(report).await?;
        let floor = self.from.store.version_floor().await.map_err(|error| self.from.failed(error))?;
        let raised = self.to.store.raise_version_floor(floor).await;
        raised.map_err(|error| self.to.failed(error))?;
        sleep_until(nobody_reads).await;
        self.wait_for_clock(left_at).await?;
        self.to.change(self.tenant, Some(self.arriving()), self.here()).await?;
        self.from.change(self.tenant, Some(self.leaving()), self.left()).await?;
        self.from.clear(self.tenant, self.left()).await?;
        Ok(progress)
    }

    async fn copy(&self, report: &(dyn Fn(Progress) + Sync)) -> Result<Progress, MoveError> {
        let arrived = self.to.store.arrived(self.tenant, self.epoch).await;
        let mut position: CargoPosition = arrived.map_err(|error| self.to.failed(error))?;
        let unloading = self.from.store.unload(self.tenant, position.clone()).await;
        let mut unloading = unloading.map_err(|error| self.from.failed(error))?;
        let mut progress = Progress::default();
        while let Some(cargo) = unloading.next().await.map_err(|error| self.from.failed(error))? {
            let loaded = self.to.store.load_cargo(self.tenant, self.epoch, &position, &cargo).await;
            loaded.map_err(|error| self.to.failed(error))?;
            progress.rows += cargo.rows;
            progress.bytes += cargo.size;
            report(progress);
            position = cargo.next;
        }
        Ok(progress)
    }

    /// What is over for the tenant must not become possible again.
    async fn wait_for_clock(&self, left_at: Timestamp) -> Result<(), MoveError> {
        loop {
            let now = self.to.now().await?;
            if now >= left_at {
                return Ok(());
            }
            self.check_clock(left_at, now)?;
            sleep(CLOCK_INTERVAL).await;
        }
    }

    fn check_clock(&self, from: Timestamp, to: Timestamp) -> Result<(), MoveError> {
        if to.plus(MAX_BEHIND) >= from {
            return Ok(());
        }
        let (behind, from, to) = (from.since(to), self.from.name.to_owned(), self.to.name.to_owned());
        Err(MoveError::Clock { from, to, behind })
    }

    /// The tenant stays where it was. First where it can't arrive any more then, so that it is never in both places.
    async fn give_up(&self) -> Result<(), MoveError> {
        let epoch = self.epoch.next();
        let given_up = Residence { epoch, state: ResidenceState::Left { to: self.from.number } };
        let there = self.to.residence(self.tenant).await?;
        if there != Some(given_up) {
            if there.is_some_and(|there| there.state == ResidenceState::Here) {
                return Err(MoveError::Contended);
            }
            self.to.change(self.tenant, there, given_up).await?;
        }
        let here = Residence { epoch, state: ResidenceState::Here };
        self.from.change(self.tenant, Some(self.leaving()), here).await?;
        self.to.clear(self.tenant, given_up).await
    }
}

impl ShardedStore {
    /// Moves a tenant to another shard, or goes on with a move that was interrupted, or takes the tenant back from one. From
    /// when it starts to leave until it has arrived the tenant can be neither read nor written, for at least the time for which
    /// nodes believe a shard.
    pub async fn move_tenant(
        &self,
        tenant: &TenantId,
        to: Shard,
        report: &(dyn Fn(Progress) + Sync),
    ) -> Result<Moved, MoveError> {
        if Shard::of_nodes_tenant(tenant).is_some() {
            return Err(MoveError::OfNodes);
        }
        let target = self.side(to)?;
        match self.whereabouts(tenant).await? {
            Whereabouts::Home if self.home(tenant) == to => Ok(Moved::WasThere),
            Whereabouts::Here { at, epoch } if at == to => {
                self.tidy(tenant, to, epoch).await?;
                Ok(Moved::WasThere)
            }
            Whereabouts::Home => {
                let from = self.side(self.home(tenant))?;
                self.start_and_finish(Move { tenant, from, to: target, epoch: Epoch(1) }, None, report).await
            }
            Whereabouts::Here { at, epoch } => {
                let before = Residence { epoch, state: ResidenceState::Here };
                let from = self.side(at)?;
                let next = Move { tenant, from, to: target, epoch: epoch.next() };
                self.start_and_finish(next, Some(before), report).await
            }
            Whereabouts::Leaving { from, to: there, epoch } if there == to => {
                let resumed = Move { tenant, from: self.side(from)?, to: target, epoch };
                Ok(Moved::Arrived(resumed.finish(self.options.believed_for, report).await?))
            }
            Whereabouts::Leaving { from, to: there, epoch } if from == to => {
                Move { tenant, from: target, to: self.side(there)?, epoch }.give_up().await?;
                Ok(Moved::WasThere)
            }
            Whereabouts::Left { from, to: back, epoch } if back == to => {
                // It was given up, and the last step is missing. The move had the epoch before.
                let epoch = Epoch(epoch.0.saturating_sub(1));
                Move { tenant, from: target, to: self.side(from)?, epoch }.give_up().await?;
                Ok(Moved::WasThere)
            }
            Whereabouts::Leaving { from, to, .. } => Err(self.on_its_way(from, to)),
            Whereabouts::Left { from, to, .. } => Err(self.on_its_way(to, from)),
        }
    }

    async fn start_and_finish(
        &self,
        next: Move<'_>,
        before: Option<Residence>,
        report: &(dyn Fn(Progress) + Sync),
    ) -> Result<Moved, MoveError> {
        next.start(before).await?;
        Ok(Moved::Arrived(next.finish(self.options.believed_for, report).await?))
    }

    /// What the shards say now of a tenant. Those that do not answer say nothing.
    async fn whereabouts(&self, tenant: &TenantId) -> Result<Whereabouts, MoveError> {
        let mut said = Vec::new();
        let home = self.home(tenant);
        for number in (0..self.shard_count()).map(Shard) {
            match self.residence(tenant, number).await {
                Ok(residence) => said.extend(residence.map(|residence| (number, residence))),
                // Only it knows whether the tenant has ever left it.
                Err(away) if number == home => return Err(away),
                Err(_) => {}
            }
        }
        let Whereabouts::Left { from, to, epoch } = Whereabouts::of(said.iter().copied()) else {
            return Ok(Whereabouts::of(said.into_iter()));
        };
        // The one that it has left for was asked before, or did not answer.
        let there = self.residence(tenant, to).await?;
        said.retain(|(number, _)| *number != to);
        said.extend(there.map(|residence| (to, residence)));
        let is_left = Whereabouts::of(said.into_iter());
        // It is taken back, or else has to be there.
        let move_before = Epoch(epoch.0.saturating_sub(1));
        let leaving = Residence { epoch: move_before, state: ResidenceState::Leaving { to: from } };
        match is_left == (Whereabouts::Left { from, to, epoch }) && there != Some(leaving) {
            true => Err(MoveError::Forgotten { from: self.name(from), to: self.name(to) }),
            false => Ok(is_left),
        }
    }

    /// What a shard says now of a tenant, if it answers.
    async fn residence(&self, tenant: &TenantId, number: Shard) -> Result<Option<Residence>, MoveError> {
        let shard = self.shards.get(usize::from(number.0)).ok_or(MoveError::NoSuchShard)?;
        let said = shard.in_time(async { shard.store()?.residence(tenant).await }).await;
        said.map_err(|_| MoveError::Away { name: shard.name.clone() })
    }

    /// Ends what was interrupted after the tenant had arrived, and deletes what a shard has of it that was restored from a backup
    /// of before.
    async fn tidy(&self, tenant: &TenantId, at: Shard, epoch: Epoch) -> Result<(), MoveError> {
        let left = Residence { epoch, state: ResidenceState::Left { to: at } };
        let mut names = Vec::new();
        for number in (0..self.shard_count()).map(Shard).filter(|number| *number != at) {
            let (Ok(side), Ok(residence)) = (self.side(number), self.residence(tenant, number).await) else {
                names.push(self.name(number));
                continue;
            };
            let left = match residence {
                None if number != self.home(tenant) => continue,
                Some(newer) if newer.epoch > epoch => continue,
                Some(has_left) if matches!(has_left.state, ResidenceState::Left { .. }) => has_left,
                outdated => {
                    side.change(tenant, outdated, left).await?;
                    left
                }
            };
            side.clear(tenant, left).await?;
        }
        if names.is_empty() { Ok(()) } else { Err(MoveError::NotTidied { names }) }
    }

    fn side(&self, number: Shard) -> Result<Side<'_>, MoveError> {
        let shard = self.shards.get(usize::from(number.0)).ok_or(MoveError::NoSuchShard)?;
        let store = shard.store().map_err(|_| MoveError::Away { name: shard.name.clone() })?;
        Ok(Side { number, name: &shard.name, store })
    }

    fn on_its_way(&self, from: Shard, to: Shard) -> MoveError {
        MoveError::OnItsWay { from: self.name(from), to: self.name(to) }
    }

    fn name(&self, shard: Shard) -> String {
        let shard = self.shards.get(usize::from(shard.0));
        shard.map_or_else(|| "an unknown shard".to_owned(), |shard| shard.name.clone())
    }
}
