//! What an agent's session is doing, as approvers see it. Contents are in snapshots, which are sealed; the other events say
//! only that the session started, what it does now, and that it ended.

use std::collections::BTreeMap;

use countersign_wire::{
    FromJson as _, FromMembers, Members, RawObject, Verbatim, base64url,
    extension::SALT,
    hash::Sha256Hex,
    id::{EnforcerId, SessionId, SnapshotId},
    msg_type::MsgType,
    session::{EndReason, SessionEvent, SessionSnapshot, SessionState, SnapshotType},
    timestamp::Timestamp,
};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use sha1::{Digest as _, Sha1};
use zeroize::Zeroizing;

use crate::{
    checks::{self, Check, ensure},
    ends::{approver::Approver, enforcer::Enforcer},
    exchange::seal::{Context, Recipient, SealError, Sealed, seal},
    gateway::{
        answers::loose,
        http::{Call, CallError, segment},
    },
    identity::{
        keys::DeviceKeys,
        profile::{Party, Pin, Pins, Role},
    },
    random::{self, NoRandomness},
};

/// How long one event is retried.
const CALL_TIME: std::time::Duration = std::time::Duration::from_secs(30);

/// What a snapshot says, before it is sealed.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotDraft<'a> {
    /// The session that it belongs to.
    pub session_id: &'a SessionId,
    /// Unique within the session.
    pub snapshot_id: &'a str,
    /// What kind of content it is; a session keeps the newest of each.
    pub snapshot_type: SnapshotType,
    /// The content, a JSON object.
    pub payload: &'a str,
}

/// Why an event was not reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The payload is not a JSON object that can be hashed.
    #[error("the snapshot can't be used: {0}")]
    Payload(#[from] countersign_wire::Error),
    /// It can't be sealed, perhaps because nobody is paired.
    #[error("the snapshot can't be sealed: {0}")]
    Seal(#[from] SealError),
    /// Without randomness nothing is sealed.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// The gateway refused, or could not be reached.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// The session of this name: a UUID of version 5 (RFC 9562), so that both ends know it.
pub(crate) fn named_session(namespace: [u8; 16], name: &str) -> SessionId {
    let mut hash = Sha1::new();
    hash.update(namespace);
    hash.update(name);
    let digest: [u8; 20] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x50;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = format!("{:032x}", u128::from_be_bytes(bytes));
    let text = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    match SessionId::new(text) {
        Ok(id) => id,
        Err(_) => unreachable!("a UUID is an id"),
    }
}

/// Builds, salts, hashes and seals a snapshot to these devices. Returns the event, as JSON.
pub(crate) fn seal_snapshot(
    draft: SnapshotDraft<'_>,
    enforcer: &EnforcerId,
    keys: &DeviceKeys,
    recipients: &[Recipient<'_>],
    now: Timestamp,
) -> Result<String, SessionError> {
    let mut event = json!({
        "eventType": "session.snapshot",
        "sessionId": draft.session_id,
        "snapshotId": draft.snapshot_id,
        "snapshotType": draft.snapshot_type,
        "createdAt": now,
        "payload": RawObject::parse(draft.payload.as_bytes())?,
        "snapshotHashAlg": "SHA-256",
        "metadata": { SALT.key(): base64url::encode(&random::bytes::<16>()?) },
    });
    let unhashed = Zeroizing::new(event.to_string());
    let hash = Sha256Hex::of_object_without(RawObject::parse(unhashed.as_bytes())?, "snapshotHash")?;
    event["snapshotHash"] = hash.to_string().into();
    let text = Zeroizing::new(event.to_string());
    let context =
        Context::snapshot(draft.session_id.as_str(), draft.snapshot_id, &hash.to_string(), enforcer.as_str());
    let sealed = seal(keys, &context, text.as_bytes(), recipients)?;
    event["payload"] = json!({ "ciphertext": sealed });
    if let Some(members) = event.as_object_mut() {
        members.remove("metadata");
    }
    Ok(event.to_string())
}

/// A snapshot that an approver has opened and checked.
#[derive(Debug, Clone)]
pub struct OpenedSnapshot {
    /// The session that it belongs to.
    pub session_id: SessionId,
    /// Its id within the session.
    pub snapshot_id: SnapshotId,
    /// What kind of content it is.
    pub snapshot_type: SnapshotType,
    /// When the enforcer made it, by its clock.
    pub created_at: Timestamp,
    /// The content, a JSON object. It is wiped from memory when dropped.
    pub payload: Zeroizing<String>,
    /// The device that sealed it, which is an enforcer's.
    pub sent_by: Pin,
}

/// Why a snapshot is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// It is not a snapshot of the protocol.
    #[error("the snapshot is not in a format that is known here")]
    Malformed,
    /// It is not sealed, so the gateway could have written it.
    #[error("the snapshot is not sealed: anybody between could have written it")]
    NotSealed,
    /// Its sender is not pinned as an enforcer, or not any more.
    #[error("the snapshot comes from a device that is not paired, or not any more")]
    UnknownSender,
    /// It does not open.
    #[error("the snapshot does not open: {0}")]
    Seal(#[from] SealError),
    /// What was sealed is not what the event says.
    #[error("what was sealed differs from what the gateway says in {0}")]
    Differs(&'static str),
}

impl OpenedSnapshot {
    /// Opens the event of a snapshot, in this order: shape, sealed, sender pinned as an enforcer, sealed by that sender to
    /// this device in this context, hash of the content, agreement of content and event.
    pub fn open(
        event: &str,
        approver: &str,
        keys: &DeviceKeys,
        pins: &Pins,
        now: Timestamp,
    ) -> Result<Self, SnapshotError> {
        let relayed = Relayed::read(event, pins, now)?;
        checks::all(&Relayed::SENDER, &relayed)?;
        let text = relayed.open(approver, keys)?;
        let unsealed = Unsealed::read(&relayed, &text)?;
        checks::all(&Unsealed::AGREES, &unsealed)?;
        Ok(unsealed.accept())
    }
}

/// A snapshot as the gateway relays it: sealed content, and what the gateway says of it.
struct Relayed<'a> {
    outer: SessionSnapshot<'a>,
    sealed: Sealed,
    /// The device that it names as its sender, which is pinned as this enforcer's.
    sent_by: &'a Pin,
    enforcer: &'a EnforcerId,
    /// Whether the keys of that device count now.
    is_active: bool,
}

impl<'a> Relayed<'a> {
    const SENDER: [Check<Self, SnapshotError>; 1] =
        [("sender", |it| ensure(it.is_active, SnapshotError::UnknownSender))];

    fn read(event: &'a str, pins: &'a Pins, now: Timestamp) -> Result<Self, SnapshotError> {
        let outer = snapshot(read_event(event.as_bytes())?)?;
        #[derive(Deserialize)]
        struct Body {
            ciphertext: Option<Sealed>,
        }
        let body: Body =
            serde_json::from_str(outer.payload.as_str()).map_err(|_| SnapshotError::Malformed)?;
        let sealed = body.ciphertext.ok_or(SnapshotError::NotSealed)?;
        let sent_by = sealed.sender().and_then(|fingerprint| pins.get(fingerprint));
        let sent_by = sent_by.ok_or(SnapshotError::UnknownSender)?;
        let Party::Enforcer(enforcer) = sent_by.party() else { return Err(SnapshotError::UnknownSender) };
        let is_active = pins.is_active(sent_by.fingerprint(), now);
        Ok(Self { outer, sealed, sent_by, enforcer, is_active })
    }

    fn open(&self, approver: &str, keys: &DeviceKeys) -> Result<Zeroizing<Vec<u8>>, SnapshotError> {
        let (session_id, snapshot_id) = (self.outer.session_id.as_str(), self.outer.snapshot_id.as_str());
        let hash = self.outer.snapshot_hash.to_string();
        let context = Context::snapshot(session_id, snapshot_id, &hash, self.enforcer.as_str());
        Ok(self.sealed.open(keys, approver, self.sent_by.bundle(), &context)?)
    }
}

/// The content of a snapshot beside what the gateway says of it.
struct Unsealed<'a> {
    relayed: &'a Relayed<'a>,
    inner: SessionSnapshot<'a>,
    /// Whether the hash in the content is that of the content.
    is_own_hash: bool,
}

impl<'a> Unsealed<'a> {
    const AGREES: [Check<Self, SnapshotError>; 4] = [
        ("hash", |it| {
            let is_own = it.is_own_hash && it.inner.snapshot_hash == it.relayed.outer.snapshot_hash;
            ensure(is_own, SnapshotError::Differs("snapshotHash"))
        }),
        ("session id", |it| {
            let is_own = it.inner.session_id == it.relayed.outer.session_id;
            ensure(is_own, SnapshotError::Differs("sessionId"))
        }),
        ("snapshot id", |it| {
            let is_own = it.inner.snapshot_id == it.relayed.outer.snapshot_id;
            ensure(is_own, SnapshotError::Differs("snapshotId"))
        }),
        ("snapshot type", |it| {
            let is_own = it.inner.snapshot_type == it.relayed.outer.snapshot_type;
            ensure(is_own, SnapshotError::Differs("snapshotType"))
        }),
    ];

    fn read(relayed: &'a Relayed<'a>, text: &'a [u8]) -> Result<Self, SnapshotError> {
        let event = read_event(text)?;
        let is_own_hash = event.check_hash().is_ok();
        Ok(Self { relayed, inner: snapshot(event)?, is_own_hash })
    }

    /// The snapshot as it is shown once every check has passed.
    fn accept(&self) -> OpenedSnapshot {
        OpenedSnapshot {
            session_id: self.relayed.outer.session_id.clone(),
            snapshot_id: self.relayed.outer.snapshot_id.clone(),
            snapshot_type: self.inner.snapshot_type,
            created_at: self.inner.created_at,
            payload: Zeroizing::new(self.inner.payload.as_str().to_owned()),
            sent_by: self.relayed.sent_by.clone(),
        }
    }
}

fn read_event(text: &[u8]) -> Result<Verbatim<'_, SessionEvent<'_>>, SnapshotError> {
    countersign_wire::parse(text).map_err(|_| SnapshotError::Malformed)
}

fn snapshot<'a>(event: Verbatim<'a, SessionEvent<'a>>) -> Result<SessionSnapshot<'a>, SnapshotError> {
    match event.into_view() {
        SessionEvent::Snapshot(snapshot) => Ok(snapshot),
        _ => Err(SnapshotError::Malformed),
    }
}

impl Enforcer {
    /// Reports that a session has started. The gateway reads the name of the agent's host.
    pub async fn session_start(
        &self,
        session_id: &SessionId,
        agent_host: &str,
        repo_name: Option<&str>,
    ) -> Result<(), SessionError> {
        let mut event = json!({
            "eventType": "session.start", "sessionId": session_id, "createdAt": self.clock.now(),
            "agentHost": agent_host,
        });
        if let Some(name) = repo_name {
            event["repoRef"] = self.keys.repo_ref(name).into();
        }
        self.report_event(&MsgType::SessionStart, session_id, &event).await
    }

    /// Reports what a session is doing now. The gateway reads it.
    pub async fn session_status(
        &self,
        session_id: &SessionId,
        state: SessionState,
    ) -> Result<(), SessionError> {
        let event = json!({
            "eventType": "session.status", "sessionId": session_id, "state": state,
            "updatedAt": self.clock.now(),
        });
        self.report_event(&MsgType::SessionStatus, session_id, &event).await
    }

    /// Reports a content of a session, sealed to every paired device of every approver.
    pub async fn session_snapshot(&self, draft: SnapshotDraft<'_>, pins: &Pins) -> Result<(), SessionError> {
        let now = self.clock.now();
        let pinned: Vec<&Pin> = pins.active_in_role(Role::Approver, now).collect();
        let recipients: Vec<Recipient<'_>> =
            pinned.iter().map(|pin| Recipient { id: pin.party().id(), bundle: pin.bundle() }).collect();
        let event = seal_snapshot(draft, &self.id, &self.keys, &recipients, now)?;
        let call = Call::post("/v1/session/event", event);
        self.http.send_until(&call, tokio::time::Instant::now() + CALL_TIME).await?;
        Ok(())
    }

    /// Reports that a session has ended. Nothing can be reported of it afterwards.
    pub async fn session_end(&self, session_id: &SessionId, reason: EndReason) -> Result<(), SessionError> {
        let event = json!({
            "eventType": "session.end", "sessionId": session_id, "endedAt": self.clock.now(), "reason": reason,
        });
        self.report_event(&MsgType::SessionEnd, session_id, &event).await
    }

    async fn report_event(
        &self,
        msg_type: &MsgType,
        session_id: &SessionId,
        event: &Value,
    ) -> Result<(), SessionError> {
        let envelope = json!({
            "msgType": msg_type, "requestId": session_id, "createdAt": self.clock.now(),
            "sender": { "enforcerId": self.id }, "body": event,
        });
        let call = Call::post("/v1/session/event", envelope.to_string());
        self.http.send_until(&call, tokio::time::Instant::now() + CALL_TIME).await?;
        Ok(())
    }
}

/// A session as the gateway has it: apart from what snapshots prove, it is the gateway's word.
#[derive(Debug, Clone)]
pub struct Session {
    /// The id of the session.
    pub session_id: SessionId,
    /// Whose session it is; `None` if the gateway does not say it.
    pub enforcer_id: Option<EnforcerId>,
    /// The program that the agent runs in.
    pub agent_host: Option<String>,
    /// What it does now.
    pub state: Option<SessionState>,
    /// When its state was last reported.
    pub updated_at: Option<Timestamp>,
    /// When it ended; `None` while it has not.
    pub ended_at: Option<Timestamp>,
    /// Why it ended, if it has.
    pub end_reason: Option<EndReason>,
    /// The newest snapshot of each type, to be opened with [`OpenedSnapshot::open`].
    pub snapshots: BTreeMap<String, String>,
}

impl Session {
    /// Whether anybody has said that an agent works in it, or has ended. What has snapshots only is about an exchange or a person.
    pub fn is_of_an_agent(&self) -> bool {
        self.agent_host.is_some() || self.state.is_some() || self.ended_at.is_some()
    }
}

impl FromMembers<'_> for Session {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let snapshots: Option<&RawValue> = members.optional("snapshots")?;
        Ok(Self {
            session_id: members.required("sessionId")?,
            enforcer_id: loose(members, "enforcerId"),
            agent_host: loose(members, "agentHost"),
            state: loose(members, "state"),
            updated_at: loose(members, "updatedAt"),
            ended_at: loose(members, "endedAt"),
            end_reason: loose(members, "reason"),
            snapshots: snapshots
                .filter(|snapshots| snapshots.get() != "null")
                .map(by_type)
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

/// The newest snapshot of each type: an object with the types as names, or a list of events, oldest first.
fn by_type(snapshots: &RawValue) -> Result<BTreeMap<String, String>, countersign_wire::Error> {
    let Ok(object) = RawObject::from_json(snapshots) else {
        let events = Vec::<RawObject<'_>>::from_json(snapshots)?;
        let typed = |event: RawObject<'_>| {
            let snapshot_type: SnapshotType = event.members().ok()?.required("snapshotType").ok()?;
            Some((snapshot_type.as_str().to_owned(), event.as_str().to_owned()))
        };
        return Ok(events.into_iter().filter_map(typed).collect());
    };
    let members = object.members()?;
    Ok(members.rest().map(|(name, event)| (name.to_owned(), event.get().to_owned())).collect())
}

impl Approver {
    /// A session of an enforcer that this approver is paired with.
    pub async fn session(&self, session_id: &SessionId) -> Result<Session, CallError> {
        let call = Call::get(format!("/v1/session/{}", segment(session_id.as_str())));
        let answer = self.http.send_until(&call, tokio::time::Instant::now() + CALL_TIME).await?;
        let session = answer.content()?.view::<Session>().map_err(|_| CallError::NotUnderstood)?;
        match session.session_id == *session_id {
            true => Ok(session.into_view()),
            false => Err(CallError::NotUnderstood),
        }
    }
}

#[cfg(test)]
mod tests;
