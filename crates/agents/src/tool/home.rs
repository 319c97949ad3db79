//! What is kept on this machine: one folder with the profiles, and with the gateway of `countersign up`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use countersign_client::{
    approver::Approver,
    clock::SystemClock,
    enforcer::Enforcer,
    http::Http,
    journal::{FileJournal, Journal, MemoryJournal},
    keys::DeviceKeys,
    names::Names,
    profile::{
        Facts, FileKeys, HOME_VARIABLE, KeyPlace, Party, Passphrase, PassphraseKeys, Profile, ProfileError,
        ProfileName, Profiles, Role,
    },
};
use countersign_wire::id::ApproverId;
use zeroize::Zeroizing;

use super::{
    exit::{Exit, Failure},
    shared::Shared,
    terminal::Terminal,
};

/// The variable that names a file with a whole profile, for machines without a home such as CI runners.
pub const PROFILE_FILE_VARIABLE: &str = "COUNTERSIGN_PROFILE_FILE";

/// The folder of a keeper under an account of its own, with a home for each account that it decides for.
pub const ACCOUNTS: &str = "/var/lib/countersign-keeper";

/// The account that such a keeper runs as. A gateway on the same machine runs as another, so that neither can read the other's keys.
pub const KEEPER_ACCOUNT: &str = "countersign-keeper";

/// The shortest passphrase that locks an approver's keys. Whoever has the file can try as many as they like.
const MIN_PASSPHRASE_CHARS: usize = 8;

/// The folder of everything.
#[derive(Debug, Clone)]
pub struct Home {
    profiles: Profiles,
    /// The folder of the user, which `~` in rules means.
    user: Option<PathBuf>,
    /// A file with a whole profile, which counts instead of those in the folder.
    profile_file: Option<PathBuf>,
    /// What is kept between two calls, in a process that answers many.
    shared: Option<Arc<Shared>>,
}

/// A profile and what it is called.
#[derive(Debug)]
pub struct Identity {
    /// What the user calls it.
    pub name: String,
    /// Who it is, and whom it knows.
    pub profile: Profile,
    shared: Option<Arc<Shared>>,
}

/// A profile, or why it can't be opened.
pub type NamedProfile = (ProfileName, Result<Profile, ProfileError>);

impl Home {
    /// The folder of the current user, by the variables of this process: what a person types, they mean.
    pub fn of_user() -> Result<Self, Failure> {
        let path = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        Ok(Self {
            profiles: Profiles::of_user().map_err(failed)?,
            user: path("HOME").filter(|path| path.is_absolute()),
            profile_file: path(PROFILE_FILE_VARIABLE),
            shared: None,
        })
    }

    /// The usual folder of the account that this process runs as, whatever its variables say. What a repository's settings
    /// put into the environment of a hook must not choose the rules.
    pub fn of_account() -> Result<Self, Failure> {
        let user = account_folder().ok_or_else(|| {
            Failure::new(Exit::NotSetUp, "this account has no folder in the system's list of users")
                .next("name the folder of Countersign with --home DIR")
        })?;
        Ok(Self { profiles: Profiles::in_home_of(&user), user: Some(user), profile_file: None, shared: None })
    }

    /// This folder, whatever the variables say.
    pub fn at(folder: &Path) -> Self {
        let profiles = Profiles::at(folder.join("profiles"));
        Self { profiles, user: account_folder(), profile_file: None, shared: None }
    }

    /// What a keeper under an account of its own keeps for an account.
    pub fn of_served(user: u32) -> PathBuf {
        Path::new(ACCOUNTS).join(user.to_string())
    }

    /// Whether a keeper under an account of its own serves this account.
    pub fn is_served() -> bool {
        // Where the folder around it is closed, it is not a keeper's.
        fs::symlink_metadata(Self::of_served(rustix::process::geteuid().as_raw())).is_ok()
    }

    /// Whether somebody who approves may have keys here. Not in a keeper, which would ask itself, and not where a keeper
    /// protects against agents of this account, who could watch the passphrase.
    pub fn may_have_approver(&self) -> Result<(), Failure> {
        let elsewhere = "approve on your phone (`countersign up --phone`), or on another machine or under another account";
        if self.folder().starts_with(ACCOUNTS) {
            return Err(Failure::new(
                Exit::NotSetUp,
                "the keeper has no keys of approvers: it would ask itself",
            )
            .next(elsewhere));
        }
        match Self::is_served() {
            false => Ok(()),
            true => Err(Failure::new(
                Exit::NotSetUp,
                "a keeper protects this account from its agents, and an agent could watch you type a passphrase here",
            )
            .next(elsewhere)),
        }
    }

    /// With a file that counts instead of the profiles in the folder.
    #[must_use]
    pub fn with_profile_file(self, file: Option<PathBuf>) -> Self {
        Self { profile_file: file, ..self }
    }

    /// For a process that answers many calls.
    #[must_use]
    pub fn sharing(self) -> Self {
        Self { shared: Some(Arc::default()), ..self }
    }

    /// With another folder of the user.
    #[must_use]
    pub fn with_user(self, user: Option<PathBuf>) -> Self {
        Self { user, ..self }
    }

    /// The folder of the user, which `~` in rules means.
    pub fn user(&self) -> Option<&Path> {
        self.user.as_deref()
    }

    /// The file with a whole profile, if one is named.
    pub fn profile_file(&self) -> Option<&Path> {
        self.profile_file.as_deref()
    }

    /// The folder that everything is in.
    pub fn folder(&self) -> &Path {
        self.profiles.path().parent().unwrap_or(Path::new("."))
    }

    /// The folder of a profile, whether it exists or not.
    pub fn profile_folder(&self, name: &ProfileName) -> PathBuf {
        self.profiles.folder(name)
    }

    /// The folder of a profile by its name.
    pub fn folder_named(&self, name: &str) -> Result<PathBuf, Failure> {
        Ok(self.profiles.folder(&ProfileName::new(name).map_err(failed)?))
    }

    /// Where the gateway of `countersign up` has its files.
    pub fn gateway_folder(&self) -> PathBuf {
        self.folder().join("gateway")
    }

    /// Where hooks keep what they remember between two events.
    pub fn hooks_folder(&self) -> PathBuf {
        self.folder().join("hooks")
    }

    /// What agents may do without asking, and what never (docs/rules.md).
    pub fn rules_file(&self) -> PathBuf {
        self.folder().join("rules.toml")
    }

    /// Whether it is the folder that this user has without saying so.
    pub fn is_usual(&self) -> bool {
        env::var_os(HOME_VARIABLE).is_none_or(|home| home.is_empty())
    }

    /// Every profile, with the reason where one can't be opened.
    pub fn all(&self) -> Result<Vec<NamedProfile>, Failure> {
        let names = self.profiles.list().map_err(failed)?;
        Ok(names
            .into_iter()
            .map(|name| (name.clone(), Profile::open(&self.profiles.folder(&name))))
            .collect())
    }

    /// The profile of this name, if there is one.
    pub fn named(&self, name: &str) -> Result<Option<Profile>, Failure> {
        let folder = self.profiles.folder(&ProfileName::new(name).map_err(failed)?);
        match Profile::open(&folder) {
            Ok(profile) => Ok(Some(profile)),
            Err(ProfileError::Missing { .. }) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// The profile to act with: the named one, or the only one of the role.
    pub fn find(&self, role: Role, name: Option<&str>) -> Result<Identity, Failure> {
        if let Some(identity) = self.of_file(role, name)? {
            return Ok(identity);
        }
        if let Some(name) = name {
            let profile = self.named(name)?.ok_or_else(|| self.unknown(name))?;
            return match profile.facts().party.role() == role {
                true => Ok(Identity { name: name.to_owned(), profile, shared: self.shared.clone() }),
                false => Err(Failure::new(
                    Exit::NotSetUp,
                    format!("the profile {name} is an {}'s, and this needs an {}'s", other(role), word(role)),
                )
                .next("`countersign status` lists all profiles")),
            };
        }
        let mut found = Vec::new();
        for (name, profile) in self.all()? {
            let profile = profile.map_err(failed)?;
            if profile.facts().party.role() == role {
                found.push(Identity { name: name.to_string(), profile, shared: self.shared.clone() });
            }
        }
        match (found.pop(), found.len()) {
            (Some(only), 0) => Ok(only),
            (None, _) => Err(missing(role)),
            (Some(last), _) => {
                let names: Vec<String> = found.into_iter().chain([last]).map(|found| found.name).collect();
                let names = names.join(", ");
                Err(Failure::new(Exit::NotSetUp, format!("there are several {}s here: {names}", word(role)))
                    .next("say which one with --profile NAME"))
            }
        }
    }

    /// A profile from one secret file.
    fn of_file(&self, role: Role, name: Option<&str>) -> Result<Option<Identity>, Failure> {
        let (Some(path), Role::Enforcer, None) = (&self.profile_file, role, name) else { return Ok(None) };
        let text = fs::read_to_string(path).map(Zeroizing::new).map_err(|error| {
            let what = format!("the profile file {} can't be read: {error}", path.display());
            Failure::new(Exit::NotSetUp, what)
        })?;
        let profile = Profile::from_secret_text(text.trim()).map_err(failed)?;
        if profile.facts().party.role() != Role::Enforcer {
            let what = format!(
                "{} is the profile of an approver, whose keys are never used unlocked",
                path.display()
            );
            return Err(Failure::new(Exit::NotSetUp, what).next("export the profile of an enforcer"));
        }
        Ok(Some(Identity { name: path.display().to_string(), profile, shared: self.shared.clone() }))
    }

    fn unknown(&self, name: &str) -> Failure {
        let names = self.profiles.list().unwrap_or_default();
        let list: Vec<&str> = names.iter().map(ProfileName::as_str).collect();
        let known = if list.is_empty() {
            "There is none yet".to_owned()
        } else {
            format!("There is: {}", list.join(", "))
        };
        Failure::new(Exit::NotSetUp, format!("there is no profile {name}")).next(known)
    }

    /// Makes a new profile. An approver's keys are locked by a passphrase, always: an agent may be on this machine.
    pub fn create(
        &self,
        name: &str,
        facts: Facts,
        credential: &countersign_client::profile::Credential,
        lock: Option<Passphrase>,
    ) -> Result<(Profile, DeviceKeys), Failure> {
        if facts.party.role() == Role::Approver {
            self.may_have_approver()?;
        }
        let folder = self.profiles.folder(&ProfileName::new(name).map_err(failed)?);
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).map_err(|error| {
                Failure::new(Exit::Failed, format!("{} can't be made: {error}", parent.display()))
            })?;
        }
        let keys = DeviceKeys::generate().map_err(failed)?;
        match lock {
            Some(passphrase) => {
                Profile::create(&folder, facts, credential, &keys, &PassphraseKeys::new(passphrase))
            }
            None => Profile::create(&folder, facts, credential, &keys, &FileKeys),
        }
        .map(|profile| (profile, keys))
        .map_err(failed)
    }
}

impl Identity {
    /// A profile of this name.
    pub fn new(name: impl Into<String>, profile: Profile) -> Self {
        Self { name: name.into(), profile, shared: None }
    }

    /// The enforcer behind a profile.
    pub fn enforcer(&self) -> Result<Enforcer, Failure> {
        let Party::Enforcer(id) = self.profile.facts().party.clone() else {
            return Err(missing(Role::Enforcer));
        };
        let journal: Arc<dyn Journal> = match (self.profile.journal(), &self.shared) {
            (Some(path), Some(shared)) => shared.journal(&path),
            (Some(path), None) => Arc::new(FileJournal::new(path)),
            (None, _) => Arc::new(MemoryJournal::default()),
        };
        let keys = self.profile.unlock(None).map_err(failed)?;
        Ok(Enforcer { http: self.http()?, id, keys, clock: Arc::new(SystemClock), journal })
    }

    /// The approver behind a profile, unlocked by the person at the terminal.
    pub fn approver(&self) -> Result<Approver, Failure> {
        let Party::Approver(id) = self.profile.facts().party.clone() else {
            return Err(missing(Role::Approver));
        };
        self.approver_with(id, self.unlock()?)
    }

    /// The approver behind a profile, with keys that are unlocked already.
    pub fn approver_with(&self, id: ApproverId, keys: DeviceKeys) -> Result<Approver, Failure> {
        Ok(Approver { http: self.http()?, id, keys, clock: Arc::new(SystemClock) })
    }

    /// The private keys, unlocked by the person at the terminal where they are locked.
    pub fn unlock(&self) -> Result<DeviceKeys, Failure> {
        if self.profile.key_place().map_err(failed)? != Some(KeyPlace::Passphrase) {
            return self.profile.unlock(None).map_err(failed);
        }
        let mut terminal =
            Terminal::open("the keys are locked by a passphrase, which is asked for in a terminal")?;
        let text = terminal.ask_secret(&format!("Passphrase of {}: ", self.profile.facts().party.id()))?;
        let passphrase = Passphrase::new(text).map_err(failed)?;
        self.profile.unlock(Some(&passphrase)).map_err(|error| match error {
            ProfileError::WrongPassphrase { .. } => {
                Failure::new(Exit::Failed, "that is not the passphrase; nothing was done").next("try again")
            }
            other => failed(other),
        })
    }

    /// What this machine is called at the gateway: its label, and the name of the profile. A repository's name is never said
    /// there (docs/trust.md), and neither is the path of a profile's file.
    pub fn names(&self) -> Names {
        let facts = self.profile.facts();
        let label = Some(facts.label.as_str()).filter(|label| !label.is_empty());
        let profile = ProfileName::new(&self.name).ok();
        Names::new(
            label.unwrap_or_else(|| facts.party.id()),
            profile.as_ref().map(ProfileName::as_str).unwrap_or_default(),
        )
    }

    fn http(&self) -> Result<Http, Failure> {
        let (gateway, credential) = (&self.profile.facts().gateway, self.profile.credential());
        let http = match &self.shared {
            Some(shared) => shared.http(&self.name, gateway, credential),
            None => Http::new(gateway.clone(), Some(credential)),
        };
        http.map_err(|error| crate::tool::gateway_error::describe(&error))
    }
}

/// The folder of this account in the system's list of users.
fn account_folder() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok()??;
    Some(user.dir).filter(|folder| folder.is_absolute())
}

/// Asks for a new passphrase, twice.
pub fn new_passphrase(owner: &str) -> Result<Passphrase, Failure> {
    let mut terminal =
        Terminal::open("an approver's keys are locked by a passphrase, which is asked for in a terminal")?;
    loop {
        let first = terminal.ask_secret(&format!("New passphrase for {owner}: "))?;
        if first.chars().count() < MIN_PASSPHRASE_CHARS {
            crate::tool::output::say(&format!(
                "It needs {MIN_PASSPHRASE_CHARS} characters or more; several words are good."
            ));
            continue;
        }
        if *terminal.ask_secret("Again: ")? == *first {
            return Passphrase::new(first).map_err(failed);
        }
        crate::tool::output::say("These are two different ones. Once more:");
    }
}

fn missing(role: Role) -> Failure {
    let what = match role {
        Role::Enforcer => "this machine isn't set up to ask anyone yet",
        Role::Approver => "nobody is set up to approve on this machine yet",
    };
    Failure::new(Exit::NotSetUp, what)
        .next("set up a gateway of your own with `countersign up`, or join one with `countersign join`")
}

/// The role as a word.
pub fn word(role: Role) -> &'static str {
    match role {
        Role::Enforcer => "enforcer",
        Role::Approver => "approver",
    }
}

fn other(role: Role) -> &'static str {
    match role {
        Role::Enforcer => word(Role::Approver),
        Role::Approver => word(Role::Enforcer),
    }
}

/// An error whose own words say what to do.
pub fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::NotSetUp, error)
}
