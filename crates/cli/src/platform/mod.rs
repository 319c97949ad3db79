//! What differs by operating system, besides what `countersign_agents::platform` has.
//!
//! | concern | Linux | macOS |
//! |---|---|---|
//! | services of the user | `systemd.rs` | `launchd.rs`, with the text of `plist.rs` |

#[cfg(any(target_os = "macos", test))]
mod plist;

#[cfg(target_os = "macos")]
mod launchd;
#[cfg(not(target_os = "macos"))]
mod systemd;

#[cfg(target_os = "macos")]
pub(crate) use self::launchd::LaunchAgent as Service;
#[cfg(not(target_os = "macos"))]
pub(crate) use self::systemd::Systemd as Service;
