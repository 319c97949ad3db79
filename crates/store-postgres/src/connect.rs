//! Creates connections, with timeouts, planner settings and TLS, and checks that the server's commits are durable.

use std::{
    error::Error as StdError,
    fmt, fs,
    future::poll_fn,
    io,
    net::IpAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use countersign_wire::hash::Sha256Hex;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    runtime::Handle,
    task::JoinHandle,
    time::timeout,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, NoTls, Socket,
    config::{Host, SslMode},
    error::SqlState,
    tls::{MakeTlsConnect, TlsConnect},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{
    error::OpenError,
    hosts::{self, Hosts},
    options::Options,
};

/// Set when the server warned that a commit may not have reached its standby.
pub(crate) type InDoubt = Arc<AtomicBool>;

/// Names the history that the newest connection belongs to; the same number on every node.
pub(crate) type Timeline = Arc<AtomicU64>;

/// Every statement finds its rows by key. A plan that was cached while a table was empty would scan the whole table
/// later (measured: a tenth of the rate until the first ANALYZE), so scans and joins without an index are disabled.
/// The server gives a plan that needs one anyway a very high cost and would JIT-compile it on every execution
/// (measured: 250 ms to sweep an empty table), so JIT is off.
///
/// Such a plan is right for every set of keys, so each connection plans a statement once. Otherwise the server would
/// plan most statements on every execution, which costs more than running them.
pub(crate) const PLANNER_SETTINGS: &str = "-c enable_hashjoin=off -c enable_mergejoin=off \
    -c enable_material=off -c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan";

/// A node that is stopped or disconnected during a transaction must not keep its locks: the server ends its session.
/// Options of the client's socket have no effect on that.
const SESSION_TIMEOUTS: &str =
    "-c idle_in_transaction_session_timeout=15s -c tcp_user_timeout=15s -c tcp_keepalives_idle=30";

/// The cluster and its timeline: another one after every promotion and every restore. NULL on a standby, which nobody can
/// write to. Everybody may call these functions.
const HISTORY: &str = "SELECT CASE WHEN NOT pg_is_in_recovery() THEN \
    (SELECT system_identifier FROM pg_control_system()) || ' ' || left(pg_walfile_name(pg_current_wal_lsn()), 8) END";
/// Where a service forbids them: every start of the server counts as another history, which costs what was remembered.
const START_TIME: &str =
    "SELECT CASE WHEN NOT pg_is_in_recovery() THEN extract(epoch FROM pg_postmaster_start_time())::text END";

#[derive(Clone)]
pub(crate) struct Connector {
    hosts: Arc<Hosts>,
    tls: Option<MakeRustlsConnect>,
    /// Drives all connections, whoever asks for the first use of one: a caller on a busy thread must not end up with
    /// a connection that others need too.
    runtime: Handle,
    /// Of the newest connection to a server that can be written to; zero before the first.
    timeline: Timeline,
}

impl Connector {
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let mut config: Config = options.url.parse().map_err(OpenError::Url)?;
        check_encryption(&config, options)?;
        if let Some(file) = &options.password_file {
            let read = |source| OpenError::Password { file: file.clone(), source };
            let text = fs::read_to_string(file).map_err(read)?;
            if config.get_password().is_some() {
                return Err(OpenError::TwoPasswords);
            }
            config.password(text.trim_end_matches(['\r', '\n']));
        }
        config.application_name("countersign");
        config.connect_timeout(hosts::MAX_WAIT);
        config.keepalives_idle(Duration::from_secs(30));
        // Detects a server that disappeared without closing the connection.
        config.tcp_user_timeout(Duration::from_secs(15));
        let given = config.get_options().unwrap_or_default();
        let timeout = options.statement_timeout.as_millis();
        config
            .options(format!("{given} -c statement_timeout={timeout} {PLANNER_SETTINGS} {SESSION_TIMEOUTS}"));
        let tls = options.root_certificates.as_deref().map(tls).transpose()?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        let hosts = Arc::new(Hosts::new(&config));
        Ok(Self { hosts, tls, runtime: Handle::current(), timeline: Arc::default() })
    }

    /// How long it takes at most to find out that no server can be used.
    pub(crate) fn max_wait(&self) -> Duration {
        self.hosts.max_wait()
    }

    /// Of all connections that this and its clones make.
    pub(crate) fn timeline(&self) -> Timeline {
        Arc::clone(&self.timeline)
    }

    pub(crate) async fn connect(&self) -> Result<(Client, InDoubt), OpenError> {
        let in_doubt = InDoubt::default();
        let (client, _driver) = self.start(Arc::clone(&in_doubt)).await?;
        Ok((client, in_doubt))
    }

    /// Connects, and starts the task that drives the connection.
    pub(crate) async fn start(&self, in_doubt: InDoubt) -> Result<(Client, JoinHandle<()>), OpenError> {
        let (mut silent, mut failed) = (Vec::new(), None);
        for (number, host) in self.hosts.in_order() {
            match timeout(hosts::MAX_WAIT, self.start_at(host, Arc::clone(&in_doubt))).await {
                Ok(Ok(started)) => {
                    self.hosts.prefer(number);
                    return Ok(started);
                }
                Ok(Err(error)) if !is_timeout(&error) => failed = Some(error),
                Ok(Err(_)) | Err(_) => silent.push(self.hosts.name(number)),
            }
        }
        match failed {
            Some(error) if silent.is_empty() => Err(error.into()),
            others => Err(OpenError::Silent { hosts: silent.join(", "), within: hosts::MAX_WAIT, others }),
        }
    }

    async fn start_at(&self, host: &Config, in_doubt: InDoubt) -> Result<(Client, JoinHandle<()>), Error> {
        let (client, driver) = match self.tls.clone() {
            Some(tls) => self.start_with(host, tls, in_doubt).await?,
            None => self.start_with(host, NoTls, in_doubt).await?,
        };
        // Before the connection reads anything: what it reads must not be taken for the history before.
        if let Some(history) = history(&client).await? {
            self.timeline.store(timeline_of(&history), Ordering::Release);
        }
        Ok((client, driver))
    }

    async fn start_with<T>(
        &self,
        host: &Config,
        tls: T,
        in_doubt: InDoubt,
    ) -> Result<(Client, JoinHandle<()>), Error>
    where
        T: MakeTlsConnect<Socket> + Send,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let mut connecting = Box::pin(host.connect(tls));
        let connected = poll_fn(|context| {
            let _entered = self.runtime.enter();
            connecting.as_mut().poll(context)
        });
        let (client, connection) = connected.await?;
        Ok((client, self.runtime.spawn(drive(connection, in_doubt))))
    }
}

/// Shows nothing of the hosts' configurations, which may contain a password.
impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

/// Whether the driver has given up waiting for a connection.
fn is_timeout(error: &Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
}

/// Rejects connections to other machines that would be unencrypted. Only root certificates make them encrypted: other
/// modes of libpq do not check who answers, or fall back to plain text.
fn check_encryption(config: &Config, options: &Options) -> Result<(), OpenError> {
    if options.root_certificates.is_some() {
        return Ok(());
    }
    if config.get_ssl_mode() == SslMode::Require {
        return Err(OpenError::NoRootCertificates);
    }
    match other_machine(config) {
        Some(position) if !options.allow_plain => Err(OpenError::Plain { position }),
        _ => Ok(()),
    }
}

/// The position, from 1, of the first host that may be another machine. An address takes the place of its host, as it
/// does when the driver connects.
fn other_machine(config: &Config) -> Option<usize> {
    let is_local_name = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) if name == "localhost" => true,
        Host::Tcp(name) => name.parse().is_ok_and(is_loopback),
    };
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let is_local = |index: usize| match (addresses.get(index), hosts.get(index)) {
        (Some(address), _) => is_loopback(*address),
        (None, Some(host)) => is_local_name(host),
        (None, None) => true,
    };
    (0..hosts.len().max(addresses.len())).find(|index| !is_local(*index)).map(|index| index + 1)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Names the history of the server; `None` on a standby.
async fn history(client: &Client) -> Result<Option<String>, Error> {
    match client.query_one(HISTORY, &[]).await {
        Err(error) if error.as_db_error().is_some() => client.query_one(START_TIME, &[]).await?.try_get(0),
        row => row?.try_get(0),
    }
}

/// Never zero, which is what no connection has.
fn timeline_of(history: &str) -> u64 {
    let digest = Sha256Hex::digest(history.as_bytes());
    let first = digest.as_bytes().first_chunk().map_or(1, |bytes| u64::from_be_bytes(*bytes));
    first.max(1)
}

/// Rejects a server on which an acknowledged commit can be lost.
pub(crate) async fn check_durability(client: &Client) -> Result<(), OpenError> {
    let row = client
        .query_one(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'), \
             current_setting('synchronous_standby_names')",
            &[],
        )
        .await?;
    let (fsync, synchronous_commit, standbys): (String, String, String) =
        (row.get(0), row.get(1), row.get(2));
    if fsync != "on" {
        return Err(OpenError::Unsafe { setting: "fsync", value: fsync, remedy: "set it to on" });
    }
    let sufficient = match standbys.is_empty() {
        true => synchronous_commit != "off",
        // `local` does not wait for the standby, `remote_write` not for its disk.
        false => synchronous_commit == "on" || synchronous_commit == "remote_apply",
    };
    match sufficient {
        true => Ok(()),
        false => Err(OpenError::Unsafe {
            setting: "synchronous_commit",
            value: synchronous_commit,
            remedy: "set it to on",
        }),
    }
}

fn tls(file: &Path) -> Result<MakeRustlsConnect, OpenError> {
    let config =
        tls_config(file).map_err(|source| OpenError::RootCertificates { file: file.to_owned(), source })?;
    Ok(MakeRustlsConnect::new(config))
}

fn tls_config(file: &Path) -> Result<ClientConfig, Box<dyn StdError + Send + Sync>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file)? {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        return Err("the file contains no certificate".into());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}

/// Runs a connection and watches for one warning: a commit whose wait for the standby was interrupted still reports
/// success.
async fn drive<T: AsyncRead + AsyncWrite + Unpin>(mut connection: Connection<Socket, T>, in_doubt: InDoubt) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message
            && *notice.code() == SqlState::WARNING
        {
            tracing::warn!(
                message = notice.message(),
                "PostgreSQL sent a warning; the outcome of the current commit is treated as unknown"
            );
            in_doubt.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_testkit::postgres::Postgres;

    use super::*;

    fn refused(url: &str, allow_plain: bool) -> Option<OpenError> {
        Connector::new(&Options { allow_plain, ..Options::new(url) }).err()
    }

    #[tokio::test]
    async fn another_machine_without_tls_is_refused_unless_the_operator_allows_it() {
        for (url, position) in [
            ("host=db.example user=c", 1),
            ("host=192.0.2.1", 1),
            ("host=10.0.0.1 sslmode=disable", 1),
            // It would encrypt only if the server likes to, and check nothing.
            ("host=10.0.0.1 sslmode=prefer", 1),
            ("host=127.0.0.1,db.example", 2),
            ("host=/run/postgresql,127.0.0.1,db.example", 3),
            ("host=db-1,db-2 target_session_attrs=read-write", 1),
            // The address is where the driver connects to, whatever the name says.
            ("host=localhost hostaddr=192.0.2.1", 1),
            ("host=/run/postgresql hostaddr=192.0.2.1", 1),
            ("hostaddr=127.0.0.1,192.0.2.1", 2),
            ("host=localhost.example", 1),
            ("host=127.0.0.1.example", 1),
            ("host=::ffff:192.0.2.1", 1),
            ("host=2001:db8::1", 1),
            ("host=0.0.0.0", 1),
            ("postgres://c:p@db.example/c", 1),
            ("postgresql://c:p@localhost,db.example:5433/c", 2),
        ] {
            let error = refused(url, false);
            assert!(
                matches!(error, Some(OpenError::Plain { position: at }) if at == position),
                "{url}: {error:?}"
            );
            assert!(refused(url, true).is_none(), "{url}");
        }
    }

    #[tokio::test]
    async fn this_machine_needs_no_tls() {
        for url in [
            "host=127.0.0.1 user=c",
            "host=127.1.2.3 sslmode=disable",
            "host=localhost sslmode=prefer",
            "host=::1",
            "host=::ffff:127.0.0.1",
            "host=/run/postgresql",
            "host=/run/postgresql,localhost,127.0.0.1,::1",
            "hostaddr=127.0.0.1",
            "host=db.example hostaddr=127.0.0.1",
            "postgres://c:p@127.0.0.1/c",
            "postgres://c:p@[::1]:5433/c",
            "postgres://c:p@%2Frun%2Fpostgresql/c",
        ] {
            let error = refused(url, false);
            assert!(error.is_none(), "{url}: {error:?}");
        }
    }

    #[tokio::test]
    async fn tls_is_what_root_certificates_give_and_nothing_else() {
        for url in ["host=db.example sslmode=require", "host=127.0.0.1 sslmode=require"] {
            for allow_plain in [false, true] {
                assert!(matches!(refused(url, allow_plain), Some(OpenError::NoRootCertificates)), "{url}");
            }
            let with = Options { root_certificates: Some("ca.pem".into()), ..Options::new(url) };
            check_encryption(&url.parse().unwrap(), &with).unwrap();
        }
        let with = Options { root_certificates: Some("ca.pem".into()), ..Options::new("host=db.example") };
        check_encryption(&with.url.parse().unwrap(), &with).unwrap();
    }

    #[tokio::test]
    async fn the_refusal_says_what_to_do_and_repeats_no_password() {
        let said = refused("postgres://c:hunter2@db.example/c", false).unwrap().to_string();
        assert!(["root_certificates", "allow_plain = true"].iter().all(|part| said.contains(part)), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }

    /// As a server that is frozen, or whose machine is gone, does after a failover.
    #[tokio::test]
    async fn a_host_that_says_nothing_does_not_keep_the_next_one_from_being_used() {
        let server = Postgres::start();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = format!("{},{}", silent.local_addr().unwrap().port(), server.port());
        let url = format!("host=127.0.0.1,127.0.0.1 port={ports} user=postgres dbname=postgres");
        let connector = Connector::new(&Options::new(url)).unwrap();
        let connect = async |within| timeout(within, connector.connect()).await;
        connect(hosts::MAX_WAIT * 2).await.expect("the second host is asked").unwrap();
        // It is asked first from now on.
        connect(hosts::MAX_WAIT / 2).await.expect("the second host is asked first").unwrap();
    }

    #[tokio::test]
    async fn if_no_host_answers_the_error_names_them_and_repeats_no_password() {
        let silent = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, two) = (silent(), silent());
        let [first, second] = [&one, &two].map(|silent| silent.local_addr().unwrap().to_string());
        let connector = Connector::new(&Options::new(format!("postgres://c:hunter2@{first},{second}/c")));
        let error = connector.unwrap().connect().await.unwrap_err();
        let said = error.to_string();
        assert!([&first, &second, "in time"].iter().all(|part| said.contains(*part)), "{said}");
        assert!(!format!("{said} {error:?}").contains("hunter2"), "{said} {error:?}");
        // What the other one said is there too.
        drop(two);
        let connector = Connector::new(&Options::new(format!("postgres://c:hunter2@{first},{second}/c")));
        let error = connector.unwrap().connect().await.unwrap_err();
        let said = error.to_string();
        assert!(said.contains(&first) && !said.contains(&second), "{said}");
        assert!(error.source().is_some(), "{error:?}");
    }

    #[tokio::test]
    async fn a_password_comes_from_the_string_or_from_a_file_and_not_from_both() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let with =
            |url: &str| Connector::new(&Options { password_file: Some(file.clone()), ..Options::new(url) });
        let missing = with("host=127.0.0.1").unwrap_err();
        assert!(missing.to_string().contains(file.to_str().unwrap()), "{missing}");
        fs::write(&file, " hunter2\n").unwrap();
        let connector = with("host=127.0.0.1").unwrap();
        let (_, host) = connector.hosts.in_order().next().unwrap();
        assert_eq!(host.get_password(), Some(&b" hunter2"[..]));
        assert!(matches!(with("host=127.0.0.1 password=other"), Err(OpenError::TwoPasswords)));
    }

    #[tokio::test]
    async fn the_server_ends_the_session_of_a_node_that_stops_in_a_transaction() {
        let server = Postgres::start();
        let (client, _) = Connector::new(&Options::new(server.url())).unwrap().connect().await.unwrap();
        let show = async |setting: &str| -> String {
            client.query_one(&format!("SHOW {setting}"), &[]).await.unwrap().get(0)
        };
        assert_eq!(show("idle_in_transaction_session_timeout").await, "15s");
        assert_eq!(show("tcp_user_timeout").await, "15000");
        assert_eq!(show("plan_cache_mode").await, "force_generic_plan");
    }
}
