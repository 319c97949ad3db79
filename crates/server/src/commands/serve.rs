//! `serve`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::Context as _;
use clap::Args;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{
    acme::Acme,
    assemble::{self, Decorators},
    config::Config,
    net::{
        listener::{self, Service},
        tls::Tls,
    },
    reload::Reload,
    service_manager,
    shutdown::Drain,
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
        let config = self.read()?;
        let file = self.config.clone();
        let reading = Reading { read: Box::new(move || self.read()), file };
        run(config, Decorators::default(), Some(reading)).await
    }

    /// The configuration with what the command line says.
    fn read(&self) -> anyhow::Result<Config> {
        let mut config = Config::read_unchecked(&self.config)?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.data = self.data.clone().unwrap_or(config.data);
        config.check()?;
        Ok(config)
    }
}

/// How the configuration is read again.
struct Reading {
    read: Box<dyn Fn() -> anyhow::Result<Config> + Send>,
    file: PathBuf,
}

/// Runs a gateway until it is signalled, as `serve` does, with something around its ports.
pub async fn run_node(config: Config, decorators: Decorators) -> anyhow::Result<()> {
    config.check()?;
    run(config, decorators, None).await
}

async fn run(mut config: Config, decorators: Decorators, reading: Option<Reading>) -> anyhow::Result<()> {
    let flush = telemetry::start(config.log, &config.traces)?;
    let tls = config.tls.is_on().then(|| Tls::new(&config.tls)).transpose()?.map(Arc::new);
    let (gateway, secrets, doorbell) = assemble::node(&config, decorators).await?;
    let acme = config.tls.acme.clone().zip(tls.clone());
    let acme = acme.map(|(acme, tls)| Acme::new(acme, gateway.clone(), secrets.sealer(), tls));
    let listener = listen(config.listen).await?;
    let scrapers = listen_beside(config.metrics.listen, "metrics.listen").await?;
    let beside = match config.tls.listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let redirected = listen_beside(config.tls.redirect_listen, "tls.redirect_listen").await?;
    let probes = listen_beside(config.health.listen, "health.listen").await?;
    // Port 0 is a real one now, for links.
    config.listen = listener.local_addr()?;
    let app = assemble::app_of_node(&config, gateway, secrets, &doorbell)?;
    let serves = tls.as_ref().map(|tls| tls.describe());
    tracing::info!(address = %config.listen, serves, version = env!("CARGO_PKG_VERSION"), "listening");
    if let Some(scrapers) = scrapers {
        tracing::info!(address = %scrapers.local_addr()?, "listening for scrapers of metrics");
        let service = assemble::metrics_service(&app, tls.clone());
        tokio::spawn(listener::serve(scrapers, service, app.drain().clone()));
    }
    if let Some(redirected) = redirected {
        tracing::info!(address = %redirected.local_addr()?, "redirecting to TLS");
        let challenges = acme.as_ref().map(Acme::challenges);
        let service = assemble::redirecting_service(&app, challenges, config.public_url());
        tokio::spawn(listener::serve(redirected, service, app.drain().clone()));
    }
    if let Some(acme) = acme {
        tokio::spawn(acme.run(app.drain().clone()));
    }
    if let Some(probes) = probes {
        tracing::info!(address = %probes.local_addr()?, "listening for health checks");
        let service = assemble::health_service(Arc::clone(&app));
        tokio::spawn(listener::serve(probes, service, app.drain().clone()));
    }
    if let Some(Reading { read, file }) = reading {
        let (app, tls, log) = (Arc::clone(&app), tls.clone(), flush.level.clone());
        let reload = Reload { read, file, config, app, tls, log };
        tokio::spawn(reload.run(signal(SignalKind::hangup())?));
    }
    let service = match (tls, beside) {
        (Some(tls), None) => assemble::tls_service(Arc::clone(&app), tls),
        (Some(tls), Some(beside)) => {
            tracing::info!(address = %beside.local_addr()?, "listening with TLS");
            let service = assemble::tls_service(Arc::clone(&app), tls);
            tokio::spawn(listener::serve(beside, service, app.drain().clone()));
            assemble::service(Arc::clone(&app))
        }
        (None, _) => assemble::service(Arc::clone(&app)),
    };
    // Whoever waited for this finds it listening, and SIGHUP is heeded already.
    service_manager::ready();
    serve_until_signalled(listener, service, app.drain().clone()).await
}

async fn listen_beside(address: Option<SocketAddr>, setting: &str) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).with_context(|| format!("can't listen on {address}; change {setting}"))
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

/// Serves until SIGTERM or SIGINT, announces that it will stop, and then drains.
pub(super) async fn serve_until_signalled(
    listener: TcpListener,
    service: Service,
    drain: Drain,
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let begin = drain.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tokio::select! {
            () = begin.announce() => {}
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        service_manager::stopping();
        begin.begin();
    });
    listener::serve(listener, service, drain).await;
    Ok(())
}
