//! Invitations, which an operator makes and a newcomer trades for an API key.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::{
    model::invitation::{DEFAULT_INVITATION_LIFE, Invitation, Invitee},
    use_cases::invitations::InvitationSpec,
};
use countersign_wire::{FromMembers, Label, Members, invitation::InvitationId, timestamp::Timestamp};
use serde::Serialize;

use super::platform::RoleAndId;
use crate::{
    auth::Operator,
    error::ApiError,
    rest::{
        body::{RequestBody, seconds},
        cursor::RecordsCursor,
        params::{PathId, QueryParams},
        response,
    },
    state::SharedState,
};

struct InvitationRequest(InvitationSpec);

impl FromMembers<'_> for InvitationRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let role: String = members.required("role")?;
        let invitee = match role.as_str() {
            "enforcer" => Invitee::Enforcer(members.required("id")?),
            "approver" => Invitee::Approver(members.required("id")?),
            _ => return Err(countersign_wire::Error::breaks("role", "must be enforcer or approver")),
        };
        let label = members.optional("label")?;
        let whole = "must be a whole number from 1 to 604800";
        let life = seconds(members, "expiresInSeconds", 1..=604_800, whole)?;
        members.close()?;
        Ok(Self(InvitationSpec { invitee, label, life: life.unwrap_or(DEFAULT_INVITATION_LIFE) }))
    }
}

impl<'a> From<&'a Invitee> for RoleAndId<'a> {
    fn from(invitee: &'a Invitee) -> Self {
        match invitee {
            Invitee::Enforcer(id) => Self { role: "enforcer", id: Some(id.as_str()) },
            Invitee::Approver(id) => Self { role: "approver", id: Some(id.as_str()) },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewInvitation<'a> {
    invitation_id: &'a str,
    invitation: &'a str,
    link: String,
    expires_at: Timestamp,
}

pub(crate) async fn create(
    State(app): State<SharedState>,
    caller: Operator,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let InvitationRequest(spec) = body.bare::<InvitationRequest>()?.into_view();
    let made = app.gateway.invite(&caller.tenant, spec, &app.mac_key).await?;
    let shown = NewInvitation {
        invitation_id: made.invitation.id().as_str(),
        invitation: &made.invitation.expose(),
        link: made.invitation.link(&app.public_url),
        expires_at: made.expires_at,
    };
    response::json(StatusCode::CREATED, shown)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedInvitation<'a> {
    invitation_id: &'a str,
    #[serde(flatten)]
    role: RoleAndId<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a Label>,
    created_at: Timestamp,
    expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<Timestamp>,
    /// The key that was made with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
}

fn listed((id, invitation): &(InvitationId, Invitation)) -> ListedInvitation<'_> {
    ListedInvitation {
        invitation_id: id.as_str(),
        role: (&invitation.invitee).into(),
        label: invitation.label.as_ref(),
        created_at: invitation.created_at,
        expires_at: invitation.expires_at,
        revoked_at: invitation.revoked_at,
        used_at: invitation.used.as_ref().map(|used| used.at),
        key_id: invitation.used.as_ref().map(|used| used.key_id.as_str()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedInvitations<'a> {
    invitations: Vec<ListedInvitation<'a>>,
    next_cursor: Option<String>,
}

pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Operator,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let cursors = RecordsCursor { tenant: &caller.tenant, list: "invitations" };
    let after = cursors.after(&app.secret, &query)?;
    let page = app.gateway.invitations(&caller.tenant, after.as_deref(), query.limit()?).await?;
    let next_cursor = page.next.map(|next| cursors.cursor(&app.secret, &next));
    let invitations = page.items.iter().map(listed).collect();
    response::json(StatusCode::OK, ListedInvitations { invitations, next_cursor })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RevokedInvitation<'a> {
    invitation_id: &'a str,
    revoked_at: Timestamp,
}

pub(crate) async fn revoke(
    State(app): State<SharedState>,
    caller: Operator,
    PathId(id): PathId<InvitationId>,
) -> Result<Response, ApiError> {
    let revoked_at = app.gateway.revoke_invitation(&caller.tenant, &id).await?;
    response::json(StatusCode::OK, RevokedInvitation { invitation_id: id.as_str(), revoked_at })
}
