//! `join`.

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    home::{Home, failed, new_passphrase, word},
    output::{object, say},
    terminal::Terminal,
};
use countersign_client::{
    join::{JoinError, JoinLink, join},
    keys::DeviceKeys,
    profile::{Facts, Role},
};
use serde_json::json;
use zeroize::Zeroizing;

use super::options::Options;
use crate::recovery;

/// Join a gateway with an invitation link.
///
/// The link comes from the operator of a gateway (`countersign-gateway invite`) and is good once. It is a secret, so it is
/// asked for in the terminal, or read from the standard input with `-`: what is typed as an argument ends up in the history
/// of the shell.
///
/// Who joins as an approver chooses a passphrase, and is shown a recovery code once.
#[derive(Debug, Args)]
pub(super) struct Join {
    /// `-` to read the link from the standard input. Without this it is asked for.
    #[arg(value_name = "LINK")]
    link: Option<String>,
    /// What to call this identity on this machine. Without this it is called like the enforcer or approver.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What others call this machine.
    #[arg(long, default_value = "")]
    label: String,
}

impl Join {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let link: JoinLink = self.link()?.parse().map_err(|error| describe_join(&error))?;
        let label =
            self.label.parse().map_err(|rule| Failure::new(Exit::Usage, format!("--label {rule}")))?;
        if let Some(name) = &self.name
            && home.named(name)?.is_some()
        {
            return Err(Failure::new(Exit::Failed, format!("there is a profile {name} already"))
                .next("the invitation was not used; choose another name with --name"));
        }
        let joined = join(&link).await.map_err(|error| describe_join(&error))?;
        let role = joined.party.role();
        let name = self.name.unwrap_or_else(|| default_name(joined.party.id()));
        let lock = match role {
            Role::Approver => Some(new_passphrase(&name).map_err(used_up)?),
            Role::Enforcer => None,
        };
        let (party, gateway) = (joined.party, joined.gateway);
        let tenant = joined
            .tenant
            .parse()
            .map_err(|_| Failure::new(Exit::Failed, "the gateway names a tenant that is none"))?;
        let facts = Facts { party: party.clone(), tenant, gateway: gateway.clone(), label };
        let (profile, keys) = home.create(&name, facts, &joined.credential, lock)?;
        if role == Role::Approver {
            show_recovery_code(&home, &name, party.id(), &keys);
        }
        if options.json {
            return object(&json!({
                "profile": name, "role": word(role), "id": party.id(), "gateway": gateway.as_str(),
                "fingerprint": profile.fingerprint().to_string(),
            }));
        }
        say(&format!("✓ joined {} as the {} {}", gateway.as_str(), word(role), party.id()));
        match role {
            Role::Enforcer => say("  Next: pair a person's device with `countersign pair`."),
            Role::Approver => say(
                "  Next: run `countersign pair` on the agent's machine, and answer here with the link it shows.",
            ),
        }
        Ok(())
    }

    fn link(&self) -> Result<Zeroizing<String>, Failure> {
        match self.link.as_deref() {
            Some("-") => {
                let mut line = Zeroizing::new(String::new());
                std::io::stdin().read_line(&mut line).map_err(|error| Failure::new(Exit::Failed, error))?;
                Ok(line)
            }
            Some(link) => {
                say(
                    "  Note: the link is in the history of your shell now. It is good once, so nobody can use it after you.",
                );
                Ok(Zeroizing::new(link.to_owned()))
            }
            None => {
                Terminal::open("the invitation is asked for in a terminal")?.ask_secret("Invitation link: ")
            }
        }
    }
}

/// Shows the recovery code and keeps its public keys. Who has joined can make another one at any time.
fn show_recovery_code(home: &Home, name: &str, id: &str, keys: &DeviceKeys) {
    let shown = Terminal::open("a recovery code is shown in a terminal").and_then(|mut terminal| {
        let code = recovery::show_new(&mut terminal, id)?;
        recovery::keep(&home.folder_named(name)?, &code, keys)
    });
    if let Err(failure) = shown {
        say(&format!(
            "  You have no recovery code: {failure} Make one later with `countersign recovery new`."
        ));
    }
}

/// Who an invitation is for is known only when it is used.
fn used_up(failure: Failure) -> Failure {
    let next = format!("the invitation is used up: ask for a new one; {}", failure.next);
    failure.next(next)
}

/// A name for a profile from an id, which may have any characters.
fn default_name(id: &str) -> String {
    let plain: String = id
        .to_lowercase()
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '-' })
        .take(64)
        .collect();
    match plain.starts_with(|char: char| char.is_ascii_alphanumeric()) {
        true => plain,
        false => format!("p{}", plain.chars().take(63).collect::<String>()),
    }
}

fn describe_join(error: &JoinError) -> Failure {
    match error {
        JoinError::Call(error) => describe(error),
        JoinError::NotALink => Failure::new(Exit::Usage, error),
        JoinError::Invalid => Failure::new(Exit::Failed, error),
        other => failed(other),
    }
}
