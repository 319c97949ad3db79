//! The end beside a person: pairs with enforcers, lists what waits, opens and checks it, and signs decisions.

use std::{sync::Arc, time::Duration};

use countersign_wire::{
    Label,
    exchange::ExchangeState,
    failure::Failure,
    id::{ApproverId, EnforcerId, RequestId},
    keys::KeyBundle,
    lock::{Assertion, EXTENSION as LOCK, LockKey},
    msg_type::MsgType,
    pairing::ResolveResponse,
    timestamp::Timestamp,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    clock::Clock,
    ends::enforcer::{PairError, Paired, keys_of},
    exchange::{
        reply::{Choice, ChoiceError, SentDecision, decide_with},
        request::{OpenError, OpenedRequest},
    },
    gateway::{
        answers::Page,
        exchange::ExchangeWord,
        http::{Call, CallError, Http, segment},
    },
    identity::{
        keys::DeviceKeys,
        pairing::{self, PairingError, Transcript, code::GivenCode, link::PairingLink},
        profile::{Party, Pin, PinSource, Pins},
    },
};

/// How long one call is retried.
const CALL_TIME: Duration = Duration::from_secs(30);

/// Pages of the inbox that are read, of 200 items each: a gateway could always name another one.
pub const MAX_PAGES: usize = 20;

/// One device of an approver at one gateway.
pub struct Approver {
    /// The gateway and the credential.
    pub http: Http,
    /// The person's id there.
    pub id: ApproverId,
    /// The keys of this device.
    pub keys: DeviceKeys,
    /// For expiry times; the two ends' clocks may differ by a minute.
    pub clock: Arc<dyn Clock>,
}

/// One item of the inbox: opened and checked, or the reason why it can't be decided here.
#[derive(Debug)]
pub struct InboxItem {
    /// The id of the exchange.
    pub request_id: RequestId,
    /// What to show; an error is shown too, and can't be decided.
    pub opened: Result<OpenedRequest, OpenError>,
}

/// Where an exchange stands, by the gateway's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestStatus {
    /// The state at the time of the call.
    pub state: ExchangeState,
    /// When the gateway accepted the request, by its clock.
    pub created_at: Timestamp,
    /// The time from which the request can't be decided any more.
    pub expires_at: Timestamp,
}

/// Why a decision did not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecideError {
    /// It could not be made.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// Somebody else has answered first, by the gateway's word.
    #[error("somebody else has answered first")]
    AnsweredBefore,
    /// The request has expired.
    #[error("the request has expired")]
    TooLate,
    /// The request was taken back or cancelled, by the gateway's word.
    #[error("the request was taken back")]
    TakenBack,
    /// The gateway refused, or could not be reached.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl Approver {
    /// What waits for this person, oldest first: everything, or the first [`MAX_PAGES`] pages if there is more.
    pub async fn inbox(&self, pins: &Pins) -> Result<Vec<InboxItem>, CallError> {
        self.list("inbox", pins).await
    }

    /// What has expired without an answer of this person, as far as the gateway keeps it; otherwise as [`Approver::inbox`].
    pub async fn expired(&self, pins: &Pins) -> Result<Vec<InboxItem>, CallError> {
        self.list("inbox/expired", pins).await
    }

    async fn list(&self, list: &str, pins: &Pins) -> Result<Vec<InboxItem>, CallError> {
        let path = format!("/v1/approvers/{}/{list}?limit=200", segment(self.id.as_str()));
        let (mut items, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let more = cursor.map(|cursor| format!("&cursor={}", segment(&cursor))).unwrap_or_default();
            let answer = self.http.send_until(&Call::get(format!("{path}{more}")), soon()).await?;
            let envelope = answer.envelope()?;
            let page = envelope.body.view::<Page<'_>>().map_err(|_| CallError::NotUnderstood)?.into_view();
            let now = self.clock.now();
            items.extend(page.items.iter().map(|item| InboxItem {
                request_id: item.request_id.clone(),
                opened: OpenedRequest::open(item, self.id.as_str(), &self.keys, pins, now),
            }));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(items)
    }

    /// Where an exchange stands. The gateway could say anything here: show it as its word, and decide nothing by it.
    pub async fn status(&self, request_id: &RequestId) -> Result<RequestStatus, CallError> {
        let ExchangeWord { state, created_at, expires_at, .. } =
            self.http.exchange(request_id, soon()).await?;
        Ok(RequestStatus { state, created_at, expires_at })
    }

    /// The decision about a request as the gateway has it, which nobody has checked; `None` before there is one.
    pub(crate) async fn decision(&self, request_id: &RequestId) -> Result<Option<String>, CallError> {
        Ok(self.http.exchange(request_id, soon()).await?.decision)
    }

    /// Signs and sends a decision. Sending the same again is harmless; a second one is refused.
    /// What is returned names the decision, so that its receipt can be recognised. If the gateway's answer was lost and the
    /// decision is there already, it was accepted.
    pub async fn decide(
        &self,
        request: &OpenedRequest,
        choice: &Choice,
    ) -> Result<SentDecision, DecideError> {
        self.decide_with(request, choice, |_| None).await
    }

    /// As [`Approver::decide`], with what the lock of this device signs for exactly this decision: it is asked with the
    /// challenge, as in [`crate::reply::decide_with`].
    pub async fn decide_with(
        &self,
        request: &OpenedRequest,
        choice: &Choice,
        lock: impl FnOnce([u8; 32]) -> Option<Assertion>,
    ) -> Result<SentDecision, DecideError> {
        let now = self.clock.now();
        let decision = decide_with(request, choice, &self.id, &self.keys, now, lock)?;
        let sent = SentDecision::of(&decision, request.enforcer.clone()).map_err(ChoiceError::from)?;
        let decision: Value = serde_json::from_str(&decision).map_err(|_| CallError::NotUnderstood)?;
        let envelope = json!({
            "msgType": MsgType::DecisionSubmit, "requestId": request.request_id, "createdAt": now,
            "sender": { "approverId": self.id }, "body": decision,
        });
        let call = Call::post("/v1/decisions", envelope.to_string());
        match self.http.send_until(&call, soon()).await {
            Ok(_) => Ok(sent),
            Err(error) => {
                let signature = envelope["body"]["signature"].as_str().unwrap_or_default();
                self.not_taken(request, signature, error).await.map(|()| sent)
            }
        }
    }

    /// Why a decision was refused. The specification has the statuses, and not all codes: after a conflict the gateway is asked
    /// what it has. If that is this decision, it was accepted, and only the answer was lost.
    async fn not_taken(
        &self,
        request: &OpenedRequest,
        signature: &str,
        error: CallError,
    ) -> Result<(), DecideError> {
        match error {
            CallError::Refused { status: 404, .. } => return Err(DecideError::TakenBack),
            CallError::Refused { status: 409, .. } => {}
            error => return Err(error.into()),
        }
        let Ok(word) = self.http.exchange(&request.request_id, soon()).await else {
            return Err(match self.clock.now() >= request.expires_at || error.is(Failure::ExchangeExpired) {
                true => DecideError::TooLate,
                false if error.is(Failure::AlreadyDecided) => DecideError::AnsweredBefore,
                false => error.into(),
            });
        };
        match word.state {
            _ if word.has_signature(signature) => Ok(()),
            ExchangeState::Decided | ExchangeState::Delivered => Err(DecideError::AnsweredBefore),
            ExchangeState::Expired => Err(DecideError::TooLate),
            ExchangeState::Withdrawn | ExchangeState::Cancelled => Err(DecideError::TakenBack),
            ExchangeState::PendingApproval => Err(error.into()),
        }
    }

    /// Answers a link that was scanned or opened. The enforcer is pinned when this returns without digits.
    pub async fn pair_by_link(&self, link: &PairingLink) -> Result<Paired, PairError> {
        self.pair_by_link_as(link, &Label::new("")).await
    }

    /// As [`Approver::pair_by_link`]. The enforcer's screen shows what this device is called, if that is not empty; the gateway
    /// reads it.
    pub async fn pair_by_link_as(&self, link: &PairingLink, device: &Label) -> Result<Paired, PairError> {
        self.pair_by_link_with(link, device, None).await
    }

    /// As [`Approver::pair_by_link_as`], with the lock of this device: the enforcer then wants it for what is dangerous. An
    /// enforcer that knows no locks, and one behind a gateway that does not relay them, refuses the pairing.
    pub async fn pair_by_link_with(
        &self,
        link: &PairingLink,
        device: &Label,
        lock: Option<&LockKey>,
    ) -> Result<Paired, PairError> {
        let (nonce, named, bundle) = self.resolve(&link.code).await?;
        // The link says whose it is where the gateway does not; where both do, they must say the same.
        let enforcer_id = named.unwrap_or_else(|| link.enforcer_id.clone());
        let transcript = Transcript { lock, ..self.transcript(&nonce, &enforcer_id, &bundle) };
        let answer = pairing::answer_link(transcript, link)?;
        self.complete(transcript, answer, device).await
    }

    /// Answers a typed code. The pin must not be used before a person has compared the digits. `machine` is whose screen shows
    /// the code, by the person's word: without it, a gateway that does not say it is [`PairingError::MachineNotNamed`].
    pub async fn pair_by_code(
        &self,
        code: &GivenCode,
        machine: Option<&EnforcerId>,
    ) -> Result<Paired, PairError> {
        self.pair_by_code_with(code, machine, None).await
    }

    /// As [`Approver::pair_by_code`], with the lock of this device, as in [`Approver::pair_by_link_with`].
    pub async fn pair_by_code_with(
        &self,
        code: &GivenCode,
        machine: Option<&EnforcerId>,
        lock: Option<&LockKey>,
    ) -> Result<Paired, PairError> {
        let (nonce, named, bundle) = self.resolve(code).await?;
        // The id is part of what the digits are made of: a wrong one shows other digits.
        let enforcer_id = machine.map(|machine| machine.as_str().to_owned()).or(named);
        let enforcer_id = enforcer_id.ok_or(PairingError::MachineNotNamed)?;
        let transcript = Transcript { lock, ..self.transcript(&nonce, &enforcer_id, &bundle) };
        let answer = pairing::answer_typed(transcript)?;
        self.complete(transcript, answer, &Label::new("")).await
    }

    /// What the gateway relays of an enforcer: the nonce, its id if it is named, its keys.
    async fn resolve(&self, code: &GivenCode) -> Result<(String, Option<String>, KeyBundle), PairError> {
        let call = Call::get(format!("/v1/pairing/resolve/{}", segment(code.as_str())));
        let resolved: ResolveResponse = self.http.send(&call).await?.object()?;
        let named = resolved.enforcer_id.map(|id| id.as_str().to_owned());
        let nonce = resolved.nonce.as_str().to_owned();
        Ok((nonce, named, keys_of(resolved.public_key)?))
    }

    fn transcript<'a>(
        &'a self,
        nonce: &'a str,
        enforcer_id: &'a str,
        enforcer: &'a KeyBundle,
    ) -> Transcript<'a> {
        let (approver_id, approver) = (self.id.as_str(), self.keys.bundle());
        Transcript { enforcer_id, enforcer, approver_id, approver, nonce, lock: None }
    }

    async fn complete(
        &self,
        transcript: Transcript<'_>,
        answer: pairing::Answer,
        device: &Label,
    ) -> Result<Paired, PairError> {
        let Transcript { enforcer_id, enforcer, nonce, lock, .. } = transcript;
        let mut plain =
            json!({ "nonce": nonce, "approverId": self.id, "publicKey": answer.bundle.to_string() });
        if let Some(lock) = lock {
            // What is proven is proven of the lock too, so it is not left out for any gateway.
            plain[LOCK] = json!(lock);
        }
        let mut named = plain.clone();
        if !device.as_str().is_empty() {
            named["org.countersign.deviceLabel"] = device.as_str().into();
        }
        let call = |body: &Value| Call::post("/v1/pairing/complete", body.to_string());
        // Nothing of the answer is needed: requests are addressed by id, or to everybody who is paired.
        match self.http.send(&call(&named)).await {
            // Another gateway may take no member that the specification does not have.
            Err(CallError::Refused { status: 400 | 422, .. }) if named != plain => {
                self.http.send(&call(&plain)).await?;
            }
            sent => drop(sent?),
        }
        let machine = enforcer_id.parse().map_err(|_| PairingError::UnknownKeys)?;
        let pin = Pin::new(Party::Enforcer(machine), enforcer, PinSource::Paired, self.clock.now());
        Ok(Paired { pin, digits: answer.digits, device: None })
    }
}

fn soon() -> Instant {
    Instant::now() + CALL_TIME
}
