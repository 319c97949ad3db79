//! How connections are made: where to, with which time-outs, in the clear or encrypted.

use std::{
    future::poll_fn,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, NoTls, Socket, config::SslMode, error::SqlState,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{OpenError, Options};

/// Set when the server warned that a commit may not have reached its standby.
pub(crate) type InDoubt = Arc<AtomicBool>;

/// Every statement of ours goes by key. A plan that was made and kept while a table was still empty would read
/// all of it later; seen as a tenth of the rate until the first ANALYZE. A plan that can't do without what is off counts
/// as immensely expensive, and the server would compile it each time; seen as 250 ms for sweeping an empty table.
///
/// Such a plan is the right one for every set of keys, so it is made once for each connection; else the server plans most
/// statements anew each time, which costs more than running them.
pub(crate) const BY_KEY: &str = "-c enable_hashjoin=off -c enable_mergejoin=off -c enable_material=off \
    -c enable_seqscan=off -c jit=off -c plan_cache_mode=force_generic_plan";

/// A node that was stopped or cut off in the midst of a transaction must not hold its locks for ever: the server lets it
/// go. What the client sets on its own socket does nothing for that.
const LET_GO: &str =
    "-c idle_in_transaction_session_timeout=15s -c tcp_user_timeout=15s -c tcp_keepalives_idle=30";

#[derive(Clone)]
pub(crate) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    pub(crate) fn new(options: &Options) -> Result<Self, OpenError> {
        let mut config: Config = options.url.parse().map_err(|error: Error| {
            // The source says what is wrong; the string itself holds a password.
            OpenError::Url(
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string),
            )
        })?;
        config.application_name("countersign");
        config.connect_timeout(Duration::from_secs(5));
        config.keepalives_idle(Duration::from_secs(30));
        // A node that went away without a word must not hold locks for as long as TCP believes in it.
        config.tcp_user_timeout(Duration::from_secs(15));
        let given = config.get_options().unwrap_or_default();
        let timeout = options.statement_timeout.as_millis();
        config.options(format!("{given} -c statement_timeout={timeout} {BY_KEY} {LET_GO}"));
        let tls = options.root_certificates.as_deref().map(tls).transpose()?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Self { config, tls })
    }

    pub(crate) async fn connect(&self) -> Result<(Client, InDoubt), Error> {
        let in_doubt = InDoubt::default();
        let client = if let Some(tls) = &self.tls {
            let (client, connection) = self.config.connect(tls.clone()).await?;
            tokio::spawn(drive(connection, Arc::clone(&in_doubt)));
            client
        } else {
            let (client, connection) = self.config.connect(NoTls).await?;
            tokio::spawn(drive(connection, Arc::clone(&in_doubt)));
            client
        };
        Ok((client, in_doubt))
    }

    /// Makes the connections of the pool.
    pub(crate) fn manager(&self) -> Manager {
        let settings = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        match &self.tls {
            Some(tls) => Manager::from_config(self.config.clone(), tls.clone(), settings),
            None => Manager::from_config(self.config.clone(), NoTls, settings),
        }
    }
}

fn tls(file: &Path) -> Result<MakeRustlsConnect, OpenError> {
    let fault = |fault: String| OpenError::RootCertificates { file: file.display().to_string(), fault };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| fault(error.to_string()))? {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        roots.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(fault("there is no certificate in it".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Runs a connection and listens for the one warning that matters: a commit whose wait for the standby was
/// cut short reports success all the same.
async fn drive<T: AsyncRead + AsyncWrite + Unpin>(mut connection: Connection<Socket, T>, in_doubt: InDoubt) {
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message
            && *notice.code() == SqlState::WARNING
        {
            tracing::warn!(message = notice.message(), "PostgreSQL warned during a commit");
            in_doubt.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_testkit::postgres::Postgres;

    use super::*;

    #[tokio::test]
    async fn a_node_that_stops_in_a_transaction_is_let_go_with_its_locks() {
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
