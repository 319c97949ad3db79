//! Puts the gateway together. The only file that names the stores.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;
use countersign_core::{
    Gateway, delivery::change_poller::ChangePoller, model::channels::HEARTBEAT, notify::LocalDoorbell,
    store::Store,
};
use countersign_store_postgres::PostgresStore;
use countersign_store_sqlite::SqliteStore;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    app::App,
    config::{Config, StoreKind},
    http::rates::Rates,
    secrets::{Secret, SystemRandom},
};

/// The database below the data folder.
const SQLITE_FILE: &str = "countersign.sqlite";

/// How often what is due is done.
const SWEEP: Duration = Duration::from_secs(5);

/// How often lost rings are looked for.
const PATROL: Duration = Duration::from_secs(5);

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

/// Tries what `check` can try without changing anything.
pub async fn probe(config: &Config) -> anyhow::Result<()> {
    match config.store.kind {
        StoreKind::Sqlite => {
            // The folder itself, or the nearest that is there and in which it would be made.
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

/// A gateway on the configured store, without anything around it.
pub async fn gateway(config: &Config) -> anyhow::Result<Gateway> {
    let store = store(config).await?;
    let doorbell = Arc::new(LocalDoorbell::default());
    Ok(Gateway::new(store, doorbell, Arc::new(SystemRandom), config.retention()))
}

/// The application, and what goes on beside requests.
pub fn app(config: &Config, gateway: Gateway) -> anyhow::Result<Arc<App>> {
    make_folder(&config.data)?;
    let secret = Secret::load_or_create(&config.data.join("secret"))?;
    tokio::spawn(sweep(gateway.clone()));
    // Others may write to the same store, another node or `keys revoke`, and their rings do not reach us.
    tokio::spawn(patrol(gateway.clone()));
    let app = App::new(gateway, config.gateway_id()?, secret, Rates::new(config.rates));
    tokio::spawn(heartbeat(Arc::clone(&app)));
    let forgetful = Arc::clone(&app);
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_mins(1));
        loop {
            ticks.tick().await;
            forgetful.rates.forget();
        }
    });
    Ok(app)
}

/// Says that this node is alive, for as long as it is.
async fn heartbeat(app: Arc<App>) {
    let mut ticks = interval(HEARTBEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match app.gateway.renew_lease(&app.node).await {
            Ok(()) => app.lease.renewed(),
            Err(error) => {
                tracing::warn!(%error, "the lease of this node was not renewed; it will be tried again");
            }
        }
    }
}

async fn sweep(gateway: Gateway) {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = gateway.sweep().await {
            tracing::warn!(%error, "what is due was not done; it will be tried again");
        }
    }
}

async fn patrol(gateway: Gateway) {
    let mut ticks = interval(PATROL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut patrol = ChangePoller::default();
    loop {
        ticks.tick().await;
        if let Err(error) = gateway.poll_changes(&mut patrol).await {
            tracing::warn!(%error, "lost rings were not looked for; it will be tried again");
        }
    }
}
