//! Why a request is not served, as data. [`crate::rest::response`] is the only place that renders it.

use std::time::Duration;

use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use countersign_core::{
    Error,
    store::{StoreError, error_chain},
};
use countersign_wire::{RawObject, failure::Failure, id::RequestId};
use serde::Serialize;

use crate::metrics::Rejection;

/// Why a request is not served. The client reads failure, subject and details; only the log reads the cause.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    failure: Failure,
    /// The exchange that it is about; `None` where none is known.
    subject: Option<RequestId>,
    /// JSON, in the words of the specification only: nothing that the client sent.
    details: Option<String>,
    retry_after: Option<Duration>,
    cause: Option<String>,
    /// Which limit was met; only where the failure is one of limits.
    rejection: Rejection,
}

#[derive(Serialize)]
struct Details<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<&'a str>,
    problem: String,
}

impl ApiError {
    /// A member of the request, or its shape, is at fault.
    pub(crate) fn with_fault(failure: Failure, fault: &countersign_wire::Error) -> Self {
        let details = match fault {
            countersign_wire::Error::Member(fault) => Details {
                member: Some(fault.path()).filter(|path| !path.is_empty()),
                problem: fault.problem().to_string(),
            },
            other => Details { member: None, problem: other.to_string() },
        };
        Self { details: serde_json::to_string(&details).ok(), ..failure.into() }
    }

    /// As [`ApiError::with_fault`], for a fault outside of a hashed body.
    pub(crate) fn invalid(fault: &countersign_wire::Error) -> Self {
        Self::with_fault(Failure::Validation, fault)
    }

    /// As [`ApiError::invalid`], for a member that breaks a rule.
    pub(crate) fn breaks(member: &'static str, rule: &'static str) -> Self {
        Self::invalid(&countersign_wire::Error::breaks(member, rule))
    }

    fn with_details(failure: Failure, details: &serde_json::Value) -> Self {
        Self { details: Some(details.to_string()), ..failure.into() }
    }

    /// A part of the request is larger than `limit` bytes.
    pub(crate) fn too_large(member: &str, limit: usize) -> Self {
        Self::with_details(Failure::TooLarge, &serde_json::json!({ "member": member, "limit": limit }))
    }

    /// Something that cannot happen did: an answer of ours, or a text that we stored, is not valid JSON.
    pub(crate) fn internal(cause: &impl std::fmt::Display) -> Self {
        Self { cause: Some(cause.to_string()), ..Failure::Internal.into() }
    }

    /// The limit allows another request after this time.
    pub(crate) fn rate_limited(after: Duration, rejection: Rejection) -> Self {
        Self { retry_after: Some(after), rejection, ..Failure::RateLimited.into() }
    }

    /// What is needed for the request is not there now.
    pub(crate) fn unavailable(rejection: Rejection) -> Self {
        Self { rejection, ..Failure::Unavailable.into() }
    }

    /// Which limit was met; `None` if it is another failure than 429 and 503.
    pub(crate) fn rejection(&self) -> Option<Rejection> {
        matches!(self.failure.status(), 429 | 503).then_some(self.rejection)
    }

    /// Names the exchange that it is about.
    pub(crate) fn for_request(self, request_id: &RequestId) -> Self {
        Self { subject: Some(request_id.clone()), ..self }
    }

    /// Names the exchange that it is about, unless it names one already.
    pub(crate) fn or_for_request(self, request_id: Option<RequestId>) -> Self {
        Self { subject: self.subject.or(request_id), ..self }
    }

    pub(crate) fn failure(&self) -> Failure {
        self.failure
    }

    pub(crate) fn subject(&self) -> Option<&RequestId> {
        self.subject.as_ref()
    }

    pub(crate) fn details(&self) -> Option<RawObject<'_>> {
        RawObject::reread(self.details.as_deref()?.as_bytes()).ok()
    }

    /// Seconds for `Retry-After`, where the failure has that header. Rounded up: a client that comes back then is not
    /// too early.
    pub(crate) fn retry_after_seconds(&self) -> Option<u64> {
        if !matches!(self.failure, Failure::RateLimited | Failure::Unavailable) {
            return None;
        }
        let seconds = self.retry_after.map_or(1, |after| after.as_millis().div_ceil(1_000).max(1));
        Some(u64::try_from(seconds).unwrap_or(u64::MAX))
    }

    /// Logs, once, a failure that is not the client's.
    pub(crate) fn log(&self, http_id: &impl std::fmt::Display) {
        if self.failure.status() >= 500 {
            let cause = self.cause.as_deref().unwrap_or_default();
            tracing::error!(request = %http_id, code = self.failure.code(), cause, "request failed");
        }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            subject: None,
            details: None,
            retry_after: None,
            cause: None,
            rejection: Rejection::Other,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let failure = error.failure();
        match &error {
            Error::Invalid { fault, .. } => Self::with_fault(failure, fault),
            Error::Policy(policy) => Self::with_details(failure, &serde_json::json!({ "policy": policy })),
            Error::TooLarge { member, limit } => Self::too_large(member, *limit),
            Error::RateLimited(after) => Self::rate_limited(*after, Rejection::Other),
            Error::Store(cause) => {
                let rejection = match cause {
                    StoreError::Overloaded => Rejection::StoreOverloaded,
                    _ => Rejection::StoreUnavailable,
                };
                Self { cause: Some(error_chain(cause)), rejection, ..failure.into() }
            }
            Error::Exchange(_) | Error::Pairing(_) | Error::Session(_) | Error::Rejected(_) => failure.into(),
        }
    }
}

/// Names the exchange in an error.
pub(crate) trait ForRequest<T> {
    fn for_request(self, request_id: &RequestId) -> Result<T, ApiError>;
}

impl<T, E: Into<ApiError>> ForRequest<T> for Result<T, E> {
    fn for_request(self, request_id: &RequestId) -> Result<T, ApiError> {
        self.map_err(|error| error.into().for_request(request_id))
    }
}

impl IntoResponse for ApiError {
    /// Only marks the response; the route's group renders it, since its form depends on the interface.
    fn into_response(self) -> Response {
        let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
        response.extensions_mut().insert(self);
        response
    }
}
