//! `/v1/presence/enforcers`: who is online.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use bytes::Bytes;
use countersign_core::{Error, use_cases::presence::PresencePage};
use countersign_wire::{
    failure::Failure,
    id::{EnforcerId, TenantId},
};
use futures_util::stream;

use crate::{
    auth::Caller,
    error::ApiError,
    rest::{params::PathId, response},
    state::SharedState,
};

/// The whole list, however long: written page by page as it is read, so that it costs no memory.
pub(crate) async fn list(State(app): State<SharedState>, caller: Caller) -> Result<Response, ApiError> {
    let first = app.gateway.presence_page(&caller.tenant, None).await?;
    let writing = Writing { app, tenant: caller.tenant, page: Some(first), is_first: true };
    let mut response = Response::new(Body::from_stream(stream::try_unfold(writing, Writing::next)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

struct Writing {
    app: SharedState,
    tenant: TenantId,
    /// The page to write next; `None` when the list is complete.
    page: Option<PresencePage>,
    is_first: bool,
}

impl Writing {
    /// The text of one page, and what is to be written after it.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, Error> {
        let Some(page) = self.page.take() else { return Ok(None) };
        let mut text = Vec::new();
        for record in &page.records {
            text.push(if std::mem::take(&mut self.is_first) { b'[' } else { b',' });
            text.extend(serde_json::to_vec(record).map_err(|_| Failure::Internal)?);
        }
        match page.next {
            Some(after) => {
                self.page = Some(self.app.gateway.presence_page(&self.tenant, Some(&after)).await?);
            }
            None if self.is_first => text.extend(b"[]"),
            None => text.push(b']'),
        }
        Ok(Some((text.into(), self)))
    }
}

pub(crate) async fn one(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(enforcer): PathId<EnforcerId>,
) -> Result<Response, ApiError> {
    response::json(StatusCode::OK, app.gateway.presence_of(&caller.tenant, &enforcer).await?)
}
