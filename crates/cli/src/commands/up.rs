//! `up` and `down`: a gateway on this machine for one person, with both sides set up.

use std::{
    env, fs,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use clap::Args;
use countersign_client::{
    enforcer::Answered,
    http::Http,
    join::{JoinLink, join},
    keys::DeviceKeys,
    profile::{Facts, GatewayUrl, Party, Profile},
};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::Options;
use crate::{
    exit::{Exit, Failure},
    gateway_error::describe_pairing,
    home::{Home, Identity, failed, new_passphrase},
    output::{StatusLine, object, say},
    terminal::Terminal,
};

/// The port to listen on, if it is free.
const PORT: u16 = 8787;

/// How long a gateway may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// The tenant of a gateway for one person.
const TENANT: &str = "home";

/// Start a gateway of your own on this machine, and set up both sides.
///
/// Makes an identity for the agent's side and one for you at the desk, whose keys are locked by a passphrase that you choose,
/// and pairs the two. Run it again at any time: what is there stays, what is missing is made, and a gateway that does not run
/// is started.
#[derive(Debug, Args)]
pub(super) struct Up {
    /// Where the gateway is reached from other devices: an address with https:// that a proxy of yours serves.
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Your name as an approver.
    #[arg(long, value_name = "NAME", default_value_t = user_name())]
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
        let gateway = LocalGateway { folder: home.gateway_folder() };
        gateway.configure(self.public_url.as_deref())?;
        let url = gateway.start().await?;
        let agent = match home.named("agent")? {
            Some(profile) => Identity { name: "agent".to_owned(), profile },
            None => gateway.admit(&home, "agent", "enforcer", &machine_name(), None, &url).await?.0,
        };
        let (desk, keys) = if let Some(profile) = home.named("desk")? {
            (Identity { name: "desk".to_owned(), profile }, None)
        } else {
            say(
                "Choose a passphrase for your approvals. It keeps agents on this machine from approving in your name.",
            );
            let passphrase = new_passphrase("desk")?;
            let (desk, keys) =
                gateway.admit(&home, "desk", "approver", &self.approver, Some(passphrase), &url).await?;
            (desk, Some(keys))
        };
        pair(&agent, &desk, keys).await?;
        if options.json {
            return object(&json!({
                "gateway": url.as_str(), "agent": agent.profile.facts().party.id(), "approver": desk.profile.facts().party.id(),
            }));
        }
        say(&format!("✓ the gateway runs at {}", url.as_str()));
        say("  Try it:   countersign exec -- echo hello");
        say("  Answer:   countersign inbox, in another terminal");
        say("  Agent and approver share this account, which is no boundary between them; see docs/trust.md.");
        Ok(())
    }
}

impl Down {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let gateway = LocalGateway { folder: Home::of_user()?.gateway_folder() };
        let stopped = gateway.stop().await?;
        if options.json {
            return object(&json!({ "stopped": stopped }));
        }
        say(if stopped { "✓ the gateway is stopped" } else { "The gateway was not running." });
        Ok(())
    }
}

/// The gateway of this user: its configuration, data, log and process.
struct LocalGateway {
    folder: PathBuf,
}

#[derive(Deserialize)]
struct Invited {
    link: String,
}

impl LocalGateway {
    fn config(&self) -> PathBuf {
        self.folder.join("gateway.toml")
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.join("pid")
    }

    fn unusable(&self, error: impl std::fmt::Display) -> Failure {
        Failure::new(Exit::Failed, format!("{} can't be used: {error}", self.folder.display()))
    }

    /// Writes the configuration when there is none. Who changed it keeps it.
    fn configure(&self, public_url: Option<&str>) -> Result<(), Failure> {
        if let Some(url) = public_url {
            let is_safe = url.starts_with("https://") && GatewayUrl::new(url).is_ok();
            if !is_safe {
                return Err(Failure::new(Exit::Usage, "--public-url must begin with https://")
                    .next("plain HTTP would show every credential to the network; put a proxy with a certificate in front"));
            }
        }
        if self.config().exists() {
            return match public_url {
                Some(_) => {
                    Err(Failure::new(Exit::Usage, format!("{} exists already", self.config().display()))
                        .next("set public_url in that file, then `countersign down` and `countersign up`"))
                }
                None => Ok(()),
            };
        }
        let mut folder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.recursive(true).create(&self.folder).map_err(|error| self.unusable(error))?;
        let listen = free_address().map_err(|error| self.unusable(error))?;
        let data = self.folder.join("data");
        let mut text = format!(
            "# Made by `countersign up`. `countersign-gateway config` prints every setting.\n\
             listen = \"{listen}\"\ngateway_id = \"home\"\ndata = {:?}\n",
            data.display().to_string()
        );
        if let Some(url) = public_url {
            text.extend(["public_url = ", &format!("{url:?}"), "\n"]);
        }
        text += "\n[store]\nkind = \"sqlite\"\n\n[log]\nformat = \"text\"\nlevel = \"warn\"\n";
        let written = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(self.config());
        written.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| self.unusable(error))
    }

    /// Where this machine reaches the gateway.
    fn url(&self) -> Result<GatewayUrl, Failure> {
        let text = fs::read_to_string(self.config()).map_err(|error| self.unusable(error))?;
        let listen = text.lines().find_map(|line| line.strip_prefix("listen = \"")?.strip_suffix('"'));
        let listen =
            listen.ok_or_else(|| self.unusable("gateway.toml has no line that begins with: listen = "))?;
        GatewayUrl::new(&format!("http://{listen}")).map_err(failed)
    }

    /// Starts the gateway, unless it answers already.
    async fn start(&self) -> Result<GatewayUrl, Failure> {
        let url = self.url()?;
        if answers(&url).await {
            return Ok(url);
        }
        let binary = binary()?;
        let open = |name: &str| {
            fs::OpenOptions::new().create(true).append(true).mode(0o600).open(self.folder.join(name))
        };
        let log = open("log").map_err(|error| self.unusable(error))?;
        let copy = log.try_clone().map_err(|error| self.unusable(error))?;
        let mut child = Command::new(&binary)
            .arg("serve")
            .arg("--config")
            .arg(self.config())
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(copy)
            // Not in the terminal's group: Ctrl-C in the terminal is not for it.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                Failure::new(Exit::Failed, format!("{} can't be started: {error}", binary.display()))
            })?;
        fs::write(self.pid_file(), child.id().to_string()).map_err(|error| self.unusable(error))?;
        let mut line = StatusLine::default();
        let until = Instant::now() + PATIENCE;
        while !answers(&url).await {
            line.show("  starting the gateway …");
            let ended = child.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > until {
                return Err(Failure::new(Exit::Unreachable, "the gateway does not start")
                    .next(format!("its reason is at the end of {}", self.folder.join("log").display())));
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(url)
    }

    /// Stops the gateway; false if it was not running.
    async fn stop(&self) -> Result<bool, Failure> {
        let pid = fs::read_to_string(self.pid_file()).ok().and_then(|text| text.trim().parse::<i32>().ok());
        let Some(pid) = pid.and_then(rustix::process::Pid::from_raw).filter(|pid| self.is_ours(*pid)) else {
            return Ok(false);
        };
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)
            .map_err(|error| self.unusable(error))?;
        let mut line = StatusLine::default();
        let until = Instant::now() + PATIENCE;
        while self.is_ours(pid) {
            line.show("  stopping the gateway …");
            if Instant::now() > until {
                return Err(Failure::new(
                    Exit::Failed,
                    format!("the gateway (process {}) does not stop", pid.as_raw_nonzero()),
                ));
            }
            sleep(Duration::from_millis(50)).await;
        }
        fs::remove_file(self.pid_file()).map_err(|error| self.unusable(error))?;
        Ok(true)
    }

    /// Whether a process is our gateway, and not another one that has its number now.
    fn is_ours(&self, pid: rustix::process::Pid) -> bool {
        let command = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        let config = self.config().display().to_string();
        command.split(|byte| *byte == 0).any(|word| word == config.as_bytes())
    }

    /// Invites somebody, and joins as them.
    async fn admit(
        &self,
        home: &Home,
        name: &str,
        role: &str,
        id: &str,
        lock: Option<countersign_client::profile::Passphrase>,
        url: &GatewayUrl,
    ) -> Result<(Identity, DeviceKeys), Failure> {
        let invited = Command::new(binary()?)
            .args(["invite", "--json", "--tenant", TENANT, "--role", role, "--id", id, "--config"])
            .arg(self.config())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.unusable(error))?;
        let link: Invited = serde_json::from_slice(&invited.stdout).map_err(|_| {
            let reason = String::from_utf8_lossy(&invited.stderr).trim().to_owned();
            Failure::new(Exit::Failed, format!("the gateway does not admit {id}: {reason}"))
        })?;
        // The link names the public address; this machine uses the near one.
        let invitation = link.link.split_once("/join#").map(|(_, invitation)| invitation).unwrap_or_default();
        let link: JoinLink = format!("{}/join#{invitation}", url.as_str()).parse().map_err(failed)?;
        let joined = join(&link).await.map_err(failed)?;
        let tenant =
            joined.tenant.parse().map_err(|_| self.unusable("the gateway names a tenant that is none"))?;
        let label = machine_name().parse().map_err(|rule| self.unusable(rule))?;
        let facts = Facts { party: joined.party, tenant, gateway: joined.gateway, label };
        let (profile, keys) = home.create(name, facts, &joined.credential, lock)?;
        Ok((Identity { name: name.to_owned(), profile }, keys))
    }
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
    let started = enforcer.start_pairing(enforcer.id.as_str()).await.map_err(described)?;
    let there = approver.pair_by_link(&started.link).await.map_err(described)?;
    let here = enforcer.finish_pairing(&started, Answered::Link).await.map_err(described)?;
    agent.profile.update_pins(|pins| pins.insert(here.pin)).map_err(failed)?;
    desk.profile.update_pins(|pins| pins.insert(there.pin)).map_err(failed)
}

fn knows(one: &Profile, other: &Profile) -> Result<bool, Failure> {
    Ok(one.pins().map_err(failed)?.get(other.fingerprint()).is_some())
}

async fn answers(url: &GatewayUrl) -> bool {
    match Http::new(url.clone(), None) {
        Ok(http) => http.check().await.is_ok(),
        Err(_) => false,
    }
}

/// The program beside this one, or the one in the PATH.
fn binary() -> Result<PathBuf, Failure> {
    let name = "countersign-gateway";
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
    let in_path =
        env::var_os("PATH").into_iter().flat_map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let candidates = beside.into_iter().chain(in_path.map(|folder| folder.join(name)));
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::new(Exit::NotSetUp, format!("the program {name} is not installed"))
            .next("install it beside `countersign`, or join somebody else's gateway with `countersign join`")
    })
}

fn free_address() -> std::io::Result<SocketAddr> {
    let usual = TcpListener::bind((Ipv4Addr::LOCALHOST, PORT));
    usual.or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?.local_addr()
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
