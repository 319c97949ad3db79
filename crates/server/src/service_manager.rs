//! What systemd hears from a service of `Type=notify`. Nothing happens where nobody asked to be notified (`NOTIFY_SOCKET`).

use sd_notify::NotifyState;

/// Said in `systemctl status` after a reload that failed. The reason is in the log: an error can have several lines, and a line
/// here is a message of its own.
const NOT_RELOADED: &str = "the new configuration can't be used, see the log; what was in force stays so";

pub(crate) fn ready() {
    notify(&[NotifyState::Ready]);
}

pub(crate) fn reloading() {
    // With the time, `systemctl reload` knows that this answers its signal and not an earlier one.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => notify(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!(%error, "the service manager can't be told of a reload"),
    }
}

pub(crate) fn reloaded(is_in_force: bool) {
    let status = if is_in_force { "" } else { NOT_RELOADED };
    notify(&[NotifyState::Ready, NotifyState::Status(status)]);
}

pub(crate) fn stopping() {
    notify(&[NotifyState::Stopping]);
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager can't be notified");
    }
}
