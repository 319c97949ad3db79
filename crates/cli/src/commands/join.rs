//! `join`.

use std::{fs, path::PathBuf};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::{describe, describe_pairing},
    home::{Home, Identity, failed, new_passphrase, word},
    output::{object, say},
    terminal::Terminal,
};
use countersign_client::{
    approver::Approver,
    http::{CallError, Http},
    join::{ConnectLink, Invited, JoinError, JoinLink, Joined, Preview, join, preview},
    keys::DeviceKeys,
    pairing::link::PairingLink,
    payload::visible,
    profile::{Credential, Facts, GatewayUrl, Party, Passphrase, Pin, Role},
};
use countersign_wire::api_key::ApiKey;
use serde_json::json;
use zeroize::Zeroizing;

use super::options::Options;
use crate::recovery;

/// The tenant of a profile at a gateway that names none.
const TENANT: &str = "default";

/// Join a gateway with an invitation link, or with a key.
///
/// The link comes from the operator of a gateway (`countersign-gateway invite`) and is good once. It is a secret, so it is
/// asked for in the terminal, or read from the standard input with `-`: what is typed as an argument ends up in the history
/// of the shell.
///
/// A gateway without invitations has an operator who gives out keys. With `--gateway`, `--role` and `--id` such a key is asked
/// for instead, or read from the standard input with `-`, or from a file; it is never an argument.
///
/// Who joins as an approver chooses a passphrase, and is shown a recovery code once.
#[derive(Debug, Args)]
pub(super) struct Join {
    /// `-` to read the link, or the key, from the standard input. Without this it is asked for.
    #[arg(value_name = "LINK")]
    link: Option<String>,
    #[command(flatten)]
    key: KeyHolder,
    /// What to call this identity on this machine. Without this it is called like the enforcer or approver.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What others call this machine.
    #[arg(long, default_value = "")]
    label: String,
}

/// Who has a key, and where.
#[derive(Debug, Args)]
struct KeyHolder {
    /// The address of a gateway whose operator gave you a key.
    #[arg(long, value_name = "URL", requires_all = ["role", "id"])]
    gateway: Option<String>,
    /// Who the key is for: `enforcer`, an agent's machine, or `approver`, a person.
    #[arg(long, requires = "gateway", value_parser = role)]
    role: Option<Role>,
    /// The id of the enforcer or approver at that gateway.
    #[arg(long, requires = "gateway")]
    id: Option<String>,
    /// A file that has the key, and nothing else.
    #[arg(long, value_name = "FILE", requires = "gateway", conflicts_with = "link")]
    key_file: Option<PathBuf>,
}

fn role(text: &str) -> Result<Role, String> {
    let found = [Role::Enforcer, Role::Approver].into_iter().find(|role| word(*role) == text);
    found.ok_or_else(|| "is enforcer or approver".to_owned())
}

impl Join {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let label =
            self.label.parse().map_err(|rule| Failure::new(Exit::Usage, format!("--label {rule}")))?;
        let holder = self.key.holder()?;
        let is_invited = holder.is_none();
        let secret = if is_invited { self.link()? } else { self.key()? };
        // One code that joins and pairs, as `countersign up --phone` shows it.
        let connecting = secret.parse::<ConnectLink>().ok().filter(|_| is_invited);
        if let Some(name) = &self.name
            && home.named(name)?.is_some()
        {
            let failure = Failure::new(Exit::Failed, format!("there is a profile {name} already"));
            return Err(failure.next(match is_invited {
                true => "the invitation was not used; choose another name with --name",
                false => "choose another name with --name",
            }));
        }
        let (joined, name, lock) = if let Some((gateway, party)) = holder {
            let joined = with_key(gateway, party, secret).await?;
            let (name, lock) = prepare(&home, self.name, &joined.party)?;
            (joined, name, lock)
        } else {
            let link: JoinLink = match &connecting {
                Some(both) => both.invitation.clone(),
                None => secret.parse().map_err(|error| describe_join(&error))?,
            };
            with_invitation(&home, &link, self.name).await?
        };
        let role = joined.party.role();
        let (party, gateway) = (joined.party, joined.gateway);
        let tenant = joined
            .tenant
            .parse()
            .map_err(|_| Failure::new(Exit::Failed, "the gateway names a tenant that is none"))?;
        let facts = Facts { party: party.clone(), tenant, gateway: gateway.clone(), label };
        let (profile, keys) = home.create(&name, facts, &joined.credential, lock)?;
        let device = Identity::new(name.clone(), profile);
        let mut connected = None;
        if let Party::Approver(id) = &party {
            let approver = device.approver_with(id.clone(), keys)?;
            if let Some(both) = &connecting {
                connected = Some(pair_too(&device, &approver, &both.pairing).await);
            }
            show_recovery_code(&home, &name, party.id(), &approver.keys);
        }
        if options.json {
            return object(&json!({
                "profile": name, "role": word(role), "id": party.id(), "gateway": gateway.as_str(),
                "fingerprint": device.profile.fingerprint().to_string(),
            }));
        }
        say(&format!("✓ joined {} as the {} {}", gateway.as_str(), word(role), party.id()));
        say_next(role, connected);
        Ok(())
    }

    fn link(&self) -> Result<Zeroizing<String>, Failure> {
        match self.link.as_deref() {
            Some("-") => first_line(),
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

    fn key(&self) -> Result<Zeroizing<String>, Failure> {
        match (self.link.as_deref(), &self.key.key_file) {
            (Some("-"), _) => first_line(),
            (Some(_), _) => Err(Failure::new(Exit::Usage, "a key is no argument: it would be in the history of your shell")
                .next("leave it out, and it is asked for; then ask for a new key, since this one was on the command line")),
            (None, Some(file)) => fs::read_to_string(file).map(Zeroizing::new).map_err(|error| {
                Failure::new(Exit::Failed, format!("the key in {} can't be read: {error}", file.display()))
            }),
            (None, None) => Terminal::open("the key is asked for in a terminal")?.ask_secret("API key: "),
        }
    }
}

impl KeyHolder {
    /// The gateway, and who one is there; `None` without them.
    fn holder(&self) -> Result<Option<(GatewayUrl, Party)>, Failure> {
        let (Some(gateway), Some(role), Some(id)) = (&self.gateway, self.role, &self.id) else {
            return Ok(None);
        };
        let gateway = GatewayUrl::new(gateway).map_err(|error| Failure::new(Exit::Usage, error))?;
        let party = match role {
            Role::Enforcer => id.parse().map(Party::Enforcer),
            Role::Approver => id.parse().map(Party::Approver),
        };
        let party = party.map_err(|rule| Failure::new(Exit::Usage, format!("--id {rule}")))?;
        Ok(Some((gateway, party)))
    }
}

/// The second half of a code that joins and pairs. Whoever has joined is not undone by a pairing that failed.
async fn pair_too(device: &Identity, approver: &Approver, link: &PairingLink) -> Result<Pin, Failure> {
    let label = device.names().enforcer_label;
    let paired = approver.pair_by_link_as(link, &label).await.map_err(|error| describe_pairing(&error))?;
    device.profile.update_pins(|pins| pins.insert(paired.pin.clone())).map_err(failed)?;
    Ok(paired.pin)
}

fn say_next(role: Role, connected: Option<Result<Pin, Failure>>) {
    match connected {
        Some(Ok(pin)) => {
            say(&format!("✓ connected to {}", visible(pin.party().id())));
            say("  It waits for Enter on its own screen, then it asks you.");
        }
        Some(Err(failure)) => {
            say(&format!("  Joined, but not paired: {failure}"));
            say("  Next: run `countersign pair --answer` here with a new code of that machine.");
        }
        None if role == Role::Enforcer => say("  Next: pair a person's device with `countersign pair`."),
        None => {
            say(
                "  Next: run `countersign pair` on the agent's machine, and answer here with the link it shows.",
            );
        }
    }
}

fn first_line() -> Result<Zeroizing<String>, Failure> {
    let mut line = Zeroizing::new(String::new());
    std::io::stdin().read_line(&mut line).map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(line)
}

/// Everything that a profile needs besides keys, once the gateway has accepted the key.
async fn with_key(gateway: GatewayUrl, party: Party, key: Zeroizing<String>) -> Result<Joined, Failure> {
    let key = Zeroizing::new(key.trim().to_owned());
    // Only keys of our own gateway name a tenant, and only there are there several.
    let tenant = key.parse::<ApiKey>().map_or_else(|_| TENANT.to_owned(), |key| key.tenant().to_string());
    let credential =
        Credential::new(key).map_err(|error| Failure::new(Exit::Usage, error).next("nothing was kept"))?;
    let http = Http::new(gateway.clone(), Some(&credential)).map_err(|error| describe(&error))?;
    match http.check().await {
        Err(CallError::Refused { status: 401, code, .. }) => {
            return Err(Failure::new(Exit::Failed, "the gateway does not know this key")
                .next("nothing was kept; check that it is all of the key, and its gateway")
                .detail(code));
        }
        // A gateway need not have the endpoint.
        Err(error) if error.is_no_endpoint() => {}
        checked => checked.map_err(|error| describe(&error))?,
    }
    Ok(Joined { gateway, credential, tenant, party })
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

/// What to call the profile, and for an approver its new passphrase.
fn prepare(
    home: &Home,
    name: Option<String>,
    party: &Party,
) -> Result<(String, Option<Passphrase>), Failure> {
    if party.role() == Role::Approver {
        home.may_have_approver()?;
    }
    let name = name.unwrap_or_else(|| default_name(party.id()));
    let lock = match party.role() {
        Role::Approver => Some(new_passphrase(&name)?),
        Role::Enforcer => None,
    };
    Ok((name, lock))
}

/// Everything that can fail on this machine comes before the invitation is used, if the gateway says what it is for.
async fn with_invitation(
    home: &Home,
    link: &JoinLink,
    name: Option<String>,
) -> Result<(Joined, String, Option<Passphrase>), Failure> {
    let used = async || join(link).await.map_err(|error| describe_join(&error));
    let (tenant, party) = match preview(link).await {
        Preview::Invited(Invited { tenant, party }) => (tenant, party),
        Preview::Invalid => return Err(describe_join(&JoinError::Invalid)),
        Preview::Unsaid => {
            let joined = used().await?;
            let (name, lock) = prepare(home, name, &joined.party).map_err(used_up)?;
            return Ok((joined, name, lock));
        }
    };
    say(&format!(
        "  The gateway says that this invitation is for the {} {} of the tenant {}.",
        word(party.role()),
        visible(party.id()),
        visible(&tenant)
    ));
    if name.is_none() && home.named(&default_name(party.id()))?.is_some() {
        let taken = default_name(party.id());
        return Err(Failure::new(Exit::Failed, format!("there is a profile {taken} already"))
            .next("the invitation was not used; choose another name with --name"));
    }
    let (name, lock) = prepare(home, name, &party).map_err(|failure| {
        let next = format!("the invitation was not used; {}", failure.next);
        failure.next(next)
    })?;
    let joined = used().await?;
    if joined.party != party {
        return Err(Failure::new(Exit::Failed, "the gateway has made another key than it said")
            .next("nothing was kept; ask its operator, who can revoke the key"));
    }
    Ok((joined, name, lock))
}

/// The gateway did not say who the invitation is for.
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
