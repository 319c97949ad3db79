//! Joining: an invitation is traded for an API key, once.

use countersign_wire::{
    api_key::{ApiKey, KeyId},
    failure::Failure,
    invitation,
    key_nonce::KeyNonce,
    mac::MacKey,
    timestamp::Timestamp,
};

use super::credentials::{KeySpec, NewKey};
use crate::{
    audit,
    error::Error,
    gateway::{Evaluation, Gateway},
    load::{record_at, record_of},
    model::{
        credential::Credential,
        derived_key::DerivedKey,
        invitation::{Invitation, Usability},
        tenant::Suspension,
    },
    store::{Change, Guard, StoreError, Stored as _, Versioned},
};

/// What became of an attempt to join.
#[derive(Debug)]
pub enum JoinOutcome {
    Joined(NewKey),
    /// Somebody has joined with it a moment ago, with another nonce.
    Taken,
    /// Whoever tries again will not succeed either: it is unknown, used, revoked or has expired.
    Invalid,
}

/// What an invitation is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    pub spec: KeySpec,
    pub expires_at: Timestamp,
}

impl Gateway {
    /// What an invitation is for, without using it. `None` if it can't be used.
    pub async fn describe_invitation(
        &self,
        invitation: &invitation::Invitation,
    ) -> Result<Option<Described>, Error> {
        let load = (record_of::<Invitation>(invitation.id()), record_at::<Suspension>(Suspension::record()));
        let ((known, suspension), now) = self.load(invitation.tenant(), &load).await?;
        let known = known.filter(|known| known.value.secret_hash == invitation.secret_hash());
        if known.is_some() && suspension.is_some() {
            return Err(Failure::Forbidden.into());
        }
        let open = known.filter(|known| matches!(known.value.usability(now), Usability::Open));
        Ok(open.map(|known| Described { spec: spec(&known.value), expires_at: known.value.expires_at }))
    }

    /// Makes the key that an invitation is for. The same nonce gets the same key, for a minute: its secret is derived from
    /// both, so that it need not be stored.
    pub async fn join(
        &self,
        invitation: &invitation::Invitation,
        nonce: &KeyNonce,
        mac_key: &MacKey,
    ) -> Result<JoinOutcome, Error> {
        let record = record_of::<Invitation>(invitation.id());
        let load = (record_of::<Invitation>(invitation.id()), record_at::<Suspension>(Suspension::record()));
        let secret = invitation.key_secret(nonce, mac_key);
        self.update(invitation.tenant(), &load, |(known, suspension), now| {
            // Both are hashes of secrets with 256 random bits: the time of their comparison tells nothing of use.
            let known = known.filter(|known| known.value.secret_hash == invitation.secret_hash());
            let Some(known) = known else { return Ok(Evaluation::NothingToDo(JoinOutcome::Invalid)) };
            if suspension.is_some() {
                return Err(Failure::Forbidden.into());
            }
            let key = |ulid: &str| {
                let key = ApiKey::with_mac(invitation.tenant().clone(), ulid, secret, mac_key);
                key.map_err(|_| Error::from(Failure::Internal))
            };
            match known.value.usability(now) {
                Usability::Invalid => Ok(Evaluation::NothingToDo(JoinOutcome::Invalid)),
                Usability::JustUsed(made) => {
                    let key_id = made.key_id.parse::<KeyId>();
                    let key_id = key_id.map_err(|rule| StoreError::corrupt(rule.to_string()))?;
                    let key = key(key_id.ulid())?;
                    if !made.is(&key) {
                        return Ok(Evaluation::NothingToDo(JoinOutcome::Taken));
                    }
                    let mut guards = Change::new(invitation.tenant().clone());
                    guards.guards.push(Guard::unchanged(record.key(), Some(&known)));
                    Ok(Evaluation::commit(guards, joined(key, &known.value)))
                }
                Usability::Open => {
                    let key = key(&self.random.ulid(now).to_string())?;
                    let change = join_change(&known, invitation, &key, now)?;
                    Ok(Evaluation::commit(change, joined(key, &known.value)))
                }
            }
        })
        .await
    }
}

fn joined(key: ApiKey, invitation: &Invitation) -> JoinOutcome {
    JoinOutcome::Joined(NewKey { key, spec: spec(invitation) })
}

fn spec(invitation: &Invitation) -> KeySpec {
    KeySpec { label: invitation.label.clone(), ..KeySpec::from(invitation.invitee.role()) }
}

/// The key and the use of the invitation, together: of two who join at once, one does.
fn join_change(
    known: &Versioned<Invitation>,
    invitation: &invitation::Invitation,
    key: &ApiKey,
    now: Timestamp,
) -> Result<Change, StoreError> {
    let (record, credential) = (Invitation::key(invitation.id()), Credential::key(key.key_id()));
    let used = Invitation { used: Some(DerivedKey::new(key, now)), ..known.value.clone() };
    let mut change = Change::new(invitation.tenant().clone());
    change.guards.push(Guard::unchanged(record.clone(), Some(known)));
    change.guards.push(Guard::Absent(credential.clone()));
    change.guards.push(Guard::Before(known.value.expires_at));
    change.puts.push(used.put(record.clone())?);
    change.puts.push(spec(&known.value).credential(key, now).put(credential.clone())?);
    let actor = audit::invitee(&known.value.invitee);
    change.audit.push(audit::action(record, actor, "invitation.used")?);
    change.audit.push(audit::action(credential, actor, "key.created")?);
    Ok(change)
}
