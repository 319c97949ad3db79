//! `/v1/session`.

use std::mem;

use axum::{body::Body, extract::State, http::StatusCode, response::Response};
use bytes::Bytes;
use countersign_core::use_cases::session::Reported;
use countersign_wire::{
    id::{EnforcerId, SessionId},
    session::{EndReason, SessionState, SnapshotType},
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    auth::{Caller, Enforcer},
    error::ApiError,
    protocol::operations,
    rest::{body::RequestBody, limited_answer::Segments, params::PathId, response},
    state::SharedState,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Taken {
    session_id: SessionId,
}

pub(crate) async fn report(
    State(app): State<SharedState>,
    caller: Enforcer,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let (session_id, reported) = operations::report(&app, &caller, &body.framed()?).await?;
    let status = match reported {
        Reported::New => StatusCode::ACCEPTED,
        Reported::Duplicate => StatusCode::OK,
    };
    response::json(status, Taken { session_id })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    session_id: SessionId,
    enforcer_id: EnforcerId,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repo_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<SessionState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<EndReason>,
}

impl Known {
    /// The answer in segments: up to four snapshots of 7 MB each are written as the store returned them, uncopied.
    fn segments(&self, snapshots: Vec<(SnapshotType, Bytes)>) -> Result<Vec<Bytes>, ApiError> {
        let mut text = serde_json::to_string(self).map_err(|error| ApiError::internal(&error))?;
        // `snapshots` becomes the object's last member.
        text.truncate(text.len() - 1);
        text.push_str(",\"snapshots\":{");
        let mut segments = Vec::new();
        for (position, (snapshot_type, event)) in snapshots.into_iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            text += [comma, "\"", snapshot_type.as_str(), "\":"].concat().as_str();
            segments.extend([mem::take(&mut text).into(), event]);
        }
        segments.push((text + "}}").into());
        Ok(segments)
    }
}

pub(crate) async fn one(
    State(app): State<SharedState>,
    caller: Caller,
    PathId(session_id): PathId<SessionId>,
) -> Result<Response, ApiError> {
    // Held while the snapshots are read, not while they are written.
    let permit = app.large_reads.acquire(&caller.tenant).await;
    let (session, snapshots) = loop {
        let session = app.gateway.session(&caller.tenant, caller.viewer(), &session_id).await?;
        let snapshots = app.gateway.snapshot_texts(&caller.tenant, &session_id, &session).await?;
        // A writer that is faster than these two reads each time is stopped by its own rate before long.
        if let Some(snapshots) = snapshots {
            break (session, snapshots);
        }
    };
    drop(permit);
    let known = Known {
        session_id,
        enforcer_id: session.enforcer,
        agent_host: session.agent_host,
        repo_ref: session.repo_ref,
        state: session.activity,
        created_at: session.created_at,
        updated_at: session.updated_at,
        ended_at: session.end.as_ref().map(|end| end.at),
        reason: session.end.map(|end| end.reason),
    };
    let body = Body::new(Segments::new(known.segments(snapshots)?));
    Ok(response::with_type(StatusCode::OK, response::JSON, body))
}
