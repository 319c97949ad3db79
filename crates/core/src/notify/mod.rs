//! How others learn of a commit: "read this again", and to one node the delivery itself. What is lost costs a read or
//! some seconds, never data.

mod announcement;
mod doorbell;
mod endings;
mod listener;
mod local;
mod ring;

pub use announcement::{Announcement, HandOver};
pub use doorbell::{Announcer, Doorbell, Receiver};
pub use endings::Endings;
pub use listener::{Listener, Listeners, Rung};
pub use local::LocalDoorbell;
pub use ring::Ring;
