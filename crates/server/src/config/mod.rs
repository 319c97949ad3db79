//! The configuration file. `default.toml` shows every setting; a test keeps it equal to the defaults here.

mod doorbell;
mod notifications;
mod rates;
mod shards;
mod tls;

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use axum::http::Uri;
use countersign_core::retention::Retention;
use countersign_wire::id::GatewayId;
use serde::Deserialize;

pub use doorbell::{DoorbellConfig, DoorbellKind};
pub use notifications::{Network, NotificationsConfig};
pub use rates::{Rate, RateLimits};
pub use shards::ShardConfig;
pub use tls::{AcmeConfig, CertificateFiles, ChallengeKind, ClientCertificates, ExternalAccount, TlsConfig};

/// The fully commented default.
pub const DEFAULT: &str = include_str!("default.toml");

/// Every setting of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub listen: SocketAddr,
    /// Where clients reach the gateway, for links to it; `None` where that is `listen`.
    pub public_url: Option<String>,
    /// `sender.gatewayId` of what the gateway sends.
    pub gateway_id: String,
    /// The folder of the secret and of SQLite's file.
    pub data: PathBuf,
    pub store: StoreConfig,
    /// In the order of their numbers; empty for a store of one database.
    pub shard: Vec<ShardConfig>,
    pub doorbell: DoorbellConfig,
    pub log: Log,
    pub rates: RateLimits,
    /// Whether plain HTTP may be spoken on a network.
    pub allow_plain: bool,
    /// Addresses of reverse proxies that are believed when they say for whom they speak.
    pub trusted_proxies: Vec<IpAddr>,
    /// Where they say it.
    pub proxy_header: ProxyHeader,
    /// Websites that may call the gateway from a browser, beside its own.
    pub allowed_origins: Vec<String>,
    /// Whether API keys are accepted with `Authorization: Basic`, too.
    pub allow_basic: bool,
    pub tls: TlsConfig,
    pub websocket: WebSocketConfig,
    pub retention: RetentionDays,
    pub metrics: MetricsConfig,
    pub health: HealthConfig,
    pub traces: TracesConfig,
    pub notifications: NotificationsConfig,
}

// CONTRIBUTING: add a store, step 4
/// The store and how to reach it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    pub kind: StoreKind,
    /// A libpq connection string; only with PostgreSQL.
    pub url: Option<String>,
    /// A file with the password, where `url` has none; only with PostgreSQL.
    pub password_file: Option<PathBuf>,
    /// PEM file of the authorities that sign the server's certificate; only with PostgreSQL.
    pub root_certificates: Option<PathBuf>,
    /// Whether PostgreSQL on another machine may be used without TLS.
    pub allow_plain: bool,
    /// Connections to PostgreSQL that this node uses at most.
    pub connections: u32,
}

/// Two that write, one for authentication and one for everything else.
const MIN_STORE_CONNECTIONS: u32 = 4;

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            kind: StoreKind::default(),
            url: None,
            password_file: None,
            root_certificates: None,
            allow_plain: false,
            // With 16 nodes 96, and PostgreSQL has 97 unless max_connections is set.
            connections: 6,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    #[default]
    Sqlite,
    Postgres,
}

/// The log, which goes to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    pub format: LogFormat,
    pub level: LogLevel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One object per line.
    #[default]
    Json,
    Text,
}

/// The least severe level that is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    /// One line for each request, too.
    #[default]
    Info,
    Debug,
}

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionDays {
    /// Everything of an exchange, after its end.
    pub exchange_days: NonZeroU32,
    /// What an agent's session said, after its last event.
    pub session_days: NonZeroU32,
    /// Its tombstone, after its end.
    pub tombstone_days: NonZeroU32,
    /// A row of the audit log.
    pub audit_days: NonZeroU32,
    /// The presence of an enforcer, after it was last seen.
    pub presence_days: NonZeroU32,
    /// A key, after it was revoked or has expired.
    pub ended_key_days: NonZeroU32,
    /// What an `Idempotency-Key` was used for.
    pub idempotency_hours: NonZeroU32,
}

/// Metrics for a scraper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// Where `/metrics` is served; `None` for nowhere.
    pub listen: Option<SocketAddr>,
}

/// Health checks for what starts and stops nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HealthConfig {
    /// Where `/healthz` and `/readyz` are served without TLS; `None` for only where everything is.
    pub listen: Option<SocketAddr>,
    /// How long `/readyz` says that this node will stop before it does.
    pub stop_notice_seconds: u32,
}

/// How a reverse proxy says for whom it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyHeader {
    #[default]
    XForwardedFor,
    /// As in RFC 7239, with `for=` for each proxy.
    Forwarded,
    /// Before the first byte of each connection, in version 2.
    ProxyProtocol,
}

/// Traces for an OpenTelemetry collector.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracesConfig {
    /// Where spans are sent, with OTLP over HTTP; `None` for nowhere.
    pub endpoint: Option<String>,
    /// One in so many requests is traced. Where a client says whether its trace is recorded, that counts.
    pub one_in: NonZeroU32,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self { endpoint: None, one_in: some(1) }
    }
}

/// How WebSockets are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSocketConfig {
    /// A WebSocket from which nothing is received for this long is closed.
    pub idle_seconds: NonZeroU32,
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        Self { idle_seconds: some(120) }
    }
}

fn some(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN)
}

impl Default for RetentionDays {
    fn default() -> Self {
        Self {
            exchange_days: some(30),
            session_days: some(7),
            tombstone_days: some(90),
            audit_days: some(400),
            presence_days: some(30),
            ended_key_days: some(90),
            idempotency_hours: some(24),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8787)),
            public_url: None,
            gateway_id: "countersign".to_owned(),
            data: PathBuf::from("/var/lib/countersign"),
            store: StoreConfig::default(),
            shard: Vec::new(),
            doorbell: DoorbellConfig::default(),
            log: Log::default(),
            rates: RateLimits::default(),
            allow_plain: false,
            trusted_proxies: Vec::new(),
            proxy_header: ProxyHeader::default(),
            allowed_origins: Vec::new(),
            allow_basic: false,
            tls: TlsConfig::default(),
            websocket: WebSocketConfig::default(),
            retention: RetentionDays::default(),
            metrics: MetricsConfig::default(),
            health: HealthConfig::default(),
            traces: TracesConfig::default(),
            notifications: NotificationsConfig::default(),
        }
    }
}

impl Config {
    /// Reads and checks a file.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let config = Self::read_unchecked(file)?;
        config.check()?;
        Ok(config)
    }

    /// Reads a file that something is changed of before it is checked.
    pub(crate) fn read_unchecked(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| {
            format!("{} can't be read; print a default one with: countersign-gateway config", file.display())
        })?;
        toml::from_str(&text).with_context(|| format!("{} is not a valid configuration", file.display()))
    }

    /// Rejects settings that can't work, and says what to do.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_plain = !self.tls.is_on() || self.tls.listen.is_some();
        if !self.listen.ip().is_loopback() && is_plain && !self.allow_plain {
            bail!(
                "listen = \"{}\" would speak plain HTTP on a network, where anybody can read credentials. Set \
                 tls.certificate and tls.key, or listen on 127.0.0.1 behind a reverse proxy with TLS. If the network \
                 itself is protected, set allow_plain = true",
                self.listen
            );
        }
        self.check_listeners()?;
        self.tls.check()?;
        self.notifications.check()?;
        if self.proxy_header == ProxyHeader::ProxyProtocol && self.trusted_proxies.is_empty() {
            bail!(
                "proxy_header = \"proxy-protocol\" needs trusted_proxies: no other connections are served then"
            );
        }
        self.traces.endpoint.as_deref().map_or(Ok(()), check_traces_endpoint)?;
        self.gateway_id()?;
        self.public_url.as_deref().map_or(Ok(()), check_public_url)?;
        self.allowed_origins.iter().try_for_each(|origin| check_origin(origin))?;
        match (self.store.kind, &self.store.url) {
            (StoreKind::Postgres, None) if self.shard.is_empty() => {
                bail!(
                    "store.kind is \"postgres\" and store.url is missing; say how to reach it: url = \"host=… user=… dbname=…\""
                )
            }
            (StoreKind::Sqlite, Some(_)) => {
                bail!(
                    "store.url is for PostgreSQL and store.kind is \"sqlite\"; set kind = \"postgres\" or remove the url"
                )
            }
            _ => {}
        }
        self.check_shards()?;
        if let Some(file) = &self.store.root_certificates
            && !file.is_file()
        {
            bail!("store.root_certificates: there is no file {}", file.display());
        }
        self.doorbell.check(self.store.kind == StoreKind::Sqlite)?;
        if self.store.connections < MIN_STORE_CONNECTIONS {
            bail!("store.connections must be at least {MIN_STORE_CONNECTIONS}");
        }
        let days = self.retention;
        if days.tombstone_days < days.exchange_days {
            bail!("retention.tombstone_days must not be less than retention.exchange_days");
        }
        Ok(())
    }

    fn check_shards(&self) -> anyhow::Result<()> {
        let has_shards = !self.shard.is_empty();
        if has_shards && self.store.kind != StoreKind::Postgres {
            bail!("[[shard]] is for PostgreSQL; set store.kind = \"postgres\" or remove the shards");
        }
        if has_shards && (self.store.url.is_some() || self.store.password_file.is_some()) {
            bail!(
                "with [[shard]] each shard has its own url: move store.url and store.password_file to the first [[shard]], \
                 which keeps all tenants that the database has"
            );
        }
        shards::check(&self.shard)
    }

    fn check_listeners(&self) -> anyhow::Result<()> {
        let taken = |other: Option<SocketAddr>, mine: SocketAddr| other == Some(mine) && mine.port() != 0;
        if taken(self.tls.listen, self.listen) {
            bail!(
                "tls.listen must not be the address of `listen`, where plain HTTP is spoken then: choose another port"
            );
        }
        if taken(self.metrics.listen, self.listen) {
            bail!("metrics.listen must not be the address of `listen`: metrics are not for clients");
        }
        if taken(self.health.listen, self.listen)
            || self.health.listen.is_some_and(|health| taken(self.metrics.listen, health))
        {
            bail!(
                "health.listen must not be the address of `listen` or of metrics.listen: choose another port"
            );
        }
        Ok(())
    }

    /// The beginning of links to this gateway, without a slash at the end.
    pub fn public_url(&self) -> String {
        match &self.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if self.tls.is_on() => format!("https://{}", self.tls_listen()),
            None => format!("http://{}", self.listen),
        }
    }

    /// Where TLS is spoken, if it is.
    pub fn tls_listen(&self) -> SocketAddr {
        self.tls.listen.unwrap_or(self.listen)
    }

    /// The gateway id, checked.
    pub fn gateway_id(&self) -> anyhow::Result<GatewayId> {
        GatewayId::new(self.gateway_id.as_str()).map_err(|rule| anyhow::anyhow!("gateway_id {rule}"))
    }

    /// The retention that core works with.
    pub fn retention(&self) -> Retention {
        let days = |count: NonZeroU32| Duration::from_hours(24) * count.get();
        Retention {
            after_end: days(self.retention.exchange_days),
            session: days(self.retention.session_days),
            tombstone: days(self.retention.tombstone_days),
            audit: days(self.retention.audit_days),
            presence: days(self.retention.presence_days),
            ended_keys: days(self.retention.ended_key_days),
            idempotency: Duration::from_hours(1) * self.retention.idempotency_hours.get(),
            ..Retention::default()
        }
    }
}

fn check_traces_endpoint(endpoint: &str) -> anyhow::Result<()> {
    if cfg!(not(feature = "otel")) {
        bail!(
            "traces.endpoint is set, and this program was built without traces; build it with --features otel, or remove the setting"
        );
    }
    let parsed: Option<Uri> = endpoint.parse().ok();
    let is_url = parsed.is_some_and(|url| matches!(url.scheme_str(), Some("http" | "https")));
    if !is_url || endpoint.contains(['?', '#', '@']) {
        bail!(
            "traces.endpoint = \"{endpoint}\" is not the address of a collector; write it like \
             \"http://127.0.0.1:4318/v1/traces\""
        );
    }
    Ok(())
}

/// As a browser writes it, because it is compared as a whole.
fn check_origin(origin: &str) -> anyhow::Result<()> {
    let parsed: Option<Uri> = origin.parse().ok();
    let is_origin = parsed.as_ref().and_then(Uri::authority).is_some_and(|authority| {
        let is_default = matches!(
            (parsed.as_ref().and_then(Uri::scheme_str), authority.port_u16()),
            (Some("https"), Some(443)) | (Some("http"), Some(80))
        );
        !is_default && matches!(origin.strip_suffix(authority.as_str()), Some("https://" | "http://"))
    });
    if !is_origin || origin.contains('@') || origin.chars().any(char::is_uppercase) {
        bail!(
            "allowed_origins: \"{origin}\" is not an origin as browsers write it; write it like \
             \"https://review.example.org\", in lower case, without a path and without the default port"
        );
    }
    Ok(())
}

/// A link carries an invitation, so it must not lead to plain HTTP on a network.
fn check_public_url(url: &str) -> anyhow::Result<()> {
    let parsed: Option<Uri> = url.parse().ok();
    let (scheme, host) = parsed.as_ref().map_or((None, None), |url| (url.scheme_str(), url.host()));
    let host = host.unwrap_or_default().trim_matches(['[', ']']);
    let this_machine = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|host| host.is_loopback());
    let encrypted = scheme == Some("https") || scheme == Some("http") && this_machine;
    if !encrypted || host.is_empty() || url.contains(['?', '#', '@']) {
        bail!(
            "public_url = \"{url}\" is not the address of a website with TLS; write it like \
             \"https://gateway.example.org\", without a query and a fragment"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
