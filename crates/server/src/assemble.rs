//! Puts the gateway together. The only file that uses the crates of stores and doorbells.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use countersign_core::{
    Gateway,
    metrics::{Gauge, Metrics, RingMetrics, WriterMetrics},
    model::secret_checks::SecretChecks,
    notify::{Doorbell, LocalDoorbell},
    random::RandomSource,
    store::{Relocation, Store, StoreError, error_chain},
    use_cases::secret_checks,
};
use countersign_doorbell_nats::{
    NatsDoorbell,
    options::{ClientCertificate, Options as NatsOptions},
};
use countersign_store_postgres::{OpenError, PostgresStore};
pub use countersign_store_sharded::{MoveError, Moved, Progress};
use countersign_store_sharded::{Options as ShardOptions, Part, ShardedStore, check_members};
use countersign_store_sqlite::SqliteStore;
use tokio::sync::Notify;

use crate::{
    acme::Challenges,
    background,
    config::{Config, DoorbellKind, ShardConfig, StoreKind},
    health,
    limits::max_connections,
    live::LiveSettings,
    metrics::Rejection,
    net::{
        listener::{Front, Service},
        tls::Tls,
    },
    random::SystemRandom,
    rest::response::busy_answer,
    router::router,
    scrape,
    secrets::Secrets,
    state::{AppState, Settings},
};

/// Connections at once that are told the way to TLS.
const MAX_REDIRECTED: usize = 256;

/// The database below the data folder.
const SQLITE_FILE: &str = "countersign.sqlite";

// CONTRIBUTING: add a store, step 4
/// Opens the store that the configuration names.
pub async fn store(config: &Config, metrics: &WriterMetrics) -> anyhow::Result<Arc<dyn Store>> {
    match config.store.kind {
        StoreKind::Sqlite => {
            make_folder(&config.data)?;
            let file = config.data.join(SQLITE_FILE);
            let options =
                countersign_store_sqlite::Options { metrics: metrics.clone(), ..Default::default() };
            let store = SqliteStore::open(&file, options)
                .with_context(|| format!("the store {} can't be opened", file.display()))?;
            Ok(Arc::new(store))
        }
        StoreKind::Postgres if config.shard.is_empty() => {
            let options =
                countersign_store_postgres::Options { metrics: metrics.clone(), ..postgres_options(config) };
            let store = PostgresStore::open(options).await.context("the store can't be opened")?;
            if let Some(shard) = store.membership().await.context("the store can't be read")? {
                anyhow::bail!(
                    "the database is shard {} of several; list all of them as [[shard]], in the order that they had",
                    shard.name
                );
            }
            Ok(Arc::new(store))
        }
        StoreKind::Postgres => Ok(sharded(config, metrics).await?),
    }
}

/// Opens the databases over which the store is spread. All but the first may be away, and are opened when they answer.
pub async fn sharded(config: &Config, metrics: &WriterMetrics) -> anyhow::Result<Arc<ShardedStore>> {
    let mut parts = Vec::new();
    for (shard, options) in config.shard.iter().zip(shard_options(config)) {
        let options = countersign_store_postgres::Options { metrics: metrics.clone(), ..options };
        let part = match PostgresStore::open(options.clone()).await {
            Ok(store) => Part::Open(Arc::new(store)),
            Err(error) if error.is_away() && !parts.is_empty() => {
                let error = error_chain(&error);
                tracing::warn!(
                    error,
                    shard = shard.name,
                    "a shard does not answer; its tenants wait until it does"
                );
                Part::Away(Box::new(move || Box::pin(open_shard(options.clone()))))
            }
            Err(error) => return Err(cannot_open(error, &shard.name)),
        };
        parts.push((shard.name.clone(), part));
    }
    let random: &dyn RandomSource = &SystemRandom;
    let new_store_id = random.secret();
    Ok(ShardedStore::open(parts, &new_store_id, ShardOptions::default()).await?)
}

async fn open_shard(options: countersign_store_postgres::Options) -> Result<Arc<dyn Relocation>, StoreError> {
    Ok(Arc::new(PostgresStore::open(options).await.map_err(StoreError::unavailable)?))
}

fn cannot_open(error: OpenError, shard: &str) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("shard {shard} can't be opened"))
}

/// How to reach each shard.
fn shard_options(config: &Config) -> Vec<countersign_store_postgres::Options> {
    let options = |shard: &ShardConfig| {
        let mut options = postgres_options(config);
        options.url.clone_from(&shard.url);
        options.password_file.clone_from(&shard.password_file);
        options
    };
    config.shard.iter().map(options).collect()
}

/// Checks the store, that the secrets are those that it was used with, and the doorbell, without changing anything.
pub async fn probe(config: &Config) -> anyhow::Result<()> {
    let (tenant, key) = secret_checks::location()?;
    let record = match config.store.kind {
        StoreKind::Sqlite => {
            // The folder itself, or the nearest existing one in which it would be made.
            let nearest = config.data.ancestors().find(|folder| folder.is_dir());
            can_write(nearest.unwrap_or(Path::new("/")))?;
            let file = config.data.join(SQLITE_FILE);
            let options = countersign_store_sqlite::Options::default();
            SqliteStore::peek(&file, &options, &tenant, &key)
                .with_context(|| format!("the store {} can't be read", file.display()))?
        }
        StoreKind::Postgres => {
            let unfit = "PostgreSQL can't be used as it is";
            let mut members = Vec::new();
            for (shard, options) in config.shard.iter().zip(shard_options(config)) {
                let unfit = || format!("shard {}: {unfit}", shard.name);
                PostgresStore::probe(&options).await.with_context(unfit)?;
                let member = PostgresStore::peek_membership(&options).await.with_context(unfit)?;
                members.push((shard.name.clone(), member));
            }
            if !members.is_empty() {
                check_members(&members)?;
            }
            let options =
                shard_options(config).into_iter().next().unwrap_or_else(|| postgres_options(config));
            PostgresStore::probe(&options).await.context(unfit)?;
            PostgresStore::peek(&options, &tenant, &key).await.context(unfit)?
        }
    };
    // Without a record no gateway was started on it yet.
    if let Some(record) = record {
        Secrets::load_for(&config.data, &SecretChecks::from_record(&record)?)?;
    }
    if config.doorbell.kind == DoorbellKind::Nats {
        let unfit = "NATS can't be used as it is";
        NatsDoorbell::probe(nats_options(config), &SystemRandom).await.context(unfit)?;
    }
    Ok(())
}

/// The doorbell that the configuration names.
pub struct ConfiguredDoorbell {
    port: Box<dyn Doorbell>,
    /// Notified when this node may have missed something that others announced.
    comparison_wanted: Arc<Notify>,
}

impl std::fmt::Debug for ConfiguredDoorbell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfiguredDoorbell").finish_non_exhaustive()
    }
}

fn doorbell(config: &Config, secrets: &Secrets, metrics: &RingMetrics) -> anyhow::Result<ConfiguredDoorbell> {
    match config.doorbell.kind {
        DoorbellKind::Local => Ok(ConfiguredDoorbell {
            port: Box::new(LocalDoorbell::default()),
            comparison_wanted: Arc::default(),
        }),
        DoorbellKind::Nats => {
            let options = NatsOptions { metrics: metrics.clone(), ..nats_options(config) };
            let key = secrets.shared.doorbell_key();
            let nats = NatsDoorbell::open(options, key, Arc::new(SystemRandom)).context("[doorbell]")?;
            Ok(ConfiguredDoorbell {
                comparison_wanted: Arc::clone(nats.comparison_wanted()),
                port: Box::new(nats),
            })
        }
    }
}

fn nats_options(config: &Config) -> NatsOptions {
    let doorbell = &config.doorbell;
    let mut options = NatsOptions::new(doorbell.servers());
    options.cell.clone_from(&doorbell.cell);
    options.credentials.clone_from(&doorbell.credentials);
    options.root_certificates.clone_from(&doorbell.root_certificates);
    options.client_certificate = doorbell
        .client_certificate
        .clone()
        .zip(doorbell.client_key.clone())
        .map(|(certificate, key)| ClientCertificate { certificate, key });
    options.allow_plain = doorbell.allow_plain;
    options
}

/// Puts something around a port.
pub type Decorator<Port> = Box<dyn FnOnce(Port) -> Port + Send>;

/// What is put around the ports of a node, for tests and measurements. The product has nothing there.
pub struct Decorators {
    pub store: Decorator<Arc<dyn Store>>,
    pub doorbell: Decorator<Box<dyn Doorbell>>,
}

impl Default for Decorators {
    fn default() -> Self {
        Self { store: Box::new(|store| store), doorbell: Box::new(|doorbell| doorbell) }
    }
}

impl std::fmt::Debug for Decorators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decorators").finish_non_exhaustive()
    }
}

/// A node of a cluster: its gateway, its secrets, and the doorbell that connects it with the others.
pub async fn node(
    config: &Config,
    decorators: Decorators,
) -> anyhow::Result<(Gateway, Secrets, ConfiguredDoorbell)> {
    let metrics = Metrics::default();
    let store = (decorators.store)(store(config, &metrics.writer).await?);
    // The secrets come first, since the doorbell's key is made from them.
    let alone = Gateway::new(
        Arc::clone(&store),
        &LocalDoorbell::default(),
        Arc::new(SystemRandom),
        config.retention(),
    );
    let secrets = secrets(config, &alone).await?;
    let mut doorbell = doorbell(config, &secrets, &metrics.rings)?;
    doorbell.port = (decorators.doorbell)(doorbell.port);
    let random = Arc::new(SystemRandom);
    let gateway = Gateway::with_metrics(store, &*doorbell.port, random, config.retention(), metrics);
    Ok((gateway, secrets, doorbell))
}

fn postgres_options(config: &Config) -> countersign_store_postgres::Options {
    let mut options = countersign_store_postgres::Options::new(config.store.url.clone().unwrap_or_default());
    options.password_file.clone_from(&config.store.password_file);
    options.root_certificates.clone_from(&config.store.root_certificates);
    options.allow_plain = config.store.allow_plain;
    options.connections = usize::try_from(config.store.connections).unwrap_or(usize::MAX);
    options
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| {
        format!(
            "the data folder {} can't be made; set `data` to a folder that you may write to",
            folder.display()
        )
    })?;
    can_write(folder)
}

/// Where both secrets are given, such as in a container, the folder may be read-only.
fn make_folder_of_secrets(folder: &Path) -> anyhow::Result<()> {
    if Secrets::are_in(folder) { Ok(()) } else { make_folder(folder) }
}

fn can_write(folder: &Path) -> anyhow::Result<()> {
    let probe = tempfile::Builder::new().prefix(".countersign").tempfile_in(folder);
    probe.map(drop).with_context(|| {
        format!(
            "the data folder {} can't be written to; set `data` to another or change its owner",
            folder.display()
        )
    })
}

/// A gateway on the configured store, without a server around it.
pub async fn gateway(config: &Config) -> anyhow::Result<Gateway> {
    Ok(gateway_on(config, store(config, &WriterMetrics::default()).await?))
}

/// A gateway on a store that is open already.
pub fn gateway_on(config: &Config, store: Arc<dyn Store>) -> Gateway {
    Gateway::new(store, &LocalDoorbell::default(), Arc::new(SystemRandom), config.retention())
}

/// The secrets below the data folder. The first start makes them; later ones, of any node, must have the same.
pub async fn secrets(config: &Config, gateway: &Gateway) -> anyhow::Result<Secrets> {
    make_folder_of_secrets(&config.data)?;
    let unknown = "the secrets can't be compared with those that the store was used with";
    if let Some(stored) = gateway.secret_checks().await.context(unknown)? {
        return Secrets::load_for(&config.data, &stored);
    }
    // The files first: the store must not know of secrets that a crash could lose.
    let secrets = Secrets::load_or_create(&config.data)?;
    let stored = gateway.record_secret_checks(&secrets.checks()).await.context(unknown)?;
    secrets.compare(&config.data, &stored)?;
    Ok(secrets)
}

/// Makes the secrets below the data folder those of the store. Returns the names of the files that are new to it.
pub async fn accept_secrets(config: &Config, gateway: &Gateway) -> anyhow::Result<Vec<&'static str>> {
    make_folder_of_secrets(&config.data)?;
    let secrets = Secrets::load_or_create(&config.data)?;
    let stored = gateway.record_secret_checks(&secrets.checks()).await?;
    let replaced = secrets.other_than(&stored);
    if !replaced.is_empty() {
        gateway.accept_secret_checks(&secrets.checks()).await?;
    }
    Ok(replaced)
}

/// What the handlers of a node that is alone share, with its background tasks running.
pub fn app(config: &Config, gateway: Gateway, secrets: Secrets) -> anyhow::Result<Arc<AppState>> {
    start(config, gateway, secrets, Arc::default())
}

/// What the handlers of a node of a cluster share, with its background tasks running.
pub fn app_of_node(
    config: &Config,
    gateway: Gateway,
    secrets: Secrets,
    doorbell: &ConfiguredDoorbell,
) -> anyhow::Result<Arc<AppState>> {
    start(config, gateway, secrets, Arc::clone(&doorbell.comparison_wanted))
}

fn start(
    config: &Config,
    gateway: Gateway,
    secrets: Secrets,
    comparison_wanted: Arc<Notify>,
) -> anyhow::Result<Arc<AppState>> {
    let settings = Settings {
        live: LiveSettings::new(config, None),
        max_stored_bytes: config.rates.max_stored_bytes(),
        websocket_idle: Duration::from_secs(config.websocket.idle_seconds.get().into()),
        public_url: config.public_url(),
        notifications: config.notifications.clone(),
        stop_notice: Duration::from_secs(config.health.stop_notice_seconds.into()),
    };
    let app = AppState::new(gateway, config.gateway_id()?, secrets, settings)?;
    background::start(&app, comparison_wanted);
    Ok(app)
}

/// The plain service, with as many connections as this process can have.
pub fn service(app: Arc<AppState>) -> Service {
    let rejected = app.metrics.rejected.at(Rejection::Connections).clone();
    let open = app.metrics.connections.clone();
    let front = Front { tls: None, live: app.live.clone() };
    Service {
        router: router(app),
        max_connections: max_connections(),
        front: Arc::new(front),
        busy_answer: busy_answer(),
        at_limit: "raise the limit of open files (ulimit -n)",
        rejected,
        open,
    }
}

/// The service under TLS.
pub fn tls_service(app: Arc<AppState>, tls: Arc<Tls>) -> Service {
    let live = app.live.clone();
    Service { front: Arc::new(Front { tls: Some(tls), live }), ..service(app) }
}

/// The service of the listener for metrics.
pub fn metrics_service(app: &AppState, tls: Option<Arc<Tls>>) -> Service {
    scrape::service(app, tls)
}

/// The service of the listener that redirects to TLS, and answers challenges of an authority.
pub(crate) fn redirecting_service(
    app: &AppState,
    challenges: Option<Challenges>,
    public_url: String,
) -> Service {
    Service {
        router: Challenges::plain_router(challenges, public_url),
        front: Arc::default(),
        max_connections: MAX_REDIRECTED,
        busy_answer: busy_answer(),
        at_limit: "too many are connected to the listener that redirects to TLS",
        rejected: app.metrics.rejected.at(Rejection::Redirected).clone(),
        open: Gauge::default(),
    }
}

/// The service of the listener for health checks.
pub fn health_service(app: Arc<AppState>) -> Service {
    health::service(app)
}

#[cfg(test)]
mod tests {
    use countersign_testkit::recording_store::RecordingStore;

    use super::*;

    #[tokio::test]
    async fn a_node_that_can_not_compare_its_secrets_does_not_start() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config { data: folder.path().to_owned(), ..Config::default() };
        let store = RecordingStore::new(store(&config, &WriterMetrics::default()).await.unwrap());
        let doorbell = LocalDoorbell::default();
        let gateway = Gateway::new(store.clone(), &doorbell, Arc::new(SystemRandom), config.retention());
        store.set_loads_fail(true);
        assert!(secrets(&config, &gateway).await.unwrap_err().to_string().contains("can't be compared"));
        assert!(!folder.path().join("secret").exists(), "nothing is made before the store has answered");
        store.set_loads_fail(false);
        secrets(&config, &gateway).await.unwrap();
        store.set_loads_fail(true);
        secrets(&config, &gateway).await.unwrap_err();
    }

    #[tokio::test]
    async fn of_two_nodes_that_start_at_once_with_their_own_secrets_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let config = |name: &str| Config { data: folder.path().join(name), ..Config::default() };
        let gateway = gateway(&config("store")).await.unwrap();
        let (one, other) = (config("one"), config("other"));
        let (one, other) = tokio::join!(secrets(&one, &gateway), secrets(&other, &gateway));
        assert!(one.is_ok() != other.is_ok());
        let refused = one.err().or(other.err()).unwrap().to_string();
        assert!(refused.contains("secret accept"), "{refused}");
    }
}
