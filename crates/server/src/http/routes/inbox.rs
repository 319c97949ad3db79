//! `/v1/approvers/{approverId}/inbox`.

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::{
    delivery::message::{Message, Party},
    model::viewer::Viewer,
    use_cases::inbox::{Item, List, Position},
};
use countersign_wire::{
    RawObject,
    failure::Failure,
    id::{ApproverId, RequestId},
    inbox::InboxPage,
    msg_type::MsgType,
};

use super::exchanges;
use crate::{
    app::{App, Shared},
    auth::Approver,
    http::{
        answer,
        cursor::Walk,
        error_response::{About as _, Refusal},
        params::{Asked, BothInPath, InPath},
        request_id::HttpRequestId,
    },
};

pub(crate) async fn active(
    State(app): State<Shared>,
    caller: Approver,
    InPath(approver): InPath<ApproverId>,
    asked: Asked,
    http_id: HttpRequestId,
) -> Result<Response, Refusal> {
    page(&app, &caller, &approver, List::Active, &asked, &http_id).await
}

pub(crate) async fn expired(
    State(app): State<Shared>,
    caller: Approver,
    InPath(approver): InPath<ApproverId>,
    asked: Asked,
    http_id: HttpRequestId,
) -> Result<Response, Refusal> {
    page(&app, &caller, &approver, List::Expired, &asked, &http_id).await
}

async fn page(
    app: &App,
    caller: &Approver,
    approver: &ApproverId,
    list: List,
    asked: &Asked,
    http_id: &HttpRequestId,
) -> Result<Response, Refusal> {
    let approver = &caller.acting_as(approver)?;
    let walk = Walk { tenant: &caller.tenant, approver, list };
    let from = match asked.get("cursor")? {
        Some(cursor) => walk.position(&app.secret, cursor)?,
        None => Position::default(),
    };
    let page = app.gateway.inbox(&caller.tenant, approver, list, from, asked.limit()?).await?;
    let to = Party::Approver(approver.clone());
    let items: Option<Vec<Vec<u8>>> =
        page.items.into_iter().map(|item| app.message(&message(item), &to)).collect();
    let items = items.ok_or(Failure::Internal)?;
    let items: Result<Vec<RawObject<'_>>, _> = items.iter().map(|item| RawObject::reread(item)).collect();
    let items = items.map_err(|_| Failure::Internal)?;
    let next_cursor = page.next.map(|next| walk.cursor(&app.secret, next));
    let body = InboxPage { items, next_cursor };
    Ok(answer::proto(StatusCode::OK, app.envelope(MsgType::InboxPage, &http_id.as_request_id(), body)))
}

/// An item of a page is the message as it is pushed.
fn message(item: Item) -> Message {
    Message {
        msg_id: item.msg_id,
        msg_type: MsgType::ApprovalRequest,
        request_id: item.request_id,
        created_at: item.created_at,
        expires_at: Some(item.expires_at),
        from: Party::Enforcer(item.enforcer),
        body: item.body,
        trace: item.trace,
    }
}

pub(crate) async fn remove(
    State(app): State<Shared>,
    caller: Approver,
    BothInPath(approver, request_id): BothInPath<ApproverId, RequestId>,
) -> Result<Response, Refusal> {
    let approver = caller.acting_as(&approver).about(&request_id)?;
    app.gateway.hide(&caller.tenant, &approver, &request_id).await.about(&request_id)?;
    exchanges::standing(&app, &caller.tenant, Viewer::Approver(&approver), &request_id).await
}
