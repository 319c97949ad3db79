//! Puts the gateway together. The only file that uses the store crates.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use countersign_core::{Gateway, notify::LocalDoorbell, store::Store};
use countersign_store_postgres::PostgresStore;
use countersign_store_sqlite::SqliteStore;

use crate::{
    background,
    config::{Config, StoreKind},
    limits::{RateLimiters, max_connections},
    net::listener::Service,
    random::SystemRandom,
    rest::response::busy_answer,
    router::router,
    secrets::Secrets,
    state::{AppState, Settings},
};

/// The database below the data folder.
const SQLITE_FILE: &str = "countersign.sqlite";

/// Opens the store that the configuration names.
pub async fn store(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    match config.store.kind {
        StoreKind::Sqlite => {
            make_folder(&config.data)?;
            let file = config.data.join(SQLITE_FILE);
            let store = SqliteStore::open(&file, countersign_store_sqlite::Options::default())
                .with_context(|| format!("the store {} can't be opened", file.display()))?;
            Ok(Arc::new(store))
        }
        StoreKind::Postgres => {
            let store =
                PostgresStore::open(postgres_options(config)).await.context("the store can't be opened")?;
            Ok(Arc::new(store))
        }
    }
}

/// Checks the store without changing anything.
pub async fn probe(config: &Config) -> anyhow::Result<()> {
    match config.store.kind {
        StoreKind::Sqlite => {
            // The folder itself, or the nearest existing one in which it would be made.
            let nearest = config.data.ancestors().find(|folder| folder.is_dir());
            can_write(nearest.unwrap_or(Path::new("/")))
        }
        StoreKind::Postgres => {
            PostgresStore::probe(&postgres_options(config)).await.context("PostgreSQL can't be used as it is")
        }
    }
}

fn postgres_options(config: &Config) -> countersign_store_postgres::Options {
    let mut options = countersign_store_postgres::Options::new(config.store.url.clone().unwrap_or_default());
    options.root_certificates.clone_from(&config.store.root_certificates);
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
    let store = store(config).await?;
    let doorbell = Arc::new(LocalDoorbell::default());
    Ok(Gateway::new(store, doorbell, Arc::new(SystemRandom), config.retention()))
}

/// The secrets below the data folder, which are made at the first start.
pub fn secrets(config: &Config) -> anyhow::Result<Secrets> {
    make_folder(&config.data)?;
    Secrets::load_or_create(&config.data)
}

/// What handlers share, with its background tasks running.
pub fn app(config: &Config, gateway: Gateway, secrets: Secrets) -> anyhow::Result<Arc<AppState>> {
    let settings = Settings {
        rates: RateLimiters::new(config.rates),
        websocket_idle: Duration::from_secs(config.websocket.idle_seconds.get().into()),
        trusted_proxies: config.trusted_proxies.clone(),
    };
    let app = AppState::new(gateway, config.gateway_id()?, secrets, settings);
    background::start(&app);
    Ok(app)
}

/// The service, with as many connections as this process can have.
pub fn service(app: Arc<AppState>) -> Service {
    Service { router: router(app), max_connections: max_connections(), busy_answer: busy_answer() }
}
