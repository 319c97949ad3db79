//! Accounts of the system, and becoming another one.

use std::io;

use nix::unistd::{Uid, User};

use crate::platform::become_account;

/// An account of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    /// Its number in the list of users.
    pub user: u32,
    /// The number of its group.
    pub group: u32,
}

impl Account {
    /// By its name, or by its number; a number need not be in the list of users.
    pub fn named(name: &str) -> Option<Self> {
        let of = |user: User| Self { user: user.uid.as_raw(), group: user.gid.as_raw() };
        match name.parse() {
            Ok(number) => {
                let known = User::from_uid(Uid::from_raw(number)).ok()?;
                Some(known.map_or(Self { user: number, group: number }, of))
            }
            Err(_) => User::from_name(name).ok()?.map(of),
        }
    }

    /// Lets this process be this account for good, with no group besides its own. Only root may.
    pub fn become_it(self) -> io::Result<()> {
        become_account(self.user, self.group)
    }
}
