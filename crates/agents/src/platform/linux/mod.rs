//! Linux.

pub(super) mod held;
pub(super) mod parent;
pub(super) mod places;
pub(super) mod privileges;
pub(super) mod processes;
pub(super) mod roots;
pub(super) mod sockets;
