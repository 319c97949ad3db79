//! `/platform/v1/pairs`: who is paired with whom, by a pairing or by a voucher, and the end of a pair.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::{
    model::{
        credential::Role,
        pairs::{Pair, PairId},
    },
    use_cases::pairs::PairFilter,
};
use countersign_wire::{
    FromMembers, Label, Members,
    failure::Failure,
    id::{ApproverId, EnforcerId},
    keys::VerifyingKey,
    statement::{Claim, Statement},
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    auth::{Approver, Caller},
    error::ApiError,
    rest::{
        body::RequestBody,
        cursor::PairsCursor,
        pair_id,
        params::{PathId, QueryParams},
        response,
    },
    state::SharedState,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedPair<'a> {
    pair_id: String,
    enforcer_id: &'a EnforcerId,
    approver_id: &'a ApproverId,
    #[serde(skip_serializing_if = "Option::is_none")]
    enforcer_label: Option<&'a Label>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_name: Option<&'a Label>,
    /// The key that this pair registered; decisions may be signed with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    signing_key: Option<VerifyingKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    /// Who vouched for the device, and until when the pair lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    vouched_by: Option<&'a ApproverId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vouched_until: Option<Timestamp>,
}

fn listed((id, pair): &(PairId, Pair)) -> ListedPair<'_> {
    ListedPair {
        pair_id: pair_id::text(id),
        enforcer_id: &id.enforcer,
        approver_id: &id.approver,
        enforcer_label: pair.enforcer_label.as_ref(),
        workspace_name: pair.workspace_name.as_ref(),
        signing_key: pair.signing_key,
        created_at: pair.created_at,
        vouched_by: pair.vouched.as_ref().map(|vouched| &vouched.by),
        vouched_until: pair.vouched.as_ref().map(|vouched| vouched.until),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PairList<'a> {
    pairs: Vec<ListedPair<'a>>,
    next_cursor: Option<String>,
}

pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Caller,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let filter = &filter(&caller, &query)?;
    let cursors = PairsCursor { tenant: &caller.tenant, filter };
    let after = query.get("cursor")?.map(|cursor| cursors.position(&app.secret, cursor)).transpose()?;
    let page = app.gateway.pairs(&caller.tenant, filter, after.as_ref(), query.limit()?).await?;
    let next_cursor = page.next.map(|next| cursors.cursor(&app.secret, &next));
    let pairs = page.pairs.iter().map(listed).collect();
    response::json(StatusCode::OK, PairList { pairs, next_cursor })
}

/// Whose pairs the caller sees: its own, or those that the query names.
fn filter(caller: &Caller, query: &QueryParams) -> Result<PairFilter, ApiError> {
    const RULE: &str = "must be 1 to 256 bytes of UTF-8 without control characters";
    let mut filter = PairFilter::default();
    if let Some(enforcer) = query.get("enforcerId")? {
        filter.enforcer = Some(enforcer.parse().map_err(|_| ApiError::breaks("enforcerId", RULE))?);
    }
    if let Some(approver) = query.get("approverId")? {
        filter.approver = Some(approver.parse().map_err(|_| ApiError::breaks("approverId", RULE))?);
    }
    match &caller.role {
        Role::Enforcer(Some(only)) if filter.enforcer.get_or_insert_with(|| only.clone()) != only => {
            Err(Failure::Forbidden.into())
        }
        Role::Approver(Some(only)) if filter.approver.get_or_insert_with(|| only.clone()) != only => {
            Err(Failure::Forbidden.into())
        }
        _ => Ok(filter),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemovedPair<'a> {
    pair_id: &'a str,
    removed_at: Timestamp,
}

pub(crate) async fn remove(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(text): PathId<String>,
) -> Result<Response, ApiError> {
    // What can't be the id of a pair leads as little anywhere as one that is not known.
    let id = pair_id::read(&text).ok_or(Failure::NotFound)?;
    let removed_at = app.gateway.remove_pair(&caller.tenant, caller.viewer(), &id).await?;
    response::json(StatusCode::OK, RemovedPair { pair_id: &text, removed_at })
}

struct VoucherRequest {
    voucher: Statement,
}

impl FromMembers<'_> for VoucherRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let voucher = members.required("voucher")?;
        members.close()?;
        Ok(Self { voucher })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AcceptedVoucher<'a> {
    /// Absent for a recovery code, which is no device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pair_id: Option<String>,
    enforcer_id: &'a EnforcerId,
    approver_id: &'a ApproverId,
    vouched_until: Timestamp,
}

pub(crate) async fn present(
    State(app): State<SharedState>,
    caller: Approver,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let VoucherRequest { voucher } = body.bare::<VoucherRequest>()?.into_view();
    if let Claim::Vouch { approver_id, .. } = voucher.claim() {
        caller.acting_as(&approver_id.parse().map_err(|_| Failure::Forbidden)?)?;
    }
    let accepted = app.gateway.present_voucher(&caller.tenant, &voucher).await?;
    let pair_id = accepted.device.map(|device| {
        let (enforcer, approver) = (accepted.enforcer.clone(), accepted.approver.clone());
        pair_id::text(&PairId { enforcer, approver, device })
    });
    let answer = AcceptedVoucher {
        pair_id,
        enforcer_id: &accepted.enforcer,
        approver_id: &accepted.approver,
        vouched_until: accepted.until,
    };
    response::json(StatusCode::OK, answer)
}
