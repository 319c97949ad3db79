//! The gateway's own binary, started on a free port and stopped by its process id.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use countersign_testkit::{nats::Nats, postgres::Postgres};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;

use super::{
    polling::until,
    tls::{Authority, front_of},
};

/// The program under test.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_countersign-gateway"))
}

/// Which store a gateway runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Sqlite,
    Postgres,
    /// Two PostgreSQL servers, each with the tenants of one shard.
    Shards,
    /// Three nodes on two shards, which are databases of one PostgreSQL, connected over NATS, that speak TLS; each connection
    /// goes to another node than the one before.
    Cluster,
}

fn without_rates() -> String {
    let off = "{ per_second = 0, burst = 0 }";
    let names = ["credential", "tenant", "tenant_kib", "address", "failed_authentication"];
    format!("[rates]\n{}", names.map(|name| format!("{name} = {off}\n")).concat())
}

/// The settings of a store of two databases.
pub fn shards(one: &str, two: &str) -> String {
    let shard = |name, url| format!("[[shard]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    format!("[store]\nkind = \"postgres\"\n{}{}", shard("one", one), shard("two", two))
}

/// Another database of a server.
pub fn second_database(postgres: &Postgres) -> String {
    let mut create = Command::new(postgres.program("psql"));
    let created = create.args([&postgres.url(), "-qc", "CREATE DATABASE second"]).status().unwrap();
    assert!(created.success());
    // The last of two settings counts.
    format!("{} dbname=second", postgres.url())
}

/// What the log has after the last line of a process that has ended.
const END_OF_LOG: &str = "(the process has ended)\n";

/// A gateway that runs `serve` on a store of its own.
pub struct Gateway {
    pub address: SocketAddr,
    child: Child,
    pub config: PathBuf,
    pub log: Arc<Mutex<String>>,
    folder: TempDir,
    pub postgres: Option<Postgres>,
    /// That of the second shard, if it has one of its own.
    pub second_postgres: Option<Postgres>,
    others: Vec<Second>,
    _nats: Option<Nats>,
}

impl Gateway {
    /// Starts one without limits of rate.
    pub fn start(on: On) -> Self {
        Self::start_as(on, "", &without_rates(), None)
    }

    /// Starts one that may open only so many files.
    pub fn start_with_files(files: u32) -> Self {
        Self::start_as(On::Sqlite, "", &without_rates(), Some(files))
    }

    /// Starts one with more settings.
    pub fn start_with(on: On, settings: &str) -> Self {
        Self::start_as(on, "", settings, None)
    }

    /// Starts one with more settings, of which the first are in no table.
    pub fn start_with_first(on: On, first: &str, settings: &str) -> Self {
        Self::start_as(on, first, settings, None)
    }

    fn start_as(on: On, first: &str, settings: &str, files: Option<u32>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let postgres = (on != On::Sqlite).then(Postgres::start);
        let nats = (on == On::Cluster).then(Nats::start);
        let doorbell = nats.as_ref().map_or_else(String::new, |nats| {
            format!("[doorbell]\nkind = \"nats\"\nurl = \"{}\"\n", nats.url())
        });
        let second_postgres = (on == On::Shards).then(Postgres::start);
        let store = match (&postgres, &second_postgres) {
            (Some(one), Some(two)) => shards(&one.url(), &two.url()),
            (Some(postgres), None) if on == On::Cluster => {
                shards(&postgres.url(), &second_database(postgres))
            }
            (Some(postgres), None) => {
                format!("[store]\nkind = \"postgres\"\nurl = \"{}\"\n", postgres.url())
            }
            (None, _) => "[store]\nkind = \"sqlite\"\n".to_owned(),
        };
        let authority = (on == On::Cluster).then(Authority::new);
        let tls = authority.as_ref().map_or_else(String::new, |authority| authority.settings(folder.path()));
        let config = folder.path().join("gateway.toml");
        let data = folder.path().join("data");
        let text = format!(
            "{first}\nlisten = \"127.0.0.1:0\"\ngateway_id = \"gw\"\ntrusted_proxies = [\"127.0.0.1\"]\ndata = \"{}\"\n{store}{doorbell}{tls}[notifications]\nallowed_networks = [\"127.0.0.1\"]\n{settings}\n",
            data.display()
        );
        std::fs::write(&config, text).unwrap();
        let log = Arc::default();
        let (child, first) = launch_with(&config, &log, "127.0.0.1:0".parse().unwrap(), files);
        // They share the secrets that the first has made.
        let others: Vec<Second> =
            (0..if on == On::Cluster { 2 } else { 0 }).map(|_| Second::start(&config, &log)).collect();
        let nodes: Vec<SocketAddr> =
            std::iter::once(first).chain(others.iter().map(|node| node.address)).collect();
        let address = match authority {
            Some(authority) => front_of(nodes, Some(authority.any_version())),
            None => first,
        };
        Self { address, child, config, log, folder, postgres, second_postgres, others, _nats: nats }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the log has this text: it is read in a thread of its own.
    pub async fn wait_for_log(&self, text: &str) {
        let is_logged = || async { self.log.lock().contains(text) };
        until(&format!("{text} is in the log"), 30, is_logged).await;
    }

    /// Kills it as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same data and port.
    pub fn start_again(&mut self) {
        (self.child, self.address) = launch(&self.config, &self.log, self.address);
    }

    /// Tells it to stop, as an operator would.
    pub fn terminate(&self) {
        signal(self.pid(), "TERM");
    }

    /// Waits for its end; says whether it ended well.
    pub fn ended(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }

    /// Asserts, after its end, that connections ended by themselves: it closes those that do not after 10 s.
    pub async fn expect_drained(&self) {
        self.wait_for_log(END_OF_LOG).await;
        let log = self.log.lock();
        assert!(!log.contains("within the drain timeout"), "{log}");
    }

    /// Makes a key with the command-line tool.
    pub fn key(&self, tenant: &str, role: &str, id: Option<&str>) -> String {
        make_key(&self.config, tenant, role, id)
    }
}

/// Makes a key with the command-line tool.
pub fn make_key(config: &Path, tenant: &str, role: &str, id: Option<&str>) -> String {
    let mut command = program();
    command.args(["keys", "create", "--config"]).arg(config).args(["--tenant", tenant, "--role", role]);
    match id {
        Some(id) => command.args(["--id", id]),
        None if !role.ends_with("operator") => command.arg("--any"),
        None => &mut command,
    };
    let made = command.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

impl Drop for Gateway {
    fn drop(&mut self) {
        for node in &mut self.others {
            node.stop();
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

fn launch(config: &Path, log: &Arc<Mutex<String>>, listen: SocketAddr) -> (Child, SocketAddr) {
    launch_with(config, log, listen, None)
}

fn launch_with(
    config: &Path,
    log: &Arc<Mutex<String>>,
    listen: SocketAddr,
    files: Option<u32>,
) -> (Child, SocketAddr) {
    for _ in 0..50 {
        let mut command = match files {
            None => program(),
            Some(files) => {
                let mut command = Command::new("bash");
                let run = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
                command.args(["-c", &run, env!("CARGO_BIN_EXE_countersign-gateway")]);
                command
            }
        };
        let mut child = command
            .args(["serve", "--config"])
            .arg(config)
            .args(["--listen", &listen.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = String::new();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            said.push_str(&line);
            let received: Value = serde_json::from_str(&line).ok()?;
            received["address"].as_str()?.parse().ok()
        });
        if let Some(address) = address {
            let log = Arc::clone(log);
            // Somebody has to read, or the gateway would wait for it.
            std::thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    let mut log = log.lock();
                    log.push_str(&line);
                    log.push('\n');
                }
                log.lock().push_str(END_OF_LOG);
            });
            return (child, address);
        }
        drop(child.wait());
        assert!(said.contains("can't listen"), "the gateway does not start: {said}");
    }
    panic!("the port stays taken");
}

/// A gateway that runs `dev --json`.
pub struct Dev {
    child: Child,
    pub started: Value,
}

impl Dev {
    pub fn start() -> Self {
        Self::start_in(None)
    }

    /// Starts one that keeps its data in this folder.
    pub fn start_in(data: Option<&Path>) -> Self {
        let mut child = program()
            .args(["dev", "--json", "--listen", "127.0.0.1:0"])
            .args(data.map(|data| format!("--data={}", data.display())))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, started: serde_json::from_str(&line).unwrap() }
    }

    pub fn address(&self) -> SocketAddr {
        self.started["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        signal(self.pid(), "TERM");
        drop(self.child.wait());
    }
}

/// Another node on the store of one that runs.
pub struct Second {
    child: Child,
    pub address: SocketAddr,
}

impl Second {
    pub fn start(config: &Path, log: &Arc<Mutex<String>>) -> Self {
        let (child, address) = launch(config, log, "127.0.0.1:0".parse().unwrap());
        Self { child, address }
    }

    pub fn stop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The resident memory of a process, in KiB.
pub fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
