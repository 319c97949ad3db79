//! What both ends of a channel say and hear.

use std::time::Duration;

use countersign_client::{
    approver::Approver,
    audience::Audience,
    channel::{ApproverEvent, ApproverListener, EnforcerEvent, EnforcerListener, Settings, Transport},
    clock::{Clock as _, SystemClock},
    enforcer::Enforcer,
    profile::Pins,
    reply::{Choice, Words},
    request::{Draft, OpenedRequest, Request},
};
use countersign_core::model::credential::Role;
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    exchange::ExchangeState,
    id::RequestId,
};
use tokio::time::timeout;

use super::{World, proxy::Proxy};

pub fn draft(valid_for: Duration) -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"argv":["git","push"]}"#.to_owned(),
        repo_name: "acme/widgets".to_owned(),
        valid_for,
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

pub fn request(robot: &Enforcer, pins: &Pins, valid_for: Duration) -> Request {
    Request::build(&draft(valid_for), &robot.id, &robot.keys, pins, SystemClock.now()).unwrap()
}

pub fn approve() -> Choice {
    Choice {
        outcome: DecisionOutcome::Approve,
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(5)),
        words: Words::default(),
    }
}

pub fn only(transport: Transport) -> Settings {
    Settings { transports: vec![transport], poll_every: Duration::from_secs(1), ..Settings::default() }
}

pub const A_WHILE: Duration = Duration::from_secs(40);

/// The next event that is wanted; others are passed over.
pub async fn heard<T>(
    listener: &mut ApproverListener<'_>,
    pins: &Pins,
    mut wanted: impl FnMut(ApproverEvent) -> Option<T>,
) -> T {
    let found = async {
        loop {
            if let Some(found) = wanted(listener.next(pins).await.unwrap()) {
                return found;
            }
        }
    };
    timeout(A_WHILE, found).await.expect("it arrives")
}

pub async fn shown(listener: &mut ApproverListener<'_>, pins: &Pins) -> OpenedRequest {
    heard(listener, pins, |event| match event {
        ApproverEvent::Request(item) => Some(item.opened.unwrap()),
        _ => None,
    })
    .await
}

pub async fn gone(listener: &mut ApproverListener<'_>, pins: &Pins) -> (RequestId, Option<ExchangeState>) {
    heard(listener, pins, |event| match event {
        ApproverEvent::Gone { request_id, state } => Some((request_id, state)),
        _ => None,
    })
    .await
}

pub async fn connected(listener: &mut ApproverListener<'_>, pins: &Pins) -> Transport {
    heard(listener, pins, |event| match event {
        ApproverEvent::Connected { transport } => Some(transport),
        _ => None,
    })
    .await
}

/// The next event of an enforcer that is no news of the connection.
pub async fn news(listener: &mut EnforcerListener<'_>, pins: &Pins) -> EnforcerEvent {
    let found = async {
        loop {
            match listener.next(pins).await.unwrap() {
                EnforcerEvent::Connected { .. } | EnforcerEvent::Disconnected { .. } => {}
                other => return other,
            }
        }
    };
    timeout(A_WHILE, found).await.expect("it arrives")
}

/// An approver whose calls go through a proxy.
pub async fn behind(proxy: &Proxy, world: &World, ada: Approver) -> Approver {
    Approver { http: world.http_at(proxy.address, Role::Approver(Some(ada.id.clone()))).await, ..ada }
}
