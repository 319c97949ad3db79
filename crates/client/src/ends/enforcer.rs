//! The end beside an agent: pairs with approvers, asks, waits, and hands out only decisions that passed every check.

use std::{sync::Arc, time::Duration};

use countersign_wire::{
    Label,
    exchange::ExchangeState,
    failure::Code,
    id::{EnforcerId, RequestId},
    keys::{KeyBundle, PublicKey},
    lock::RelayedLock,
    msg_type::MsgType,
    timestamp::Timestamp,
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use crate::{
    clock::Clock,
    ends::names::Names,
    exchange::{
        reply::{Rejected, VerifiedDecision},
        request::{Draft, Request, RequestError},
    },
    gateway::{
        answers::{PairingProgress, Started},
        http::{Call, CallError, Http, SaidState, segment},
    },
    identity::{
        keys::DeviceKeys,
        pairing::{self, PairingError, Transcript, code::GivenCode, link::PairingLink},
        profile::{GatewayUrl, Party, Pin, PinSource, Pins},
    },
    journal::{Journal, JournalError},
};

/// How long the gateway holds one wait.
const WAIT_SECONDS: u64 = 50;

/// Waits are this far apart: a gateway that does not hold them must not keep this end busy.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// How long after its end a gateway is asked what became of something.
const AFTER_EXPIRY: Duration = Duration::from_secs(10);

/// How often the status of a pairing is asked for.
const PAIRING_POLL: Duration = Duration::from_millis(500);

/// An enforcer at one gateway.
pub struct Enforcer {
    /// The gateway and the credential.
    pub http: Http,
    /// The id that its credential is for.
    pub id: EnforcerId,
    /// The keys that seal its requests and open what is sealed to it.
    pub keys: DeviceKeys,
    /// For expiry times; the two ends' clocks may differ by a minute.
    pub clock: Arc<dyn Clock>,
    /// Remembers which decisions were used.
    pub journal: Arc<dyn Journal>,
}

/// Why there is no decision. Whatever it is: what was asked for must not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The request could not be made.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The gateway refused, or could not be reached before the request expired.
    #[error(transparent)]
    Call(#[from] CallError),
    /// Nobody answered in time.
    #[error("nobody answered in time")]
    Expired,
    /// It was taken back, or cancelled by the operator.
    #[error("the request was taken back")]
    TakenBack,
    /// It was taken back because the same is asked under another id, which more devices can open.
    #[error("the same is asked under another id now")]
    Replaced,
    /// An answer came and failed a check.
    #[error("an answer came and is not accepted: {0}")]
    Rejected(#[from] Rejected),
    /// It can't be recorded what is asked or done.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No request of this id waits for an answer here.
    #[error("no request of this id waits for an answer")]
    NotOpen,
    /// It is not asked again while it can be answered, and not if it was.
    #[error("the request can still be answered, or has an answer")]
    StillOpen,
    /// It was asked again as often as it may be.
    #[error("the same was asked too often")]
    AskedTooOften,
}

impl Enforcer {
    /// Asks every paired approver and waits for the first answer. The request is the same across retries. An approval is
    /// recorded as used once.
    pub async fn ask(&self, draft: &Draft, pins: &Pins) -> Result<VerifiedDecision, AskError> {
        Ok(self.ask_and_take(draft, pins).await?.decision)
    }

    /// Submits a request. Submitting it again is harmless. A gateway that does not know sealed bodies gets it as an Artifact
    /// whose payload is the sealed content.
    pub async fn submit(&self, request: &Request) -> Result<(), AskError> {
        match self.submit_as(request, request.envelope.clone()).await {
            Err(error) if is_other_form(&error) => {
                Ok(self.submit_as(request, request.sealed_in_place()?).await?)
            }
            submitted => Ok(submitted?),
        }
    }

    /// That the gateway has the request already is no refusal: an answer was lost, or an earlier process has submitted it.
    async fn submit_as(&self, request: &Request, envelope: String) -> Result<(), CallError> {
        let call = Call::post("/v1/artifacts", envelope).idempotent(request.request_id.as_str());
        let until = self.deadline(request.expires_at);
        match self.http.send_until(&call, until).await {
            Err(error @ CallError::Refused { status: 409, .. }) => {
                let word = self.http.exchange(&request.request_id, until).await;
                let is_own = |hash| hash == request.artifact_hash;
                let is_there = word.is_ok_and(|word| word.artifact_hash.is_none_or(is_own));
                if is_there { Ok(()) } else { Err(error) }
            }
            answer => answer.map(drop),
        }
    }

    /// Waits for the answer to a request that was submitted, also by an earlier process. An approval is recorded as used
    /// once.
    pub async fn wait(&self, request: &Request, pins: &Pins) -> Result<VerifiedDecision, AskError> {
        Ok(self.wait_and_take(request, pins).await?.decision)
    }

    /// Waits for the text of a decision, which is not checked.
    pub(crate) async fn wait_for_text(&self, request: &Request) -> Result<String, AskError> {
        let path =
            format!("/v1/exchanges/{}/wait?timeout={WAIT_SECONDS}", segment(request.request_id.as_str()));
        let call = Call::get(path).held_for(Duration::from_secs(WAIT_SECONDS));
        // A little longer than the request: the gateway says that it expired.
        let expires = self.deadline(request.expires_at);
        let deadline = expires + AFTER_EXPIRY;
        loop {
            let asked = Instant::now();
            let answer = self.http.send_until(&call, deadline).await?;
            if answer.status == 200 {
                return Ok(answer.envelope()?.body.as_str().to_owned());
            }
            match answer.exchange_state {
                SaidState::Known(ExchangeState::Expired) => return Err(AskError::Expired),
                // Only our own gateway says more than "no result yet".
                SaidState::Nothing if asked >= expires => return Err(AskError::Expired),
                SaidState::Nothing | SaidState::Known(ExchangeState::PendingApproval) => {
                    sleep_until(asked + MIN_WAIT).await;
                }
                SaidState::Known(_) | SaidState::Nonsense => return Err(AskError::TakenBack),
            }
        }
    }

    /// Takes a request back, or says that it was answered at the desk. If a decision was faster, this fails.
    /// If the same is asked under another id by now, that request is taken back.
    pub async fn withdraw(&self, request: &Request) -> Result<(), AskError> {
        self.withdraw_at_gateway(request, self.deadline(request.expires_at)).await?;
        match self.record_withdrawal(request).await {
            Err(AskError::Rejected(Rejected::Settled)) => self.withdraw_newest(request).await,
            recorded => recorded,
        }
    }

    /// Takes a request back so that nobody sees it any more. Nothing is recorded.
    pub(crate) async fn withdraw_at_gateway(
        &self,
        request: &Request,
        until: Instant,
    ) -> Result<(), CallError> {
        let envelope = self.envelope(&MsgType::ExchangeWithdrawn, &request.request_id, &json!({}));
        let path = format!("/v1/exchanges/{}/withdraw", segment(request.request_id.as_str()));
        match self.http.send_until(&Call::post(path, envelope), until).await {
            // Only this end withdraws it: if it is withdrawn, an answer was lost.
            Err(error @ CallError::Refused { status: 409, .. }) => {
                let word = self.http.exchange(&request.request_id, until).await;
                let is_done = word.is_ok_and(|word| word.state == ExchangeState::Withdrawn);
                if is_done { Ok(()) } else { Err(error) }
            }
            answer => answer.map(drop),
        }
    }

    /// Tells the gateway that what it has sent about a request has arrived: a decision, or that it is asked for again. If
    /// that fails, the gateway sends it again; it has no effect again.
    pub(crate) async fn acknowledge(&self, request_id: &RequestId) {
        let envelope = self.envelope(&MsgType::AckSubmit, request_id, &json!({ "status": "processed" }));
        if let Err(error) = self.http.send(&Call::post("/v1/acks", envelope)).await {
            tracing::debug!(%error, "a message was not acknowledged");
        }
    }

    fn envelope(&self, msg_type: &MsgType, request_id: &RequestId, body: &Value) -> String {
        json!({
            "msgType": msg_type, "requestId": request_id, "createdAt": self.clock.now(),
            "sender": { "enforcerId": self.id }, "body": body,
        })
        .to_string()
    }

    /// When a time of the clock has passed.
    pub(crate) fn deadline(&self, at: Timestamp) -> Instant {
        Instant::now() + at.since(self.clock.now())
    }

    /// Starts a pairing and returns what to show: the link, and the code for whoever can't scan it. The other side is shown
    /// the names.
    pub async fn start_pairing(&self, names: impl Into<Names>) -> Result<StartedPairing, PairError> {
        self.start_pairing_at(self.http.gateway(), names).await
    }

    /// As [`Enforcer::start_pairing`], with a link that leads to another address of the same gateway: one that the approver's
    /// device can reach.
    pub async fn start_pairing_at(
        &self,
        gateway: &GatewayUrl,
        names: impl Into<Names>,
    ) -> Result<StartedPairing, PairError> {
        let mut body = Map::new();
        body.insert("enforcerId".to_owned(), self.id.as_str().into());
        body.insert("publicKey".to_owned(), self.keys.bundle().to_string().into());
        names.into().add_to(&mut body);
        let call = Call::post("/v1/pairing/initiate", Value::from(body).to_string());
        let answer = self.http.send(&call).await?;
        let started: Started = answer.object()?;
        let link = pairing::new_link(gateway.as_str(), started.code.clone(), self.id.as_str(), &self.keys)?;
        Ok(StartedPairing {
            link,
            code: started.code,
            nonce: started.nonce.as_str().to_owned(),
            expires_at: started.expires_at,
        })
    }

    /// Waits until somebody has answered, and checks the answer.
    pub async fn finish_pairing(&self, started: &StartedPairing, by: Answered) -> Result<Paired, PairError> {
        let call = Call::get(format!("/v1/pairing/status/{}", segment(&started.nonce)));
        let expires = self.deadline(started.expires_at);
        let (approver_id, bundle, device, lock) = loop {
            let asked = Instant::now();
            match self.http.send_until(&call, expires + AFTER_EXPIRY).await?.object()? {
                PairingProgress::Completed { approver_id, public_key, device_label, lock } => {
                    break (approver_id, keys_of(*public_key)?, device_label, lock);
                }
                PairingProgress::Expired => return Err(PairError::Expired),
                PairingProgress::Waiting if asked >= expires => return Err(PairError::Expired),
                PairingProgress::Waiting => sleep(PAIRING_POLL).await,
            }
        };
        let read = |lock: RelayedLock| lock.read().ok_or(PairingError::UnknownKeys);
        let lock = lock.map(read).transpose()?;
        let transcript = Transcript {
            enforcer_id: self.id.as_str(),
            enforcer: self.keys.bundle(),
            approver_id: approver_id.as_str(),
            approver: &bundle,
            nonce: &started.nonce,
            lock: lock.as_ref(),
        };
        let digits = match by {
            Answered::Link => {
                pairing::verify_link(transcript, &started.link.secret)?;
                None
            }
            Answered::TypedCode => Some(pairing::typed_digits(transcript)?),
        };
        let pin = Pin::new(Party::Approver(approver_id), &bundle, PinSource::Paired, self.clock.now());
        let pin = pin.with_lock(lock);
        Ok(Paired { pin, digits, device: device.filter(|device| !device.as_str().is_empty()) })
    }
}

/// Whether a gateway may want the same in another form. Our own gateway has other codes for what is wrong with a request.
fn is_other_form(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Refused {
            status: 400 | 422,
            code: Code::Unknown | Code::Structure | Code::Validation,
            ..
        }
    )
}

pub(crate) fn keys_of(key: PublicKey) -> Result<KeyBundle, PairingError> {
    match key {
        PublicKey::Bundle(bundle) => Ok(*bundle),
        PublicKey::Opaque(_) => Err(PairingError::UnknownKeys),
    }
}

/// A pairing that waits for an answer.
#[derive(Debug, Clone)]
pub struct StartedPairing {
    /// To be scanned or opened on the approver's device. It is a secret until then.
    pub link: PairingLink,
    /// To be typed where the link can't be used.
    pub code: GivenCode,
    /// Identifies the pairing at the gateway.
    pub nonce: String,
    /// The time from which it can't be answered.
    pub expires_at: Timestamp,
}

/// How the person says that they answered. It is asked and not guessed: a gateway must not be able to turn a link that it
/// could not answer into digits that nobody compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// By the link or its QR code.
    Link,
    /// By the typed code.
    TypedCode,
}

/// The other side of a completed pairing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paired {
    /// Whose keys they are. Keep the pin only if there are no digits to compare, or a person has found them equal.
    pub pin: Pin,
    /// The digits that both screens must show; `None` if the link has proven everything.
    pub digits: Option<String>,
    /// What the approver's device calls itself, relayed by the gateway and proven by nobody; `None` if it did not say.
    pub device: Option<Label>,
}

/// Why a pairing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The gateway refused, or could not be reached.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A check failed, and nothing was pinned.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// Nobody answered in time.
    #[error("nobody answered within ten minutes; start again")]
    Expired,
}
