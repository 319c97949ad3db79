//! `keys`.

use clap::Subcommand;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    home::{Home, Identity, failed, new_passphrase, word},
    output::{object, out, say},
    terminal::Terminal,
};
use countersign_client::profile::{PassphraseKeys, Role};
use serde_json::json;

use super::options::Options;

/// Show, export or lock the keys of a profile.
#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Show the fingerprint of each profile, as text and as thirty digits.
    Show,
    /// Change the passphrase of an approver's keys.
    Passphrase,
    /// Print a whole enforcer's profile as one secret text, for a machine such as a CI runner.
    ///
    /// Put it into a file there that only the runner can read, and name the file in `COUNTERSIGN_PROFILE_FILE`.
    Export,
}

impl Keys {
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        match self {
            Self::Show => show(&home, options),
            Self::Passphrase => passphrase(home.find(Role::Approver, options.profile.as_deref())?),
            Self::Export => export(&home.find(Role::Enforcer, options.profile.as_deref())?),
        }
    }
}

fn show(home: &Home, options: &Options) -> Result<(), Failure> {
    let mut objects = Vec::new();
    for (name, profile) in home.all()? {
        let profile = profile.map_err(failed)?;
        if options.profile.as_deref().is_some_and(|wanted| wanted != name.as_str()) {
            continue;
        }
        let (facts, fingerprint) = (profile.facts(), profile.fingerprint());
        let role = word(facts.party.role());
        if !options.json {
            out(&format!(
                "{name}  {role} {}  {}  {}",
                facts.party.id(),
                fingerprint.short(),
                fingerprint.digits()
            ))?;
        }
        objects.push(json!({
            "profile": name.as_str(), "role": role, "id": facts.party.id(), "fingerprint": fingerprint.to_string(),
            "short": fingerprint.short(), "digits": fingerprint.digits(),
        }));
    }
    if options.json { object(&json!({ "keys": objects })) } else { Ok(()) }
}

fn passphrase(mut identity: Identity) -> Result<(), Failure> {
    let keys = identity.unlock()?;
    let passphrase = new_passphrase(&identity.name)?;
    identity.profile.protect(&keys, &PassphraseKeys::new(passphrase)).map_err(failed)?;
    say(&format!("✓ the keys of {} are locked by the new passphrase", identity.name));
    Ok(())
}

fn export(identity: &Identity) -> Result<(), Failure> {
    let mut terminal = Terminal::open("an export is confirmed in a terminal")?;
    let question =
        format!("Whoever has this text can ask in the name of {}. Type yes to print it: ", identity.name);
    if terminal.ask(&question)? != "yes" {
        return Err(Failure::new(Exit::TakenBack, "nothing was printed"));
    }
    let keys = identity.unlock()?;
    out(&identity.profile.export_secret(&keys).map_err(failed)?)
}
