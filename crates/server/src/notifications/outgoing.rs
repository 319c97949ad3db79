//! The one way out: what is sent to services that people have named. Names are looked up once, and what they lead to is
//! checked before anything connects; nothing is redirected.

use std::{
    error::Error,
    fs,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context as _;
use countersign_core::model::notification::{Attempt, FailureReason};
use countersign_wire::timestamp::Timestamp;
use reqwest::{
    Certificate, Client, Proxy, RequestBuilder, StatusCode,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{HeaderMap, RETRY_AFTER},
    redirect::Policy,
};

use super::{
    address::{Allowed, NotAllowed},
    hosts::Answer,
};
use crate::{clock, config::NotificationsConfig};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// A service that takes longer is treated as one that does not answer.
const TIMEOUT: Duration = Duration::from_secs(7);

const IDLE_CONNECTIONS_PER_HOST: usize = 4;

/// Sends requests to allowed addresses.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    client: Client,
    pub(super) allowed: Allowed,
}

impl Outgoing {
    pub(super) fn new(config: &NotificationsConfig) -> anyhow::Result<Self> {
        let allowed = Allowed(config.allowed_networks.clone());
        let mut builder = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST)
            .user_agent(concat!("countersign-gateway/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(CheckedNames(allowed.clone())));
        if let Some(proxy) = &config.proxy {
            builder = builder.proxy(Proxy::all(proxy).context("notifications.proxy")?);
        }
        if let Some(file) = &config.ca {
            let unreadable =
                || format!("notifications.ca: {} has no certificate in PEM form", file.display());
            let pem = fs::read(file).with_context(unreadable)?;
            builder = builder.tls_certs_merge(Certificate::from_pem_bundle(&pem).with_context(unreadable)?);
        }
        Ok(Self { client: builder.build()?, allowed })
    }

    /// Sends what `fill` makes of a request to this address, if it is allowed. The answer's body is not read.
    pub(super) async fn post(
        &self,
        address: &str,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Answer {
        let Ok(url) = self.allowed.check(address) else {
            return Attempt::Failed { reason: FailureReason::NotAllowed, status: None }.into();
        };
        match fill(self.client.post(url)).send().await {
            Ok(answer) => Answer {
                attempt: outcome(answer.status()),
                retry_after: retry_after(answer.status(), answer.headers(), clock::now()),
            },
            Err(error) => Attempt::Failed { reason: reason(&error), status: None }.into(),
        }
    }
}

/// How long a service that has too much to do wants to be left alone, which it says in seconds or as a date.
fn retry_after(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_unix_micros(at.as_micros().try_into().ok()?).since(now))
}

fn outcome(status: StatusCode) -> Attempt {
    let reason = match status.as_u16() {
        200..=299 => return Attempt::Accepted,
        404 | 410 => FailureReason::Gone,
        408 | 425 | 429 | 500..=599 => FailureReason::Busy,
        _ => FailureReason::Refused,
    };
    Attempt::Failed { reason, status: Some(status.as_u16()) }
}

fn reason(error: &reqwest::Error) -> FailureReason {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<NotAllowed>() {
            return FailureReason::NotAllowed;
        }
        cause = error.source();
    }
    if error.is_timeout() { FailureReason::TimedOut } else { FailureReason::Unreachable }
}

/// Looks names up, and leaves out what is not allowed. The connection is made to one of these addresses and to no other.
struct CheckedNames(Allowed);

impl Resolve for CheckedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let right: Vec<SocketAddr> = found.filter(|found| allowed.allows(found.ip())).collect();
            match right.is_empty() {
                true => Err(NotAllowed.into()),
                false => Ok(Box::new(right.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    fn outgoing(networks: &[&str]) -> Outgoing {
        let allowed_networks = networks.iter().map(|network| network.parse().unwrap()).collect();
        Outgoing::new(&NotificationsConfig { allowed_networks, ..NotificationsConfig::default() }).unwrap()
    }

    #[tokio::test]
    async fn a_name_that_leads_to_the_loopback_is_not_called() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let attempt = outgoing(&[]).post(&format!("https://localhost:{port}/"), |request| request).await;
        assert_eq!(attempt, Attempt::Failed { reason: FailureReason::NotAllowed, status: None }.into());
        let accepted = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
        assert!(accepted.is_err(), "nothing connects");
    }

    #[tokio::test]
    async fn a_redirect_leads_nowhere() {
        let answer = async |mut socket: tokio::net::TcpStream| {
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                assert_ne!(socket.read_buf(&mut read).await.unwrap(), 0);
            }
            let redirect = b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.2/\r\ncontent-length: 0\r\n\r\n";
            socket.write_all(redirect).await.unwrap();
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let outgoing = outgoing(&["127.0.0.1"]);
        let (attempt, ()) = tokio::join!(outgoing.post(&url, |request| request), async {
            answer(listener.accept().await.unwrap().0).await;
        });
        assert_eq!(attempt, Attempt::Failed { reason: FailureReason::Refused, status: Some(302) }.into());
    }

    #[test]
    fn a_service_says_when_to_come_back_in_seconds_or_as_a_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = Timestamp::from_unix_micros(784_111_777_000_000);
        let read = |status: u16, text: &str| {
            let headers = [(RETRY_AFTER, text.parse().unwrap())].into_iter().collect();
            retry_after(StatusCode::from_u16(status).unwrap(), &headers, now)
        };
        for (status, text, expected) in [
            (429, "120", Some(120)),
            (503, " 0 ", Some(0)),
            (503, "Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            (429, "Sunday, 06-Nov-94 08:49:38 GMT", Some(1)),
            (503, "Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            (503, "soon", None),
            (503, "-5", None),
            (503, "1.5", None),
            (500, "120", None),
            (201, "120", None),
        ] {
            assert_eq!(read(status, text), expected.map(Duration::from_secs), "{status} {text}");
        }
        assert_eq!(retry_after(StatusCode::SERVICE_UNAVAILABLE, &HeaderMap::new(), now), None);
    }
}
