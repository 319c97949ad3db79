//! How the gateway calls an authority of certificates.

use std::{fs, future::Future, io, path::Path, pin::Pin, time::Duration};

use anyhow::Context as _;
use axum::body::Bytes;
use http_body_util::{BodyExt as _, Collected};
use hyper::{Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use reqwest::{Certificate, Client, redirect::Policy};

const TIMEOUT: Duration = Duration::from_secs(30);

/// A chain of certificates is a few kilobytes.
const MAX_ANSWER: usize = 1 << 20;

/// Calls over TLS alone, without redirects, with bounded answers.
pub(super) struct AuthorityClient(Client);

impl AuthorityClient {
    /// Trusts the authorities in `ca`, or those that the system trusts.
    pub(super) fn new(ca: Option<&Path>) -> anyhow::Result<Self> {
        let mut builder = Client::builder()
            .https_only(true)
            .redirect(Policy::none())
            .timeout(TIMEOUT)
            .user_agent(concat!("countersign-gateway/", env!("CARGO_PKG_VERSION")));
        if let Some(file) = ca {
            let unreadable = || format!("tls.acme.ca: {} has no certificate in PEM form", file.display());
            let pem = fs::read(file).with_context(unreadable)?;
            builder = builder.tls_certs_only(Certificate::from_pem_bundle(&pem).with_context(unreadable)?);
        }
        Ok(Self(builder.build()?))
    }

    /// Reads an address, to see whether it answers.
    pub(super) async fn answers(&self, url: &str) -> anyhow::Result<()> {
        let answer = self.0.get(url).send().await.map_err(|error| anyhow::anyhow!(chain(&error)))?;
        anyhow::ensure!(answer.status().is_success(), "it answers with {}", answer.status());
        Ok(())
    }
}

/// The error with its causes: the first alone says that something failed.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn failed(error: &reqwest::Error) -> Error {
    Error::Other(chain(error).into())
}

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
            let sent = client.request(parts.method, parts.uri.to_string()).headers(parts.headers).body(body);
            let mut answer = sent.send().await.map_err(|error| failed(&error))?;
            let mut content = Vec::new();
            while let Some(chunk) = answer.chunk().await.map_err(|error| failed(&error))? {
                content.extend_from_slice(&chunk);
                if content.len() > MAX_ANSWER {
                    return Err(Error::Other(io::Error::from(io::ErrorKind::FileTooLarge).into()));
                }
            }
            let mut response = Response::new(());
            *response.status_mut() = answer.status();
            *response.headers_mut() = std::mem::take(answer.headers_mut());
            Ok(BytesResponse { parts: response.into_parts().0, body: Box::new(Bytes::from(content)) })
        })
    }
}
