//! `up` and `down`: a gateway on this machine for one person, with both sides set up.

use std::{env, fs, path::Path};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe_pairing,
    home::{Home, Identity, failed, new_passphrase},
    output::{is_live, object, out, say},
    terminal::Terminal,
};
use countersign_client::{
    enforcer::Answered,
    join::{JoinLink, join},
    keys::DeviceKeys,
    profile::{Facts, GatewayUrl, Party, Passphrase, Profile},
};
use serde_json::json;

use super::options::Options;
use crate::{
    local_gateway::{LocalGateway, Tailscale},
    qr,
};

/// Start a gateway of your own on this machine, and set up both sides.
///
/// Makes an identity for the agent's side and one for you at the desk, whose keys are locked by a passphrase that you choose,
/// and pairs the two. Run it again at any time: what is there stays, what is missing is made, and a gateway that does not run
/// is started.
#[derive(Debug, Args)]
pub(super) struct Up {
    /// Make it reachable for your phone or another machine, and print an invitation for it.
    ///
    /// Uses Tailscale where it is installed, else the address that you give with --public-url.
    #[arg(long)]
    phone: bool,
    /// Where the gateway is reached from other devices: an address with https:// that a proxy of yours serves.
    #[arg(long, value_name = "URL", requires = "phone")]
    public_url: Option<String>,
    /// Your name as an approver.
    #[arg(long, value_name = "NAME", default_value_t = user_name(), hide_default_value = true)]
    approver: String,
}

/// Stop the gateway that `up` has started. Identities and requests stay.
#[derive(Debug, Args)]
pub(super) struct Down {}

impl Up {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        if home.named("desk")?.is_none() {
            // Before anything is started: without a person there is nobody to approve.
            Terminal::open("a passphrase for your approvals is asked for in a terminal")?;
        }
        let gateway = LocalGateway::of(&home);
        gateway.configure()?;
        if self.phone {
            self.reach(&gateway).await?;
        }
        let url = gateway.start().await?;
        let agent = match home.named("agent")? {
            Some(profile) => Identity { name: "agent".to_owned(), profile },
            None => admit(&gateway, &home, "agent", ("enforcer", &machine_name()), None, &url).await?.0,
        };
        let (desk, keys) = if let Some(profile) = home.named("desk")? {
            (Identity { name: "desk".to_owned(), profile }, None)
        } else {
            say(
                "Choose a passphrase for your approvals. It keeps agents on this machine from approving in your name.",
            );
            let passphrase = new_passphrase("desk")?;
            let (desk, keys) =
                admit(&gateway, &home, "desk", ("approver", &self.approver), Some(passphrase), &url).await?;
            (desk, Some(keys))
        };
        pair(&agent, &desk, keys).await?;
        if options.json {
            object(&json!({
                "gateway": url.as_str(), "agent": agent.profile.facts().party.id(), "approver": desk.profile.facts().party.id(),
            }))?;
        }
        say(&format!("✓ the gateway runs at {}", url.as_str()));
        if self.phone {
            return invite_phone(&gateway, desk.profile.facts().party.id());
        }
        say("  Try it:   countersign exec -- echo hello");
        say("  Answer:   countersign inbox, in another terminal");
        say("  Agent and approver share this account, which is no boundary between them; see docs/trust.md.");
        Ok(())
    }

    /// Makes the gateway reachable from other devices, over TLS only.
    async fn reach(&self, gateway: &LocalGateway) -> Result<(), Failure> {
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
            (None, None) => return Err(unreachable_from_outside(gateway.port()?)),
        };
        if gateway.set_public_url(&url)? {
            // The address is read when it starts.
            gateway.stop().await?;
        }
        Ok(())
    }
}

fn unreachable_from_outside(port: u16) -> Failure {
    Failure::new(Exit::NotSetUp, "your phone can't reach this machine yet").next(format!(
        "Two ways: install Tailscale on both and run this again; or let a proxy that has a certificate, such as Caddy \
         (`caddy reverse-proxy --from gateway.example.org --to 127.0.0.1:{port}`), lead to this machine, and run \
         `countersign up --phone --public-url https://gateway.example.org`"
    ))
}

/// Shows how another device of the same person joins and is paired.
fn invite_phone(gateway: &LocalGateway, approver: &str) -> Result<(), Failure> {
    let link = gateway.invite("approver", approver)?;
    say(&qr::code(&link, is_live())?);
    say(
        "  Scan it with the other device, or paste this link into `countersign join` there. It is good once:",
    );
    out(&link)?;
    say("  Then pair the two: `countersign pair` here.");
    Ok(())
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
    (role, id): (&str, &str),
    lock: Option<Passphrase>,
    url: &GatewayUrl,
) -> Result<(Identity, DeviceKeys), Failure> {
    let link = gateway.invite(role, id)?;
    // The link names the public address; this machine uses the near one.
    let invitation = link.split_once("/join#").map(|(_, invitation)| invitation).unwrap_or_default();
    let link: JoinLink = format!("{}/join#{invitation}", url.as_str()).parse().map_err(failed)?;
    let joined = join(&link).await.map_err(failed)?;
    let (tenant, label) = (joined.tenant.parse().map_err(failed)?, machine_name().parse().map_err(failed)?);
    let facts = Facts { party: joined.party, tenant, gateway: joined.gateway, label };
    let (profile, keys) = home.create(name, facts, &joined.credential, lock)?;
    Ok((Identity { name: name.to_owned(), profile }, keys))
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

fn user_name() -> String {
    env::var("USER").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "me".to_owned())
}

fn machine_name() -> String {
    let name = fs::read_to_string(Path::new("/proc/sys/kernel/hostname")).unwrap_or_default();
    match name.trim() {
        "" => "machine".to_owned(),
        name => name.to_owned(),
    }
}
