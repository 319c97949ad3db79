//! An enforcer reports its agent's session, and either side reads it.

use bytes::Bytes;
use countersign_wire::{
    Verbatim, canonical,
    failure::Failure,
    hash::Sha256Hex,
    id::{EnforcerId, MsgId, SessionId, TenantId},
    limits,
    msg_type::MsgType,
    session::{EventType, SessionEvent, SnapshotType},
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_of,
    model::{
        pairing::PairedEnforcer,
        session::{RecordedEvent, Session, SessionError},
        viewer::Viewer,
    },
    store::{Change, Guard, Key, Mailbox, NewDelivery, PayloadId, Removal, Stored as _, Versioned},
};

/// Whether a session event is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    New,
    /// It was recorded before.
    Duplicate,
}

impl Gateway {
    /// Records an event, or recognises a repeated one, and tells the enforcer's approvers.
    pub async fn report_session(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        event: &Verbatim<'_, SessionEvent<'_>>,
    ) -> Result<Reported, Error> {
        check_size(event)?;
        event.check_hash().map_err(Error::in_hashed_body)?;
        let (event_id, digest) = event_id_and_digest(event)?;
        let load = (
            record_of::<Session>(event.session_id()),
            record_of::<RecordedEvent>(event_id),
            record_of::<PairedEnforcer>(enforcer),
        );
        self.update(tenant, &load, |(known, recorded, paired), now| {
            if known.as_ref().is_some_and(|known| known.value.enforcer != *enforcer) {
                return Err(SessionError::NotFound.into());
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(load.0.key(), known.as_ref()));
            match recorded {
                Some(recorded) if recorded.value.digest == digest => {
                    return Ok(Evaluation::commit(change, Reported::Duplicate));
                }
                Some(recorded) => {
                    change.guards.push(Guard::unchanged(load.1.key(), Some(&recorded)));
                    return Ok(Evaluation::reject_if_unchanged(change, SessionError::DuplicateSnapshot));
                }
                None => {}
            }
            let payload = self.random.payload_id(now);
            let is_first = known.is_none();
            let mut session = known.map_or_else(|| Session::new(enforcer.clone()), |known| known.value);
            let is_newest = match session.apply(event, payload) {
                Ok(is_newest) => is_newest,
                Err(error) => return Ok(Evaluation::reject_if_unchanged(change, error)),
            };
            let until = now.plus(self.retention.of_session(&session));
            session.kept_until = Some(until);
            change.guards.push(Guard::Absent(load.1.key()));
            if is_newest {
                let msg_id = self.random.msg_id(now);
                let kind = outstanding_kind(event);
                // Nobody can ask for the older text any more.
                change.drop_payloads.extend(session.bodies.insert(kind.clone(), payload));
                change.payloads.push((payload, Bytes::from(event.raw().as_str().to_owned())));
                let replaced = session.outstanding.insert(kind, msg_id.clone());
                let subject = load.0.key();
                change.removals.extend(replaced.map(|msg_id| Removal::ByMessage { subject, msg_id }));
                let delivery = EventDelivery { msg_id, event_type: event.event_type(), payload, until };
                add_event_deliveries(&mut change, &load.0.key(), &delivery, paired);
            }
            change.puts.push(session.put(load.0.key())?);
            change.puts.push(RecordedEvent { digest, event: payload }.put(load.1.key())?);
            if is_first || matches!(event.event_type(), EventType::Start | EventType::End) {
                // What it does in between is news and no act: an hour of it would be kept for more than a year.
                let actor = Actor::Enforcer(enforcer.as_str());
                change.audit.push(audit::action(load.0.key(), actor, event.event_type().as_str())?);
            }
            change.due.extend([(until, load.0.key()), (until, load.1.key())]);
            Ok(Evaluation::commit(change, Reported::New))
        })
        .await
    }

    /// A session, for its enforcer and for the approvers that are paired with it, or all if it was never paired.
    pub async fn session(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        session_id: &SessionId,
    ) -> Result<Session, Error> {
        let (known, _) = self.load(tenant, &record_of::<Session>(session_id)).await?;
        let session = known.ok_or(Failure::NotFound)?.value;
        let sees = match viewer {
            Viewer::Enforcer(enforcer) => session.enforcer == *enforcer,
            Viewer::Approver(approver) => {
                let (paired, _) = self.load(tenant, &record_of::<PairedEnforcer>(&session.enforcer)).await?;
                PairedEnforcer::admits(paired.as_ref(), approver)
            }
            Viewer::AnyEnforcer | Viewer::AnyApprover | Viewer::Operator => true,
        };
        if sees { Ok(session) } else { Err(Failure::NotFound.into()) }
    }

    /// The texts of a session's snapshots. `None` if a newer one has taken the place of any since the session was read: it took the
    /// older text away. One that retention has deleted is left out.
    pub async fn snapshot_texts(
        &self,
        tenant: &TenantId,
        session_id: &SessionId,
        session: &Session,
    ) -> Result<Option<Vec<(SnapshotType, Bytes)>>, Error> {
        let ids: Vec<_> = session.snapshots.values().map(|snapshot| snapshot.event).collect();
        let texts = self.store.payloads(tenant, &ids).await?;
        if texts.iter().any(Option::is_none) {
            let (now_known, _) = self.load(tenant, &record_of::<Session>(session_id)).await?;
            if now_known.is_some_and(|known| known.value.snapshots != session.snapshots) {
                return Ok(None);
            }
        }
        let texts = session.snapshots.keys().copied().zip(texts);
        Ok(Some(texts.filter_map(|(snapshot_type, text)| Some((snapshot_type, text?))).collect()))
    }
}

/// A session event as it is delivered.
struct EventDelivery {
    /// The same to every approver.
    msg_id: MsgId,
    event_type: EventType,
    payload: PayloadId,
    until: Timestamp,
}

/// One delivery for each approver that the enforcer is paired with.
fn add_event_deliveries(
    change: &mut Change,
    session_key: &Key,
    event: &EventDelivery,
    paired: Option<Versioned<PairedEnforcer>>,
) {
    for approver in paired.map(|paired| paired.value.approvers).unwrap_or_default() {
        change.deliveries.push(NewDelivery {
            mailbox: Mailbox::News(approver),
            msg_id: event.msg_id.clone(),
            msg_type: msg_type(event.event_type),
            subject: session_key.clone(),
            payload: Some(event.payload),
            until: event.until,
        });
    }
}

/// Only the newest event of each kind is outstanding: what an approver missed in between says nothing any more.
fn outstanding_kind(event: &SessionEvent<'_>) -> String {
    match event {
        SessionEvent::Snapshot(snapshot) => {
            format!("{} {}", event.event_type().as_str(), snapshot.snapshot_type.as_str())
        }
        SessionEvent::Start(_) | SessionEvent::Status(_) | SessionEvent::End(_) => {
            event.event_type().as_str().to_owned()
        }
    }
}

/// The id of the event's record, and the digest by which a repeated event is recognised. A snapshot is identified by its
/// id and is the same if its hash is: sealed again, its text differs. Anything else is identified by all that it says.
fn event_id_and_digest(event: &Verbatim<'_, SessionEvent<'_>>) -> Result<(String, Sha256Hex), Error> {
    let session = Sha256Hex::digest(event.session_id().as_str().as_bytes());
    Ok(match &**event {
        SessionEvent::Snapshot(snapshot) => {
            (format!("{session}\n{}", snapshot.snapshot_id), snapshot.snapshot_hash)
        }
        SessionEvent::Start(_) | SessionEvent::Status(_) | SessionEvent::End(_) => {
            let form = canonical::form(event.raw().as_str().as_bytes()).map_err(Error::in_hashed_body)?;
            let digest = Sha256Hex::digest(&form);
            (format!("{session}\n{digest}"), digest)
        }
    })
}

fn check_size(event: &Verbatim<'_, SessionEvent<'_>>) -> Result<(), Error> {
    let whole = event.raw().as_str().len();
    let SessionEvent::Snapshot(snapshot) = &**event else {
        return Error::check_size("body", whole, limits::MAX_OTHER_BODY);
    };
    let payload = snapshot.payload.as_str().len();
    let limit = if event.is_sealed() { limits::MAX_SNAPSHOT_CIPHERTEXT } else { limits::MAX_SNAPSHOT };
    Error::check_size("payload", payload, limit)?;
    Error::check_size("body", whole - payload, limits::MAX_OTHER_BODY)
}

fn msg_type(event: EventType) -> MsgType {
    match event {
        EventType::Start => MsgType::SessionStart,
        EventType::Snapshot => MsgType::SessionSnapshot,
        EventType::Status => MsgType::SessionStatus,
        EventType::End => MsgType::SessionEnd,
    }
}
