//! Retention: first the bodies are deleted, later the reservation of the id.

use std::time::Duration;

use countersign_core::{
    model::{credential::Role, idempotency::IdempotencyKey, viewer::Viewer},
    store::{CLAIM, Change, Key, Kind, Mailbox, MailboxKey, PayloadId, Put},
    use_cases::{acknowledge::Acknowledger, prompt::PromptSubmission, submit::Submission},
};
use countersign_wire::{
    ack::MessageAck,
    id::{RequestId, TenantId},
    mac::MacKey,
    parse,
    refresh::RefreshBody,
};

use super::world::{World, approver, minutes, request, robot, status_of};
use crate::store_suite::{StoreHarness, cases, start};

cases! {
    bodies_are_deleted_thirty_days_after_the_end,
    an_id_stays_reserved_for_ninety_days_after_the_end,
    a_decision_that_nobody_fetched_is_kept_seven_days_longer,
    an_idempotency_key_is_kept_for_a_day,
    a_session_is_kept_for_seven_days_after_its_last_event,
    a_receipt_is_kept_as_long_as_its_exchange,
    no_body_outlives_what_it_belongs_to,
    one_record_that_cant_be_swept_does_not_block_the_others,
    a_tenant_that_fails_does_not_stop_the_sweep_of_others,
    an_exchange_is_due_once_whatever_happened_to_it,
    a_due_time_that_is_too_early_is_replaced_by_the_right_one,
    a_record_that_is_used_after_it_was_claimed_is_kept,
    what_is_used_up_is_no_longer_due,
    sweeping_twice_does_nothing_more,
    everything_survives_a_restart,
    nothing_is_left_of_a_tenant_two_minutes_after_it_was_erased,
}

async fn at_day(world: &World, days: u64) {
    world.harness.set_now(start().plus(Duration::from_hours(24 * days))).await;
}

/// Ends one exchange in each way there is, all on the first day.
async fn ended(world: &World) -> Vec<&'static str> {
    for id in ["withdrawn", "cancelled", "expired", "delivered"] {
        world.submit(&request(id)).await.unwrap();
    }
    let id = |text: &str| text.parse::<RequestId>().unwrap();
    world.gateway.withdraw(&world.tenant, &robot(), &id("withdrawn")).await.unwrap();
    world.gateway.cancel(&world.tenant, &id("cancelled")).await.unwrap();
    world.decide("ada", "delivered", "n").await.unwrap();
    let robot = robot();
    let by = Acknowledger::Enforcer(&robot);
    world.gateway.acknowledge(&world.tenant, by, &id("delivered"), &MessageAck::default()).await.unwrap();
    vec!["withdrawn", "cancelled", "expired", "delivered"]
}

async fn bodies_are_deleted_thirty_days_after_the_end(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ids = ended(&world).await;
    world.at_minute(10).await;
    world.gateway.sweep().await.unwrap();
    at_day(&world, 30).await;
    world.harness.set_now(start().plus(Duration::from_hours(24 * 30)).minus(Duration::from_secs(1))).await;
    world.gateway.sweep().await.unwrap();
    for id in &ids {
        world.status(id).await.unwrap();
    }
    at_day(&world, 31).await;
    world.gateway.sweep().await.unwrap();
    for id in ids {
        assert_eq!(status_of(&world.status(id).await, 200), 404, "{id}");
        assert!(
            world.gateway.store().deliveries_by_subject(&world.tenant, id).await.unwrap().is_empty(),
            "{id}"
        );
    }
}

// CONTRIBUTING: add a record kind, step 6
async fn no_body_outlives_what_it_belongs_to(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let recording = crate::recording_store::RecordingStore::new(world.harness.store());
    world.gateway = super::world::gateway(recording.clone(), &world.doorbell, 1);
    let (gateway, tenant, ada) = (&world.gateway, &world.tenant, approver("ada"));
    ended(&world).await;
    world.submit(&request("refreshed")).await.unwrap();
    let refreshed: RequestId = "refreshed".parse().unwrap();
    for minute in [1, 3] {
        world.at_minute(minute).await;
        gateway.refresh(tenant, &ada, &refreshed, &RefreshBody { reason: Some("why".into()) }).await.unwrap();
    }
    let event =
        r#"{"sessionId":"s","eventType":"session.status","state":"idle","updatedAt":"2026-11-15T12:00:00Z"}"#;
    gateway.report_session(tenant, &robot(), &parse(event.as_bytes()).unwrap()).await.unwrap();
    let hash = super::world::hash("p");
    let prompt =
        format!(r#"{{"requestId":"p","target":"agentChat","promptHash":"{hash}","ciphertext":"c"}}"#);
    let submission = PromptSubmission {
        tenant: tenant.clone(),
        approver: ada.clone(),
        request_id: "p".parse().unwrap(),
        body: parse(prompt.as_bytes()).unwrap(),
        recipient: Some(robot()),
        idempotency_key: None,
    };
    gateway.send_prompt(submission).await.unwrap();
    let ack = format!(
        r#"{{"requestId":"p","promptHash":"{hash}","status":"delivered","ackAt":"2026-11-15T12:00:01Z","details":{{"said":"much"}}}}"#
    );
    gateway.acknowledge_prompt(tenant, &robot(), &parse(ack.as_bytes()).unwrap()).await.unwrap();
    let written: Vec<PayloadId> =
        recording.take_committed().into_iter().flat_map(|change| change.payloads).map(|(id, _)| id).collect();
    assert!(written.len() >= 10, "{}", written.len());
    at_day(&world, 400).await;
    gateway.sweep().await.unwrap();
    gateway.sweep().await.unwrap();
    let left = gateway.store().payloads(tenant, &written).await.unwrap();
    let left: Vec<String> =
        left.into_iter().flatten().map(|it| String::from_utf8_lossy(&it).into()).collect();
    assert!(left.is_empty(), "{left:?}");
}

async fn one_record_that_cant_be_swept_does_not_block_the_others(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    // Due before anything else, and unreadable.
    let broken = Key::new(Kind::Exchange, "broken");
    let mut change = Change::new(world.tenant.clone());
    change.puts.push(Put { key: broken.clone(), content: "?".into() });
    change.due.push((start(), broken));
    world.gateway.store().commit(change).await.unwrap();
    world.submit(&request("r").to("ada")).await.unwrap();
    world.at_minute(60).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(
        world.gateway.store().claim_due(10).await.unwrap().0,
        [],
        "it is retried later, and not at once"
    );
    assert_eq!(world.expired("ada").await, ["r"]);
}

async fn a_tenant_that_fails_does_not_stop_the_sweep_of_others(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let recording = crate::recording_store::RecordingStore::new(world.harness.store());
    world.gateway = super::world::gateway(recording.clone(), &world.doorbell, 1);
    let tenants = ["acme", "broken", "zeta"].map(|name| name.parse::<TenantId>().unwrap());
    for tenant in &tenants {
        world.tenant = tenant.clone();
        world.submit(&request("r")).await.unwrap();
    }
    world.at_minute(10).await;
    recording.set_unreadable(Some(tenants[1].clone()));
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 2);
    recording.set_unreadable(None);
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 0, "it is claimed");
    world.harness.set_now(minutes(10).plus(CLAIM)).await;
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 1);
    for tenant in tenants {
        let expired = MailboxKey { tenant, mailbox: Mailbox::ExpiredShared };
        assert_eq!(world.gateway.store().heads(&[expired]).await.unwrap(), [Some(1)]);
    }
}

async fn an_exchange_is_due_once_whatever_happened_to_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ids = ended(&world).await;
    world.at_minute(10).await;
    world.gateway.sweep().await.unwrap();
    at_day(&world, 400).await;
    let (due, _) = world.gateway.store().claim_due(100).await.unwrap();
    let mut due: Vec<String> = due.into_iter().map(|due| due.key.id).collect();
    due.sort();
    let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    ids.sort();
    assert_eq!(due, ids);
}

async fn a_due_time_that_is_too_early_is_replaced_by_the_right_one(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    let mut early = Change::new(world.tenant.clone());
    early.due.push((start(), Key::new(Kind::Exchange, "r")));
    world.gateway.store().commit(early).await.unwrap();
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 1);
    world.at_minute(9).await;
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 0, "not again before its time");
    world.at_minute(10).await;
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 1);
    let expired = MailboxKey { tenant: world.tenant.clone(), mailbox: Mailbox::ExpiredShared };
    assert_eq!(world.gateway.store().heads(&[expired]).await.unwrap(), [Some(1)]);
}

async fn a_record_that_is_used_after_it_was_claimed_is_kept(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let report = async |state: &str| {
        let event = format!(
            r#"{{"sessionId":"s","eventType":"session.status","state":"{state}","updatedAt":"2026-11-15T12:00:00Z"}}"#
        );
        let event = parse(event.as_bytes()).unwrap();
        world.gateway.report_session(&world.tenant, &robot(), &event).await.unwrap();
    };
    let known =
        async || world.gateway.session(&world.tenant, Viewer::Operator, &"s".parse().unwrap()).await.is_ok();
    report("idle").await;
    at_day(&world, 30).await;
    // Another node claims the session and its event, and stops.
    assert_eq!(world.gateway.store().claim_due(10).await.unwrap().0.len(), 2);
    report("editing").await;
    at_day(&world, 31).await;
    world.gateway.sweep().await.unwrap();
    assert!(known().await);
    at_day(&world, 61).await;
    world.gateway.sweep().await.unwrap();
    assert!(!known().await);
}

async fn what_is_used_up_is_no_longer_due(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (mac_key, gateway) = (MacKey::new([7; 32]), &world.gateway);
    let made = gateway.create_ticket(&world.tenant, Role::Approver(None), "ada".to_owned(), &mac_key).await;
    assert!(gateway.redeem_ticket(&made.unwrap().0, &mac_key).await.unwrap().is_some());
    at_day(&world, 1).await;
    assert_eq!(world.gateway.store().claim_due(10).await.unwrap().0, []);
}

async fn an_id_stays_reserved_for_ninety_days_after_the_end(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ids = ended(&world).await;
    at_day(&world, 1).await;
    world.gateway.sweep().await.unwrap();
    at_day(&world, 89).await;
    world.gateway.sweep().await.unwrap();
    for id in &ids {
        let late = request(id).for_minutes(200 * 24 * 60);
        assert!(world.submit(&late).await.unwrap().replayed, "{id}");
        assert_eq!(status_of(&world.submit(&late.about("else")).await, 202), 409, "{id}");
    }
    at_day(&world, 91).await;
    world.gateway.sweep().await.unwrap();
    for id in ids {
        let late = request(id).for_minutes(200 * 24 * 60);
        assert!(!world.submit(&late).await.unwrap().replayed, "{id}");
    }
}

async fn a_decision_that_nobody_fetched_is_kept_seven_days_longer(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
    // The decision itself is valid until 2030; it is deleted 37 days after that.
    world.harness.set_now("2030-02-06T00:00:00Z".parse().unwrap()).await;
    world.gateway.sweep().await.unwrap();
    assert!(world.status("r").await.unwrap().decision.is_some());
    world.harness.set_now("2030-02-10T00:00:00Z".parse().unwrap()).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(status_of(&world.status("r").await, 200), 404);
}

async fn an_idempotency_key_is_kept_for_a_day(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let submit = async |scope: &str, id: &str| {
        let request = request(id).for_minutes(60 * 24 * 2);
        let body = request.body();
        let submission = Submission {
            tenant: world.tenant.clone(),
            enforcer: request.enforcer.clone(),
            request_id: request.id.clone(),
            body: parse(body.as_bytes()).unwrap(),
            expires_at: None,
            recipient: None,
            trace: None,
            idempotency_key: Some(IdempotencyKey::new(scope, "key")),
        };
        status_of(&world.gateway.submit(submission).await, 202)
    };
    assert_eq!(submit("robot POST", "one").await, 202);
    assert_eq!(submit("robot POST", "one").await, 202, "a replay");
    assert_eq!(submit("robot POST", "two").await, 409);
    assert_eq!(status_of(&world.status("two").await, 200), 404, "a rejected request leaves nothing");
    assert_eq!(submit("other POST", "three").await, 202);
    at_day(&world, 1).await;
    assert_eq!(submit("robot POST", "two").await, 202);
    world.gateway.sweep().await.unwrap();
    assert_eq!(submit("robot POST", "four").await, 409, "the sweeper leaves a key that was reused");
}

async fn a_session_is_kept_for_seven_days_after_its_last_event(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let report = async |state: &str| {
        let event = format!(
            r#"{{"sessionId":"s","eventType":"session.status","state":"{state}","updatedAt":"2026-11-15T12:00:00Z"}}"#
        );
        let event = parse(event.as_bytes()).unwrap();
        world.gateway.report_session(&world.tenant, &robot(), &event).await.unwrap();
    };
    report("idle").await;
    at_day(&world, 5).await;
    report("editing").await;
    at_day(&world, 10).await;
    world.gateway.sweep().await.unwrap();
    assert!(knows(&world, "s").await, "its last event is five days old");
    at_day(&world, 13).await;
    world.gateway.sweep().await.unwrap();
    assert!(!knows(&world, "s").await);
}

/// A receipt travels as a session that has one snapshot and nothing else.
async fn a_receipt_is_kept_as_long_as_its_exchange(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let hash = super::world::hash("receipt");
    let event = format!(
        r#"{{"sessionId":"s","eventType":"session.snapshot","snapshotId":"receipt","snapshotType":"summary","createdAt":"2026-11-15T12:00:00Z","payload":{{"ciphertext":"c"}},"snapshotHashAlg":"SHA-256","snapshotHash":"{hash}"}}"#
    );
    let event = parse(event.as_bytes()).unwrap();
    world.gateway.report_session(&world.tenant, &robot(), &event).await.unwrap();
    at_day(&world, 29).await;
    world.gateway.sweep().await.unwrap();
    let id = "s".parse().unwrap();
    let session = world.gateway.session(&world.tenant, Viewer::Operator, &id).await.unwrap();
    let texts = world.gateway.snapshot_texts(&world.tenant, &id, &session).await.unwrap().unwrap();
    assert_eq!(texts.len(), 1, "with its text");
    at_day(&world, 31).await;
    world.gateway.sweep().await.unwrap();
    assert!(!knows(&world, "s").await);
}

async fn knows(world: &World, session: &str) -> bool {
    world.gateway.session(&world.tenant, Viewer::Operator, &session.parse().unwrap()).await.is_ok()
}

async fn sweeping_twice_does_nothing_more(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for index in 0..450 {
        world.submit(&request(&format!("r{index}"))).await.unwrap();
    }
    world.at_minute(10).await;
    let second = world.second_gateway().await;
    let (one, two) = tokio::join!(world.gateway.sweep(), second.sweep());
    one.unwrap();
    two.unwrap();
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 0);
    assert_eq!(world.expired("ada").await.len(), 450);
}

async fn everything_survives_a_restart(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    ended(&world).await;
    world.submit(&request("pending")).await.unwrap();
    let before = world.inbox("ada").await;
    let snapshot = world.status("delivered").await.unwrap();
    world.harness.reopen().await;
    world.gateway = super::world::gateway(world.harness.store(), &world.doorbell, 3);
    assert_eq!(world.inbox("ada").await, before);
    assert_eq!(world.status("delivered").await.unwrap(), snapshot);
    world.decide("ada", "pending", "n").await.unwrap();
}

async fn nothing_is_left_of_a_tenant_two_minutes_after_it_was_erased(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let other: TenantId = "other".parse().unwrap();
    let erased = std::mem::replace(&mut world.tenant, other.clone());
    ended(&world).await;
    world.tenant = erased.clone();
    ended(&world).await;
    let tenants = async |world: &World| {
        let page = world.gateway.tenants(None, 10).await.unwrap();
        let mut tenants: Vec<(TenantId, bool)> =
            page.items.into_iter().map(|(tenant, of)| (tenant, of.unwrap().stored_bytes > 0)).collect();
        tenants.sort_unstable();
        tenants
    };
    assert_eq!(tenants(&world).await, [(erased.clone(), true), (other.clone(), true)]);
    let suspension = world.gateway.erase_tenant(&erased).await.unwrap();
    world.gateway.sweep().await.unwrap();
    assert_eq!(tenants(&world).await.len(), 2, "what has begun may still end");
    world.harness.set_now(suspension.erased_at.unwrap()).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(tenants(&world).await, [(other, true)]);
    assert_eq!(world.gateway.store().stored_bytes(&erased).await.unwrap(), 0);
    at_day(&world, 400).await;
    let (due, _) = world.gateway.store().claim_due(100).await.unwrap();
    assert!(due.iter().all(|due| due.tenant != erased), "{due:?}");
}
