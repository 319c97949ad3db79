//! The cluster that faults are done to: three nodes, a database with a synchronous standby, NATS, and a proxy on every
//! link between them and to the clients.

mod database;
mod disk;
mod keys;
mod node;
mod pair;
mod patroni;
mod process;
mod proxy;
mod trust;

pub(crate) use database::Database;
pub(crate) use disk::in_own_mounts;
pub(crate) use keys::Keys;
pub(crate) use node::Program;
pub(crate) use process::signal;
pub(crate) use proxy::Mode;
pub(crate) use trust::Trust;

use std::{
    fs::{self, Permissions},
    net::Ipv4Addr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use countersign_testkit::{child_process::free_port, nats::Nats};
use tempfile::TempDir;
use tokio::{net::TcpStream, sync::Mutex, time::sleep};

use crate::{Failure, report_progress, stopwatch::Stopwatch, tls::TlsClient};
use database::connection_string;
use node::Node;
use proxy::Proxy;

pub(crate) const NODES: usize = 3;

/// A node that starts waits for its database, which may be failing over.
const READY_WITHIN: Duration = Duration::from_mins(5);

const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The name of its database.
const SECOND_SHARD: &str = "second";

/// Which database, and how large its disks are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrangement {
    pub(crate) with_patroni: bool,
    pub(crate) disk_mebibytes: u64,
    /// Whether clients of a node that is down reach another one, as behind a load balancer.
    pub(crate) balances: bool,
    /// Whether there is a second shard, a database of the same servers.
    pub(crate) with_shards: bool,
}

/// The running cluster. When dropped everything is stopped and removed, except logs in a folder that was given.
#[derive(Debug)]
pub(crate) struct Rig {
    // In the order in which they are stopped.
    nodes: Vec<Node>,
    links: Vec<Links>,
    pub(crate) nats: Mutex<Nats>,
    pub(crate) database: Mutex<Database>,
    can_fill_disk: bool,
    configs: Vec<PathBuf>,
    /// `None` for plain HTTP.
    trust: Option<Trust>,
    http: reqwest::Client,
    _folder: TempDir,
}

/// The proxies of one node.
#[derive(Debug)]
struct Links {
    clients: Proxy,
    /// One for each server of the database.
    database: Vec<Proxy>,
    nats: Proxy,
}

/// One kind of link; each node has one of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    Clients,
    Database,
    Nats,
}

impl Rig {
    /// Starts everything, with TLS if there is something to trust. Configurations and logs of nodes are written to `folder`.
    pub(crate) async fn start(
        program: &Program,
        arrangement: Arrangement,
        trust: Option<Trust>,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let data = TempDir::with_prefix("countersign-faults-")?;
        // Another user runs PostgreSQL in it.
        fs::set_permissions(data.path(), Permissions::from_mode(0o711))?;
        report_progress("starting a database with a synchronous standby, and NATS");
        let Arrangement { with_patroni, disk_mebibytes, balances, with_shards } = arrangement;
        let database = Database::start(with_patroni, data.path(), folder, disk_mebibytes).await?;
        if with_shards {
            database.run(&format!("CREATE DATABASE {SECOND_SHARD}")).await?;
        }
        let nats = tokio::task::block_in_place(Nats::start);
        let (mut nodes, mut links, mut configs) = (Vec::new(), Vec::new(), Vec::new());
        let ports: Vec<u16> = (0..NODES).map(|_| free_port()).collect();
        for (number, port) in ports.iter().copied().enumerate() {
            let others = (1..NODES).map(|step| ports[(number + step) % NODES]).filter(|_| balances);
            let targets = std::iter::once(port).chain(others).collect();
            let of_node = Links::start(targets, &database.ports(), nats.port()).await?;
            let node_folder = folder.join(format!("node-{number}"));
            fs::create_dir(&node_folder)?;
            configs.push(node_folder.join("gateway.toml"));
            let text =
                configuration(port, &of_node, &data.path().join("secrets"), trust.as_ref(), with_shards);
            fs::write(&configs[number], text)?;
            nodes.push(Node::start(program.clone(), node_folder, port)?);
            links.push(of_node);
            // The first node makes the schema and the secrets.
            wait_for_port(port).await?;
        }
        let can_fill_disk = database.can_fill_disk();
        let (nats, database) = (Mutex::new(nats), Mutex::new(database));
        let http = reqwest::Client::builder().pool_max_idle_per_host(0).build()?;
        let rig = Self { nodes, links, nats, database, can_fill_disk, configs, trust, http, _folder: data };
        rig.wait_until_ready().await?;
        report_progress(&format!("{NODES} nodes are ready"));
        Ok(rig)
    }

    /// Where clients reach the nodes: the proxies in front of them.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.links.iter().map(|links| self.url(links.clients.port())).collect()
    }

    fn url(&self, port: u16) -> String {
        let scheme = if self.trust.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{port}")
    }

    /// What makes TLS connections to the nodes; `None` for plain HTTP.
    pub(crate) fn tls_client(&self) -> Result<Option<TlsClient>, Failure> {
        self.trust.as_ref().map(Trust::client).transpose()
    }

    pub(crate) fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// The configuration of the first node, for commands.
    pub(crate) fn config(&self) -> &Path {
        &self.configs[0]
    }

    pub(crate) fn set_link(&self, number: usize, link: Link, mode: Mode) {
        let links = &self.links[number];
        match link {
            Link::Clients => links.clients.set(mode),
            Link::Database => links.database.iter().for_each(|proxy| proxy.set(mode)),
            Link::Nats => links.nats.set(mode),
        }
    }

    /// Whether a disk of the database can be filled without filling any other.
    pub(crate) fn can_fill_disk(&self) -> bool {
        self.can_fill_disk
    }

    /// Whether the clock of one node can be moved.
    pub(crate) fn can_move_clock(&self) -> bool {
        self.nodes.iter().all(Node::can_move_clock)
    }

    /// Waits until each node says that it is ready.
    pub(crate) async fn wait_until_ready(&self) -> Result<(), Failure> {
        for node in 0..NODES {
            self.wait_until_node_is_ready(node).await?;
        }
        Ok(())
    }

    pub(crate) async fn wait_until_node_is_ready(&self, number: usize) -> Result<(), Failure> {
        let url = format!("{}/readyz", self.url(self.nodes[number].port()));
        let watch = Stopwatch::start();
        while watch.elapsed() < READY_WITHIN {
            let asked = self.http.get(&url).timeout(Duration::from_secs(2)).send().await;
            if asked.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            sleep(CHECK_INTERVAL).await;
        }
        Err(format!("node {number} is not ready after {READY_WITHIN:?}").into())
    }
}

impl Links {
    async fn start(nodes: Vec<u16>, database: &[u16], nats: u16) -> Result<Self, Failure> {
        let mut to_database = Vec::new();
        for port in database {
            to_database.push(Proxy::start(vec![*port]).await?);
        }
        Ok(Self {
            clients: Proxy::start(nodes).await?,
            database: to_database,
            nats: Proxy::start(vec![nats]).await?,
        })
    }
}

/// No limits of rates: all clients have the same address.
fn configuration(
    port: u16,
    links: &Links,
    secrets: &Path,
    trust: Option<&Trust>,
    with_shards: bool,
) -> String {
    let rates = ["credential", "tenant", "tenant_kib", "address", "failed_authentication"]
        .map(|name| format!("{name} = {{ per_second = 0, burst = 0 }}\n"))
        .concat();
    let ports: Vec<u16> = links.database.iter().map(Proxy::port).collect();
    format!(
        "listen = \"127.0.0.1:{port}\"\ndata = \"{}\"\n[store]\nkind = \"postgres\"\n{}\
         [doorbell]\nkind = \"nats\"\nurl = \"nats://127.0.0.1:{}\"\n[rates]\n{rates}[notifications]\nallowed_networks = [\"127.0.0.0/8\"]\n[log]\nlevel = \"info\"\n{}",
        secrets.display(),
        databases(&connection_string(&ports), with_shards),
        links.nats.port(),
        trust.map(Trust::section).unwrap_or_default(),
    )
}

/// How the store is reached.
fn databases(first: &str, with_shards: bool) -> String {
    if !with_shards {
        return format!("url = \"{first}\"\n");
    }
    // The last of two settings counts.
    let second = format!("{first} dbname={SECOND_SHARD}");
    let shard = |name, url| format!("[[shard]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    shard("one", first) + &shard("two", &second)
}

async fn wait_for_port(port: u16) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
        if watch.elapsed() >= READY_WITHIN {
            return Err(format!("no node listens on port {port} after {READY_WITHIN:?}").into());
        }
        sleep(CHECK_INTERVAL).await;
    }
    Ok(())
}
