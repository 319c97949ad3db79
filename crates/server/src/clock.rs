//! The wall clock, for stamps on answers and logs, and for certificates, which clients judge by theirs. Nothing else is
//! decided by it: expiry is the store's matter.

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

/// The same, as HTTP writes it.
pub(crate) fn http_date() -> String {
    httpdate::fmt_http_date(system_now())
}
