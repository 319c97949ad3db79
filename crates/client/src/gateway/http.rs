//! Calls to a gateway over HTTP: bounded in time and size, retried under the same ids.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, UNIX_EPOCH},
};

use countersign_wire::{
    RawObject,
    envelope::Envelope,
    exchange::ExchangeState,
    failure::{Code, Failure},
    timestamp::Timestamp,
};
use reqwest::{
    Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER},
};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout_at};
use zeroize::Zeroizing;

use crate::{
    gateway::trouble::Trouble,
    identity::profile::{Credential, GatewayUrl},
    random,
};

/// An answer must arrive within this time, apart from a wait, which says how long it is held.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The largest answer that is read: four snapshots of 7 MB and what is around them.
const MAX_ANSWER: usize = 32 << 20;

/// The largest refusal of a connection that is read.
const MAX_REFUSAL: usize = 64 << 10;

/// The first pause before a retry, and the longest.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// Why a call has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No answer arrived: whether the gateway has taken the call is not known.
    #[error("the gateway at {gateway} can't be reached: {reason}")]
    Unreachable {
        /// The URL that was called, for the message.
        gateway: String,
        /// What the trouble is, in our own words.
        reason: Trouble,
    },
    /// The gateway refused, and has done nothing.
    #[error("the gateway refused: {code} ({status})")]
    Refused {
        /// The HTTP status, which decides with `code` what it is.
        status: u16,
        /// The code of the error. A text that is not on the list is not kept: the gateway has no words here.
        code: Code,
        /// Whether the same call can succeed later.
        retryable: bool,
        /// When to come back, if the gateway said so.
        retry_after: Option<Duration>,
    },
    /// The answer is not one of the protocol.
    #[error("the gateway answered something that is not understood")]
    NotUnderstood,
}

impl CallError {
    /// Whether the same call can succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { retryable, .. } => *retryable,
            Self::NotUnderstood => false,
        }
    }

    /// Whether the gateway's certificate is not trusted.
    pub fn is_untrusted(&self) -> bool {
        matches!(self, Self::Unreachable { reason: Trouble::Certificate, .. })
    }

    /// Whether there is nothing behind the path: what is outside of the protocol only our own gateway has, and its errors have
    /// a code.
    pub fn is_no_endpoint(&self) -> bool {
        matches!(self, Self::Refused { status: 404 | 405 | 501, code: Code::Unknown, .. })
    }

    /// Whether it is this failure.
    pub fn is(&self, failure: Failure) -> bool {
        matches!(self, Self::Refused { status, code, .. } if *status == failure.status() && code.as_str() == failure.code())
    }
}

/// One call. Repeating it is safe: the ids in its body make it idempotent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
    /// How long the gateway may hold it before it answers.
    pub(crate) held_for: Duration,
    /// The header `Idempotency-Key`, which the specification wants on what is submitted.
    pub(crate) idempotency_key: Option<String>,
}

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            body: None,
            held_for: Duration::ZERO,
            idempotency_key: None,
        }
    }

    pub(crate) fn post(path: impl Into<String>, body: String) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path) }
    }

    pub(crate) fn idempotent(self, key: &str) -> Self {
        Self { idempotency_key: Some(key.to_owned()), ..self }
    }

    pub(crate) fn held_for(self, held_for: Duration) -> Self {
        Self { held_for, ..self }
    }
}

/// Envelopes have the protocol's own type; pairing, and what is outside of the protocol, is plain JSON.
fn media_type(path: &str) -> &'static str {
    match path.starts_with("/v1/") && !path.starts_with("/v1/pairing/") {
        true => "application/proto+json",
        false => "application/json",
    }
}

/// Why a connection that is to be held was not opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// There was no connection to the gateway at all.
    Unreachable(Trouble),
    /// There was one, and it did not become what was asked for.
    Failed(Trouble),
    /// The gateway, or something before it, said no.
    Refused {
        error: CallError,
        /// Whether it is an error of the protocol, so the gateway's own.
        is_of_protocol: bool,
    },
}

/// What the header `Proto-Exchange-State` says, which other gateways don't have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SaidState {
    Known(ExchangeState),
    /// The header is there, and its value is no state.
    Nonsense,
    Nothing,
}

/// An answer with a status of success.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The header `Proto-Exchange-State` of a wait that ended without a decision.
    pub(crate) exchange_state: SaidState,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The envelope in the body.
    pub(crate) fn envelope(&self) -> Result<Envelope<'_>, CallError> {
        let envelope = countersign_wire::parse::<Envelope<'_>>(&self.body);
        envelope.map(countersign_wire::Verbatim::into_view).map_err(|_| CallError::NotUnderstood)
    }

    /// The object in the body, as a type of the wire.
    pub(crate) fn object<'a, T: countersign_wire::FromJson<'a>>(&'a self) -> Result<T, CallError> {
        let object = countersign_wire::parse::<T>(&self.body);
        object.map(countersign_wire::Verbatim::into_view).map_err(|_| CallError::NotUnderstood)
    }
}

/// A path segment, percent-encoded: ids may contain anything.
pub(crate) fn segment(id: &str) -> String {
    let mut encoded = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(char::from(byte)),
            // A dot too: a segment of one or two dots has a meaning of its own.
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                encoded.push('%');
                encoded.push(char::from(HEX[usize::from(byte >> 4)]));
                encoded.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    encoded
}

/// A gateway and the credential that is used with it.
#[derive(Clone)]
pub struct Http {
    client: reqwest::Client,
    /// For connections that are held open, which are always new ones: a kept one may be dead.
    holding: Arc<OnceLock<reqwest::Client>>,
    gateway: GatewayUrl,
    authorization: Option<HeaderValue>,
}

fn client() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(5))
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Http({})", self.gateway.as_str())
    }
}

impl Http {
    /// Nothing is sent before the first call. Redirects are not followed: a credential is for one gateway.
    pub fn new(gateway: GatewayUrl, credential: Option<&Credential>) -> Result<Self, CallError> {
        let unusable =
            || CallError::Unreachable { gateway: gateway.as_str().to_owned(), reason: Trouble::Unusable };
        let client = client().build().map_err(|_| unusable())?;
        let authorization = credential.map(|credential| {
            let text = Zeroizing::new(format!("Bearer {}", credential.expose()));
            let mut value = HeaderValue::from_str(&text).map_err(|_| unusable())?;
            value.set_sensitive(true);
            Ok(value)
        });
        let authorization = authorization.transpose()?;
        Ok(Self { client, holding: Arc::default(), gateway, authorization })
    }

    /// The gateway that is called.
    pub fn gateway(&self) -> &GatewayUrl {
        &self.gateway
    }

    /// Whether the gateway is ready, and accepts the credential where there is one. Asked once, without retries.
    pub async fn check(&self) -> Result<(), CallError> {
        let path = if self.authorization.is_some() { "/v1/status" } else { "/readyz" };
        self.send(&Call::get(path)).await.map(drop)
    }

    /// What time it is for the gateway, to the second, as its answers say; `None` if they don't. Asked once, without
    /// retries.
    pub async fn date(&self) -> Result<Option<Timestamp>, CallError> {
        let request = self.client.get(format!("{}/readyz", self.gateway.as_str())).timeout(CALL_TIMEOUT);
        let response = request.send().await.map_err(|error| CallError::Unreachable {
            gateway: self.gateway.as_str().to_owned(),
            reason: Trouble::of_http(&error),
        })?;
        Ok(response.headers().get(DATE).and_then(timestamp))
    }

    /// A file that the gateway serves to everybody, such as a part of its page. The credential is not sent. Asked once,
    /// without retries.
    pub async fn file(&self, path: &str) -> Result<Vec<u8>, CallError> {
        let public = Self { authorization: None, ..self.clone() };
        Ok(public.send(&Call::get(path)).await?.body)
    }

    /// Calls once; who retries uses [`Http::send_until`].
    pub(crate) async fn send(&self, call: &Call) -> Result<Answer, CallError> {
        let unreachable = |error: reqwest::Error| CallError::Unreachable {
            gateway: self.gateway.as_str().to_owned(),
            reason: Trouble::of_http(&error),
        };
        let mut request = self
            .client
            .request(call.method.clone(), format!("{}{}", self.gateway.as_str(), call.path))
            .timeout(CALL_TIMEOUT + call.held_for);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, media_type(&call.path)).body(body.clone());
        }
        let mut response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(CallError::NotUnderstood);
            }
            body.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            return Err(refused(status, &headers, &body));
        }
        let header = headers.get("proto-exchange-state");
        let exchange_state =
            match header.map(|state| state.to_str().ok().and_then(|state| state.parse().ok())) {
                Some(Some(state)) => SaidState::Known(state),
                Some(None) => SaidState::Nonsense,
                None => SaidState::Nothing,
            };
        Ok(Answer { status: status.as_u16(), exchange_state, body })
    }

    /// Sends a request whose answer is held open, and returns when the head of the answer is there: 101 or a success.
    pub(crate) async fn open(
        &self,
        path: &str,
        mut headers: HeaderMap,
    ) -> Result<reqwest::Response, OpenError> {
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let holding = if let Some(holding) = self.holding.get() {
            holding
        } else {
            let made = client().pool_max_idle_per_host(0).http1_only().build();
            let made = made.map_err(|_| OpenError::Unreachable(Trouble::Unusable))?;
            self.holding.get_or_init(|| made)
        };
        let request = holding.get(format!("{}{path}", self.gateway.as_str())).headers(headers).send();
        let in_time = Instant::now() + CALL_TIMEOUT;
        let late = |_| OpenError::Failed(Trouble::Late);
        let mut response =
            timeout_at(in_time, request).await.map_err(late)?.map_err(|error| match error.is_connect() {
                true => OpenError::Unreachable(Trouble::of_http(&error)),
                false => OpenError::Failed(Trouble::of_http(&error)),
            })?;
        if response.status().is_success() || response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let mut body = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout_at(in_time, response.chunk()).await {
            if body.len() + chunk.len() > MAX_REFUSAL {
                break;
            }
            body.extend_from_slice(&chunk);
        }
        let error = refused(response.status(), response.headers(), &body);
        Err(OpenError::Refused { error, is_of_protocol: said(&body).is_some() })
    }

    /// Calls until there is an answer that is final, or the deadline has passed. The last error is returned then.
    pub(crate) async fn send_until(&self, call: &Call, deadline: Instant) -> Result<Answer, CallError> {
        let mut delay = RETRY_DELAY.0;
        loop {
            let error = match timeout_at(deadline, self.send(call)).await {
                Ok(Ok(answer)) => return Ok(answer),
                // Who joins is a person, and an untrusted certificate stays so. Whoever waits for an answer goes on: it may be
                // renewed.
                Ok(Err(error)) if self.authorization.is_none() && error.is_untrusted() => return Err(error),
                Ok(Err(error)) if error.is_retryable() => error,
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let gateway = self.gateway.as_str().to_owned();
                    return Err(CallError::Unreachable { gateway, reason: Trouble::Late });
                }
            };
            let asked_for = match &error {
                CallError::Refused { retry_after: Some(after), .. } => *after,
                _ => Duration::ZERO,
            };
            let pause = asked_for.max(jittered(delay));
            if Instant::now() + pause >= deadline {
                return Err(error);
            }
            tracing::debug!(%error, ?pause, "a call will be retried");
            sleep(pause).await;
            delay = RETRY_DELAY.1.min(delay * 2);
        }
    }
}

/// Half to all of it, so that many clients do not come back at the same moment.
pub(crate) fn jittered(delay: Duration) -> Duration {
    let [byte] = random::bytes().unwrap_or([128]);
    delay / 2 + delay / 2 * u32::from(byte) / 256
}

/// What a gateway says of an error.
#[derive(Deserialize)]
struct Said {
    code: String,
    retryable: bool,
}

/// An error in either form: an envelope, or the bare object; `None` if it is none of the protocol.
fn said(body: &[u8]) -> Option<Said> {
    #[derive(Deserialize)]
    struct Wrapped {
        body: Said,
    }
    let text = RawObject::parse(body).ok()?.as_str();
    let wrapped: Option<Wrapped> = serde_json::from_str(text).ok();
    wrapped.map(|wrapped| wrapped.body).or_else(|| serde_json::from_str(text).ok())
}

fn refused(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> CallError {
    let error = said(body);
    let seconds = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.parse().ok());
    // A proxy's own error has no code of ours.
    let retryable = error.as_ref().map_or(status.is_server_error(), |error| error.retryable);
    CallError::Refused {
        status: status.as_u16(),
        code: error.map_or(Code::Unknown, |error| Code::of(&error.code)),
        retryable,
        retry_after: seconds.map(|seconds: u64| Duration::from_secs(seconds.min(60))),
    }
}

/// The time in a `Date` header.
fn timestamp(header: &HeaderValue) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(header.to_str().ok()?).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp::from_unix_micros(i64::try_from(since.as_micros()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_of_an_answer_is_read() {
        let read = |text| timestamp(&HeaderValue::from_static(text));
        assert_eq!(read("Sun, 15 Nov 2026 12:01:03 GMT"), Some("2026-11-15T12:01:03Z".parse().unwrap()));
        assert_eq!(read("yesterday"), None);
    }

    #[test]
    fn a_credential_is_not_printed() {
        let credential = Credential::new(Zeroizing::new("csk_secret".to_owned())).unwrap();
        let http = Http::new(GatewayUrl::new("http://127.0.0.1:8080/").unwrap(), Some(&credential)).unwrap();
        assert!(!format!("{http:?} {:?}", http.authorization).contains("csk_secret"));
        assert_eq!(http.gateway().as_str(), "http://127.0.0.1:8080");
    }

    #[test]
    fn ids_can_not_leave_their_segment() {
        assert_eq!(segment("a/b?c#d ü"), "a%2Fb%3Fc%23d%20%C3%BC");
        assert_eq!((segment(".."), segment("a-b_c~1")), ("%2E%2E".to_owned(), "a-b_c~1".to_owned()));
    }
}
