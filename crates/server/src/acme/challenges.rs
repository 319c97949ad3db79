//! Answers to the challenges of an authority, on whichever node it asks.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use countersign_core::Gateway;
use countersign_wire::hash::Sha256Hex;
use parking_lot::Mutex;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::{
    crypto::aws_lc_rs,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};
use tokio::time::Instant;

use super::contents::{Challenge, Contents};
use crate::{config::ChallengeKind, net::tls::ChallengeSource, sealing::Sealer};

/// An unknown challenge is looked for in the store at most once in this time.
const STORE_INTERVAL: Duration = Duration::from_secs(1);

const WELL_KNOWN: &str = "/.well-known/acme-challenge/";

/// The challenges that this node knows of. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Challenges(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    gateway: Gateway,
    sealer: Sealer,
    record: String,
    open: Mutex<Vec<Challenge>>,
    asked: Mutex<Option<Instant>>,
}

impl Challenges {
    pub(super) fn new(gateway: Gateway, sealer: Sealer, record: String) -> Self {
        let (open, asked) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { gateway, sealer, record, open, asked }))
    }

    pub(super) fn learn(&self, open: Vec<Challenge>) {
        *self.0.open.lock() = open;
    }

    fn known(&self, is_it: &impl Fn(&Challenge) -> bool) -> Option<Challenge> {
        self.0.open.lock().iter().find(|challenge| is_it(challenge)).cloned()
    }

    /// The challenge, which another node may have opened.
    async fn find(&self, is_it: impl Fn(&Challenge) -> bool) -> Option<Challenge> {
        if let Some(known) = self.known(&is_it) {
            return Some(known);
        }
        {
            let mut asked = self.0.asked.lock();
            if asked.is_some_and(|asked| asked.elapsed() < STORE_INTERVAL) {
                return None;
            }
            *asked = Some(Instant::now());
        }
        let Shared { gateway, sealer, record, .. } = &*self.0;
        let (stored, _) = gateway.own_record(record).await.ok()?;
        let opened = sealer.open(record, stored.sealed.as_ref()?)?;
        let contents: Contents = serde_json::from_slice(&opened.content).ok()?;
        self.learn(contents.challenges);
        self.known(&is_it)
    }

    /// What is served in plain HTTP: answers to challenges, and for everything else the way to `public_url`.
    pub(crate) fn plain_router(challenges: Option<Self>, public_url: String) -> Router {
        Router::new().fallback(answer).with_state((challenges, Arc::from(public_url)))
    }
}

async fn answer(
    State((challenges, url)): State<(Option<Challenges>, Arc<str>)>,
    request: Request,
) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    if let Some(token) = request.uri().path().strip_prefix(WELL_KNOWN) {
        let is_it = |known: &Challenge| known.kind == ChallengeKind::Http01 && known.token == token;
        let found = match challenges {
            Some(challenges) => challenges.find(is_it).await,
            None => None,
        };
        let octets = [(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))];
        return match found {
            Some(challenge) => (octets, challenge.authorization).into_response(),
            None => StatusCode::NOT_FOUND.into_response(),
        };
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Not for good: browsers would go there even if this gateway moves.
    match HeaderValue::from_str(&format!("{url}{path}")) {
        Ok(location) => (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response(),
        Err(_) => StatusCode::BAD_REQUEST.into_response(),
    }
}

impl ChallengeSource for Challenges {
    fn certificate(
        &self,
        name: String,
    ) -> Pin<Box<dyn Future<Output = Option<Arc<CertifiedKey>>> + Send + '_>> {
        Box::pin(async move {
            let is_it = |known: &Challenge| known.kind == ChallengeKind::TlsAlpn01 && known.name == name;
            let challenge = self.find(is_it).await?;
            certificate(&challenge).ok().map(Arc::new)
        })
    }
}

/// The certificate that proves to the authority that this gateway answers for the name (RFC 8737).
fn certificate(challenge: &Challenge) -> anyhow::Result<CertifiedKey> {
    let digest = Sha256Hex::digest(challenge.authorization.as_bytes());
    let mut parameters = CertificateParams::new(vec![challenge.name.clone()])?;
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_bytes())];
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    // Not checked against its key: the check refuses the extension, which it does not know.
    Ok(CertifiedKey::new(vec![certificate.der().clone()], aws_lc_rs::sign::any_supported_type(&key)?))
}
