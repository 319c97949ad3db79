//! All routes on one page. A route belongs to a group, which says who may call it, how large its body may be and how its
//! errors are written. A test fails for a route outside of a group.

use std::time::Duration;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, delete, get, post, put},
};
use countersign_wire::{
    failure::Failure,
    limits::{MAX_ARTIFACT_MESSAGE, MAX_JOIN_BODY, MAX_OTHER_BODY, MAX_PROMPT_MESSAGE, MAX_SESSION_MESSAGE},
};

use countersign_wire::id::TenantId;
use tokio::time::timeout;
use tracing::Instrument as _;

use crate::{
    auth::{Access, Caller, authenticate},
    cors,
    error::ApiError,
    ids::HttpRequestId,
    limits::Peer,
    metrics::Rejection,
    page,
    rest::{
        access_log::log_request,
        body::BodyRules,
        limited_answer::limited,
        response::{self, ErrorForm},
        unread_body::discard_unread_body,
    },
    routes::{
        acks, artifacts, decisions, exchanges, generic, inbox, invitations, join, meta, notifications,
        pairing, pairs, platform, presence, progress, prompts, rotate, sessions, streams, tenants,
    },
    state::{AppState, SharedState},
    traces::SPANS,
};

/// The whole service: every path that is answered.
#[expect(clippy::too_many_lines, reason = "a table")]
#[rustfmt::skip]
pub fn router(app: SharedState) -> Router {
    use Access::{Approver, Authenticated, Enforcer, GatewayOperator, Invited, Operator, Participant, Public};
    use Interface::{Generic, Platform, Protocol};
    let group = |interface, access, max_body_bytes| Group { app: &app, interface, access, max_body_bytes };
    // CONTRIBUTING: add an endpoint, step 1
    Router::new()
        // docs/protocol.md#main-endpoints
        .merge(group(Protocol, Enforcer, MAX_ARTIFACT_MESSAGE).routes([
            ("/v1/artifacts", post(artifacts::submit)),
        ]))
        .merge(group(Protocol, Enforcer, MAX_OTHER_BODY).routes([
            ("/v1/exchanges/{requestId}/withdraw", post(exchanges::withdraw)),
            ("/v1/pairing/initiate", post(pairing::initiate)),
        ]))
        .merge(group(Protocol, Approver, MAX_OTHER_BODY).routes([
            ("/v1/decisions", post(decisions::submit)),
            ("/v1/approvers/{approverId}/inbox", get(inbox::active)),
            ("/v1/approvers/{approverId}/inbox/expired", get(inbox::expired)),
            ("/v1/approvers/{approverId}/inbox/{requestId}", delete(inbox::remove)),
            ("/v1/exchanges/{requestId}/refresh", post(exchanges::refresh)),
            ("/v1/pairing/resolve/{code}", get(pairing::resolve)),
            ("/v1/pairing/complete", post(pairing::complete)),
        ]))
        .merge(group(Protocol, Participant, MAX_OTHER_BODY).routes([
            ("/v1/acks", post(acks::submit)),
        ]))
        .merge(group(Protocol, Authenticated, MAX_OTHER_BODY).routes([
            ("/v1/exchanges/{requestId}", get(exchanges::status)),
            ("/v1/presence/enforcers", get(presence::list)),
            ("/v1/presence/enforcers/{enforcerDeviceId}", get(presence::one)),
            ("/v1/pairing/status/{nonce}", get(pairing::status)),
        ]))
        // These hold their connection: docs/protocol.md#waiting and docs/protocol.md#push
        .merge(group(Protocol, Enforcer, MAX_OTHER_BODY).held_routes([
            ("/v1/exchanges/{requestId}/wait", get(exchanges::wait)),
            ("/v1/sse/enforcers/{enforcerId}", get(streams::enforcer)),
        ]))
        .merge(group(Protocol, Approver, MAX_OTHER_BODY).held_routes([
            ("/v1/sse/approvers/{approverId}", get(streams::approver)),
        ]))
        .merge(group(Protocol, Participant, MAX_OTHER_BODY).held_routes([
            ("/v1/ws", get(streams::websocket)),
        ]))
        // docs/protocol.md#generic-endpoints
        .merge(group(Generic, Enforcer, MAX_ARTIFACT_MESSAGE).routes([
            ("/v1/artifact", post(generic::artifact)),
        ]))
        .merge(group(Generic, Approver, MAX_OTHER_BODY).routes([
            ("/v1/decision", post(generic::decision)),
        ]))
        .merge(group(Generic, Participant, MAX_PROMPT_MESSAGE).routes([
            ("/v1/prompt", post(prompts::submit)),
        ]))
        .merge(group(Generic, Enforcer, MAX_SESSION_MESSAGE).routes([
            ("/v1/session/event", post(sessions::report)),
        ]))
        .merge(group(Generic, Authenticated, MAX_OTHER_BODY).routes([
            ("/v1/session/{sessionId}", get(sessions::one)),
            ("/v1/status", get(generic::status)),
        ]))
        // Outside of the protocol.
        .merge(group(Platform, Operator, MAX_OTHER_BODY).routes([
            ("/platform/v1/keys", post(platform::create_key).get(platform::keys)),
            ("/platform/v1/keys/{keyId}", delete(platform::revoke_key)),
            ("/platform/v1/invitations", post(invitations::create).get(invitations::list)),
            ("/platform/v1/invitations/{invitationId}", delete(invitations::revoke)),
            ("/platform/v1/policy", get(platform::policy).put(platform::set_policy)),
            ("/platform/v1/exchanges/{requestId}/cancel", post(platform::cancel)),
        ]))
        .merge(group(Platform, GatewayOperator, MAX_OTHER_BODY).routes([
            ("/platform/v1/tenants", get(tenants::list)),
            ("/platform/v1/tenants/{tenant}", delete(tenants::erase)),
            ("/platform/v1/tenants/{tenant}/suspend", post(tenants::suspend)),
            ("/platform/v1/tenants/{tenant}/resume", post(tenants::resume)),
        ]))
        .merge(group(Platform, Enforcer, MAX_OTHER_BODY).routes([
            ("/platform/v1/exchanges/{requestId}/progress", get(progress::progress)),
        ]))
        .merge(group(Platform, Approver, MAX_OTHER_BODY).routes([
            ("/platform/v1/approvers/{approverId}/notifications", get(notifications::list)),
            ("/platform/v1/approvers/{approverId}/notifications/channels/{channelId}", put(notifications::set_channel).delete(notifications::remove_channel)),
            ("/platform/v1/approvers/{approverId}/notifications/channels/{channelId}/test", post(notifications::test_channel)),
            ("/platform/v1/approvers/{approverId}/notifications/quiet-hours", put(notifications::set_quiet_hours).delete(notifications::end_quiet_hours)),
            ("/platform/v1/approvers/{approverId}/notifications/weekly-test", put(notifications::begin_weekly_test).delete(notifications::end_weekly_test)),
            ("/platform/v1/approvers/{approverId}/notifications/receipts", post(notifications::receive_receipt)),
        ]))
        .merge(group(Platform, Participant, MAX_OTHER_BODY).routes([
            ("/platform/v1/tickets", post(platform::create_ticket)),
        ]))
        .merge(group(Platform, Authenticated, MAX_OTHER_BODY).routes([
            ("/platform/v1/pairs", get(pairs::list).post(pairs::present)),
            ("/platform/v1/pairs/{pairId}", delete(pairs::remove)),
            ("/platform/v1/keys/rotate", post(rotate::rotate)),
        ]))
        .merge(group(Platform, Invited, MAX_JOIN_BODY).routes([
            ("/platform/v1/join", post(join::join)),
            ("/platform/v1/join/preview", post(join::describe)),
        ]))
        .merge(group(Platform, Public, MAX_OTHER_BODY).routes([
            ("/healthz", get(meta::alive)),
            ("/readyz", get(meta::ready)),
            ("/openapi.json", get(meta::openapi)),
        ]))
        .merge(group(Platform, Public, MAX_OTHER_BODY).page(page::paths()))
        .fallback(unknown_path)
        .layer(from_fn_with_state(app.clone(), every_request))
        .with_state(app)
}

/// Health checks and nothing else.
pub(crate) fn health_router(app: SharedState) -> Router {
    let group = Group {
        app: &app,
        interface: Interface::Platform,
        access: Access::Public,
        max_body_bytes: MAX_OTHER_BODY,
    };
    let routes = group.routes([("/healthz", get(meta::alive)), ("/readyz", get(meta::ready))]);
    routes.fallback(unknown_path).layer(from_fn_with_state(app.clone(), every_request)).with_state(app)
}

/// Which part of the interface a route belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    /// Envelopes, in errors too.
    Protocol,
    /// Bare objects or envelopes in; bare objects out, in errors too.
    Generic,
    /// Plain JSON; must not use the protocol's media type.
    Platform,
}

impl Interface {
    fn error_form(self) -> ErrorForm {
        match self {
            Self::Protocol => ErrorForm::Envelope,
            Self::Generic | Self::Platform => ErrorForm::Bare,
        }
    }
}

/// What a group of routes has in common.
struct Group<'a> {
    app: &'a SharedState,
    interface: Interface,
    access: Access,
    max_body_bytes: usize,
}

/// Longer than a body may take to arrive, and than any statement of a store.
const HANDLER_DEADLINE: Duration = Duration::from_secs(90);

type Route = (&'static str, MethodRouter<SharedState>);

impl Group<'_> {
    fn routes<const N: usize>(self, routes: [Route; N]) -> Router<SharedState> {
        self.build(routes, Some(HANDLER_DEADLINE), |methods, _| methods)
    }

    /// Routes that hold their connection. `HEAD` makes no sense there.
    fn held_routes<const N: usize>(self, routes: [Route; N]) -> Router<SharedState> {
        self.build(routes, None, |methods, form| {
            methods.head(async move |State(app): State<SharedState>, id: HttpRequestId| {
                ([(header::ALLOW, "GET")], method_not_allowed(&app, &id, form))
            })
        })
    }

    /// The files of the page for approvers.
    fn page(self, paths: Vec<&'static str>) -> Router<SharedState> {
        let serve = async |request: Request| page::file(request.uri().path(), request.headers());
        let paths = paths.into_iter().map(|path| (path, get(serve)));
        self.build(paths, Some(HANDLER_DEADLINE), |methods, _| methods)
    }

    fn build(
        self,
        routes: impl IntoIterator<Item = Route>,
        deadline: Option<Duration>,
        finish: impl Fn(MethodRouter<SharedState>, ErrorForm) -> MethodRouter<SharedState>,
    ) -> Router<SharedState> {
        let accepts_proto = self.interface != Interface::Platform;
        let body = BodyRules { max_body_bytes: self.max_body_bytes, accepts_proto };
        let form = self.interface.error_form();
        let rules = Rules { access: self.access, body, form, deadline };
        let admission = from_fn_with_state((self.app.clone(), rules), admit);
        let mut built = Router::new();
        for (path, methods) in routes {
            // On the methods that the route has, and not on others: an unknown method is 405 before 401.
            built = built.route(path, finish(methods.route_layer(admission.clone()), form));
        }
        let is_held = deadline.is_none();
        built.method_not_allowed_fallback(async move |State(app): State<SharedState>, id: HttpRequestId| {
            let mut answer = method_not_allowed(&app, &id, form);
            if is_held {
                // Without HEAD, which axum would add for every GET.
                answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET"));
            }
            answer
        })
    }
}

/// What holds for all routes of a group.
#[derive(Clone, Copy)]
struct Rules {
    access: Access,
    body: BodyRules,
    form: ErrorForm,
    /// Within which the handler answers; `None` where it holds its connection.
    deadline: Option<Duration>,
}

/// Middleware of the whole service. One layer and not three: each one copies the service behind it and allocates for every
/// request.
async fn every_request(State(app): State<SharedState>, mut request: Request, next: Next) -> Response {
    let http_id = HttpRequestId::assign(&mut request);
    let live = app.live.current();
    let origin = live.allowed_origins.of(request.headers());
    let is_tls = request.extensions().get::<Peer>().is_some_and(|peer| peer.is_tls);
    let hsts = is_tls.then(|| live.hsts(request.headers())).flatten();
    let handle = async |request| match origin.as_ref().and_then(|_| cors::preflight(&request)) {
        Some(answer) => response::finish(&app, &http_id, ErrorForm::Bare, answer),
        None => discard_unread_body(request, async |request| next.run(request).await).await,
    };
    let mut answer = log_request(&app, &http_id, request, handle).await;
    if let Some(origin) = &origin {
        cors::allow(origin, answer.headers_mut());
    }
    if let Some(hsts) = hsts {
        answer.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, hsts);
    }
    answer
}

/// Middleware of a route: admits the request or not, and renders errors in the form of its group.
async fn admit(State((app, rules)): State<(SharedState, Rules)>, request: Request, next: Next) -> Response {
    let http_id = HttpRequestId::of(&request);
    let finish = |answer| response::finish(&app, &http_id, rules.form, answer);
    let (tenant, answer) = match handle(&app, rules, request, next).await {
        Ok((tenant, answer)) => (tenant, answer),
        Err(error) => return finish(error.into_response()),
    };
    limited(&app, tenant.as_ref(), finish(answer)).unwrap_or_else(|error| finish(error.into_response()))
}

/// Checks the declared size, the credential, the rates and the role, and leaves what the extractors need. What may have a
/// large body is handled in the pool for it, and what does not hold its connection within a bounded time. Returns whose
/// quota the answer counts against.
async fn handle(
    app: &SharedState,
    Rules { access, body, deadline, .. }: Rules,
    request: Request,
    next: Next,
) -> Result<(Option<TenantId>, Response), ApiError> {
    body.check_declared_size(request.headers())?;
    let (mut parts, content) = request.into_parts();
    let span = tracing::trace_span!(target: SPANS, "authenticate");
    authenticate(app, access, &mut parts).instrument(span).await?;
    let may_be_large = body.may_be_large(&parts.headers);
    let tenant = match access {
        // What everybody gets is in memory once.
        Access::Public => None,
        Access::Invited => Some(app.newcomers.clone()),
        _ => parts.extensions.get::<Caller>().map(|caller| caller.tenant.clone()),
    };
    parts.extensions.insert(body);
    let handled = next.run(Request::from_parts(parts, content));
    let handled = async { if may_be_large { app.cpu_pool.run(handled).await } else { Ok(handled.await) } };
    let answer = match deadline {
        // A commit goes on without its request; that its outcome is not known is what 503 says.
        Some(deadline) => timeout(deadline, handled)
            .await
            .unwrap_or_else(|_| Err(ApiError::unavailable(Rejection::Deadline))),
        None => handled.await,
    };
    Ok((tenant, answer?))
}

fn method_not_allowed(app: &AppState, http_id: &HttpRequestId, form: ErrorForm) -> Response {
    response::finish(app, http_id, form, ApiError::from(Failure::MethodNotAllowed).into_response())
}

/// No route has this path. The form of the error is that of the interface which the path would belong to.
async fn unknown_path(State(app): State<SharedState>, request: Request) -> Response {
    let path = request.uri().path();
    let is_protocol = path.starts_with("/v1/") && !path.starts_with("/v1/session/");
    let form = if is_protocol { ErrorForm::Envelope } else { ErrorForm::Bare };
    let http_id = HttpRequestId::of(&request);
    response::finish(&app, &http_id, form, ApiError::from(Failure::NotFound).into_response())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// What makes a route in axum.
    const MAKE: [&str; 6] =
        [".route(", ".route_service(", ".nest(", ".nest_service(", ".fallback_service(", ".merge(Router"];

    /// Where each of them is written, with how often.
    fn routes_in(folder: &Path, found: &mut Vec<(String, usize)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                routes_in(&path, found);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let count = MAKE.iter().map(|make| code.matches(make).count()).sum();
            if count > 0 {
                found.push((path.file_name().unwrap().to_string_lossy().into_owned(), count));
            }
        }
    }

    #[test]
    fn only_a_group_makes_routes_so_that_none_is_without_its_limits() {
        let mut found = Vec::new();
        routes_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        found.sort();
        // The metrics have a listener of their own, for the operator.
        assert_eq!(found, [("router.rs".to_owned(), 1), ("scrape.rs".to_owned(), 1)]);
    }
}
