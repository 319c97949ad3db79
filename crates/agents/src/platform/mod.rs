//! What differs by operating system. Files elsewhere don't ask which one it is; a test reads them all (testkit's `platforms`).
//!
//! | concern | Linux | macOS |
//! |---|---|---|
//! | bytes that nobody changes any more | `linux/held.rs`: memory with seals | `macos/held.rs`: a private copy, compared again before the start |
//! | files as a caller elsewhere sees them | `linux/roots.rs`: below the caller's root | `macos/roots.rs`: only callers with the same files |
//! | processes: parents, command lines | `linux/processes.rs`: `/proc` | `macos/processes.rs`: `ps` |
//! | the end of a parent | a signal from the system | `macos/parent.rs`: a thread looks |
//! | sockets, and who is at their other end | `linux/sockets.rs` | `macos/sockets.rs` |
//! | where administrators keep settings of hosts | `/etc` | `macos/places.rs`: `/Library/Application Support`, or `/etc` |
//! | names of files | as they are written | `macos/places.rs`: upper and lower case are the same |
//! | groups that only administrators are in | none | `admin`, to which Homebrew's folders belong |
//! | another account, another's memory, what `doctor --attack` tries | `linux/privileges.rs` | none: it says so |
//!
//! What macOS has is compiled for the tests on Linux too, but for the calls that only its system has.

mod folder;
mod process;

#[cfg(not(target_os = "macos"))]
mod linux;
#[cfg(any(target_os = "macos", test))]
#[cfg_attr(
    not(target_os = "macos"),
    expect(
        unreachable_pub,
        clippy::unused_self,
        reason = "only its tests use it here, and its functions look like those of Linux"
    )
)]
mod macos;

#[cfg(not(target_os = "macos"))]
use linux as here;
#[cfg(target_os = "macos")]
use macos as here;

pub use self::{folder::Folder, process::Process};
pub use here::{
    held::{Kept, can_change, in_memory},
    parent::end_with_parent,
    places::{MANAGED, has_sandbox, host_name, is_administrators, is_at, managed_name, own_program},
    privileges::{
        become_account, bind_abstract, command_line, connect_abstract, guard_memory, memory, mode_number,
        most_open_files, uncover,
    },
    processes::{has_argument, process},
    roots::{LOOK, Roots},
    sockets::{RECEIVE, SEND, peer_process, peer_user, reached, received, stream_socket},
};
