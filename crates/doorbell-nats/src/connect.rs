//! Connects to NATS, and says when it is away.

use std::{
    error::Error as StdError,
    net::IpAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_nats::{Auth, AuthError, Client, ConnectError, ConnectOptions, Event, ServerAddr};
use parking_lot::Mutex;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};

use crate::{
    comparison::Comparison,
    counters::{Counters, Dropped},
    error::OpenError,
    options::Options,
};

/// An attempt to connect that takes longer is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest pause between two attempts.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// A server that does not answer two of these is away.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Messages that the connection has taken and not written yet. Few: what they say is old when NATS comes back.
const MAX_UNWRITTEN: usize = 16;

/// Messages of one subject that arrived and wait for this process.
const MAX_UNREAD: usize = 512;

/// The servers and how to reach them, checked.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    options: Options,
    servers: Vec<ServerAddr>,
}

type Cause = Box<dyn StdError + Send + Sync>;

impl Connector {
    pub(crate) fn new(options: Options) -> Result<Self, OpenError> {
        let servers = servers(&options)?;
        if options.client_certificate.is_some() && options.root_certificates.is_none() {
            return Err(OpenError::ClientCertificateWithoutTls);
        }
        let unusable = |file: &Path| {
            let file = file.to_owned();
            move |source: Cause| OpenError::Certificate { file, source }
        };
        if let Some(file) = &options.root_certificates {
            check_certificates(file).map_err(unusable(file))?;
        }
        if let Some(client) = &options.client_certificate {
            check_certificates(&client.certificate).map_err(unusable(&client.certificate))?;
            check_key(&client.key).map_err(unusable(&client.key))?;
        }
        if let Some(file) = &options.credentials {
            read_credentials(file).map_err(|source| OpenError::Credentials { file: file.clone(), source })?;
        }
        Ok(Self { options, servers })
    }

    /// What every connection has in common.
    fn connect_options(&self) -> ConnectOptions {
        let mut connect = match self.options.credentials.clone() {
            Some(file) => ConnectOptions::with_auth_callback(move |_| {
                let read = read_credentials(&file).map_err(AuthError::new);
                async move { read }
            }),
            None => ConnectOptions::new(),
        };
        if let Some(file) = &self.options.root_certificates {
            connect = connect.require_tls(true).add_root_certificates(file.clone());
        }
        if let Some(client) = &self.options.client_certificate {
            connect = connect.add_client_certificate(client.certificate.clone(), client.key.clone());
        }
        connect
            .name("countersign")
            // A server could name another that is not this machine and has no TLS.
            .ignore_discovered_servers()
            .connection_timeout(CONNECT_TIMEOUT)
            .ping_interval(PING_INTERVAL)
    }

    /// A connection that is made when NATS is there, and made again whenever it comes back.
    pub(crate) async fn stay_connected(&self, link: Arc<Link>) -> Result<Client, ConnectError> {
        self.connect_options()
            .retry_on_initial_connect()
            .max_reconnects(None)
            .reconnect_delay_callback(reconnect_delay)
            .no_echo()
            .client_capacity(MAX_UNWRITTEN)
            .subscription_capacity(MAX_UNREAD)
            .event_callback(move |event| {
                link.event(&event);
                std::future::ready(())
            })
            .connect(self.servers.as_slice())
            .await
    }

    /// A connection that is made now or not at all. `said` collects what the server complains about.
    pub(crate) async fn connect_once(&self, said: Arc<Mutex<Vec<String>>>) -> Result<Client, ConnectError> {
        self.connect_options()
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    said.lock().push(error.to_string());
                }
                std::future::ready(())
            })
            .connect(self.servers.as_slice())
            .await
    }
}

/// The longer NATS is away the rarer are the attempts; they never end.
fn reconnect_delay(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    match attempt {
        0 | 1 => Duration::ZERO,
        _ => {
            MAX_RECONNECT_DELAY.min(Duration::from_millis(10).saturating_mul(2_u32.saturating_pow(doublings)))
        }
    }
}

/// The servers, if each is an address, and is this machine or used with TLS.
fn servers(options: &Options) -> Result<Vec<ServerAddr>, OpenError> {
    if options.urls.is_empty() {
        return Err(OpenError::NoServer);
    }
    let checked = (1..).zip(&options.urls).map(|(position, url)| {
        let address = server(url).ok_or(OpenError::Address { position })?;
        match (&options.root_certificates, address.scheme()) {
            (Some(_), _) => {}
            (None, "tls") => return Err(OpenError::NoRootCertificates { position }),
            (None, _) if options.allow_plain || is_this_machine(address.host()) => {}
            (None, _) => return Err(OpenError::Plain { position }),
        }
        Ok(address)
    });
    checked.collect()
}

fn server(url: &str) -> Option<ServerAddr> {
    let address: ServerAddr = url.parse().ok()?;
    let inner = address.clone().into_inner();
    let is_bare = !address.has_user_pass()
        && address.password().is_none()
        && matches!(inner.path(), "" | "/")
        && inner.query().is_none()
        && inner.fragment().is_none();
    let is_known = matches!(address.scheme(), "nats" | "tls") && !address.host().is_empty();
    (is_bare && is_known).then_some(address)
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn check_certificates(file: &Path) -> Result<(), Cause> {
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(file)? {
        certificate?;
        count += 1;
    }
    if count == 0 { Err("the file contains no certificate".into()) } else { Ok(()) }
}

fn check_key(file: &Path) -> Result<(), Cause> {
    Ok(PrivateKeyDer::from_pem_file(file).map(drop)?)
}

/// One line is a token, two are a user and a password.
fn read_credentials(file: &Path) -> Result<Auth, Cause> {
    let text = std::fs::read_to_string(file)?;
    let lines: Vec<&str> = text.lines().collect();
    let mut auth = Auth::new();
    match lines.as_slice() {
        [token] if !token.is_empty() => auth.token = Some((*token).to_owned()),
        [user, password] if !user.is_empty() => {
            (auth.username, auth.password) = (Some((*user).to_owned()), Some((*password).to_owned()));
        }
        _ => return Err("it has neither one line nor two".into()),
    }
    Ok(auth)
}

/// Follows the connection: logs once when NATS is away and once when it is back, and asks for a comparison then.
#[derive(Debug)]
pub(crate) struct Link {
    counters: Arc<Counters>,
    comparison: Arc<Comparison>,
    was_connected: AtomicBool,
    is_away: AtomicBool,
    /// What the server complained about since it was connected, so that each complaint is logged once.
    complaints: Mutex<Vec<String>>,
}

/// Different complaints that are logged for one connection.
const MAX_COMPLAINTS: usize = 16;

impl Link {
    pub(crate) fn new(counters: Arc<Counters>, comparison: Arc<Comparison>) -> Self {
        Self {
            counters,
            comparison,
            was_connected: AtomicBool::new(false),
            is_away: AtomicBool::new(false),
            complaints: Mutex::default(),
        }
    }

    fn event(&self, event: &Event) {
        match event {
            Event::Connected => self.connected(),
            Event::Disconnected | Event::Closed => self.away("the connection is closed"),
            Event::ClientError(error) => self.away(&error.to_string()),
            Event::ServerError(error) => self.complained(error.to_string()),
            Event::SlowConsumer(_) => {
                self.counters.drop_for(Dropped::Overrun);
                self.comparison.ask();
            }
            Event::LameDuckMode | Event::Draining => {}
        }
    }

    fn connected(&self) {
        self.is_away.store(false, Ordering::Relaxed);
        self.complaints.lock().clear();
        if self.was_connected.swap(true, Ordering::Relaxed) {
            self.counters.reconnects.inc_by(1);
            tracing::info!("NATS is back");
        } else {
            tracing::info!("NATS is connected");
        }
        self.comparison.ask();
    }

    fn away(&self, error: &str) {
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                error,
                "NATS is away; until it is back, nodes find each other's commits by polling the store"
            );
        }
    }

    fn complained(&self, error: String) {
        let mut complaints = self.complaints.lock();
        if complaints.len() < MAX_COMPLAINTS && !complaints.contains(&error) {
            tracing::warn!(
                error,
                "NATS has rejected something; other nodes may learn of commits by polling only"
            );
            complaints.push(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ClientCertificate;

    fn refused(urls: &[&str], change: impl FnOnce(&mut Options)) -> Option<OpenError> {
        let mut options = Options::new(urls.iter().copied());
        change(&mut options);
        Connector::new(options).err()
    }

    fn plain(urls: &[&str]) -> Option<OpenError> {
        refused(urls, |_| {})
    }

    #[test]
    fn another_machine_without_tls_is_refused_unless_the_operator_allows_it() {
        for (urls, position) in [
            (&["nats://nats.example:4222"][..], 1),
            (&["nats.example"], 1),
            (&["nats://192.0.2.1"], 1),
            (&["nats://127.0.0.1", "nats://192.0.2.1"], 2),
            (&["nats://localhost.example"], 1),
            (&["nats://127.0.0.1.example"], 1),
            (&["nats://[2001:db8::1]:4222"], 1),
            (&["nats://[::ffff:192.0.2.1]"], 1),
            (&["nats://0.0.0.0"], 1),
        ] {
            let error = plain(urls);
            assert!(
                matches!(error, Some(OpenError::Plain { position: at }) if at == position),
                "{urls:?}: {error:?}"
            );
            assert!(refused(urls, |options| options.allow_plain = true).is_none(), "{urls:?}");
        }
        for url in [
            "nats://127.0.0.1:4222",
            "nats://localhost",
            "127.1.2.3",
            "nats://[::1]",
            "nats://[::ffff:127.0.0.1]:1",
        ] {
            assert!(plain(&[url]).is_none(), "{url}");
        }
        let said = plain(&["nats://nats.example"]).unwrap().to_string();
        assert!(["root_certificates", "allow_plain = true"].iter().all(|part| said.contains(part)), "{said}");
    }

    #[test]
    fn what_is_no_address_or_has_a_password_is_refused_and_not_repeated() {
        for url in [
            "",
            "http://127.0.0.1",
            "ws://127.0.0.1",
            "wss://127.0.0.1",
            "nats://ada:hunter2@127.0.0.1",
            "nats://hunter2@127.0.0.1",
            "nats://:hunter2@127.0.0.1",
            "nats://127.0.0.1/hunter2",
            "nats://127.0.0.1?hunter2",
            "nats://",
        ] {
            let error = plain(&[url]).unwrap_or_else(|| panic!("{url} is taken"));
            assert!(matches!(error, OpenError::Address { position: 1 }), "{url}: {error:?}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
        assert!(matches!(plain(&[]), Some(OpenError::NoServer)));
    }

    #[test]
    fn tls_needs_something_to_check_the_server_with() {
        for allow_plain in [false, true] {
            let error = refused(&["tls://nats.example"], |options| options.allow_plain = allow_plain);
            assert!(matches!(error, Some(OpenError::NoRootCertificates { position: 1 })), "{error:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "").unwrap();
        for file in [empty, folder.path().join("missing.pem")] {
            let error = refused(&["nats://localhost"], |options| options.root_certificates = Some(file));
            assert!(matches!(error, Some(OpenError::Certificate { .. })), "{error:?}");
        }
        let client = ClientCertificate { certificate: "c".into(), key: "k".into() };
        let error = refused(&["nats://localhost"], |options| options.client_certificate = Some(client));
        assert!(matches!(error, Some(OpenError::ClientCertificateWithoutTls)), "{error:?}");
    }

    #[test]
    fn credentials_are_a_token_or_a_user_and_a_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read_credentials(&file).ok().map(|auth| (auth.token, auth.username, auth.password))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read("to:ken\n"), Some((some("to:ken"), None, None)));
        assert_eq!(read("ada\npass word"), Some((None, some("ada"), some("pass word"))));
        for text in ["", "\n", "\npassword\n", "a\nb\nc\n"] {
            assert_eq!(read(text), None, "{text:?}");
        }
        std::fs::write(&file, "").unwrap();
        let error = refused(&["nats://localhost"], |options| options.credentials = Some(file.clone()));
        assert!(matches!(error, Some(OpenError::Credentials { .. })), "{error:?}");
    }

    #[test]
    fn attempts_become_rarer_and_never_end() {
        let delays: Vec<Duration> = [1, 2, 3, 20, usize::MAX].map(reconnect_delay).to_vec();
        assert!(delays.is_sorted(), "{delays:?}");
        assert_eq!((delays[0], delays[4]), (Duration::ZERO, MAX_RECONNECT_DELAY));
    }
}
