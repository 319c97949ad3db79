//! The errors of the gateway (docs/protocol.md#errors): codes, HTTP statuses, bodies.

use serde::Serialize;

use crate::{Error, FromMembers, Members, RawObject, id::RequestId, vocabulary::vocabulary};

macro_rules! failures {
    ($($(#[$doc:meta])* $variant:ident => $status:literal $code:literal $message:literal,)+) => {
        /// Every error of the gateway, with its code, HTTP status and constant message.
        ///
        /// Some codes occur with several statuses, depending on the cause; each pair is a variant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Failure { $($(#[$doc])* $variant,)+ }

        impl Failure {
            /// Every failure, by ascending status.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code, for programs.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The HTTP status; a WebSocket has only the code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// A sentence for people: constant, so it never repeats the request.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)+ }
            }
        }
    };
}

failures! {
    /// The request does not have the shape that the specification gives it.
    Validation => 400 "PROTO_ERR_VALIDATION" "The request is malformed; see details for the member at fault.",
    /// A message type or feature that this endpoint does not support.
    Unsupported => 400 "PROTO_ERR_UNSUPPORTED" "This message type is not supported here.",
    /// A cursor that the gateway did not issue for this list of this approver.
    Cursor => 400 "PROTO_ERR_CURSOR" "The cursor is not one of this list; start again without a cursor.",
    /// The decision's `artifactHash` is not that of the exchange.
    DecisionHashMismatch => 400 "PROTO_ERR_HASH_MISMATCH" "The decision names another artifact hash than the exchange.",
    /// The decision's own `expiresAt` has passed.
    DecisionExpired => 400 "PROTO_ERR_EXPIRED" "The decision's own expiresAt has passed.",
    /// A number outside ±(2^53−1) in a decision whose signature is verified.
    DecisionCanonicalization => 400 "PROTO_ERR_CANONICALIZATION" "A number is outside ±(2^53−1); send it as a string.",
    /// No credential, or not a valid one.
    Unauthenticated => 401 "PROTO_ERR_UNAUTHENTICATED" "A valid credential is required.",
    /// The credential is valid, but its role or id does not permit the request.
    Forbidden => 403 "PROTO_ERR_FORBIDDEN" "The credential does not permit this.",
    /// The tenant's policy does not permit the request.
    PolicyDeny => 403 "PROTO_ERR_POLICY_DENY" "The tenant's policy does not permit this.",
    /// The decision's signature does not verify under any key that the approver registered.
    SignatureInvalid => 403 "PROTO_ERR_SIGNATURE_INVALID" "Signature verification failed.",
    /// It does not exist, or the caller may not see it.
    NotFound => 404 "PROTO_ERR_NOT_FOUND" "Not found.",
    /// The path exists, but not with this method.
    MethodNotAllowed => 405 "PROTO_ERR_UNSUPPORTED" "This method is not for this path; see Allow.",
    /// The request id belongs to another submission or prompt.
    AlreadyExists => 409 "AlreadyExistsConflict" "The requestId is taken by another submission; use a new one.",
    /// The exchange has another decision already.
    AlreadyDecided => 409 "AlreadyDecidedConflict" "The exchange has been decided already.",
    /// The state of the exchange or pairing does not permit the request.
    State => 409 "PROTO_ERR_STATE" "The current state does not permit this.",
    /// The `expiresAt` of the exchange has passed.
    ExchangeExpired => 409 "PROTO_ERR_EXPIRED" "The exchange has expired.",
    /// The `Idempotency-Key` was used for another request within 24 hours.
    Idempotency => 409 "PROTO_ERR_IDEMPOTENCY" "The Idempotency-Key was used for another request; use a new one.",
    /// A new event after `session.end`.
    SessionClosed => 409 "PROTO_SESSION_ERR_SESSION_CLOSED" "The session has ended.",
    /// The session has another snapshot with this id.
    DuplicateSnapshot => 409 "PROTO_SESSION_ERR_DUPLICATE_SNAPSHOT" "The snapshotId is taken by another snapshot.",
    /// The body or a part of it exceeds a limit of [`crate::limits`].
    TooLarge => 413 "PROTO_ERR_TOO_LARGE" "The request is larger than permitted.",
    /// The `Content-Type` is not JSON, or there is a `Content-Encoding`.
    MediaType => 415 "PROTO_ERR_MEDIA_TYPE" "Send application/proto+json without a Content-Encoding.",
    /// As `MediaType`, where the protocol's own type is not accepted.
    PlatformMediaType => 415 "PROTO_ERR_MEDIA_TYPE" "Send application/json without a Content-Encoding.",
    /// The hash in the body is not that of its canonical form.
    HashMismatch => 422 "PROTO_ERR_HASH_MISMATCH" "The hash is not that of the canonical object.",
    /// The body of a submission does not have the format of its message type, or contradicts its envelope.
    Structure => 422 "PROTO_ERR_STRUCTURE" "The body is malformed; see details for the member at fault.",
    /// A number outside ±(2^53−1) in what is hashed: readers disagree about its value.
    Canonicalization => 422 "PROTO_ERR_CANONICALIZATION" "A number is outside ±(2^53−1); send it as a string.",
    /// The artifact's `expiresAt` had passed when it was submitted.
    ArtifactExpired => 422 "PROTO_ERR_EXPIRED" "The artifact's expiresAt has passed already.",
    /// No recipient was found: an unknown routing token, or a prompt without a unique enforcer.
    NoRecipient => 422 "PROTO_ERR_NO_RECIPIENT" "No recipient can be found for this message.",
    /// A rate limit; `Retry-After` says when to retry.
    RateLimited => 429 "PROTO_ERR_RATE_LIMITED" "Too many requests; retry after the time in Retry-After.",
    /// A bug or an unexpected condition in the gateway.
    Internal => 500 "PROTO_ERR_INTERNAL" "The gateway failed; retry with the same ids.",
    /// The store is unavailable or overloaded, the outcome of a commit is unknown, or the gateway is stopping.
    Unavailable => 503 "PROTO_ERR_UNAVAILABLE" "The gateway can't answer for this now; retry with the same ids.",
}

impl Failure {
    /// Whether the same request may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Internal | Self::Unavailable)
    }
}

vocabulary! {
    /// The codes of errors that a client knows. A gateway can send any text as a code, so a client keeps one of these and
    /// never the text.
    pub enum Code {
        /// The request is malformed.
        Validation = "PROTO_ERR_VALIDATION",
        /// The message type, feature or method is not supported.
        Unsupported = "PROTO_ERR_UNSUPPORTED",
        /// The cursor is not one of this list.
        Cursor = "PROTO_ERR_CURSOR",
        /// A hash is another one than was expected.
        HashMismatch = "PROTO_ERR_HASH_MISMATCH",
        /// A time has passed.
        Expired = "PROTO_ERR_EXPIRED",
        /// A number has no canonical form.
        Canonicalization = "PROTO_ERR_CANONICALIZATION",
        /// The credential is missing or not valid.
        Unauthenticated = "PROTO_ERR_UNAUTHENTICATED",
        /// The credential does not permit it.
        Forbidden = "PROTO_ERR_FORBIDDEN",
        /// The tenant's policy does not permit it.
        PolicyDeny = "PROTO_ERR_POLICY_DENY",
        /// The signature does not verify.
        SignatureInvalid = "PROTO_ERR_SIGNATURE_INVALID",
        /// It does not exist, or not for this client.
        NotFound = "PROTO_ERR_NOT_FOUND",
        /// The id is taken.
        AlreadyExists = "AlreadyExistsConflict",
        /// The exchange has been decided.
        AlreadyDecided = "AlreadyDecidedConflict",
        /// The state does not permit it.
        State = "PROTO_ERR_STATE",
        /// The idempotency key was used for something else.
        Idempotency = "PROTO_ERR_IDEMPOTENCY",
        /// The session has ended.
        SessionClosed = "PROTO_SESSION_ERR_SESSION_CLOSED",
        /// The id of the snapshot is taken.
        DuplicateSnapshot = "PROTO_SESSION_ERR_DUPLICATE_SNAPSHOT",
        /// It is larger than permitted.
        TooLarge = "PROTO_ERR_TOO_LARGE",
        /// It is not sent as JSON.
        MediaType = "PROTO_ERR_MEDIA_TYPE",
        /// The body is malformed.
        Structure = "PROTO_ERR_STRUCTURE",
        /// Nobody is found whom it is for.
        NoRecipient = "PROTO_ERR_NO_RECIPIENT",
        /// There were too many requests.
        RateLimited = "PROTO_ERR_RATE_LIMITED",
        /// The gateway failed.
        Internal = "PROTO_ERR_INTERNAL",
        /// The gateway can't answer now.
        Unavailable = "PROTO_ERR_UNAVAILABLE",
        /// Any other text, or none.
        Unknown = "unknown",
    }
}

impl Code {
    /// The code of this text, [`Code::Unknown`] for all that are not on the list.
    pub fn of(text: &str) -> Self {
        text.parse().unwrap_or(Self::Unknown)
    }
}

/// A transport-level error (docs/protocol.md#errors), the error body of the generic endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransportError {
    /// For programs, see [`Failure::code`].
    pub code: String,
    /// For people, see [`Failure::message`]; programs must not depend on it.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl From<Failure> for TransportError {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code().to_owned(),
            message: failure.message().to_owned(),
            retryable: failure.retryable(),
        }
    }
}

impl FromMembers<'_> for TransportError {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            code: members.required("code")?,
            message: members.required("message")?,
            retryable: members.required("retryable")?,
        })
    }
}

/// The body of an `error` envelope.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayError<'a> {
    /// For programs, see [`Failure::code`].
    pub code: String,
    /// For people, see [`Failure::message`]; programs must not depend on it.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The exchange or prompt that the error concerns; absent if it can't be read or there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// The invalid `member` and the `problem` with it; absent if no member is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<RawObject<'a>>,
}

impl<'a> FromMembers<'a> for GatewayError<'a> {
    fn from_members(members: &mut Members<'a>) -> Result<Self, Error> {
        Ok(Self {
            code: members.required("code")?,
            message: members.required("message")?,
            retryable: members.required("retryable")?,
            request_id: members.optional("requestId")?,
            details: members.optional("details")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_of_the_gateway_has_a_code_that_clients_know() {
        for failure in Failure::ALL {
            assert_eq!(Code::of(failure.code()).as_str(), failure.code());
        }
        for code in Code::ALL.iter().filter(|code| **code != Code::Unknown) {
            assert!(Failure::ALL.iter().any(|failure| failure.code() == code.as_str()), "{code}");
        }
        for other in ["", "NOTICE: allow everything", "PROTO_ERR_STATE\u{1b}[2J", "proto_err_state"] {
            assert_eq!(Code::of(other), Code::Unknown);
        }
    }
}
