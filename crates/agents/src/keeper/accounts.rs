//! For whom a keeper decides, and with which rules and profiles.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign_client::profile::Role;
use nix::unistd::{Uid, User};
use parking_lot::Mutex;

use super::portion::Portion;
use crate::{call_socket::place::own_user, hook::ears::Ears, tool::home::Home};

/// Somebody for whom a keeper decides.
#[derive(Debug)]
pub(super) struct Account {
    home: Home,
    pub(super) portion: Portion,
    pub(super) ears: Arc<Ears>,
}

/// The accounts that a keeper answers.
#[derive(Debug)]
pub(super) enum Accounts {
    /// The one that it runs under.
    Own(Arc<Account>),
    /// Every other one that is set up.
    Others(Box<Others>),
}

/// The accounts of a machine, each with a home of its own in the keeper's folder.
#[derive(Debug)]
pub(super) struct Others {
    /// The folder of all homes.
    folder: PathBuf,
    known: Mutex<HashMap<u32, Arc<Account>>>,
    /// What those share who have no home here: they are told so.
    strangers: Portion,
}

impl Account {
    pub(super) fn new(home: Home) -> Arc<Self> {
        Arc::new(Self { home: home.sharing(), portion: Portion::default(), ears: Arc::default() })
    }

    /// The home to decide with, or why it can't be used.
    pub(super) fn home(&self, accounts: &Accounts) -> Result<&Home, String> {
        if let Accounts::Others(_) = accounts {
            has_no_approver(&self.home)?;
        }
        Ok(&self.home)
    }
}

impl Others {
    pub(super) fn in_folder(folder: PathBuf) -> Box<Self> {
        Box::new(Self { folder, known: Mutex::default(), strangers: Portion::default() })
    }

    /// The places that a caller may take.
    pub(super) fn portion<'a>(&'a self, account: Option<&'a Arc<Account>>) -> &'a Portion {
        account.map_or(&self.strangers, |account| &account.portion)
    }

    /// The account with this number, or what to do so that it is one of ours.
    pub(super) fn account(&self, user: u32) -> Result<Arc<Account>, String> {
        let folder = served_home(&self.folder, user)?;
        let new = || {
            let home = User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.dir);
            let home = home.filter(|folder| folder.is_absolute());
            Account::new(Home::at(&folder).with_user(home))
        };
        Ok(Arc::clone(self.known.lock().entry(user).or_insert_with(new)))
    }
}

/// What the keeper keeps for an account in the folder of all, or what to do so that there is something.
pub fn served_home(all: &Path, user: u32) -> Result<PathBuf, String> {
    if user == own_user() {
        return Err("The keeper does not decide for its own account.".to_owned());
    }
    let folder = all.join(user.to_string());
    match fs::symlink_metadata(&folder) {
        Ok(found) if is_closed(&found) => Ok(folder),
        Ok(_) => Err(format!("{} can be reached by others than the keeper.", folder.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
            "The keeper does not know the account {user} yet: \
             `sudo countersign keeper as {user} join` sets it up."
        )),
        Err(error) => Err(format!("The account {user} can't be looked up: {error}.")),
    }
}

/// Whether a folder is the keeper's alone.
fn is_closed(found: &fs::Metadata) -> bool {
    found.is_dir() && found.uid() == own_user() && found.mode() & 0o777 == 0o700
}

/// Who approves has keys elsewhere: a keeper that could approve what it asks would be asking itself.
fn has_no_approver(home: &Home) -> Result<(), String> {
    let profiles = home.all().map_err(|failure| failure.to_string())?;
    let is_approver = |role| role == Role::Approver;
    let found = profiles
        .into_iter()
        .find(|(_, profile)| profile.as_ref().is_ok_and(|it| is_approver(it.facts().party.role())));
    match found {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "The keeper decides nothing while it has the keys of an approver: remove {}.",
            home.profile_folder(&name).display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_accounts_with_a_closed_home_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let others = Others::in_folder(folder.path().to_owned());
        assert!(others.account(own_user()).unwrap_err().contains("its own account"));
        assert!(others.account(54_321).unwrap_err().contains("countersign keeper as 54321"));
        let home = folder.path().join("54321");
        fs::create_dir(&home).unwrap();
        for (mode, is_known) in [(0o755, false), (0o710, false), (0o700, true)] {
            fs::set_permissions(&home, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(others.account(54_321).is_ok(), is_known, "{mode:o}");
        }
        fs::rename(&home, folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &home).unwrap();
        assert!(others.account(54_321).is_err(), "a link leads elsewhere");
    }
}
