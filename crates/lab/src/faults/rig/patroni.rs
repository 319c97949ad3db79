//! Three PostgreSQL servers under Patroni in strict synchronous mode, with etcd. Patroni notices, promotes and rewinds.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use countersign_testkit::{
    child_process::{free_port, spawn_from_permanent_thread},
    postgres::{command_as_server_user, hand_over_to_server_user, programs_folder},
};
use rustix::process::Signal;
use serde_json::Value;
use tokio::time::sleep;

use super::{
    disk::{Disk, may_mount},
    process::signal,
};
use crate::{Failure, servers::ends_with_us, stopwatch::Stopwatch};

/// From Debian's packages `patroni` and `etcd-server`.
const PATRONI: &str = "/usr/bin/patroni";
const ETCD: &str = "/usr/bin/etcd";

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A leader that is gone is missed after Patroni's `ttl` of 20 s; a member that starts anew copies all data.
const WAIT: Duration = Duration::from_mins(2);

const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// The three members and their store.
#[derive(Debug)]
pub(crate) struct Patroni {
    members: Vec<Member>,
    etcd: Child,
    http: reqwest::Client,
    /// The leader that [`Patroni::lose_leader`] has killed.
    lost: Option<usize>,
}

#[derive(Debug)]
struct Member {
    port: u16,
    api_port: u16,
    config: PathBuf,
    data: PathBuf,
    log: PathBuf,
    patroni: Option<Child>,
    disk: Disk,
}

impl Patroni {
    /// Starts everything and waits for a leader with its synchronous standby.
    pub(crate) async fn start(folder: &Path, logs: &Path, mebibytes: u64) -> Result<Self, Failure> {
        for program in [PATRONI, ETCD] {
            if !Path::new(program).is_file() {
                return Err(format!("there is no {program}: install Debian's packages patroni, etcd-server, etcd-client and python3-etcd").into());
            }
        }
        let (etcd, etcd_port) = start_etcd(folder, logs)?;
        let mut patroni = Self { members: Vec::new(), etcd, http: reqwest::Client::new(), lost: None };
        for name in NAMES {
            let mut member = Member::new(folder, logs, name, etcd_port, mebibytes)?;
            member.start()?;
            patroni.members.push(member);
            // The first one becomes the leader; the others copy it.
            patroni.leader().await?;
        }
        Ok(patroni)
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.members.iter().map(|member| member.port).collect()
    }

    /// Waits until some member is the leader.
    async fn leader(&self) -> Result<usize, Failure> {
        let watch = Stopwatch::start();
        while watch.elapsed() < WAIT {
            for (index, member) in self.members.iter().enumerate() {
                if self.is_leader(member).await {
                    return Ok(index);
                }
            }
            sleep(CHECK_INTERVAL).await;
        }
        Err(format!("Patroni has no leader after {WAIT:?}; its log is {}", self.members[0].log.display())
            .into())
    }

    async fn is_leader(&self, member: &Member) -> bool {
        let url = format!("http://127.0.0.1:{}/leader", member.api_port);
        let asked = self.http.get(url).timeout(Duration::from_secs(2)).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    /// Kills the leader's PostgreSQL, which its Patroni starts again.
    pub(crate) async fn crash_leader(&self) -> Result<(), Failure> {
        let leader = self.leader().await?;
        self.members[leader].kill_postgres()
    }

    /// Kills the leader with its Patroni, as the loss of a machine would.
    pub(crate) async fn lose_leader(&mut self) -> Result<(), Failure> {
        let leader = self.leader().await?;
        let member = &mut self.members[leader];
        member.kill_patroni()?;
        member.kill_postgres()?;
        self.lost = Some(leader);
        Ok(())
    }

    /// Waits for the next leader and starts the lost member again.
    pub(crate) async fn replace_leader(&mut self) -> Result<(), Failure> {
        let lost = self.lost.take().ok_or("no leader was lost")?;
        let watch = Stopwatch::start();
        while self.leader().await? == lost && watch.elapsed() < WAIT {
            sleep(CHECK_INTERVAL).await;
        }
        self.members[lost].start()
    }

    /// Waits for a leader after a crash or a full disk.
    pub(crate) async fn wait_for_leader(&self) -> Result<(), Failure> {
        self.leader().await.map(drop)
    }

    /// Whether etcd knows which member may become the leader. Otherwise none may, and the loss of the leader means waiting for it.
    pub(crate) async fn has_heir(&self) -> bool {
        let url = format!("http://127.0.0.1:{}/cluster", self.members[0].api_port);
        let Ok(asked) = self.http.get(url).timeout(Duration::from_secs(2)).send().await else { return false };
        let Ok(text) = asked.text().await else { return false };
        let cluster: Value = serde_json::from_str(&text).unwrap_or_default();
        let is_heir = |member: &Value| member["role"] == "sync_standby" && is_running(member);
        let members = cluster["members"].as_array().map(Vec::as_slice).unwrap_or_default();
        members.len() == NAMES.len() && members.iter().all(is_running) && members.iter().any(is_heir)
    }

    pub(crate) fn can_fill_disk(&self) -> bool {
        self.members.iter().all(|member| member.disk.can_be_filled())
    }

    pub(crate) async fn fill_disk(&self) -> Result<(), Failure> {
        let leader = self.leader().await?;
        self.members[leader].disk.fill()
    }

    pub(crate) fn free_disks(&self) -> Result<(), Failure> {
        self.members.iter().try_for_each(|member| member.disk.free())
    }
}

fn is_running(member: &Value) -> bool {
    ["running", "streaming"].iter().any(|state| member["state"] == *state)
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for member in &mut self.members {
            drop((member.kill_patroni(), member.kill_postgres()));
        }
        drop((self.etcd.kill(), self.etcd.wait()));
        // A server's other processes end a moment after it, and a disk in use can't be unmounted.
        std::thread::park_timeout(Duration::from_millis(500));
    }
}

impl Member {
    fn new(folder: &Path, logs: &Path, name: &str, etcd_port: u16, mebibytes: u64) -> Result<Self, Failure> {
        let disk = Disk::new(folder.join(format!("database-{name}")), mebibytes)?;
        let (data, home) = (disk.path().join("data"), disk.path().join("home"));
        for folder in [&data, &home] {
            fs::create_dir(folder)?;
            // PostgreSQL refuses a folder that others may read.
            fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            hand_over_to_server_user(folder);
        }
        let (port, api_port) = (free_port(), free_port());
        let config = folder.join(format!("patroni-{name}.yml"));
        fs::write(&config, configuration(name, port, api_port, etcd_port, &data, &home))?;
        let log = logs.join(format!("patroni-{name}.log"));
        Ok(Self { port, api_port, config, data, log, patroni: None, disk })
    }

    fn start(&mut self) -> Result<(), Failure> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = in_own_processes(&command_as_server_user("KILL", Path::new(PATRONI)));
        command.arg(&self.config).current_dir(self.disk.path()).env("LC_ALL", "C.UTF-8");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.patroni = Some(spawn_from_permanent_thread(command));
        Ok(())
    }

    fn kill_patroni(&mut self) -> Result<(), Failure> {
        if let Some(mut patroni) = self.patroni.take() {
            patroni.kill()?;
            patroni.wait()?;
        }
        Ok(())
    }

    /// It is not our child: it is found by its data.
    fn kill_postgres(&self) -> Result<(), Failure> {
        match find_process(&self.data) {
            Some(pid) => signal(pid, Signal::KILL),
            None => Ok(()),
        }
    }
}

/// The server with this data folder.
fn find_process(data: &Path) -> Option<u32> {
    let data = data.as_os_str().as_encoded_bytes();
    fs::read_dir("/proc").ok()?.filter_map(Result::ok).find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let words = fs::read(entry.path().join("cmdline")).ok()?;
        let mut words = words.split(|byte| *byte == 0);
        let is_server = words.next().is_some_and(|program| program.ends_with(b"/postgres"));
        (is_server && words.any(|word| word.ends_with(data))).then_some(pid)
    })
}

/// Runs a command where its processes are a group of their own, as on a machine of its own: they all end with the first of
/// them, and it waits for those that nobody else waits for. Only root can do that; without it they end one by one.
fn in_own_processes(command: &Command) -> Command {
    if !may_mount() {
        let mut same = Command::new(command.get_program());
        same.args(command.get_args());
        return same;
    }
    let mut own = ends_with_us("KILL", "unshare");
    own.args(["--pid", "--fork", "--mount-proc", "--"]).arg(command.get_program()).args(command.get_args());
    own
}

fn start_etcd(folder: &Path, logs: &Path) -> Result<(Child, u16), Failure> {
    let (clients, peers) = (free_port(), free_port());
    let data = folder.join("etcd");
    fs::create_dir(&data)?;
    hand_over_to_server_user(&data);
    let log = File::create(logs.join("etcd.log"))?;
    let (clients_url, peers_url) =
        (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
    let mut command = command_as_server_user("KILL", Path::new(ETCD));
    command.arg("--data-dir").arg(&data);
    command.args(["--listen-client-urls", &clients_url, "--advertise-client-urls", &clients_url]);
    command.args(["--listen-peer-urls", &peers_url, "--initial-advertise-peer-urls", &peers_url]);
    command.args(["--initial-cluster", &format!("default={peers_url}"), "--enable-v2=true"]);
    command.current_dir(&data).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    Ok((spawn_from_permanent_thread(command), clients))
}

fn configuration(name: &str, port: u16, api_port: u16, etcd_port: u16, data: &Path, home: &Path) -> String {
    let (data, home, programs) = (data.display(), home.display(), programs_folder());
    let programs = programs.display();
    format!(
        "scope: countersign
name: {name}
restapi: {{listen: '127.0.0.1:{api_port}', connect_address: '127.0.0.1:{api_port}'}}
etcd3: {{hosts: '127.0.0.1:{etcd_port}'}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 4
    maximum_lag_on_failover: 0
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      remove_data_directory_on_rewind_failure: true
      remove_data_directory_on_diverged_timelines: true
      parameters: {{synchronous_commit: 'on', wal_log_hints: 'on', shared_buffers: 32MB, max_wal_size: 128MB, wal_keep_size: 128MB}}
  initdb: [{{encoding: UTF8}}, data-checksums]
  pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust']
postgresql:
  listen: 127.0.0.1:{port}
  connect_address: 127.0.0.1:{port}
  data_dir: {data}
  pgpass: {home}/pgpass
  bin_dir: {programs}
  authentication: {{superuser: {{username: postgres, password: x}}, replication: {{username: rep, password: x}}, rewind: {{username: rew, password: x}}}}
  parameters: {{unix_socket_directories: ''}}
"
    )
}
