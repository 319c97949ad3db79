//! Settings that change while the gateway runs: on SIGHUP, and when the configuration or a certificate changes.

use std::{
    fs, iter,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use countersign_wire::hash::Sha256Hex;
use tokio::{
    signal::unix::Signal,
    time::{MissedTickBehavior, interval},
};

use crate::{
    config::Config, live::LiveSettings, net::tls::Tls, service_manager, state::SharedState,
    telemetry::LogHandle,
};

/// How often the files are looked at. They are small, and a few are read.
const INTERVAL: Duration = Duration::from_secs(5);

/// What can be reloaded, and from where.
pub(crate) struct Reload {
    /// Reads the configuration again, with what the command line says.
    pub(crate) read: Box<dyn Fn() -> anyhow::Result<Config> + Send>,
    pub(crate) file: PathBuf,
    /// What is in force.
    pub(crate) config: Config,
    pub(crate) app: SharedState,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) log: LogHandle,
}

impl Reload {
    /// Reloads whenever there is a reason, for as long as the process runs.
    pub(crate) async fn run(mut self, mut hangup: Signal) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut seen = self.fingerprint();
        loop {
            let asked = tokio::select! {
                _ = hangup.recv() => true,
                _ = ticks.tick() => false,
            };
            // Before it is read: what changes meanwhile is seen the next time.
            let now = self.fingerprint();
            if !asked && now == seen {
                continue;
            }
            seen = now;
            service_manager::reloading();
            let reloaded = self.reload();
            service_manager::reloaded(reloaded.is_ok());
            if let Err(error) = reloaded {
                tracing::error!(
                    error = format!("{error:#}"),
                    "the new configuration can't be used; what was in force stays so"
                );
            }
        }
    }

    /// Everything new is read before anything is changed.
    fn reload(&mut self) -> anyhow::Result<()> {
        let mut new = (self.read)()?;
        // Port 0 became a real one at the start.
        new.listen = self.config.listen;
        if let Some(tls) = &self.tls {
            tls.reload(&new.tls)?;
        }
        let live = &self.app.live;
        live.replace(LiveSettings::new(&new, Some((&self.config, &live.current()))));
        self.app.stored.set_max(new.rates.max_stored_bytes());
        self.log.set_level(new.log.level);
        let serves = self.tls.as_ref().map(|tls| tls.describe());
        tracing::info!(serves, "the configuration was read again");
        for setting in needs_restart(&self.config, &new) {
            tracing::warn!(setting, "a changed setting needs a restart");
        }
        self.config = new;
        Ok(())
    }

    /// Of the configuration and all files that it names and that can be reloaded.
    fn fingerprint(&self) -> Vec<Option<Sha256Hex>> {
        let of = |file: &Path| fs::read(file).ok().map(|text| Sha256Hex::digest(&text));
        let named = self.config.tls.files().flat_map(|files| [of(&files.certificate), of(&files.key)]);
        let clients = self.config.tls.clients.iter().map(|clients| of(&clients.ca));
        iter::once(of(&self.file)).chain(named).chain(clients).collect()
    }
}

/// Settings that differ and take effect only after a restart.
fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    let differences = [
        ("public_url", old.public_url != new.public_url),
        ("gateway_id", old.gateway_id != new.gateway_id),
        ("data", old.data != new.data),
        ("tls (on or off)", old.tls.is_on() != new.tls.is_on()),
        ("tls.listen", old.tls.listen != new.tls.listen),
        ("tls.redirect_listen", old.tls.redirect_listen != new.tls.redirect_listen),
        ("[tls.acme]", old.tls.acme != new.tls.acme),
        ("[store]", old.store != new.store),
        ("[[shard]]", old.shard != new.shard),
        ("[doorbell]", old.doorbell != new.doorbell),
        ("log.format", old.log.format != new.log.format),
        ("[websocket]", old.websocket != new.websocket),
        ("[retention]", old.retention != new.retention),
        ("[metrics]", old.metrics != new.metrics),
        ("[health]", old.health != new.health),
        ("[traces]", old.traces != new.traces),
    ];
    differences.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}
