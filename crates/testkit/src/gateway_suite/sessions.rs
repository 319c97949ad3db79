//! Session events: duplicates, conflicts, order, the end, and who can read a session.

use countersign_core::{
    model::viewer::Viewer,
    store::{PayloadId, Store as _},
    use_cases::session::Reported,
};
use countersign_wire::{hash::Sha256Hex, parse, session::SessionEvent};

use tokio::task::JoinSet;

use super::{
    pairing_fixtures::pair,
    world::{World, approver, gateway, robot, status_of},
};
use crate::{
    recording_store::RecordingStore,
    store_suite::{StoreHarness, cases},
};

cases! {
    only_the_newest_status_and_snapshot_of_each_type_are_outstanding,
    session_events_are_accepted_once_and_not_after_the_end,
    fifty_writers_of_one_session_take_turns,
    an_event_takes_the_text_of_the_older_one_away,
    who_reads_a_session_learns_that_a_snapshot_was_replaced,
    the_audit_log_has_the_start_and_the_end_of_a_session_and_a_receipt,
}

/// Writers at once, and events of each.
const WRITERS: u64 = 50;
const EVENTS: u64 = 10;

async fn fifty_writers_of_one_session_take_turns(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let store = RecordingStore::new(world.harness.store());
    let gateway = gateway(store.clone(), &world.doorbell, 2);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (gateway, tenant) = (gateway.clone(), world.tenant.clone());
        writers.spawn(async move {
            for number in 0..EVENTS {
                let event = format!(
                    r#"{{"sessionId":"s","eventType":"session.status","state":"idle","updatedAt":"2026-11-15T12:{writer:02}:{number:02}Z"}}"#
                );
                let event = parse::<SessionEvent<'_>>(event.as_bytes()).unwrap();
                gateway.report_session(&tenant, &robot(), &event).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    let (requests, transactions) = (WRITERS * EVENTS, store.commits());
    assert!(transactions <= requests * 3, "{transactions} transactions for {requests} requests");
}

async fn session_events_are_accepted_once_and_not_after_the_end(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let report = async |event: &str| {
        let event = parse::<SessionEvent<'_>>(event.as_bytes()).unwrap();
        world.gateway.report_session(&world.tenant, &robot(), &event).await
    };
    let start =
        r#"{"sessionId":"s","eventType":"session.start","createdAt":"2026-11-15T12:00:00Z","agentHost":"h"}"#;
    let status = r#"{"sessionId":"s","eventType":"session.status","state":"planning","updatedAt":"2026-11-15T12:00:01Z"}"#;
    let older =
        r#"{"sessionId":"s","eventType":"session.status","state":"idle","updatedAt":"2026-11-15T12:00:00Z"}"#;
    let snapshot = |hash: &str| {
        format!(
            r#"{{"sessionId":"s","eventType":"session.snapshot","snapshotId":"i","snapshotType":"plan","createdAt":"2026-11-15T12:00:00Z","payload":{{"ciphertext":"c"}},"snapshotHashAlg":"SHA-256","snapshotHash":"{}"}}"#,
            Sha256Hex::digest(hash.as_bytes())
        )
    };
    let end =
        r#"{"sessionId":"s","eventType":"session.end","endedAt":"2026-11-15T12:00:09Z","reason":"user_end"}"#;
    assert_eq!(report(status).await.unwrap(), Reported::New, "before the start is allowed");
    assert_eq!(report(start).await.unwrap(), Reported::New);
    assert_eq!(report(start).await.unwrap(), Reported::Duplicate);
    assert_eq!(report(older).await.unwrap(), Reported::New);
    assert_eq!(report(&snapshot("one")).await.unwrap(), Reported::New);
    assert_eq!(report(&snapshot("one")).await.unwrap(), Reported::Duplicate);
    assert_eq!(status_of(&report(&snapshot("two")).await, 202), 409);
    let resealed = snapshot("one").replace(r#""ciphertext":"c""#, r#""ciphertext":"d""#);
    assert_eq!(report(&resealed).await.unwrap(), Reported::Duplicate, "the same snapshot, encrypted again");
    let older_start = start.replace("12:00:00Z", "11:00:00Z").replace(r#""h""#, r#""g""#);
    assert_eq!(report(&older_start).await.unwrap(), Reported::New);
    assert_eq!(report(end).await.unwrap(), Reported::New);
    assert_eq!(report(end).await.unwrap(), Reported::Duplicate);
    let late = status.replace("planning", "editing");
    assert_eq!(status_of(&report(&late).await, 202), 409);

    let (ada, eve, id) = (approver("ada"), approver("eve"), "s".parse().unwrap());
    let session = world.gateway.session(&world.tenant, Viewer::Approver(&ada), &id).await.unwrap();
    assert_eq!(
        session.activity.unwrap().as_str(),
        "planning",
        "an older event does not overwrite a newer one"
    );
    assert_eq!(session.agent_host.as_deref(), Some("h"), "nor does an older start");
    assert!(session.end.is_some() && session.snapshots.len() == 1);
    assert_eq!(status_of(&world.gateway.session(&world.tenant, Viewer::Approver(&eve), &id).await, 200), 404);
    let reader = countersign_core::delivery::feed::Reader::Approver(ada.clone());
    // The newest of each kind: start, status, snapshot, end. What is older than it is not sent.
    assert_eq!(world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap().len(), 4);
    assert!(world.inbox("ada").await.is_empty(), "session events are not in the inbox");
}

async fn only_the_newest_status_and_snapshot_of_each_type_are_outstanding(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    let robot = robot();
    let report = async |text: String| {
        let event = parse::<SessionEvent<'_>>(text.as_bytes()).unwrap();
        world.gateway.report_session(&world.tenant, &robot, &event).await.unwrap();
    };
    for second in 10..60 {
        let at = format!("2026-11-15T12:00:{second}Z");
        report(format!(
            r#"{{"sessionId":"s","eventType":"session.status","state":"idle","updatedAt":"{at}"}}"#
        ))
        .await;
        for snapshot_type in ["plan", "summary"] {
            let hash = Sha256Hex::digest(at.as_bytes());
            report(format!(r#"{{"sessionId":"s","eventType":"session.snapshot","snapshotId":"{second}-{snapshot_type}","snapshotType":"{snapshot_type}","createdAt":"{at}","payload":{{"ciphertext":"c"}},"snapshotHashAlg":"SHA-256","snapshotHash":"{hash}"}}"#)).await;
        }
    }
    let reader = countersign_core::delivery::feed::Reader::Approver(approver("ada"));
    let outstanding = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(outstanding.len(), 3, "one status, one snapshot of each type");
    for item in outstanding {
        let message = world.gateway.message(&world.tenant, &item.delivery).await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&message.body).contains("12:00:59Z"), "the newest");
    }
}

/// A status and a snapshot of this second.
fn status(second: u64) -> String {
    format!(
        r#"{{"sessionId":"s","eventType":"session.status","state":"idle","updatedAt":"2026-11-15T12:00:{second:02}Z"}}"#
    )
}

fn snapshot(session: &str, second: u64) -> String {
    let hash = Sha256Hex::digest(&second.to_be_bytes());
    format!(
        r#"{{"sessionId":"{session}","eventType":"session.snapshot","snapshotId":"{second}","snapshotType":"plan","createdAt":"2026-11-15T12:00:{second:02}Z","payload":{{"ciphertext":"c"}},"snapshotHashAlg":"SHA-256","snapshotHash":"{hash}"}}"#
    )
}

async fn report(world: &World, event: &str) {
    let event = parse::<SessionEvent<'_>>(event.as_bytes()).unwrap();
    world.gateway.report_session(&world.tenant, &robot(), &event).await.unwrap();
}

async fn an_event_takes_the_text_of_the_older_one_away(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let store = RecordingStore::new(world.harness.store());
    world.gateway = gateway(store.clone(), &world.doorbell, 1);
    for second in [10, 20] {
        report(&world, &status(second)).await;
        report(&world, &snapshot("s", second)).await;
    }
    // What comes late is not kept either.
    report(&world, &status(15)).await;
    report(&world, &snapshot("s", 15)).await;
    let written: Vec<PayloadId> =
        store.take_committed().into_iter().flat_map(|change| change.payloads).map(|(id, _)| id).collect();
    let kept = store.payloads(&world.tenant, &written).await.unwrap();
    assert_eq!(kept.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, true]);
    let again = status(10);
    let again = parse::<SessionEvent<'_>>(again.as_bytes()).unwrap();
    let again = world.gateway.report_session(&world.tenant, &robot(), &again).await.unwrap();
    assert_eq!(again, Reported::Duplicate, "it is recognised without its text");
}

async fn who_reads_a_session_learns_that_a_snapshot_was_replaced(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id = "s".parse().unwrap();
    let read = async || world.gateway.session(&world.tenant, Viewer::Operator, &id).await.unwrap();
    report(&world, &snapshot("s", 10)).await;
    let before = read().await;
    report(&world, &snapshot("s", 20)).await;
    assert_eq!(world.gateway.snapshot_texts(&world.tenant, &id, &before).await.unwrap(), None);
    let texts = world.gateway.snapshot_texts(&world.tenant, &id, &read().await).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&texts[0].1).contains("12:00:20Z"));
}

async fn the_audit_log_has_the_start_and_the_end_of_a_session_and_a_receipt(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let store = RecordingStore::new(world.harness.store());
    world.gateway = gateway(store.clone(), &world.doorbell, 1);
    report(
        &world,
        r#"{"sessionId":"s","eventType":"session.start","createdAt":"2026-11-15T12:00:00Z","agentHost":"h"}"#,
    )
    .await;
    for second in [10, 20] {
        report(&world, &status(second)).await;
        report(&world, &snapshot("s", second)).await;
    }
    report(
        &world,
        r#"{"sessionId":"s","eventType":"session.end","endedAt":"2026-11-15T12:01:00Z","reason":"user_end"}"#,
    )
    .await;
    report(&world, &snapshot("receipt", 10)).await;
    let audited: Vec<String> = store
        .take_committed()
        .into_iter()
        .flat_map(|change| change.audit)
        .map(|row| format!("{} {}", row.subject.id, String::from_utf8_lossy(&row.event)))
        .collect();
    assert_eq!(
        audited,
        [
            r#"s {"actor":{"enforcer":"robot"},"did":"session.start"}"#,
            r#"s {"actor":{"enforcer":"robot"},"did":"session.end"}"#,
            r#"receipt {"actor":{"enforcer":"robot"},"did":"session.snapshot"}"#,
        ]
    );
}
