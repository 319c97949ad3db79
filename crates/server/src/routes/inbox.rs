//! `/v1/approvers/{approverId}/inbox`.

use axum::{body::Body, extract::State, http::StatusCode, response::Response};
use bytes::Bytes;
use countersign_core::{
    delivery::message::{Message, Party},
    model::viewer::Viewer,
    use_cases::inbox::{Item, List, Position},
};
use countersign_wire::{
    id::{ApproverId, RequestId},
    msg_type::MsgType,
};

use crate::{
    auth::Approver,
    error::{ApiError, ForRequest as _},
    ids::HttpRequestId,
    protocol::{PROTO_JSON, envelopes::END, status::exchange_status},
    rest::{
        cursor::InboxCursor,
        limited_answer::Segments,
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
    app: &AppState,
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
    // Held while the page is read, not while it is written.
    let _permit = app.large_reads.acquire(&caller.tenant).await;
    let page = app.gateway.inbox(&caller.tenant, approver, list, from, query.limit()?).await?;
    let next_cursor = page.next.map(|next| cursors.cursor(&app.secret, next));
    let next_cursor = serde_json::to_string(&next_cursor).map_err(|error| ApiError::internal(&error))?;
    // The page in segments, so that what it lists is copied once: up to 4 MiB.
    let mut text = app.envelope_head(MsgType::InboxPage, &http_id.as_request_id())?;
    text.extend_from_slice(br#"{"items":["#);
    let mut segments = vec![text.into()];
    let to = Party::Approver(approver.clone());
    for (position, item) in page.items.into_iter().enumerate() {
        if position > 0 {
            segments.push(Bytes::from_static(b","));
        }
        segments.push(app.message(&message(item), &to)?.into());
    }
    segments.push(format!(r#"],"nextCursor":{next_cursor}}}"#).into());
    segments.push(END.into());
    Ok(response::with_type(StatusCode::OK, PROTO_JSON, Body::new(Segments::new(segments))))
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
