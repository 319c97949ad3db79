//! The steps that operations share: what is required of the message, which request it is about, who acts.

use countersign_core::{Error, metrics::Step};
use countersign_wire::{
    FromJson, RawObject, Verbatim,
    failure::Failure,
    framed::Framed,
    id::{ApproverId, EnforcerId, RequestId, TenantId},
    limits,
    msg_type::MsgType,
};
use tokio::time::Instant;

use crate::{
    auth::{Approver, Enforcer},
    error::{ApiError, ForRequest as _},
    state::AppState,
};

/// One message that asks for something.
pub(super) struct Operation<'a> {
    app: &'a AppState,
    framed: &'a Framed<'a>,
    received: Instant,
}

impl<'a> Operation<'a> {
    pub(super) fn new(app: &'a AppState, framed: &'a Framed<'a>) -> Self {
        Self { app, framed, received: Instant::now() }
    }

    /// A message that says that it is of another type is refused.
    pub(super) fn expecting(self, msg_types: &[MsgType]) -> Result<Self, ApiError> {
        match &self.framed.msg_type {
            Some(said) if !msg_types.contains(said) => {
                Err(ApiError::from(Failure::Unsupported).or_for_request(self.framed.request_id.clone()))
            }
            _ => Ok(self),
        }
    }

    /// A message about the request in the path must name the same one.
    pub(super) fn about(self, request_id: &RequestId) -> Result<Self, ApiError> {
        match &self.framed.request_id {
            Some(named) if named != request_id => {
                Err(ApiError::breaks("requestId", "is not that of the path").for_request(request_id))
            }
            _ => Ok(self),
        }
    }

    pub(super) fn body<B: FromJson<'a>>(&self) -> Result<Verbatim<'a, B>, ApiError> {
        self.framed.body.view().map_err(|fault| ApiError::invalid(&fault))
    }

    /// The request that the envelope names, or else the body.
    pub(super) fn request_id<B>(
        &self,
        body: &Result<B, ApiError>,
        inside: impl FnOnce(&B) -> Result<RequestId, ApiError>,
    ) -> Result<RequestId, ApiError> {
        match (&self.framed.request_id, body) {
            (Some(request_id), _) => Ok(request_id.clone()),
            (None, Ok(body)) => inside(body),
            (None, Err(error)) => Err(error.clone()),
        }
    }

    /// Passes `body` on. Trace and metadata have one limit together.
    pub(super) fn measured<B>(&self, body: B) -> Result<B, ApiError> {
        let trace = self.framed.trace.map_or(0, |trace| trace.as_str().len());
        let mut members = self.framed.body.members().map_err(|fault| ApiError::invalid(&fault))?;
        let metadata: Option<RawObject<'_>> = members.optional("metadata").ok().flatten();
        let metadata = metadata.map_or(0, |metadata| metadata.as_str().len());
        match trace + metadata <= limits::MAX_METADATA_AND_TRACE {
            true => Ok(body),
            false => Err(ApiError::too_large("metadata and trace", limits::MAX_METADATA_AND_TRACE)),
        }
    }

    /// Whether the tenant has room for this message.
    pub(super) async fn fits(&self, tenant: &TenantId, about: &RequestId) -> Result<(), ApiError> {
        let size = self.framed.body.as_str().len();
        self.app.stored.admit(&self.app.gateway, tenant, size).await.for_request(about)
    }

    /// As which enforcer the caller acts. The specification requires a sender on submissions, decisions and withdrawals;
    /// elsewhere the credential says who. A wildcard credential acts as the party of the exchange or prompt that the
    /// request names.
    pub(super) async fn enforcer(
        &self,
        caller: &Enforcer,
        request_id: &RequestId,
    ) -> Result<EnforcerId, ApiError> {
        // A sender that names the other side speaks for somebody else. `gatewayId` is ignored.
        if self.framed.sender.approver_id.is_some() {
            return Err(Failure::Forbidden.into());
        }
        match (&self.framed.sender.enforcer_id, &self.framed.msg_type) {
            (Some(named), _) => caller.acting_as(self.app, named),
            (None, Some(MsgType::ArtifactSubmit | MsgType::ExchangeWithdrawn)) => {
                Err(missing("sender.enforcerId"))
            }
            (None, _) if caller.only.is_some() => caller.itself(self.app),
            (None, _) => match self.app.gateway.parties(&caller.tenant, request_id).await? {
                Some(parties) => caller.acting_as(self.app, &parties.enforcer),
                None => caller.itself(self.app),
            },
        }
    }

    /// As which approver the caller acts.
    pub(super) async fn approver(
        &self,
        caller: &Approver,
        request_id: &RequestId,
    ) -> Result<ApproverId, ApiError> {
        if self.framed.sender.enforcer_id.is_some() {
            return Err(Failure::Forbidden.into());
        }
        match &self.framed.sender.approver_id {
            Some(named) => caller.acting_as(named),
            None if self.framed.msg_type == Some(MsgType::DecisionSubmit) => {
                Err(missing("sender.approverId"))
            }
            None if caller.only.is_some() => caller.itself(),
            None => {
                match self.app.gateway.parties(&caller.tenant, request_id).await?.and_then(|it| it.approver) {
                    Some(approver) => Ok(approver),
                    None => caller.itself(),
                }
            }
        }
    }

    /// Counts how long it took.
    pub(super) fn took(&self, step: Step) {
        self.app.gateway.metrics().steps.at(step).observe(self.received.elapsed());
    }
}

/// What every operation on a request comes to: the body is valid, somebody may act, and the use case decides. Every error
/// names the request.
pub(super) async fn perform<A, B, T, F>(
    request_id: &RequestId,
    body: Result<B, ApiError>,
    actor: impl Future<Output = Result<A, ApiError>>,
    use_case: impl FnOnce(A, B) -> F,
) -> Result<T, ApiError>
where
    F: Future<Output = Result<T, Error>>,
{
    let body = body.for_request(request_id)?;
    let actor = actor.await.for_request(request_id)?;
    use_case(actor, body).await.for_request(request_id)
}

pub(super) fn missing(member: &'static str) -> ApiError {
    ApiError::invalid(&countersign_wire::Error::missing(member))
}
