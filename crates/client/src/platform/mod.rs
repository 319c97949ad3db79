//! What differs by operating system. Files elsewhere don't ask which one it is; a test reads them all (testkit's `platforms`).
//!
//! | system | owners and modes of files | whose folders |
//! |---|---|---|
//! | Linux | `unix` | `Folders::Xdg` |
//! | macOS | `unix` | `Folders::MacOs` |
//! | Windows and everything else | can't be checked, so nothing is read or written there (`unchecked`) | `Folders::Windows` |

mod folders;
mod others;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as here;

#[cfg(any(not(unix), test))]
mod unchecked;
#[cfg(not(unix))]
use unchecked as here;

pub(crate) use self::{folders::Folders, others::Others};
pub(crate) use here::{
    no_follow, others_can_write, others_have_access, private_builder, private_mode, sync_folder,
};
