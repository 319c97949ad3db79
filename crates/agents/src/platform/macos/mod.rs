//! macOS. It was type-checked, and what other systems can run too is tested there; none of it was run on a Mac yet.

pub(super) mod held;
pub(super) mod parent;
pub(super) mod places;
pub(super) mod processes;
pub(super) mod roots;

#[cfg(target_os = "macos")]
pub(super) mod privileges;
#[cfg(target_os = "macos")]
pub(super) mod sockets;
