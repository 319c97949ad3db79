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
    id::{ApproverId, RequestId, TenantId},
    inbox::InboxPage,
    msg_type::MsgType,
};

use crate::{
    auth::Approver,
    error::{ApiError, ForRequest as _},
    ids::HttpRequestId,
    limits::LARGE_BODY,
    protocol::{PROTO_JSON, status::exchange_status},
    rest::{
        cursor::InboxCursor,
        large_answer::metered,
        params::{PathId, PathIds, QueryParams},
        response,
    },
    state::{AppState, SharedState},
};

pub(crate) async fn active(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
    query: QueryParams,
    http_id: HttpRequestId,
) -> Result<Response, ApiError> {
    page(&app, &caller, &approver, List::Active, &query, &http_id).await
}

pub(crate) async fn expired(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
    query: QueryParams,
    http_id: HttpRequestId,
) -> Result<Response, ApiError> {
    page(&app, &caller, &approver, List::Expired, &query, &http_id).await
}

async fn page(
    app: &SharedState,
    caller: &Approver,
    approver: &ApproverId,
    list: List,
    query: &QueryParams,
    http_id: &HttpRequestId,
) -> Result<Response, ApiError> {
    let approver = &caller.acting_as(approver)?;
    let cursors = InboxCursor { tenant: &caller.tenant, approver, list };
    let from = match query.get("cursor")? {
        Some(cursor) => cursors.position(&app.secret, cursor)?,
        None => Position::default(),
    };
    if list == List::Expired {
        app.gateway.expire_overdue(&caller.tenant, approver).await?;
    }
    // Held while the page is read and rendered, not while it is written.
    let _permit = app.large_reads.acquire(&caller.tenant).await;
    let page = app.gateway.inbox(&caller.tenant, approver, list, from, query.limit()?).await?;
    let next_cursor = page.next.map(|next| cursors.cursor(&app.secret, next));
    let large = page.items.iter().map(|item| item.body.len()).sum::<usize>() > LARGE_BODY;
    let (to, http_id) = (Party::Approver(approver.clone()), http_id.clone());
    let (shared, tenant) = (app.clone(), caller.tenant.clone());
    let rendered = async move { render(&shared, &tenant, &to, page.items, next_cursor, &http_id) };
    if large { app.cpu_pool.run(rendered).await? } else { rendered.await }
}

fn render(
    app: &AppState,
    tenant: &TenantId,
    to: &Party,
    items: Vec<Item>,
    next_cursor: Option<String>,
    http_id: &HttpRequestId,
) -> Result<Response, ApiError> {
    let items: Option<Vec<Vec<u8>>> = items.into_iter().map(|item| app.message(&message(item), to)).collect();
    let items = items.ok_or(Failure::Internal)?;
    let items: Result<Vec<RawObject<'_>>, _> = items.iter().map(|item| RawObject::reread(item)).collect();
    let items = items.map_err(|_| Failure::Internal)?;
    let body = InboxPage { items, next_cursor };
    let envelope = app.envelope(MsgType::InboxPage, &http_id.as_request_id(), body)?;
    metered(app, tenant, PROTO_JSON, [envelope.into()])
}

/// An item of a page is the same message as is pushed.
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
    State(app): State<SharedState>,
    caller: Approver,
    PathIds(approver, request_id): PathIds<ApproverId, RequestId>,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver).for_request(&request_id)?;
    app.gateway.hide(&caller.tenant, &approver, &request_id).await.for_request(&request_id)?;
    let viewer = Viewer::Approver(&approver);
    let envelope = exchange_status(&app, &caller.tenant, viewer, &request_id).await?;
    Ok(response::proto(StatusCode::OK, envelope))
}
