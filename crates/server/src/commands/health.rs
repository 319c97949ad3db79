//! `health`: whether a gateway takes requests, for probes of containers.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Context as _, bail};
use clap::Args;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::output;
use crate::config::Config;

/// How long the gateway may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Say whether the gateway that runs here with this configuration takes requests.
///
/// Ends with 0 if `/readyz` answers 200. For health checks in containers, which have no other program.
#[derive(Debug, Args)]
pub struct Health {
    /// The configuration that the gateway runs with.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Health {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let address = probed(&Config::read_unchecked(&self.config)?)?;
        let answer = timeout(PATIENCE, ask(address)).await.map_err(Into::into).and_then(|answer| answer);
        let answer = answer.with_context(|| format!("no gateway answers on {address}; its log says why"))?;
        match answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)) {
            Some("200") => output::out("ready"),
            Some("503") => bail!("the gateway on {address} is not ready; its log says why"),
            _ => bail!("what answers on {address} is no gateway; see `listen` in the configuration"),
        }
    }
}

/// Where this machine asks in plain HTTP.
fn probed(config: &Config) -> anyhow::Result<SocketAddr> {
    let speaks_tls = config.tls.is_on() && config.tls.listen.is_none();
    let mut address = match config.health.listen {
        Some(address) => address,
        None if speaks_tls => bail!(
            "the gateway speaks TLS only; add a listener for health checks: [health] listen = \"127.0.0.1:8788\""
        ),
        None => config.listen,
    };
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            [127, 0, 0, 1].into()
        } else {
            [0, 0, 0, 0, 0, 0, 0, 1].into()
        });
    }
    Ok(address)
}

/// The beginning of the answer.
async fn ask(address: SocketAddr) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.take(1024).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(config: &str) -> Option<String> {
        probed(&toml::from_str(config).unwrap()).ok().map(|address| address.to_string())
    }

    #[test]
    fn the_listener_in_plain_http_is_asked_at_an_address_of_this_machine() {
        let tls = "[tls]\ncertificate = \"c\"\nkey = \"k\"\n";
        assert_eq!(asked("listen = \"0.0.0.0:80\"").as_deref(), Some("127.0.0.1:80"));
        assert_eq!(asked("listen = \"[::]:80\"").as_deref(), Some("[::1]:80"));
        assert_eq!(asked("[health]\nlisten = \"10.0.0.1:81\"").as_deref(), Some("10.0.0.1:81"));
        assert_eq!(asked(tls), None);
        assert_eq!(asked(&format!("{tls}listen = \"0.0.0.0:443\"")).as_deref(), Some("127.0.0.1:8787"));
        assert_eq!(
            asked(&format!("{tls}[health]\nlisten = \"0.0.0.0:81\"")).as_deref(),
            Some("127.0.0.1:81")
        );
    }
}
