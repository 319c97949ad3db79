//! The wall clock, for stamps on answers and logs, for certificates, which clients judge by theirs, and for a metric. Nothing else
//! is decided by it: expiry is the store's matter.

use std::time::SystemTime;

use countersign_wire::timestamp::Timestamp;

/// The time on this machine, as the system has it.
#[expect(clippy::disallowed_methods, reason = "stamps and certificates only; the store's clock decides")]
pub(crate) fn system_now() -> SystemTime {
    SystemTime::now()
}

/// The time on this machine.
pub(crate) fn now() -> Timestamp {
    let since_epoch = system_now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_unix_micros(i64::try_from(since_epoch.as_micros()).unwrap_or_default())
}

/// How many seconds this machine's clock is ahead of the store's; negative if it is behind.
pub(crate) fn ahead_of(store: Timestamp) -> f64 {
    let now = now();
    now.since(store).as_secs_f64() - store.since(now).as_secs_f64()
}

/// The same, as HTTP writes it.
pub(crate) fn http_date() -> String {
    httpdate::fmt_http_date(system_now())
}
