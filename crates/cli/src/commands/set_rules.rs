//! `rules set`: another text in place of the person's rules.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use countersign_agents::{
    asking::Interruption,
    calls::{
        call::FileChange,
        diff::{self, Changes},
        payload::code,
    },
    proposals::permission::{Permission, Prepared},
    rules::{Rules, change::Change},
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::Home,
        output::{object, say},
    },
};
use countersign_client::{
    audience::{Audience, Verify},
    payload::{Effect, EffectKind, Payload, Plan},
    profile::{Pins, Role},
    receipt::Outcome,
    request::Draft,
};
use countersign_wire::timestamp::Timestamp;
use serde_json::json;

use super::options::Options;

/// How long people have to answer.
const VALID_FOR: Duration = Duration::from_mins(10);

/// Check a file of rules and put it in place of yours.
///
/// A file with a mistake changes nothing. For the keeper of this machine: `countersign keeper as USER rules set FILE`.
#[derive(Debug, Args)]
pub(super) struct Set {
    /// The file, or - for the standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Ask a paired device before anything is loosened. What only adds rules that ask or deny is done at once.
    #[arg(long)]
    ask: bool,
}

impl Set {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let change = Change::of(&home, text_of(&self.file)?)
            .map_err(|error| Failure::new(Exit::Usage, error).next("nothing was changed"))?;
        Box::pin(put_in_force(&home, &change, self.ask, options)).await
    }
}

/// Puts a change in force, after a paired device has approved it if it has to be asked and loosens anything.
pub(super) async fn put_in_force(
    home: &Home,
    change: &Change,
    ask: bool,
    options: &Options,
) -> Result<(), Failure> {
    let permission = match ask && !change.only_tightens {
        true => Some(Box::pin(permission(home, change, options)).await?),
        false => None,
    };
    let applied = change.apply(home);
    if let Some(permission) = permission {
        let outcome = match &applied {
            Ok(()) => Outcome::Applied { exit_status: None },
            Err(_) => Outcome::Drifted,
        };
        permission.finish(outcome).await;
    }
    applied.map_err(|error| {
        Failure::new(Exit::Changed, format!("{} was not written: {error}", home.rules_file().display()))
            .next("look at the rules with `countersign rules show`, then try again")
    })?;
    if options.json {
        return object(&json!({ "outcome": "done", "onlyTightens": change.only_tightens }));
    }
    say(match change.only_tightens {
        true => "✓ The rules are in force. They allow nothing that was not allowed before.",
        false => "✓ The rules are in force.",
    });
    Ok(())
}

/// The text of a file, or of the standard input.
pub(super) fn text_of(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().read_to_string(&mut text).map(|_| text),
        false => std::fs::read_to_string(file),
    };
    read.map_err(|error| {
        Failure::new(Exit::Failed, format!("{} can't be read: {error}", file.display()))
            .next("nothing was changed")
    })
}

/// Everybody, where the rules in force can't be read. Perhaps they want a verified person: so whoever can be verified must be.
fn everybody(pins: &Pins, now: Timestamp) -> Audience {
    let has_lock = pins.active_in_role(Role::Approver, now).any(|pin| pin.lock().is_some());
    let verify = if has_lock { Verify::Person } else { Verify::Usual };
    Audience { verify, ..Audience::everybody() }
}

/// A person's approval of exactly this change. By the rules in force, whoever is usually asked is.
async fn permission(home: &Home, change: &Change, options: &Options) -> Result<Permission, Failure> {
    let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
    let enforcer = identity.enforcer()?;
    let rules = Rules::load(home, home.folder(), &Caller::default());
    let to = match rules {
        Ok(rules) => {
            rules.check_profile(identity.profile.facts())?;
            rules.usual_audience()?
        }
        // Rules that can't be used name nobody: every paired person is asked.
        Err(error) if !error.denies => {
            let pins = identity.profile.pins().map_err(|error| Failure::new(Exit::Failed, error))?;
            everybody(&pins, enforcer.clock.now())
        }
        Err(error) => return Err(error.failure()),
    };
    let path = home.rules_file();
    let before = Some(change.before.clone().into_bytes()).filter(|before| !before.is_empty());
    let changes = [FileChange { path, before, after: Some(change.after.clone().into_bytes()) }];
    let Changes::Text(shown) = diff::patch(&changes, home.folder()) else {
        return Err(Failure::new(Exit::Usage, "these are the rules that are in force, or no plain text"));
    };
    let effect = Effect::on(EffectKind::EscalatesPrivileges, "rules.toml");
    let text = format!("Change the rules of this machine:\n\n{}", code(&shown.diff));
    let task = Plan { effects: Some(vec![effect]), ..Plan::new(text) };
    let payload = Payload::Task(task);
    let text = payload.to_json().map_err(|error| Failure::new(Exit::Failed, error))?;
    let draft = Draft {
        artifact_type: payload.artifact_type(),
        payload: text,
        repo_name: "rules of this machine".to_owned(),
        valid_for: VALID_FOR,
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to,
    };
    let mut interruption = Interruption::watch()?;
    Prepared::new(identity, enforcer, draft, home.hooks_folder()).permission(&mut interruption).await
}

#[cfg(test)]
mod tests {
    use countersign_client::{
        keys::DeviceKeys,
        lock::LockKey,
        profile::{Party, Pin, PinSource},
    };
    use countersign_wire::lock::LockAlgorithm;

    use super::*;

    #[test]
    fn where_rules_can_not_be_read_a_lock_that_is_known_approves_new_ones() {
        let (mut pins, now) = (Pins::default(), "2026-11-15T12:00:00Z".parse().unwrap());
        let keys = DeviceKeys::from_secret(&[7; 64]).unwrap();
        let pin = Pin::new(Party::Approver("ada".parse().unwrap()), keys.bundle(), PinSource::Paired, now);
        pins.insert(pin.clone()).unwrap();
        assert_eq!(everybody(&pins, now), Audience::everybody());
        let spki =
            [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0", keys.bundle().signing.as_bytes().as_slice()];
        let lock =
            LockKey::new(LockAlgorithm::EdDsa, vec![1], spki.concat(), "gw.example", "https://gw.example");
        pins.insert(pin.with_lock(lock.ok())).unwrap();
        assert_eq!(everybody(&pins, now).verify, Verify::Person);
        pins.revoke(keys.fingerprint(), now).unwrap();
        assert_eq!(everybody(&pins, now).verify, Verify::Usual, "nobody could approve it");
    }
}
