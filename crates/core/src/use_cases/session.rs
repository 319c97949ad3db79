//! What an agent's session reports, and what is known of it.

use bytes::Bytes;
use countersign_wire::{
    Verbatim, canonical,
    failure::Failure,
    hash::Sha256Hex,
    id::{EnforcerId, SessionId, TenantId},
    limits,
    msg_type::MsgType,
    session::{EventType, SessionEvent},
};
use serde::{Deserialize, Serialize};

use super::Viewer;
use crate::{
    Error, Gateway,
    edges::{Actor, note},
    gateway::Attempt,
    pairing::PairedEnforcer,
    session::{Refusal, Session},
    store::{Change, Guard, Mailbox, NewDelivery, PayloadId},
    stored::{Stored as _, unchanged},
};

/// One event that was taken in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenEvent {
    /// Its canonical form's hash, or the snapshot's own.
    pub digest: Sha256Hex,
    /// The event as it was sent.
    pub event: PayloadId,
}

/// What a session event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reported {
    /// It is new.
    Taken,
    /// It was taken before.
    Known,
}

impl Gateway {
    /// Takes an event in, or recognises it, and tells the enforcer's approvers.
    pub async fn report_session(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        event: &Verbatim<'_, SessionEvent<'_>>,
    ) -> Result<Reported, Error> {
        check_size(event)?;
        event.check_hash().map_err(Error::in_hashed_body)?;
        let form = canonical::form(event.raw().as_str().as_bytes()).map_err(Error::in_hashed_body)?;
        // A snapshot is the same if its hash is: sealed anew, it is another text.
        let digest = match &**event {
            SessionEvent::Snapshot(snapshot) => snapshot.snapshot_hash,
            _ => Sha256Hex::digest(&form),
        };
        let session_key = Session::key(event.session_id());
        // A snapshot is known by its id, anything else by all that it says.
        let event_key = TakenEvent::key(match &**event {
            SessionEvent::Snapshot(snapshot) => {
                format!(
                    "{}\n{}",
                    Sha256Hex::digest(event.session_id().as_str().as_bytes()),
                    snapshot.snapshot_id
                )
            }
            _ => format!("{}\n{digest}", Sha256Hex::digest(event.session_id().as_str().as_bytes())),
        });
        let keys = [session_key.clone(), event_key.clone(), PairedEnforcer::key(enforcer)];
        loop {
            let loaded = self.store.load(tenant, &keys).await?;
            let known = Session::read(loaded.records[0].as_ref())?;
            if known.as_ref().is_some_and(|known| known.value.enforcer != *enforcer) {
                return Err(Refusal::NotFound.into());
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(unchanged(session_key.clone(), known.as_ref()));
            let reported = match TakenEvent::read(loaded.records[1].as_ref())? {
                Some(taken) if taken.value.digest == digest => Reported::Known,
                Some(taken) => {
                    change.guards.push(unchanged(event_key.clone(), Some(&taken)));
                    self.refuse_resting_on(change, Refusal::DuplicateSnapshot).await?;
                    continue;
                }
                None => {
                    let stored_as = self.chance.payload_id(loaded.now);
                    let mut session =
                        known.map_or_else(|| Session::new(enforcer.clone()), |known| known.value);
                    if let Err(refusal) = session.apply(event, stored_as) {
                        self.refuse_resting_on(change, refusal).await?;
                        continue;
                    }
                    let until = loaded.now.plus(self.retention.after_end);
                    session.kept_until = Some(until);
                    change.guards.push(Guard::Absent(event_key.clone()));
                    change.puts.push(session.put(session_key.clone())?);
                    let actor = Actor::Enforcer(enforcer.as_str());
                    change.audit.push(note(session_key.clone(), actor, event.event_type().as_str())?);
                    change.puts.push(TakenEvent { digest, event: stored_as }.put(event_key.clone())?);
                    change.payloads.push((stored_as, Bytes::from(event.raw().as_str().to_owned())));
                    change.due.extend([(until, session_key.clone()), (until, event_key.clone())]);
                    let paired = PairedEnforcer::read(loaded.records[2].as_ref())?;
                    for approver in paired.map(|paired| paired.value.approvers).unwrap_or_default() {
                        change.deliveries.push(NewDelivery {
                            mailbox: Mailbox::News(approver),
                            msg_id: self.chance.msg_id(loaded.now),
                            msg_type: msg_type(event.event_type()),
                            subject: session_key.clone(),
                            payload: Some(stored_as),
                            until,
                        });
                    }
                    Reported::Taken
                }
            };
            if let Attempt::Done = self.commit(change, None).await? {
                return Ok(reported);
            }
        }
    }

    /// What is known of a session: by its enforcer, and by the approvers that are paired with it.
    pub async fn session(
        &self,
        tenant: &TenantId,
        viewer: Viewer<'_>,
        session_id: &SessionId,
    ) -> Result<Session, Error> {
        let loaded = self.store.load(tenant, &[Session::key(session_id)]).await?;
        let known = Session::read(loaded.first())?;
        let session = known.ok_or(Failure::NotFound)?.value;
        let sees = match viewer {
            Viewer::Enforcer(enforcer) => session.enforcer == *enforcer,
            Viewer::Approver(approver) => {
                self.paired_enforcers(tenant, approver).await?.contains(&session.enforcer)
            }
            Viewer::AnyEnforcer | Viewer::AnyApprover | Viewer::Operator => true,
        };
        if sees { Ok(session) } else { Err(Failure::NotFound.into()) }
    }
}

fn check_size(event: &Verbatim<'_, SessionEvent<'_>>) -> Result<(), Error> {
    let whole = event.raw().as_str().len();
    let fits = match &**event {
        SessionEvent::Snapshot(snapshot) => {
            let payload = snapshot.payload.as_str().len();
            let limit = match event.is_sealed() {
                true => limits::MAX_SNAPSHOT_CIPHERTEXT,
                false => limits::MAX_SNAPSHOT,
            };
            payload <= limit && whole - payload <= limits::MAX_OTHER_BODY
        }
        _ => whole <= limits::MAX_OTHER_BODY,
    };
    if fits { Ok(()) } else { Err(Failure::TooLarge.into()) }
}

fn msg_type(event: EventType) -> MsgType {
    match event {
        EventType::Start => MsgType::SessionStart,
        EventType::Snapshot => MsgType::SessionSnapshot,
        EventType::Status => MsgType::SessionStatus,
        EventType::End => MsgType::SessionEnd,
    }
}
