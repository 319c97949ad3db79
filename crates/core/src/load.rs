//! Typed loads: what a use case reads before it evaluates, as types and not as positions in a list.

use std::marker::PhantomData;

use countersign_wire::{id::TenantId, timestamp::Timestamp};

use crate::store::{Key, Record, Store, StoreError, Stored, Versioned};

/// What a use case reads, in one or more store reads, each time it evaluates.
pub(crate) trait Load: Sync {
    type Loaded: Send;

    /// Reads all of it; the time is the store's.
    fn load(
        &self,
        store: &dyn Store,
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
        store: &dyn Store,
        tenant: &TenantId,
    ) -> Result<(Self::Loaded, Timestamp), StoreError> {
        let mut keys = Vec::new();
        self.keys(&mut keys);
        if keys.is_empty() {
            return Ok((self.read(&mut Vec::new().into_iter())?, store.now().await?));
        }
        let loaded = store.load(tenant, &keys).await?;
        Ok((self.read(&mut loaded.records.into_iter())?, loaded.now))
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
