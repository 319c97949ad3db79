//! What the gateway says when it refuses (section 7): codes, statuses, bodies.

use serde::Serialize;

use crate::{Error, FromMembers, Members, RawObject, id::RequestId};

macro_rules! failures {
    ($($(#[$doc:meta])* $variant:ident => $status:literal $code:literal $message:literal,)+) => {
        /// Everything that the gateway refuses, each with its code, HTTP status and constant message.
        ///
        /// Some codes have several statuses, by what they are said of; so each pair is a variant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Failure { $($(#[$doc])* $variant,)+ }

        impl Failure {
            /// Every failure.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The code that programs read.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// The sentence that people read: the same for every request, and nothing of the request in it.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)+ }
            }
        }
    };
}

failures! {
    /// The request does not have the shape that the specification gives it.
    Validation => 400 "PROTO_ERR_VALIDATION" "The request is malformed; see details for the member at fault.",
    /// A message type or feature that is not for this place.
    Unsupported => 400 "PROTO_ERR_UNSUPPORTED" "This message type is not supported here.",
    /// A cursor that this gateway did not give for this list.
    Cursor => 400 "PROTO_ERR_CURSOR" "The cursor is not one of this list; start again without a cursor.",
    /// A decision about another artifact.
    DecisionHashMismatch => 400 "PROTO_ERR_HASH_MISMATCH" "The decision names another artifact hash than the exchange.",
    /// A decision that is void already.
    DecisionExpired => 400 "PROTO_ERR_EXPIRED" "The decision's own expiresAt has passed.",
    /// No credential, or not a valid one.
    Unauthenticated => 401 "PROTO_ERR_UNAUTHENTICATED" "A valid credential is required.",
    /// The credential is not for this.
    Forbidden => 403 "PROTO_ERR_FORBIDDEN" "The credential does not permit this.",
    /// The tenant's policy is against it.
    PolicyDeny => 403 "PROTO_ERR_POLICY_DENY" "The tenant's policy does not permit this.",
    /// The decision's signature does not stand under a registered key.
    SignatureInvalid => 403 "PROTO_ERR_SIGNATURE_INVALID" "Signature verification failed.",
    /// It does not exist, or the caller may not see it.
    NotFound => 404 "PROTO_ERR_NOT_FOUND" "Not found.",
    /// The path is there, but not for this method.
    MethodNotAllowed => 405 "PROTO_ERR_UNSUPPORTED" "This method is not for this path; see Allow.",
    /// The id is taken by something else.
    AlreadyExists => 409 "AlreadyExistsConflict" "The requestId is taken by another submission; use a new one.",
    /// Another decision was first.
    AlreadyDecided => 409 "AlreadyDecidedConflict" "The exchange has been decided already.",
    /// The state does not allow it.
    State => 409 "PROTO_ERR_STATE" "The state of the exchange does not permit this.",
    /// The exchange's time is up.
    ExchangeExpired => 409 "PROTO_ERR_EXPIRED" "The exchange has expired.",
    /// The key was used for something else.
    Idempotency => 409 "PROTO_ERR_IDEMPOTENCY" "The Idempotency-Key was used for another request; use a new one.",
    /// Events after the end.
    SessionClosed => 409 "PROTO_SESSION_ERR_SESSION_CLOSED" "The session has ended.",
    /// The snapshot's id is taken.
    DuplicateSnapshot => 409 "PROTO_SESSION_ERR_DUPLICATE_SNAPSHOT" "The snapshotId is taken by another snapshot.",
    /// Over a limit of size.
    TooLarge => 413 "PROTO_ERR_TOO_LARGE" "The request is larger than permitted.",
    /// Not JSON by its own word, or encoded.
    MediaType => 415 "PROTO_ERR_MEDIA_TYPE" "Send application/proto+json without a Content-Encoding.",
    /// The hash is not that of what was sent.
    HashMismatch => 422 "PROTO_ERR_HASH_MISMATCH" "The hash is not that of the canonical object.",
    /// A body that is not what its message type says.
    Structure => 422 "PROTO_ERR_STRUCTURE" "The body is malformed; see details for the member at fault.",
    /// Something that has no canonical form.
    Canonicalization => 422 "PROTO_ERR_CANONICALIZATION" "An integer is outside ±(2^53−1); send it as a string.",
    /// An artifact that is past already.
    ArtifactExpired => 422 "PROTO_ERR_EXPIRED" "The artifact's expiresAt has passed already.",
    /// Nobody to send it to.
    NoApprover => 422 "PROTO_ERR_NO_APPROVER" "No recipient can be found for this message.",
    /// Too many requests.
    RateLimited => 429 "PROTO_ERR_RATE_LIMITED" "Too many requests; retry after the time in Retry-After.",
    /// Our fault.
    Internal => 500 "PROTO_ERR_INTERNAL" "The gateway failed; retry with the same ids.",
    /// Not now: the store is away or full, the outcome of a commit is unknown, or the gateway is stopping.
    Unavailable => 503 "PROTO_ERR_UNAVAILABLE" "The gateway can't answer for this now; retry with the same ids.",
}

impl Failure {
    /// Whether the same request may succeed later.
    pub const fn retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Internal | Self::Unavailable)
    }
}

/// A transport-level error (section 2.10), which the generic endpoints answer with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransportError {
    /// For programs.
    pub code: String,
    /// For people.
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
    /// For programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// The exchange that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Which member is at fault and how, where that is known.
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
