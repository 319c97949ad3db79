//! The gateway as a process: the program itself, or this one with the store in memory.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use countersign_server::commands;
use countersign_testkit::{child_process::free_port, postgres::Postgres};
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use super::ends_with_us;
use crate::{Failure, stopwatch::Stopwatch, tls::CertificateFiles};

/// The tenant of `countersign-gateway dev`, and of every gateway here.
pub(crate) const TENANT: &str = "dev";

/// The name of a node's configuration in its folder.
const CONFIG: &str = "gateway.toml";

/// Files here are not written to the disk that the store writes to.
const MEMORY_FOLDER: &str = "/dev/shm";

const START_TIMEOUT: Duration = Duration::from_secs(20);

/// A gateway that runs until this is dropped. Its keys may act as any enforcer and any approver.
#[derive(Debug)]
pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) enforcer_key: String,
    pub(crate) approver_key: String,
}

/// The first line of a gateway's output, as JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Started {
    pub(crate) url: String,
    pub(crate) tenant: String,
    pub(crate) operator_key: String,
    pub(crate) enforcer_key: String,
    pub(crate) approver_key: String,
}

/// The gateway's program: `named`, else the one in our folder.
pub(crate) fn program(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let program = match named {
        Some(named) => named.to_owned(),
        None => env::current_exe()?.with_file_name("countersign-gateway"),
    };
    if program.is_file() {
        return Ok(program);
    }
    let program = program.display();
    Err(format!("there is no {program}: build it with cargo build --release -p countersign-server, or name it with --gateway").into())
}

impl Gateway {
    /// On SQLite, with its data in this folder.
    pub(crate) fn on_sqlite(program: &Path, data: &Path) -> Result<Self, Failure> {
        let mut command = ends_with_us("KILL", program);
        command.args(["dev", "--json", "--listen", "127.0.0.1:0", "--data"]).arg(data);
        Self::from_its_first_line(command)
    }

    /// On a store in memory: the push path alone.
    pub(crate) fn in_memory() -> Result<Self, Failure> {
        let mut command = ends_with_us("KILL", env::current_exe()?);
        command.arg("serve-in-memory");
        Self::from_its_first_line(command)
    }

    fn from_its_first_line(mut command: Command) -> Result<Self, Failure> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let started: Started =
            serde_json::from_str(&line).map_err(|_| format!("the gateway does not start: {line}"))?;
        let address = started.url.strip_prefix("http://").unwrap_or_default().parse()?;
        let Started { enforcer_key, approver_key, .. } = started;
        Ok(Self { child, address, enforcer_key, approver_key })
    }

    /// On PostgreSQL, with everything else in this folder.
    pub(crate) fn on_postgres(program: &Path, folder: &Path, postgres: &Postgres) -> Result<Self, Failure> {
        Self::on_postgres_with(program, folder, postgres, "")
    }

    /// The same, with more sections in its configuration.
    pub(crate) fn on_postgres_with(
        program: &Path,
        folder: &Path,
        postgres: &Postgres,
        sections: &str,
    ) -> Result<Self, Failure> {
        let data = folder.join("data");
        let (data, url) = (data.display(), postgres.url());
        let head = format!(
            "listen = \"127.0.0.1:0\"\ndata = \"{data}\"\n[store]\nkind = \"postgres\"\nurl = \"{url}\"\n"
        );
        write_configuration(folder, &head, sections)?;
        let (child, address) = start_node(program, folder)?;
        let mut gateway = Self { child, address, enforcer_key: String::new(), approver_key: String::new() };
        [gateway.enforcer_key, gateway.approver_key] = keys(program, folder, TENANT)?;
        Ok(gateway)
    }

    /// One more node with the same configuration; keys of one are keys of all.
    pub(crate) fn another_node(&self, program: &Path, folder: &Path) -> Result<Self, Failure> {
        let (child, address) = start_node(program, folder)?;
        let (enforcer_key, approver_key) = (self.enforcer_key.clone(), self.approver_key.clone());
        Ok(Self { child, address, enforcer_key, approver_key })
    }

    /// Ends it, and starts it again as a service with the same data and keys: plain HTTP on one port, TLS on another. Its
    /// configuration is written to `folder`. Returns where TLS is, too.
    pub(crate) fn with_tls(
        self,
        program: &Path,
        folder: &Path,
        data: &Path,
        certificate: &CertificateFiles,
    ) -> Result<(Self, SocketAddr), Failure> {
        let [plain, tls] =
            [free_port(), free_port()].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let head = format!("listen = \"{plain}\"\ndata = \"{}\"\n", data.display());
        write_configuration(folder, &head, &certificate.section(Some(tls)))?;
        Ok((self.again(program, folder)?, tls))
    }

    /// Kills it, and starts it again with the configuration in `folder`.
    pub(crate) fn again(mut self, program: &Path, folder: &Path) -> Result<Self, Failure> {
        self.child.kill()?;
        self.child.wait()?;
        self.another_node(program, folder)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Its data is not needed any more, so it need not stop cleanly.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs a command of the gateway in this process.
pub(crate) fn run(command: commands::Command) -> Result<(), Failure> {
    Ok(Runtime::new()?.block_on(command.run())?)
}

/// Writes the configuration of all nodes in this folder: no limits of rates, and a line of log for each request.
fn write_configuration(folder: &Path, head: &str, sections: &str) -> Result<(), Failure> {
    let rates = ["credential", "tenant", "tenant_kib", "address", "failed_authentication"]
        .map(|name| format!("{name} = {{ per_second = 0, burst = 0 }}\n"))
        .concat();
    let text = format!("{head}[rates]\n{rates}[log]\nlevel = \"info\"\n{sections}");
    Ok(fs::write(folder.join(CONFIG), text)?)
}

/// Starts a node and waits until it listens. Its log is a file, so that reading it costs us nothing.
fn start_node(program: &Path, folder: &Path) -> Result<(Child, SocketAddr), Failure> {
    let config = folder.join(CONFIG);
    let in_memory = Path::new(MEMORY_FOLDER);
    let log = NamedTempFile::new_in(if in_memory.is_dir() { in_memory } else { folder })?;
    let mut command = ends_with_us("KILL", program);
    command.args(["serve", "--config"]).arg(&config);
    let mut child = command.stdin(Stdio::null()).stderr(log.reopen()?).spawn()?;
    let watch = Stopwatch::start();
    while watch.elapsed() < START_TIMEOUT && child.try_wait()?.is_none() {
        let address = fs::read_to_string(log.path())?.lines().find_map(|line| {
            let event: serde_json::Value = serde_json::from_str(line).ok()?;
            event["address"].as_str()?.parse().ok()
        });
        if let Some(address) = address {
            return Ok((child, address));
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    drop(child.kill());
    drop(child.wait());
    Err(format!("the gateway does not start: {}", fs::read_to_string(log.path())?).into())
}

/// The keys of any enforcer and of any approver of this tenant, on the store of a node in this folder.
pub(crate) fn keys(program: &Path, folder: &Path, tenant: &str) -> Result<[String; 2], Failure> {
    let key = |role| make_key(Command::new(program), &folder.join(CONFIG), tenant, &[role, "--any"]);
    Ok([key("enforcer")?, key("approver")?])
}

/// Makes an API key. `gateway` is the command that runs a gateway's commands.
pub(crate) fn make_key(
    mut gateway: Command,
    config: &Path,
    tenant: &str,
    role: &[&str],
) -> Result<String, Failure> {
    gateway.args(["keys", "create", "--tenant", tenant, "--config"]).arg(config);
    let made = gateway.arg("--role").args(role).output()?;
    match made.status.success() {
        true => Ok(String::from_utf8(made.stdout)?.trim().to_owned()),
        false => Err(String::from_utf8_lossy(&made.stderr).into()),
    }
}
