//! `up` and `down`: a gateway on this machine for one person, with both sides set up.

use std::{
    env,
    path::{self, PathBuf},
    time::Duration,
};

use clap::Args;
use countersign_agents::{
    install::program,
    platform::host_name,
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_pairing,
        home::{Home, Identity, failed, new_passphrase},
        output::{StatusLine, object, say},
        terminal::Terminal,
    },
};
use countersign_client::{
    enforcer::Answered,
    join::{JoinLink, join},
    keys::DeviceKeys,
    profile::{Facts, GatewayUrl, Party, Passphrase, Profile},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::options::Options;
use crate::{
    connect::{Invitation, connect},
    local_gateway::{LocalGateway, OwnName, Tailscale},
};

/// Start a gateway of your own on this machine, and set up both sides.
///
/// Makes an identity for the agent's side and one for you at the desk, whose keys are locked by a passphrase that you choose,
/// and pairs the two. Run it again at any time: what is there stays, what is missing is made, and a gateway that does not run
/// is started.
#[derive(Debug, Args)]
pub(super) struct Up {
    /// Connect your phone: make the gateway reachable for it, and show one code that joins and pairs.
    ///
    /// Uses the address that was set before or that you give with --public-url or --name, else Tailscale where it is installed.
    #[arg(long)]
    phone: bool,
    /// Where the gateway is reached from other devices: an address with https:// that a proxy of yours serves.
    #[arg(long, value_name = "URL", requires = "phone")]
    public_url: Option<String>,
    /// A name of your own for the gateway, such as gateway.example.org, which gets a certificate by itself. Port 443 of that name
    /// must lead to this machine.
    #[arg(long, value_name = "NAME", requires = "phone", conflicts_with = "public_url")]
    name: Option<String>,
    /// The port of this machine that port 443 of the name leads to.
    #[arg(long, value_name = "PORT", requires = "name", default_value_t = 8443)]
    tls_port: u16,
    /// Your mail address, for the authority that issues the certificate.
    #[arg(long, value_name = "MAIL", requires = "name")]
    contact: Option<String>,
    /// Another authority than Let's Encrypt: the address of its ACME directory.
    #[arg(long, value_name = "URL", requires = "name")]
    authority: Option<String>,
    /// The file of the authorities that sign the authority's own certificate, if the system does not know them.
    #[arg(long, value_name = "FILE", requires = "authority")]
    authority_ca: Option<PathBuf>,
    /// Your name, as others see it. Asked for without this.
    #[arg(long, value_name = "NAME")]
    approver: Option<String>,
    /// What to call this machine, such as "Ada's laptop". Asked for without this.
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
}

/// Stop the gateway that `up` has started. Identities and requests stay.
#[derive(Debug, Args)]
pub(super) struct Down {}

impl Up {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        // The service of the gateway runs the program beside this one.
        program::lasting()?;
        let home = Home::of_user()?;
        if home.named("desk")?.is_none() {
            home.may_have_approver()?;
            // Before anything is started: without a person there is nobody to approve.
            Terminal::open("a passphrase for your approvals is asked for in a terminal")?;
        }
        let gateway = LocalGateway::of(&home);
        gateway.configure()?;
        if self.phone {
            self.reach(&gateway).await?;
        }
        let url = gateway.start().await?;
        let known = (home.named("agent")?, home.named("desk")?);
        let names = match &known {
            (Some(agent), Some(desk)) => Names::of(agent, desk),
            (agent, desk) => Names::ask(&self, agent.as_ref(), desk.as_ref())?,
        };
        let agent = match known.0 {
            Some(profile) => Identity::new("agent", profile),
            None => admit(&gateway, &home, "agent", ("enforcer", &names), None, &url).await?.0,
        };
        let (desk, keys) = if let Some(profile) = known.1 {
            (Identity::new("desk", profile), None)
        } else {
            say(
                "Choose a passphrase for your approvals. It keeps agents on this machine from approving in your name.",
            );
            let passphrase = new_passphrase(&names.person)?;
            let (desk, keys) =
                admit(&gateway, &home, "desk", ("approver", &names), Some(passphrase), &url).await?;
            (desk, Some(keys))
        };
        let is_new = keys.is_some();
        pair(&agent, &desk, keys).await?;
        if options.json {
            object(&json!({
                "gateway": url.as_str(), "agent": agent.profile.facts().party.id(), "approver": desk.profile.facts().party.id(),
            }))?;
        }
        say(&format!("✓ the gateway runs at {}", url.as_str()));
        if self.phone {
            // Who is connected can approve, so the person says that somebody may be: an agent could press Enter.
            if !is_new {
                desk.unlock()?;
            }
            connect_phone(&gateway, &agent, desk.profile.facts().party.id()).await?;
        }
        say("  Try it:   countersign exec -- echo hello");
        if !self.phone {
            say("  Answer:   countersign inbox, in another terminal");
        }
        say(
            "  You and the agent share this account, so the agent could act without asking; see docs/trust.md.",
        );
        Ok(())
    }

    /// Makes the gateway reachable from other devices, over TLS only.
    async fn reach(&self, gateway: &LocalGateway) -> Result<(), Failure> {
        if let Some(name) = &self.name {
            return self.reach_by_name(gateway, name).await;
        }
        if self.public_url.is_none() && gateway.public_url_of(&gateway.url()?).is_some() {
            return Ok(());
        }
        let url = match (&self.public_url, Tailscale::of_machine()) {
            (Some(url), _) => url.clone(),
            (None, Some(tailscale)) => {
                let port = gateway.port()?;
                let question = format!(
                    "Tailscale can serve the gateway to your own devices as {}.\nRun `tailscale serve --bg {port}`? [y/N] ",
                    tailscale.url()
                );
                let answer =
                    Terminal::open("it is asked in a terminal whether Tailscale is used")?.ask(&question)?;
                if !answer.eq_ignore_ascii_case("y") {
                    return Err(Failure::new(Exit::TakenBack, "nothing was changed"));
                }
                tailscale.serve(port)?;
                tailscale.url()
            }
            (None, None) => return Err(unreachable_from_outside()),
        };
        if gateway.set_public_url(&url)? {
            // The address is read when it starts.
            gateway.stop().await?;
        }
        Ok(())
    }

    /// Gets a certificate for a name of the person's, after the gateway has said what the authority would find.
    async fn reach_by_name(&self, gateway: &LocalGateway, name: &str) -> Result<(), Failure> {
        // The gateway runs in a folder of its own.
        let ca = self.authority_ca.as_ref().map(path::absolute).transpose().map_err(failed)?;
        let own = OwnName {
            name: name.to_owned(),
            port: self.tls_port,
            directory: self.authority.clone(),
            ca,
            contact: self.contact.clone(),
        };
        let (has_changed, said) = gateway.set_name(&own)?;
        for line in said {
            say(&format!("  {line}"));
        }
        if has_changed {
            // The listener is made when it starts.
            gateway.stop().await?;
        }
        Ok(())
    }
}

/// How long an authority may take before the person is told that nothing answers.
const CERTIFICATE_PATIENCE: Duration = Duration::from_secs(20);

fn unreachable_from_outside() -> Failure {
    Failure::new(Exit::NotSetUp, "your phone can't reach this machine yet").next(
        "choose one of three. Tailscale: install it on both and run this again; nobody else can reach it. A name of your own: let \
         port 443 of it lead to port 8443 of this machine and run `countersign up --phone --name gateway.example.org`; the \
         certificate comes by itself (a proxy that has one: `--public-url https://gateway.example.org`). A gateway that somebody \
         else runs: ask for an invitation and run `countersign join LINK`",
    )
}

/// Waits until the gateway has its certificate, and answers under its name.
async fn wait_for_certificate(gateway: &LocalGateway, url: &GatewayUrl) {
    let mut line = StatusLine::default();
    let until = Instant::now() + CERTIFICATE_PATIENCE;
    while Instant::now() < until && gateway.unreachable(url).await.is_some() {
        line.show("  waiting for the certificate …");
        sleep(Duration::from_millis(500)).await;
    }
    line.clear();
}

/// Shows the code with which a phone joins and is paired, and stays until it is.
async fn connect_phone(gateway: &LocalGateway, machine: &Identity, approver: &str) -> Result<(), Failure> {
    let invitation = invite(gateway, &machine.profile.facts().gateway, approver)?;
    if gateway.orders_certificate() {
        wait_for_certificate(gateway, invitation.link.gateway()).await;
    }
    if let Some(reason) = gateway.unreachable(invitation.link.gateway()).await {
        say(&format!(
            "  Careful: {} does not answer from here: {reason}.",
            invitation.link.gateway().as_str()
        ));
        say(if gateway.orders_certificate() {
            "  Its log says why it has no certificate yet. It is tried again by itself; run this again then."
        } else {
            "  If your phone can't open it either, check the proxy, then run this again."
        });
    }
    connect(machine, &invitation).await.map(drop)
}

/// An invitation to the gateway of this machine, with the address that other devices reach.
pub(super) fn invite(
    gateway: &LocalGateway,
    near: &GatewayUrl,
    approver: &str,
) -> Result<Invitation, Failure> {
    let link: JoinLink = gateway.invite("approver", approver)?.parse().map_err(failed)?;
    Ok(Invitation { near: link.at(near.clone()), link, approver: approver.to_owned() })
}

impl Down {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let stopped = LocalGateway::of(&Home::of_user()?).stop().await?;
        if options.json {
            return object(&json!({ "stopped": stopped }));
        }
        say(if stopped { "✓ the gateway is stopped" } else { "The gateway was not running." });
        Ok(())
    }
}

/// Invites somebody, and joins as them.
async fn admit(
    gateway: &LocalGateway,
    home: &Home,
    name: &str,
    (role, names): (&str, &Names),
    lock: Option<Passphrase>,
    url: &GatewayUrl,
) -> Result<(Identity, DeviceKeys), Failure> {
    let id = if role == "enforcer" { &names.machine } else { &names.person };
    // The link names the public address; this machine uses the near one.
    let link: JoinLink = gateway.invite(role, id)?.parse().map_err(failed)?;
    let joined = join(&link.at(url.clone())).await.map_err(failed)?;
    let (tenant, label) = (joined.tenant.parse().map_err(failed)?, names.machine.parse().map_err(failed)?);
    let facts = Facts { party: joined.party, tenant, gateway: joined.gateway, label };
    let (profile, keys) = home.create(name, facts, &joined.credential, lock)?;
    Ok((Identity::new(name, profile), keys))
}

/// Pairs the two, unless they are. The person's keys are unlocked where they are not yet.
async fn pair(agent: &Identity, desk: &Identity, keys: Option<DeviceKeys>) -> Result<(), Failure> {
    if knows(&agent.profile, &desk.profile)? && knows(&desk.profile, &agent.profile)? {
        return Ok(());
    }
    let enforcer = agent.enforcer()?;
    let approver = match (keys, desk.profile.facts().party.clone()) {
        (Some(keys), Party::Approver(id)) => desk.approver_with(id, keys)?,
        _ => desk.approver()?,
    };
    let described = |error| describe_pairing(&error);
    let started = enforcer.start_pairing(agent.names()).await.map_err(described)?;
    let there = approver.pair_by_link(&started.link).await.map_err(described)?;
    let here = enforcer.finish_pairing(&started, Answered::Link).await.map_err(described)?;
    agent.profile.update_pins(|pins| pins.insert(here.pin)).map_err(failed)?;
    desk.profile.update_pins(|pins| pins.insert(there.pin)).map_err(failed)
}

fn knows(one: &Profile, other: &Profile) -> Result<bool, Failure> {
    Ok(one.pins().map_err(failed)?.get(other.fingerprint()).is_some())
}

/// What people and machines are called on every screen. Asked for once.
struct Names {
    person: String,
    machine: String,
}

/// Names of accounts and hosts that say nothing of their owner.
const GENERIC_ACCOUNTS: [&str; 6] = ["root", "user", "admin", "me", "ubuntu", "debian"];
const GENERIC_HOSTS: [&str; 8] =
    ["localhost", "vm", "debian", "ubuntu", "fedora", "desk", "agent", "machine"];

impl Names {
    fn of(agent: &Profile, desk: &Profile) -> Self {
        let id = |profile: &Profile| profile.facts().party.id().to_owned();
        Self { person: id(desk), machine: id(agent) }
    }

    /// Those that are known or given, and the others from the person.
    fn ask(up: &Up, agent: Option<&Profile>, desk: Option<&Profile>) -> Result<Self, Failure> {
        let known = |profile: Option<&Profile>| profile.map(|profile| profile.facts().party.id().to_owned());
        let person = match known(desk).or_else(|| up.approver.clone()) {
            Some(person) => person,
            None => ask_name("Your name", &user_name())?,
        };
        let machine = match known(agent).or_else(|| up.machine.clone()) {
            Some(machine) => machine,
            None => ask_name("A name for this machine", &machine_name(&person))?,
        };
        Ok(Self { person, machine })
    }
}

fn ask_name(question: &str, usual: &str) -> Result<String, Failure> {
    let mut terminal = Terminal::open("names are asked for in a terminal")?;
    let usually = if usual.is_empty() { String::new() } else { format!(" [{usual}]") };
    loop {
        let name = terminal.ask(&format!("{question}{usually}: "))?;
        match if name.is_empty() { usual } else { &name } {
            "" => {}
            name => return Ok(name.to_owned()),
        }
    }
}

/// The name of the account as a person would write it; empty if it is nobody's.
fn user_name() -> String {
    let name = env::var("USER").unwrap_or_default();
    let mut letters = name.chars();
    match letters.next() {
        Some(first) if !GENERIC_ACCOUNTS.contains(&name.as_str()) => {
            first.to_uppercase().chain(letters).collect()
        }
        _ => String::new(),
    }
}

fn machine_name(person: &str) -> String {
    let host = host_name();
    match host.is_empty() || GENERIC_HOSTS.contains(&host.as_str()) {
        true => format!("{person}'s machine"),
        false => host,
    }
}
