//! `serve`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use clap::Args;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{
    assemble::{self, Decorators},
    config::Config,
    net::listener,
    state::AppState,
    telemetry,
};

/// Run the gateway as a service.
#[derive(Debug, Args)]
pub struct Serve {
    /// The configuration. Print a default one with `countersign-gateway config`.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Where to listen, instead of where the configuration says.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// The data folder, instead of the one in the configuration.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl Serve {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let mut config = Config::read(&self.config)?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.data = self.data.unwrap_or(config.data);
        run_node(config, Decorators::default()).await
    }
}

/// Runs a gateway until it is signalled, as `serve` does, with something around its ports.
pub async fn run_node(mut config: Config, decorators: Decorators) -> anyhow::Result<()> {
    config.check()?;
    let _flush = telemetry::start(config.log, &config.traces)?;
    let (gateway, secrets, doorbell) = assemble::node(&config, decorators).await?;
    let listener = listen(config.listen).await?;
    let scrapers = listen_for_scrapers(config.metrics.listen).await?;
    // Port 0 is a real one now, for links.
    config.listen = listener.local_addr()?;
    let app = assemble::app_of_node(&config, gateway, secrets, &doorbell)?;
    tracing::info!(address = %listener.local_addr()?, version = env!("CARGO_PKG_VERSION"), "listening");
    if let Some(scrapers) = scrapers {
        tracing::info!(address = %scrapers.local_addr()?, "listening for scrapers of metrics");
        let service = assemble::metrics_service(&app);
        tokio::spawn(listener::serve(scrapers, service, app.drain().clone()));
    }
    serve_until_signalled(listener, app).await
}

async fn listen_for_scrapers(address: Option<SocketAddr>) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).with_context(|| format!("can't listen on {address}; change metrics.listen"))
}

pub(super) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let bound = || {
        let socket = if address.is_ipv4() {
            tokio::net::TcpSocket::new_v4()
        } else {
            tokio::net::TcpSocket::new_v6()
        }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        // When a gateway restarts, all its clients reconnect at once.
        socket.listen(4_096)
    };
    bound().with_context(|| {
        format!("can't listen on {address}; is another gateway running there? Choose another with --listen 127.0.0.1:0")
    })
}

/// Serves until SIGTERM or SIGINT, and then drains.
pub(super) async fn serve_until_signalled(listener: TcpListener, app: Arc<AppState>) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let drain = app.drain().clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        drain.begin();
    });
    let drain = app.drain().clone();
    listener::serve(listener, assemble::service(app), drain).await;
    Ok(())
}
