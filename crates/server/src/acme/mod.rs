//! Certificates from an authority that speaks ACME (RFC 8555). One node orders, by a claim in the store; all serve.

mod challenges;
mod contents;
mod http;
mod order;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::Context as _;
use countersign_core::{
    Gateway,
    model::own_record::{OwnRecord, Sealed},
    random::RandomSource as _,
};
use countersign_wire::{hash::Sha256Hex, timestamp::Timestamp};
use tokio::{
    net::lookup_host,
    time::{sleep, timeout},
};

use self::{
    contents::{Contents, Issued},
    http::AuthorityClient,
};
use crate::{
    config::{AcmeConfig, ChallengeKind, TlsConfig},
    net::tls::{Certificate, Tls},
    random::SystemRandom,
    sealing::Sealer,
    shutdown::Drain,
};

pub(crate) use self::challenges::Challenges;

/// How often a node looks whether another has renewed the certificate.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// The same, while there is no certificate to serve.
const WAIT_INTERVAL: Duration = Duration::from_secs(2);

/// An order must end within this.
const ORDER_TIMEOUT: Duration = Duration::from_mins(3);

/// The claim of a node that orders, and how often it is prolonged. If the node dies, another takes over after it.
const CLAIM: Duration = Duration::from_secs(30);
const PROLONGED_EVERY: Duration = Duration::from_secs(8);

/// After a failed order; doubled for each one after it, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_hours(6);

/// Gets and renews the certificate, and serves it.
pub(crate) struct Acme {
    config: AcmeConfig,
    gateway: Gateway,
    sealer: Sealer,
    tls: Arc<Tls>,
    challenges: Challenges,
    /// The name of the record: of another authority or for other names there is another.
    record: String,
    /// So that the nodes of a cluster do not all want to renew at the same moment; from 0 to 1.
    jitter: f64,
}

impl Acme {
    /// Makes `tls` answer challenges, too.
    pub(crate) fn new(config: AcmeConfig, gateway: Gateway, sealer: Sealer, tls: Arc<Tls>) -> Self {
        let named = format!("{}\n{}", config.directory, config.names.join("\n"));
        let record = format!("acme-{}", Sha256Hex::digest(named.as_bytes()));
        let challenges = Challenges::new(gateway.clone(), sealer.clone(), record.clone());
        tls.answer_challenges(Arc::new(challenges.clone()));
        let mut byte = [0];
        SystemRandom.fill(&mut byte);
        Self { config, gateway, sealer, tls, challenges, record, jitter: f64::from(byte[0]) / 255.0 }
    }

    pub(crate) fn challenges(&self) -> Challenges {
        self.challenges.clone()
    }

    /// Runs until the gateway stops.
    pub(crate) async fn run(self, drain: Drain) {
        loop {
            let pause = match self.step().await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(
                        error = format!("{error:#}"),
                        "the certificate can't be looked after; tried again soon"
                    );
                    WAIT_INTERVAL
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = drain.begun() => return,
            }
        }
    }

    /// Serves what the store has, and orders if that is due. Returns when to look again.
    async fn step(&self) -> anyhow::Result<Duration> {
        let (record, now) = self.gateway.own_record(&self.record).await?;
        let (contents, is_newest) = self.open(&record);
        self.challenges.learn(contents.challenges.clone());
        let certificate = contents.issued.as_ref().and_then(|issued| self.serve(issued));
        let renew_in =
            certificate.as_ref().map_or(Duration::ZERO, |certificate| certificate.renew_in(self.jitter));
        if !renew_in.is_zero() && is_newest {
            return Ok(renew_in.min(LOOK_INTERVAL));
        }
        let pause = if certificate.is_some() { LOOK_INTERVAL } else { WAIT_INTERVAL };
        if !record.is_free(self.gateway.node(), now) {
            return Ok(pause);
        }
        let Some(record) = self.gateway.claim_own_record(&self.record, CLAIM).await? else {
            return Ok(pause);
        };
        // It may have been another node's turn since.
        let (contents, is_newest) = self.open(&record);
        let certificate = contents.issued.as_ref().and_then(|issued| self.serve(issued));
        if certificate.is_some_and(|certificate| !certificate.renew_in(self.jitter).is_zero()) {
            let action = if is_newest { "certificate.kept" } else { "certificate.sealed-again" };
            self.save(&contents, action, true).await?;
            return Ok(LOOK_INTERVAL);
        }
        self.order(contents, record.failures).await
    }

    /// Orders a certificate. If that fails, it is tried again after a pause that grows.
    async fn order(&self, mut contents: Contents, failures: u32) -> anyhow::Result<Duration> {
        tracing::info!(
            names = self.config.names.join(", "),
            directory = self.config.directory,
            "ordering a certificate"
        );
        let ordered = tokio::select! {
            ordered = timeout(ORDER_TIMEOUT, self.try_order(&mut contents)) => {
                ordered.unwrap_or_else(|_| Err(anyhow::anyhow!("the order took too long")))
            }
            error = self.lose_claim() => Err(error),
        };
        contents.challenges.clear();
        self.challenges.learn(Vec::new());
        match ordered {
            Ok(issued) => {
                contents.issued = Some(issued.clone());
                self.save(&contents, "certificate.issued", true).await?;
                self.serve(&issued);
                Ok(WAIT_INTERVAL)
            }
            Err(error) => {
                let pause = pause_after(failures);
                tracing::error!(
                    error = format!("{error:#}"),
                    days_left = self.tls.days_left(),
                    seconds = pause.as_secs(),
                    "no certificate was issued; `countersign-gateway check` says what may be wrong. Tried again after these seconds"
                );
                let sealed = self.seal(&contents)?;
                let failed = |record: &mut OwnRecord, now: Timestamp| {
                    record.sealed = Some(sealed.clone());
                    record.claim = None;
                    record.failures = failures.saturating_add(1);
                    record.not_before = Some(now.plus(pause));
                };
                self.gateway.write_own_record(&self.record, "certificate.failed", failed).await?;
                Ok(pause.min(LOOK_INTERVAL))
            }
        }
    }

    /// Prolongs the claim for as long as that works; returns why it does not.
    async fn lose_claim(&self) -> anyhow::Error {
        loop {
            sleep(PROLONGED_EVERY).await;
            match self.gateway.claim_own_record(&self.record, CLAIM).await {
                Ok(Some(_)) => {}
                Ok(None) => return anyhow::anyhow!("another node has taken over"),
                Err(error) => return error.into(),
            }
        }
    }

    async fn try_order(&self, contents: &mut Contents) -> anyhow::Result<Issued> {
        let (account, credentials) = order::account(&self.config, contents.account.clone()).await?;
        if credentials.is_some() {
            contents.account = credentials;
        }
        let (mut order, challenges) = match order::place(&account, &self.config).await {
            // An authority that has lost the account, or a store from another time. On no other error: authorities limit how
            // many accounts one may have.
            Err(error) if order::is_unknown_account(&error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the authority does not know the account; a new one is made"
                );
                let (account, credentials) = order::account(&self.config, None).await?;
                contents.account = credentials;
                order::place(&account, &self.config).await?
            }
            other => other?,
        };
        contents.challenges = challenges;
        // Before the authority looks: it may ask any node.
        anyhow::ensure!(
            self.save(contents, "certificate.ordered", false).await?,
            "another node has taken over"
        );
        self.challenges.learn(contents.challenges.clone());
        let issued = order::finish(&mut order, &self.config).await?;
        // The one that is served stays until this is known to be usable.
        let certificate = issued.certificate().context("what the authority issued can't be served")?;
        for name in &self.config.names {
            anyhow::ensure!(certificate.is_for(name), "what the authority issued is not for {name}");
        }
        anyhow::ensure!(!certificate.renew_in(0.0).is_zero(), "what the authority issued ends too soon");
        Ok(issued)
    }

    /// Serves the certificate if it is not yet; `None` if it can't be.
    fn serve(&self, issued: &Issued) -> Option<Certificate> {
        let certificate = issued.certificate().inspect_err(|error| {
            tracing::warn!(
                error = format!("{error:#}"),
                "the stored certificate can't be served; another is ordered"
            );
        });
        let certificate = certificate.ok()?;
        if self.tls.serve_issued(certificate.clone()) {
            tracing::info!(serves = self.tls.describe(), "a new certificate is served");
        }
        Some(certificate)
    }

    /// What is in the record, and whether it is encrypted with the newest key. What can't be opened is nothing.
    fn open(&self, record: &OwnRecord) -> (Contents, bool) {
        let Some(sealed) = &record.sealed else { return (Contents::default(), true) };
        let opened = self.sealer.open(&self.record, sealed);
        let contents =
            opened.and_then(|opened| Some((serde_json::from_slice(&opened.content).ok()?, opened.is_newest)));
        contents.unwrap_or_else(|| {
            tracing::warn!("the stored account and certificate are encrypted with a key that is not in key-secret; others are ordered");
            (Contents::default(), true)
        })
    }

    fn seal(&self, contents: &Contents) -> anyhow::Result<Sealed> {
        let content = serde_json::to_vec(contents)?;
        self.sealer.seal(&self.record, &content).context("the account can't be encrypted")
    }

    /// Writes the record that this node has claimed. Whether it still had.
    async fn save(&self, contents: &Contents, action: &'static str, is_done: bool) -> anyhow::Result<bool> {
        let sealed = self.seal(contents)?;
        let save = |record: &mut OwnRecord, _| {
            record.sealed = Some(sealed.clone());
            if is_done {
                *record = OwnRecord { sealed: record.sealed.take(), ..OwnRecord::default() };
            }
        };
        Ok(self.gateway.write_own_record(&self.record, action, save).await?)
    }
}

/// Half of it at least, so that the nodes of many gateways do not call an authority at the same moment.
fn pause_after(failures: u32) -> Duration {
    let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(10)).min(LONGEST_PAUSE);
    let mut byte = [0];
    SystemRandom.fill(&mut byte);
    pause / 2 + pause.mul_f64(f64::from(byte[0]) / 510.0)
}

/// Says what an authority would find, for people.
pub(crate) async fn probe(config: &TlsConfig, port: u16, say: impl Fn(&str)) -> anyhow::Result<()> {
    let Some(acme) = &config.acme else { return Ok(()) };
    let (client, directory) = (AuthorityClient::new(acme.ca.as_deref())?, &acme.directory);
    client.answers(directory).await.with_context(|| {
        format!("the authority {directory} can't be used; check tls.acme.directory, tls.acme.ca and this machine's network")
    })?;
    say(&format!("the authority {directory} answers"));
    let (needed, own) = match acme.challenge {
        ChallengeKind::TlsAlpn01 => (443, Some(port)),
        ChallengeKind::Http01 => (80, config.redirect_listen.map(|address| address.port())),
    };
    say(&match own {
        Some(own) if own != needed => {
            format!(
                "it connects to port {needed} of each name, and this gateway listens on {own}: forward it"
            )
        }
        _ => format!("it connects to port {needed} of each name, where this gateway listens"),
    });
    for name in &acme.names {
        let addresses = lookup_host((name.as_str(), 0)).await;
        let addresses = addresses.with_context(|| {
            format!("{name} has no address; add it to the DNS, the authority connects to it")
        })?;
        let addresses: BTreeSet<String> = addresses.map(|address| address.ip().to_string()).collect();
        let addresses: Vec<String> = addresses.into_iter().collect();
        say(&format!("{name} is {}", addresses.join(", ")));
    }
    Ok(())
}
