//! Typed loads: what a use case reads before it evaluates, as types and not as positions in a list.

use std::marker::PhantomData;

use countersign_wire::{id::TenantId, timestamp::Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    cache::{Known, KnownRecords, is_kept, is_slow},
    store::{Change, Guard, Key, Kind, Record, Store, StoreError, Stored, Versioned},
};

/// Where records are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFrom {
    /// All of them are read.
    Store,
    /// Those that this node knows are taken as they are, and those of these kinds that it does not know are taken to be
    /// absent. What is decided on such records must be guarded.
    Memory { new: &'static [Kind] },
}

/// Reads the records of one evaluation, and remembers which of them it used.
pub(crate) struct Reading<'a> {
    pub(crate) store: &'a dyn Store,
    known: &'a KnownRecords,
    from: ReadFrom,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Slow records with their versions, zero for those that do not exist.
    slow: Vec<(Key, u64)>,
    /// Whether anything came from memory: a record, an assumed absence or the time.
    memory: bool,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(store: &'a dyn Store, known: &'a KnownRecords, from: ReadFrom) -> Self {
        Self { store, known, from, used: Mutex::default() }
    }

    /// The records behind `keys`, in their order, and the store's time.
    pub(crate) async fn records(
        &self,
        tenant: &TenantId,
        keys: &[Key],
    ) -> Result<(Vec<Option<Record>>, Timestamp), StoreError> {
        let remembered: Vec<Option<Known>> = keys.iter().map(|key| self.remembered(tenant, key)).collect();
        let missing: Vec<Key> = keys
            .iter()
            .zip(&remembered)
            .filter(|(_, remembered)| remembered.is_none())
            .map(|(key, _)| key.clone())
            .collect();
        let from_memory = missing.len() < keys.len();
        let (read, now) = self.read(tenant, &missing).await?;
        let mut read = read.into_iter();
        let records: Vec<Option<Record>> = remembered
            .into_iter()
            .map(|known| known.map_or_else(|| read.next().flatten(), |known| known.record))
            .collect();
        let mut used = self.used.lock();
        used.memory |= from_memory;
        for (key, record) in keys.iter().zip(&records).filter(|(key, _)| is_slow(key.kind)) {
            used.slow.push((key.clone(), record.as_ref().map_or(0, |record| record.version)));
        }
        Ok((records, now))
    }

    fn remembered(&self, tenant: &TenantId, key: &Key) -> Option<Known> {
        let ReadFrom::Memory { new } = self.from else { return None };
        let known = is_kept(key.kind).then(|| self.known.get(tenant, key, None)).flatten();
        known.or_else(|| new.contains(&key.kind).then(Known::absent))
    }

    /// As [`Reading::records`] for records that no change rests on: all of them are read, and none is guarded.
    pub(crate) async fn beside(
        &self,
        tenant: &TenantId,
        keys: &[Key],
    ) -> Result<(Vec<Option<Record>>, Timestamp), StoreError> {
        self.read(tenant, keys).await
    }

    /// Reads what is missing; the time alone, which this node may know, if nothing is.
    async fn read(
        &self,
        tenant: &TenantId,
        keys: &[Key],
    ) -> Result<(Vec<Option<Record>>, Timestamp), StoreError> {
        if keys.is_empty() {
            let known = match self.from {
                ReadFrom::Memory { .. } => self.store.estimated_now(tenant),
                ReadFrom::Store => None,
            };
            return match known {
                Some(now) => {
                    self.used.lock().memory = true;
                    Ok((Vec::new(), now))
                }
                None => Ok((Vec::new(), self.store.now().await?)),
            };
        }
        let asked = Instant::now();
        let loaded = self.store.load(tenant, keys).await?;
        for (key, record) in keys.iter().zip(&loaded.records).filter(|(key, _)| is_slow(key.kind)) {
            self.known.insert(tenant, key, record.clone(), asked);
        }
        Ok((loaded.records, loaded.now))
    }

    /// Whether anything came from memory.
    pub(crate) fn used_memory(&self) -> bool {
        self.used.lock().memory
    }

    /// Adds guards for the slow records that were used, unless `change` guards or writes them itself.
    pub(crate) fn guard(&self, change: &mut Change) {
        let used = self.used.lock();
        for (key, version) in &used.slow {
            let is_guarded = change.guards.iter().any(|guard| guard.key() == Some(key));
            let is_written = change.puts.iter().any(|put| put.key == *key) || change.deletes.contains(key);
            if !is_guarded && !is_written {
                change.guards.push(Guard::Seen(key.clone(), *version));
            }
        }
    }
}

/// What a use case reads, in one or more store reads, each time it evaluates.
pub(crate) trait Load: Sync {
    type Loaded: Send;

    /// Reads all of it; the time is the store's.
    fn load(
        &self,
        reading: &Reading<'_>,
        tenant: &TenantId,
    ) -> impl Future<Output = Result<(Self::Loaded, Timestamp), StoreError>> + Send;
}

/// Records that one read brings.
pub(crate) trait Records: Sync {
    type Values: Send;

    fn keys(&self, keys: &mut Vec<Key>);

    /// Decodes them, in the order of [`Records::keys`].
    fn read(&self, records: &mut std::vec::IntoIter<Option<Record>>) -> Result<Self::Values, StoreError>;
}

impl<R: Records> Load for R {
    type Loaded = R::Values;

    async fn load(
        &self,
        reading: &Reading<'_>,
        tenant: &TenantId,
    ) -> Result<(Self::Loaded, Timestamp), StoreError> {
        let mut keys = Vec::new();
        self.keys(&mut keys);
        let (records, now) = reading.records(tenant, &keys).await?;
        Ok((self.read(&mut records.into_iter())?, now))
    }
}

/// Names one record of type `T`.
pub(crate) struct RecordOf<T>(Key, PhantomData<fn() -> T>);

/// Names the record of type `T` with this id.
pub(crate) fn record_of<T: Stored>(id: impl std::fmt::Display) -> RecordOf<T> {
    RecordOf(T::key(id), PhantomData)
}

/// Names the record of type `T` with this key.
pub(crate) fn record_at<T: Stored>(key: Key) -> RecordOf<T> {
    RecordOf(key, PhantomData)
}

impl<T: Stored> RecordOf<T> {
    pub(crate) fn key(&self) -> Key {
        self.0.clone()
    }
}

impl<T: Stored> Records for RecordOf<T> {
    type Values = Option<Versioned<T>>;

    fn keys(&self, keys: &mut Vec<Key>) {
        keys.push(self.key());
    }

    fn read(&self, records: &mut std::vec::IntoIter<Option<Record>>) -> Result<Self::Values, StoreError> {
        T::read(records.next().flatten().as_ref())
    }
}

/// A record that is read only where there is something to read it by.
impl<T: Stored> Records for Option<RecordOf<T>> {
    type Values = Option<Versioned<T>>;

    fn keys(&self, keys: &mut Vec<Key>) {
        keys.extend(self.as_ref().map(RecordOf::key));
    }

    fn read(&self, records: &mut std::vec::IntoIter<Option<Record>>) -> Result<Self::Values, StoreError> {
        self.as_ref().map_or(Ok(None), |record| record.read(records))
    }
}

/// A record of any type, not decoded.
pub(crate) struct RawRecord(pub(crate) Key);

impl Records for RawRecord {
    type Values = Option<Record>;

    fn keys(&self, keys: &mut Vec<Key>) {
        keys.push(self.0.clone());
    }

    fn read(&self, records: &mut std::vec::IntoIter<Option<Record>>) -> Result<Self::Values, StoreError> {
        Ok(records.next().flatten())
    }
}

macro_rules! records_of_tuples {
    ($(($($name:ident)*))+) => {$(
        impl<$($name: Records),*> Records for ($($name,)*) {
            type Values = ($($name::Values,)*);

            #[expect(non_snake_case, reason = "named after their types")]
            fn keys(&self, keys: &mut Vec<Key>) {
                let ($($name,)*) = self;
                $($name.keys(keys);)*
            }

            #[expect(non_snake_case, reason = "named after their types")]
            fn read(
                &self,
                records: &mut std::vec::IntoIter<Option<Record>>,
            ) -> Result<Self::Values, StoreError> {
                let ($($name,)*) = self;
                Ok(($($name.read(records)?,)*))
            }
        }
    )+};
}

records_of_tuples! { (A B) (A B C) (A B C D) (A B C D E) }

/// Nothing but the store's time.
impl Records for () {
    type Values = ();

    fn keys(&self, _: &mut Vec<Key>) {}

    fn read(&self, _: &mut std::vec::IntoIter<Option<Record>>) -> Result<(), StoreError> {
        Ok(())
    }
}
