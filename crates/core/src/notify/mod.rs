//! How others are woken after a commit: "read this again", never what there is to read. A lost ring costs time, not
//! data.

mod doorbell;
mod listener;
mod local;
mod ring;

pub use doorbell::Doorbell;
pub use listener::{Listener, Listeners, Rung};
pub use local::LocalDoorbell;
pub use ring::Ring;
