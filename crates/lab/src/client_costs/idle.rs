//! Memory of an enforcer that waits, beside a process with nothing but an HTTP client. Both are this program.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use countersign_client::{
    channel::{EnforcerEvent, Settings},
    clock::SystemClock,
    enforcer::Enforcer,
    http::Http,
    journal::{FileJournal, Journal as _, Kind},
    keys::DeviceKeys,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Profile},
};
use serde::Serialize;

use crate::{
    Failure, report_progress,
    servers::{ends_with_us, gateway, gateway::Gateway, resident},
};

/// The pause before a reading, so that memory settles.
const SETTLING: Duration = Duration::from_secs(2);

/// Resident bytes in one round.
#[derive(Debug, Serialize)]
pub(crate) struct Idle {
    pub(crate) enforcer_rss: u64,
    pub(crate) bare_rss: u64,
}

/// A process that ends with this value.
struct Held(Child);

impl Held {
    /// Starts this program with these arguments, and returns when it says that it is ready.
    fn start(arguments: &[&str]) -> Result<Self, Failure> {
        let mut command = ends_with_us("KILL", env::current_exe()?);
        let mut child = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("no stdout")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let held = Self(child);
        if line == "ready\n" { Ok(held) } else { Err("a process that should wait has ended".into()) }
    }

    #[expect(clippy::disallowed_methods, reason = "memory settles without an event")]
    fn rss(&self) -> Result<u64, Failure> {
        thread::sleep(SETTLING);
        Ok(resident(&[self.0.id()])?.rss)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Idle {
    pub(super) fn measure() -> Result<Self, Failure> {
        let gateway = Gateway::in_memory()?;
        let url = format!("http://{}", gateway.address);
        let folder = tempfile::tempdir()?;
        let profile = folder.path().join("robot");
        let facts = Facts {
            party: Party::Enforcer("robot".parse()?),
            tenant: gateway::TENANT.parse()?,
            gateway: GatewayUrl::new(&url)?,
            label: "lab".parse()?,
        };
        let credential = Credential::new(gateway.enforcer_key.clone().into())?;
        Profile::create(&profile, facts, &credential, &DeviceKeys::generate()?, &FileKeys)?;
        let profile = profile.to_str().ok_or("a folder without a name")?;
        let enforcer_rss = Held::start(&["hold-enforcer", profile])?.rss()?;
        let bare_rss = Held::start(&["hold-http-client", &url])?.rss()?;
        report_progress(&format!("idle: enforcer {enforcer_rss} B, HTTP client {bare_rss} B"));
        Ok(Self { enforcer_rss, bare_rss })
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn ready() -> Result<(), Failure> {
    let mut out = std::io::stdout();
    writeln!(out, "ready")?;
    Ok(out.flush()?)
}

/// `hold-enforcer`: opens a profile and a journal, listens, and waits until it is killed.
pub(crate) fn hold_enforcer(folder: &Path) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let profile = Profile::open(folder)?;
        let path: PathBuf = profile.journal().ok_or("a profile in memory")?;
        let journal = Arc::new(FileJournal::new(path));
        journal.list(Kind::Open)?;
        let enforcer = Enforcer {
            http: Http::new(profile.facts().gateway.clone(), Some(profile.credential()))?,
            id: profile.facts().party.id().parse()?,
            keys: profile.unlock(None)?,
            clock: Arc::new(SystemClock),
            journal,
        };
        let pins = profile.pins()?;
        let mut listener = enforcer.listen(Vec::new(), Settings::default());
        loop {
            if let EnforcerEvent::Connected { .. } = listener.next(&pins).await? {
                ready()?;
            }
        }
    })
}

/// `hold-http-client`: calls the gateway once, keeps the client, and waits until it is killed.
pub(crate) fn hold_http_client(url: &str) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let client = reqwest::Client::builder().build()?;
        let status = client.get(format!("{url}/readyz")).send().await?.status();
        if !status.is_success() {
            return Err(format!("the gateway answers {status}").into());
        }
        ready()?;
        std::future::pending::<()>().await;
        drop(client);
        Ok(())
    })
}
