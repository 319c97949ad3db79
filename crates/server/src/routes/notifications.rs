//! `/platform/v1/approvers/{approverId}/notifications`: how a person is notified outside of the protocol.

use std::time::Duration;

use axum::{extract::State, http::StatusCode, response::Response};
use countersign_core::{
    model::notification::{
        Attempt, ChannelId, ChannelKind, Failing, FailureReason, NotificationChannel, QuietHours,
        ReceiptEvent,
    },
    use_cases::notifications::ChannelSpec,
};
use countersign_wire::{
    FromMembers, Label, Members,
    failure::Failure,
    id::{ApproverId, RequestId},
    timestamp::Timestamp,
};
use serde::Serialize;

use crate::{
    auth::Approver,
    clock,
    error::ApiError,
    metrics::Rejection,
    notifications::{
        contents::{Address, ChannelName, Service, WebhookSecret},
        web_push::DeviceKeys,
        webhook,
    },
    rest::{
        body::RequestBody,
        params::{PathId, PathIds},
        response,
    },
    state::{AppState, SharedState},
};

/// How long messages are signed with the secret of a webhook that was replaced, too.
const SECRET_OVERLAP: Duration = Duration::from_hours(24);

/// How many secrets that were replaced still sign.
const MAX_OLD_SECRETS: usize = 4;

const MAX_PAGE: usize = 300;
const MAX_CONTENT_TYPE: usize = 100;
const MAX_RECEIPTS: usize = 20;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownNotifications<'a> {
    vapid_public_key: String,
    channels: Vec<ShownChannel<'a>>,
    quiet_hours: Option<ShownHours>,
    weekly_test: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownChannel<'a> {
    id: &'a ChannelId,
    kind: ChannelKind,
    label: &'a Label,
    host: &'a str,
    created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    displayed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing: Option<&'a Failing>,
    /// Shown once, to whoever let the gateway make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

impl<'a> From<&'a NotificationChannel> for ShownChannel<'a> {
    fn from(channel: &'a NotificationChannel) -> Self {
        Self {
            id: &channel.id,
            kind: channel.kind,
            label: &channel.label,
            host: &channel.host,
            created_at: channel.created_at,
            accepted_at: channel.accepted_at,
            displayed_at: channel.displayed_at,
            failing: channel.failing.as_ref(),
            secret: None,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownHours {
    from: String,
    to: String,
    utc_offset_minutes: i16,
}

impl From<QuietHours> for ShownHours {
    fn from(QuietHours { from, to, utc_offset_minutes }: QuietHours) -> Self {
        let text = |minutes: u16| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        Self { from: text(from), to: text(to), utc_offset_minutes }
    }
}

#[derive(Serialize)]
struct Nothing {}

pub(crate) async fn list(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    let known = app.gateway.notifications(&caller.tenant, &approver).await?;
    let senders = app.notifier.senders.get().await?;
    let sender = senders.newest().ok_or(Failure::Unavailable)?;
    let shown = ShownNotifications {
        vapid_public_key: sender.public(),
        channels: known.channels.iter().map(ShownChannel::from).collect(),
        quiet_hours: known.quiet_hours.map(ShownHours::from),
        weekly_test: known.weekly_test.is_some(),
    };
    response::json(StatusCode::OK, shown)
}

/// What a device or a person wants to be notified by.
struct ChannelRequest {
    kind: ChannelKind,
    label: Label,
    endpoint: String,
    page: String,
    /// The device's own two keys.
    keys: Option<(String, String)>,
    secret: Option<String>,
    template: Option<String>,
    content_type: Option<String>,
}

struct PushKeys(String, String);

impl FromMembers<'_> for PushKeys {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        Ok(Self(members.required("p256dh")?, members.required("auth")?))
    }
}

impl FromMembers<'_> for ChannelRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        use countersign_wire::Error;
        let kind = match members.required::<String>("kind")?.as_str() {
            "webPush" => ChannelKind::WebPush,
            "unifiedPush" => ChannelKind::UnifiedPush,
            "webhook" => ChannelKind::Webhook,
            _ => return Err(Error::breaks("kind", "must be webPush, unifiedPush or webhook")),
        };
        let request = Self {
            kind,
            label: members.required("label")?,
            endpoint: members.required("endpoint")?,
            page: members.required("page")?,
            keys: members.optional::<PushKeys>("keys")?.map(|PushKeys(p256dh, auth)| (p256dh, auth)),
            secret: members.optional("secret")?,
            template: members.optional("template")?,
            content_type: members.optional("contentType")?,
        };
        members.close()?;
        let is_page = request.page.starts_with("https://") || request.page.starts_with("http://");
        if !is_page || request.page.len() > MAX_PAGE || request.page.chars().any(char::is_control) {
            return Err(Error::breaks("page", "must be the address of the page, with up to 300 characters"));
        }
        let is_webhook = kind == ChannelKind::Webhook;
        if is_webhook == request.keys.is_some() {
            return Err(Error::breaks("keys", "must be given for webPush and unifiedPush, and only there"));
        }
        if request.template.as_ref().is_some_and(|template| template.len() > webhook::MAX_TEMPLATE) {
            return Err(Error::breaks("template", "must have at most 4,096 bytes"));
        }
        let is_type = |text: &String| {
            text.len() <= MAX_CONTENT_TYPE && text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
        };
        if request.content_type.as_ref().is_some_and(|content_type| !is_type(content_type)) {
            return Err(Error::breaks("contentType", "must be a media type"));
        }
        if request.secret.as_ref().is_some_and(|secret| webhook::read_secret(secret).is_none()) {
            return Err(Error::breaks("secret", "must be whsec_ and 24 to 64 bytes in base64"));
        }
        Ok(request)
    }
}

pub(crate) async fn set_channel(
    State(app): State<SharedState>,
    caller: Approver,
    PathIds(approver, id): PathIds<ApproverId, ChannelId>,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    let request = body.bare::<ChannelRequest>()?.into_view();
    let name = ChannelName { tenant: caller.tenant.clone(), approver: approver.clone(), channel: id.clone() };
    let host = app.notifier.check_address(&request.endpoint).map_err(|_| not_allowed())?;
    let has_secret = request.secret.is_some();
    let (kind, label) = (request.kind, request.label.clone());
    let address = address(&app, &name, request).await?;
    let sealed = app.notifier.seal(&name, &address).ok_or(Failure::Internal)?;
    let spec = ChannelSpec { id, kind, label, host, address: sealed };
    let channel = app.gateway.set_channel(&caller.tenant, &approver, &spec).await?;
    let made = match &address.service {
        Service::Webhook { secrets, .. } if !has_secret => {
            secrets.first().map(|secret| secret.secret.clone())
        }
        _ => None,
    };
    response::json(StatusCode::OK, ShownChannel { secret: made, ..ShownChannel::from(&channel) })
}

fn not_allowed() -> ApiError {
    let fault =
        countersign_wire::Error::breaks("endpoint", "must be an https address that this gateway may call");
    ApiError::with_fault(Failure::Structure, &fault)
}

/// The address with its keys. A webhook that is set again is signed with its old secret, too, for a day.
async fn address(app: &AppState, name: &ChannelName, request: ChannelRequest) -> Result<Address, ApiError> {
    let ChannelRequest { endpoint, page, keys, secret, template, content_type, .. } = request;
    let service = if let Some((p256dh, auth)) = keys {
        if DeviceKeys::parse(&p256dh, &auth).is_none() {
            return Err(ApiError::breaks("keys", "must be those of a push subscription"));
        }
        let senders = app.notifier.senders.get().await?;
        let sender = senders.newest().ok_or(Failure::Unavailable)?.public();
        Service::Push { p256dh, auth, sender }
    } else {
        let known = app.gateway.notifications(&name.tenant, &name.approver).await?;
        let known = known.channels.iter().find(|channel| channel.id == name.channel);
        let old = known.and_then(|channel| app.notifier.open(name, channel));
        let (secret, now) = (secret.unwrap_or_else(webhook::new_secret), clock::now());
        let mut secrets = vec![WebhookSecret { secret: secret.clone(), until: None }];
        if let Some(Address { service: Service::Webhook { secrets: old, .. }, .. }) = old {
            // All that still count: a call that is repeated, because its answer was lost, must not end the first one.
            let until = |before: &WebhookSecret| before.until.unwrap_or_else(|| now.plus(SECRET_OVERLAP));
            let old = old.into_iter().filter(|before| before.secret != secret && until(before) > now);
            let old = old.map(|before| WebhookSecret { until: Some(until(&before)), ..before });
            secrets.extend(old.take(MAX_OLD_SECRETS));
        }
        Service::Webhook { secrets, template, content_type }
    };
    Ok(Address { endpoint, page, service })
}

pub(crate) async fn remove_channel(
    State(app): State<SharedState>,
    caller: Approver,
    PathIds(approver, id): PathIds<ApproverId, ChannelId>,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    app.gateway.remove_channel(&caller.tenant, &approver, &id).await?;
    response::json(StatusCode::OK, Nothing {})
}

#[derive(Serialize)]
struct Tested {
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<FailureReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
}

pub(crate) async fn test_channel(
    State(app): State<SharedState>,
    caller: Approver,
    PathIds(approver, id): PathIds<ApproverId, ChannelId>,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    let known = app.gateway.notifications(&caller.tenant, &approver).await?;
    let channel = known.channels.iter().find(|channel| channel.id == id).ok_or(Failure::NotFound)?;
    let attempt = match &channel.failing {
        Some(failing) if channel.address.is_none() => {
            Attempt::Failed { reason: failing.reason, status: failing.status }
        }
        _ => {
            let tested = app.notifier.test(&caller.tenant, &approver, channel).await;
            tested.map_err(|after| ApiError::rate_limited(after, Rejection::CredentialRate))?
        }
    };
    let tested = match attempt {
        Attempt::Accepted => Tested { accepted: true, reason: None, status: None },
        Attempt::Failed { reason, status } => Tested { accepted: false, reason: Some(reason), status },
    };
    response::json(StatusCode::OK, tested)
}

struct HoursRequest(QuietHours);

impl FromMembers<'_> for HoursRequest {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        let minutes = |text: String, member: &'static str| {
            let parsed =
                text.split_once(':').filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2);
            let parsed = parsed.and_then(|(hours, minutes)| {
                let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
                (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
            });
            parsed.ok_or_else(|| countersign_wire::Error::breaks(member, "must be a time such as 22:00"))
        };
        let (from, to) = (members.required("from")?, members.required("to")?);
        let offset: f64 = members.required("utcOffsetMinutes")?;
        members.close()?;
        // No place on earth is further than 14 hours from UTC.
        let utc_offset_minutes =
            (-900_i16..=900).find(|minutes| f64::from(*minutes).total_cmp(&offset).is_eq());
        let utc_offset_minutes = utc_offset_minutes.ok_or_else(|| {
            countersign_wire::Error::breaks("utcOffsetMinutes", "must be a whole number from -900 to 900")
        })?;
        Ok(Self(QuietHours { from: minutes(from, "from")?, to: minutes(to, "to")?, utc_offset_minutes }))
    }
}

pub(crate) async fn set_quiet_hours(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    let HoursRequest(hours) = body.bare::<HoursRequest>()?.into_view();
    app.gateway.set_quiet_hours(&caller.tenant, &approver, Some(hours)).await?;
    response::json(StatusCode::OK, ShownHours::from(hours))
}

pub(crate) async fn end_quiet_hours(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    app.gateway.set_quiet_hours(&caller.tenant, &approver, None).await?;
    response::json(StatusCode::OK, Nothing {})
}

struct NoMembers;

impl FromMembers<'_> for NoMembers {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        members.close()?;
        Ok(Self)
    }
}

pub(crate) async fn begin_weekly_test(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    body.bare::<NoMembers>()?;
    app.gateway.set_weekly_test(&caller.tenant, &approver, true).await?;
    response::json(StatusCode::OK, Nothing {})
}

pub(crate) async fn end_weekly_test(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    app.gateway.set_weekly_test(&caller.tenant, &approver, false).await?;
    response::json(StatusCode::OK, Nothing {})
}

struct Receipt {
    channel: String,
    event: ReceiptEvent,
    requests: Vec<RequestId>,
}

impl FromMembers<'_> for Receipt {
    fn from_members(members: &mut Members<'_>) -> Result<Self, countersign_wire::Error> {
        use countersign_wire::Error;
        let event = match members.required::<String>("event")?.as_str() {
            "displayed" => ReceiptEvent::Displayed,
            "opened" => ReceiptEvent::Opened,
            _ => return Err(Error::breaks("event", "must be displayed or opened")),
        };
        let requests: Vec<RequestId> = members.required("requestIds")?;
        if requests.len() > MAX_RECEIPTS {
            return Err(Error::breaks("requestIds", "must have at most 20"));
        }
        let receipt = Self { channel: members.required("channel")?, event, requests };
        members.close()?;
        Ok(receipt)
    }
}

pub(crate) async fn receive_receipt(
    State(app): State<SharedState>,
    caller: Approver,
    PathId(approver): PathId<ApproverId>,
    body: RequestBody,
) -> Result<Response, ApiError> {
    let approver = caller.acting_as(&approver)?;
    let Receipt { channel, event, requests } = body.bare::<Receipt>()?.into_view();
    let channel: ChannelId = channel.parse().map_err(|rule| ApiError::breaks("channel", rule))?;
    app.gateway.record_receipt(&caller.tenant, &approver, &channel, event, &requests).await?;
    response::json(StatusCode::OK, Nothing {})
}
