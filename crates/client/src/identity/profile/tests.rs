//! Profiles as a whole: their folder, their keys, several users at a time, and crashes.

use std::thread;

use countersign_wire::{
    Label, base64url,
    id::{ApproverId, EnforcerId, TenantId},
    statement::{Claim, Issue, Statement},
    timestamp::Timestamp,
};

use super::*;

const API_KEY: &str = "csk_acme_0123456789_a-very-secret-credential";

fn facts() -> Facts {
    Facts {
        party: Party::Enforcer(EnforcerId::new("robot").unwrap()),
        tenant: TenantId::new("acme").unwrap(),
        gateway: GatewayUrl::new("https://gw.example").unwrap(),
        label: Label::new("build machine"),
    }
}

fn credential(text: &str) -> Credential {
    Credential::new(Zeroizing::new(text.to_owned())).unwrap()
}

fn keys(number: u8) -> DeviceKeys {
    DeviceKeys::from_secret(&[number; 64]).unwrap()
}

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(Zeroizing::new(text.to_owned())).unwrap()
}

fn cheap(text: &str) -> PassphraseKeys {
    PassphraseKeys::with_cost(passphrase(text), KdfCost::LOWEST)
}

fn pin(number: u16) -> Pin {
    let mut secret = [1; 64];
    secret[..2].copy_from_slice(&number.to_be_bytes());
    secret[40..42].copy_from_slice(&number.to_be_bytes());
    let party = Party::Approver(ApproverId::new(format!("approver {number}")).unwrap());
    let bundle = DeviceKeys::from_secret(&secret).unwrap();
    Pin::new(party, bundle.bundle(), PinSource::Paired, Timestamp::from_unix_micros(1_790_000_000_000_000))
}

struct World {
    base: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { base: tempfile::tempdir().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.base.path().join("profiles/work")
    }

    fn create(&self, store: &dyn KeyStore) -> Profile {
        Profile::create(&self.folder(), facts(), &credential(API_KEY), &keys(1), store).unwrap()
    }
}

#[test]
fn a_profile_is_opened_as_it_was_created() {
    let world = World::new();
    let created = world.create(&FileKeys);
    created.update_pins(|pins| pins.insert(pin(1))).unwrap();
    let opened = Profile::open(&world.folder()).unwrap();
    assert_eq!(opened.facts(), &facts());
    assert_eq!(opened.fingerprint(), keys(1).fingerprint());
    assert_eq!(opened.credential().expose(), API_KEY);
    assert_eq!(opened.key_place().unwrap(), Some(KeyPlace::File));
    assert_eq!(opened.pins().unwrap().iter().count(), 1);
    assert_eq!(opened.journal(), Some(world.folder().join("journal")));
    assert_eq!(opened.unlock(None).unwrap().bundle(), keys(1).bundle());
    assert!(opened.unlock_previous(None).unwrap().is_none());
}

#[test]
fn a_new_profile_takes_nobody_s_place_and_leaves_nothing_when_it_fails() {
    let world = World::new();
    world.create(&FileKeys);
    let again = Profile::create(&world.folder(), facts(), &credential("other"), &keys(2), &FileKeys);
    assert!(matches!(again, Err(ProfileError::Exists { .. })));
    assert_eq!(Profile::open(&world.folder()).unwrap().fingerprint(), keys(1).fingerprint());

    struct Broken;
    impl KeyStore for Broken {
        fn keep(&self, _: &DeviceKeys) -> Result<KeyFile, ProfileError> {
            Err(ProfileError::NoRotation)
        }
        fn fetch(&self, _: &KeyFile) -> Result<DeviceKeys, ProfileError> {
            Err(ProfileError::NoRotation)
        }
        fn forget(&self, _: &KeyFile) -> Result<(), ProfileError> {
            Ok(())
        }
    }
    let other = world.base.path().join("profiles/other");
    assert!(Profile::create(&other, facts(), &credential("x"), &keys(2), &Broken).is_err());
    let left: Vec<_> = fs::read_dir(world.base.path().join("profiles")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the profile that was there");
}

#[test]
fn profiles_are_listed_by_name() {
    let world = World::new();
    let profiles = Profiles::at(world.base.path().join("profiles"));
    assert!(profiles.list().unwrap().is_empty());
    world.create(&FileKeys);
    let name = ProfileName::new("another").unwrap();
    Profile::create(&profiles.folder(&name), facts(), &credential("x"), &keys(2), &FileKeys).unwrap();
    fs::create_dir(world.base.path().join("profiles/not-one")).unwrap();
    fs::create_dir(world.base.path().join("profiles/.work.abc.new")).unwrap();
    let names: Vec<_> = profiles.list().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["another", "work"]);
    let missing = Profile::open(&profiles.folder(&ProfileName::new("missing").unwrap()));
    assert!(matches!(missing, Err(ProfileError::Missing { .. })));
}

#[test]
fn locked_keys_need_their_passphrase() {
    let world = World::new();
    let mut profile = world.create(&cheap("first"));
    assert_eq!(profile.key_place().unwrap(), Some(KeyPlace::Passphrase));
    assert!(matches!(profile.unlock(None), Err(ProfileError::PassphraseNeeded { .. })));
    assert!(matches!(profile.unlock(Some(&passphrase("other"))), Err(ProfileError::WrongPassphrase { .. })));
    let unlocked = profile.unlock(Some(&passphrase("first"))).unwrap();
    profile.protect(&unlocked, &cheap("second")).unwrap();
    assert!(profile.unlock(Some(&passphrase("first"))).is_err());
    assert_eq!(profile.unlock(Some(&passphrase("second"))).unwrap().bundle(), keys(1).bundle());
    assert!(matches!(profile.protect(&keys(2), &FileKeys), Err(ProfileError::ForeignKeys)));
    profile.protect(&unlocked, &FileKeys).unwrap();
    assert!(profile.unlock(None).is_ok());
}

#[test]
fn a_rotation_keeps_the_old_keys_until_it_is_confirmed() {
    let world = World::new();
    let mut profile = world.create(&cheap("pass"));
    assert!(matches!(profile.confirm_rotation(), Err(ProfileError::NoRotation)));
    profile.rotate(&keys(2), &cheap("new pass")).unwrap();
    assert_eq!(profile.fingerprint(), keys(2).fingerprint());
    assert!(matches!(profile.rotate(&keys(3), &FileKeys), Err(ProfileError::RotationPending)));
    assert!(matches!(profile.protect(&keys(2), &FileKeys), Err(ProfileError::RotationPending)));
    let mut profile = Profile::open(&world.folder()).unwrap();
    assert!(profile.is_rotation_pending().unwrap());
    assert_eq!(profile.unlock(Some(&passphrase("new pass"))).unwrap().bundle(), keys(2).bundle());
    let previous = profile.unlock_previous(Some(&passphrase("pass"))).unwrap().unwrap();
    assert_eq!(previous.bundle(), keys(1).bundle());
    profile.confirm_rotation().unwrap();
    assert!(!profile.is_rotation_pending().unwrap());
    assert!(profile.unlock_previous(None).unwrap().is_none());
    assert!(!world.folder().join("keys.previous").exists());
}

#[test]
fn a_rotation_can_be_reverted() {
    let world = World::new();
    let mut profile = world.create(&FileKeys);
    profile.rotate(&keys(2), &FileKeys).unwrap();
    profile.revert_rotation().unwrap();
    for profile in [profile, Profile::open(&world.folder()).unwrap()] {
        assert_eq!(profile.fingerprint(), keys(1).fingerprint());
        assert_eq!(profile.unlock(None).unwrap().bundle(), keys(1).bundle());
        assert!(!profile.is_rotation_pending().unwrap());
    }
}

#[test]
fn a_crash_anywhere_in_a_rotation_leaves_a_profile_that_opens() {
    let read = |world: &World, name| fs::read(world.folder().join(name)).unwrap();
    let before = World::new();
    before.create(&FileKeys);
    let after = World::new();
    after.create(&FileKeys).rotate(&keys(2), &FileKeys).unwrap();

    // Before the new keys: there was no rotation, and another one can begin.
    fs::copy(before.folder().join("keys"), before.folder().join("keys.previous")).unwrap();
    let mut profile = Profile::open(&before.folder()).unwrap();
    assert!(!profile.is_rotation_pending().unwrap());
    assert!(profile.unlock_previous(None).unwrap().is_none());

    // After the new keys, before the public facts: opening completes them.
    fs::write(before.folder().join("keys"), read(&after, "keys")).unwrap();
    let completed = Profile::open(&before.folder()).unwrap();
    assert_eq!(completed.fingerprint(), keys(2).fingerprint());
    assert!(completed.is_rotation_pending().unwrap());
    assert_eq!(read(&before, "profile.json"), read(&after, "profile.json"));
    profile.revert_rotation().unwrap();
    assert_eq!(Profile::open(&before.folder()).unwrap().fingerprint(), keys(1).fingerprint());

    // Keys of another profile are not a rotation.
    fs::write(before.folder().join("keys"), read(&after, "keys")).unwrap();
    assert!(matches!(Profile::open(&before.folder()), Err(ProfileError::Mismatch { .. })));
}

#[test]
fn changes_of_many_threads_are_all_kept() {
    const THREADS: u16 = 8;
    const EACH: u16 = 50;
    let world = World::new();
    world.create(&FileKeys);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let folder = world.folder();
            scope.spawn(move || {
                let profile = Profile::open(&folder).unwrap();
                for number in 0..EACH {
                    profile.update_pins(|pins| pins.insert(pin(thread * EACH + number))).unwrap();
                    if number % 10 == 0 {
                        // A reader without the lock never sees half of a file.
                        assert!(profile.pins().unwrap().iter().count() > usize::from(number));
                    }
                }
            });
        }
    });
    let pins = Profile::open(&world.folder()).unwrap().pins().unwrap();
    assert_eq!(pins.iter().count(), usize::from(THREADS * EACH));
}

/// The test starts itself twice more, as processes with this variable.
#[test]
fn changes_of_two_processes_are_all_kept() {
    const VARIABLE: &str = "COUNTERSIGN_TEST_PROFILE";
    const EACH: u16 = 50;
    if let Ok(instruction) = std::env::var(VARIABLE) {
        let (first, folder) = instruction.split_once(' ').unwrap();
        let first: u16 = first.parse().unwrap();
        let profile = Profile::open(Path::new(folder)).unwrap();
        for number in first..first + EACH {
            profile.update_pins(|pins| pins.insert(pin(number))).unwrap();
        }
        return;
    }
    let world = World::new();
    let profile = world.create(&FileKeys);
    let start = |first: u16| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "identity::profile::tests::changes_of_two_processes_are_all_kept"])
            .env(VARIABLE, format!("{first} {}", world.folder().display()))
            .spawn()
            .unwrap()
    };
    for mut process in [start(0), start(EACH)] {
        assert!(process.wait().unwrap().success());
    }
    assert_eq!(profile.pins().unwrap().iter().count(), usize::from(2 * EACH));
}

#[test]
fn a_change_that_fails_writes_nothing() {
    let world = World::new();
    let profile = world.create(&FileKeys);
    let text = fs::read(world.folder().join("pins.json")).unwrap();
    let failed = profile.update_pins(|pins| {
        pins.insert(pin(1))?;
        pins.revoke(keys(9).fingerprint(), Timestamp::MIN)
    });
    assert!(matches!(failed, Err(ProfileError::Pin(PinError::Unknown))));
    assert_eq!(fs::read(world.folder().join("pins.json")).unwrap(), text);
}

#[test]
fn damaged_missing_and_newer_files_are_told_apart() {
    let damage = |name: &str, content: &str| {
        let world = World::new();
        let profile = world.create(&FileKeys);
        fs::write(world.folder().join(name), content).unwrap();
        Profile::open(&world.folder()).and_then(|_| profile.pins()).unwrap_err()
    };
    for name in ["profile.json", "keys", "credential", "pins.json"] {
        let error = damage(name, "");
        assert!(matches!(&error, ProfileError::Damaged { path, .. } if path.ends_with(name)), "{error:?}");
        let world = World::new();
        let profile = world.create(&FileKeys);
        fs::remove_file(world.folder().join(name)).unwrap();
        assert!(Profile::open(&world.folder()).and_then(|_| profile.pins()).is_err(), "{name}");
    }
    for name in ["profile.json", "keys", "pins.json"] {
        let error = damage(name, r#"{"version":4,"new":true}"#);
        assert!(matches!(error, ProfileError::NewerVersion { version: 4, .. }), "{error:?}");
        let error = damage(name, r#"{"version":0}"#);
        assert!(matches!(error, ProfileError::NewerVersion { version: 0, .. }), "{error:?}");
    }
}

#[test]
fn a_credential_is_replaced() {
    let world = World::new();
    world.create(&FileKeys).replace_credential(credential("renewed")).unwrap();
    assert_eq!(Profile::open(&world.folder()).unwrap().credential().expose(), "renewed");
    fs::write(world.folder().join("credential"), "by-an-editor\n").unwrap();
    assert_eq!(Profile::open(&world.folder()).unwrap().credential().expose(), "by-an-editor");
}

#[test]
fn a_profile_fits_into_one_secret_text() {
    let world = World::new();
    let profile = world.create(&cheap("pass"));
    profile.update_pins(|pins| pins.insert(pin(1))).unwrap();
    assert!(matches!(profile.export_secret(&keys(2)), Err(ProfileError::ForeignKeys)));
    let text = profile.export_secret(&keys(1)).unwrap();
    let mut loaded = Profile::from_secret_text(&format!(" {}\n", *text)).unwrap();
    assert_eq!(loaded.facts(), &facts());
    assert_eq!(loaded.credential().expose(), API_KEY);
    assert_eq!(loaded.pins().unwrap(), profile.pins().unwrap());
    assert_eq!(loaded.unlock(None).unwrap().bundle(), keys(1).bundle());
    assert_eq!((loaded.key_place().unwrap(), loaded.journal()), (None, None));
    loaded.update_pins(|pins| pins.insert(pin(2))).unwrap();
    assert_eq!((loaded.pins().unwrap().iter().count(), profile.pins().unwrap().iter().count()), (2, 1));
    assert!(matches!(loaded.replace_credential(credential("x")), Err(ProfileError::InMemory)));
    assert!(matches!(loaded.rotate(&keys(2), &FileKeys), Err(ProfileError::InMemory)));
}

#[test]
fn a_secret_text_that_was_copied_wrongly_is_refused() {
    let world = World::new();
    let text = world.create(&FileKeys).export_secret(&keys(1)).unwrap();
    for at in 0..text.len() {
        let mut changed = text.as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(matches!(Profile::from_secret_text(&changed), Err(ProfileError::SecretText)), "byte {at}");
        assert!(Profile::from_secret_text(&text[..at]).is_err(), "cut after {at}");
    }
}

#[test]
fn no_secret_is_printed() {
    let world = World::new();
    let profile = world.create(&FileKeys);
    let in_memory = Profile::from_secret_text(&profile.export_secret(&keys(1)).unwrap()).unwrap();
    let store = PassphraseKeys::new(passphrase("correct horse"));
    let secret = keys(1).to_secret();
    let printed = [
        format!("{profile:?} {in_memory:#?}"),
        format!("{:?} {:?}", profile.unlock(None).unwrap(), profile.credential()),
        format!("{store:?} {:?}", FileKeys.keep(&keys(1)).unwrap()),
        format!("{:?}", profile.unlock(None).unwrap().signing_key()),
    ]
    .concat();
    let numbers: Vec<String> = secret[..8].iter().map(ToString::to_string).collect();
    for hidden in [API_KEY, "horse", &base64url::encode(&secret[..30]), &numbers.join(", "), "0101010101"] {
        assert!(!printed.contains(hidden), "{hidden} in {printed}");
    }
    assert!(printed.contains("robot"), "it does say who it is: {printed}");
}

#[test]
fn a_statement_that_was_taken_is_in_the_folder() {
    let world = World::new();
    let profile = world.create(&FileKeys);
    let (phone, code) = (keys(1), keys(2));
    let now = Timestamp::from_unix_micros(1_790_000_000_000_000);
    let until = now.plus(10 * RECOVERY_WAIT);
    let party = Party::Approver(ApproverId::new("ada").unwrap());
    profile.update_pins(|pins| pins.insert(Pin::new(party, phone.bundle(), PinSource::Paired, now))).unwrap();
    let said = |by: &DeviceKeys, of: &DeviceKeys, recovery| {
        let issue = Issue { enforcer_id: "robot", id: "s", by: "ada", at: now };
        by.sign_statement(issue, Claim::vouch("ada", of.bundle(), "", until, recovery)).unwrap()
    };
    let take = |statement: &Statement, now| {
        Profile::open(&world.folder()).unwrap().update_pins(|pins| pins.apply(statement, "robot", now))
    };
    take(&said(&phone, &code, true), now).unwrap();
    let later = now.plus(RECOVERY_WAIT);
    let taken = take(&said(&code, &keys(3), false), later).unwrap();
    assert_eq!(taken, Applied::Recovered { device: keys(3).fingerprint(), lost: phone.fingerprint() });
    let spent = take(&said(&code, &keys(4), false), later).unwrap_err();
    assert!(
        matches!(spent, ProfileError::Apply(ApplyError::Pin(PinError::RecoverySpent))),
        "it is spent also after a restart: {spent:?}"
    );
    assert_eq!(take(&said(&code, &keys(3), false), later).unwrap(), Applied::AlreadyKnown);
}
