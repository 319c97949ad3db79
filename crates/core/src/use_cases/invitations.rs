//! Invitations: made, listed, revoked.

use std::{fmt, time::Duration};

use countersign_wire::{
    Label,
    failure::Failure,
    id::TenantId,
    invitation::{self, InvitationId},
    mac::MacKey,
    timestamp::Timestamp,
};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway, Page},
    load::record_of,
    model::invitation::{Invitation, Invitee, MAX_INVITATION_LIFE},
    store::{Change, Guard, Stored as _},
};

/// What a new invitation is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvitationSpec {
    pub invitee: Invitee,
    pub label: Option<Label>,
    /// At most [`MAX_INVITATION_LIFE`].
    pub life: Duration,
}

/// An invitation that was just made. It is shown once and stored nowhere.
pub struct NewInvitation {
    pub invitation: invitation::Invitation,
    pub spec: InvitationSpec,
    pub expires_at: Timestamp,
}

impl fmt::Debug for NewInvitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewInvitation").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Makes an invitation, whose id carries a MAC by `mac_key`.
    pub async fn invite(
        &self,
        tenant: &TenantId,
        spec: InvitationSpec,
        mac_key: &MacKey,
    ) -> Result<NewInvitation, Error> {
        if spec.life.is_zero() || spec.life > MAX_INVITATION_LIFE {
            return Err(Error::breaks("expiresInSeconds", "must be from 1 to 604800"));
        }
        // A conflict means that the id is taken: draw another.
        self.update(tenant, &(), |(), now| {
            let mut secret = [0; 32];
            self.random.fill(&mut secret);
            let ulid = self.random.ulid(now).to_string();
            let invitation = invitation::Invitation::new(tenant.clone(), &ulid, secret, mac_key);
            let invitation = invitation.map_err(|_| Failure::Validation)?;
            let expires_at = now.plus(spec.life);
            let stored = Invitation {
                invitee: spec.invitee.clone(),
                label: spec.label.clone(),
                secret_hash: invitation.secret_hash(),
                created_at: now,
                expires_at,
                revoked_at: None,
                used: None,
            };
            let record = Invitation::key(invitation.id());
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::Absent(record.clone()));
            change.puts.push(stored.put(record.clone())?);
            change.due.push((stored.kept_until(), record.clone()));
            change.audit.push(audit::action(record, Actor::Operator, "invitation.created")?);
            Ok(Evaluation::commit(change, NewInvitation { invitation, spec: spec.clone(), expires_at }))
        })
        .await
    }

    /// A page of the tenant's invitations that have not expired, after the id `after`.
    pub async fn invitations(
        &self,
        tenant: &TenantId,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Page<InvitationId, Invitation>, Error> {
        let now = self.store.now().await?;
        let mut page: Page<InvitationId, Invitation> = self.page_of(tenant, after, limit).await?;
        // The sweeper deletes the others soon.
        page.items.retain(|(_, invitation)| now < invitation.expires_at);
        Ok(page)
    }

    /// Revokes an invitation. A key that was made with it stays valid. Idempotent, until the invitation has expired.
    pub async fn revoke_invitation(&self, tenant: &TenantId, id: &InvitationId) -> Result<Timestamp, Error> {
        let record = record_of::<Invitation>(id);
        self.update(tenant, &record, |known, now| {
            let known = known.filter(|known| now < known.value.expires_at).ok_or(Failure::NotFound)?;
            let revoked_at = known.value.revoked_at.unwrap_or(now);
            let key = record.key();
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), Some(&known)));
            if known.value.revoked_at.is_none() {
                let revoked = Invitation { revoked_at: Some(revoked_at), ..known.value };
                change.puts.push(revoked.put(key.clone())?);
                change.audit.push(audit::action(key, Actor::Operator, "invitation.revoked")?);
            }
            Ok(Evaluation::commit(change, revoked_at))
        })
        .await
    }
}
