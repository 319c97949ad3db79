//! Notifications outside of the protocol: sent at least once, by one node at a time, and only while somebody has to answer.

use std::time::Duration;

use countersign_core::{
    Gateway,
    model::{
        notification::{
            Attempt, ChannelId, ChannelKind, FailureReason, NotificationChannel, QuietHours, ReceiptEvent,
            Sent,
        },
        own_record::Sealed,
        policy::Policy,
        viewer::Viewer,
    },
    notices::{DueTest, Notice, NoticeQueue},
    use_cases::notifications::ChannelSpec,
};
use countersign_wire::{Label, exchange::ExchangeState, id::RequestId};
use tokio::time::timeout;

use super::world::{World, approver, request};
use crate::store_suite::{StoreHarness, cases, start};

cases! {
    nobody_is_notified_where_nobody_has_a_channel,
    the_node_that_takes_a_request_sends_and_another_does_if_it_does_not_say_so,
    what_was_sent_is_not_due_again,
    what_fails_for_now_is_due_again_and_what_is_gone_is_not_called,
    a_service_that_wants_time_is_left_alone_and_other_channels_do_not_wait_for_it,
    more_than_a_node_can_send_is_left_for_later_and_nothing_is_lost,
    a_request_that_has_ended_is_not_notified_of,
    a_request_that_waits_for_its_notification_still_expires_in_time,
    quiet_hours_put_a_notification_off_until_their_end,
    a_weekly_test_is_sent_by_one_node_every_seven_days,
    a_weekly_test_waits_for_the_end_of_quiet_hours_and_goes_to_nobody_without_channels,
    the_operator_can_not_switch_notifications_off_by_setting_a_policy,
    a_person_has_sixteen_channels_at_most,
    a_receipt_is_for_ones_own_requests,
}

fn spec(id: &str) -> ChannelSpec {
    ChannelSpec {
        id: id.parse().unwrap(),
        kind: ChannelKind::WebPush,
        label: Label::new(id),
        host: "push.example".to_owned(),
        address: Sealed { key_id: "k".to_owned(), text: "t".to_owned() },
    }
}

async fn add_channel(world: &World, who: &str, id: &str) {
    world.gateway.set_channel(&world.tenant, &approver(who), &spec(id)).await.unwrap();
}

async fn next(queue: &mut NoticeQueue) -> Option<String> {
    let notice = timeout(Duration::from_millis(100), queue.next()).await.ok().flatten();
    notice.map(|notice| notice.request_id.to_string())
}

fn notice(world: &World, id: &str) -> Notice {
    Notice { tenant: world.tenant.clone(), request_id: id.parse().unwrap() }
}

/// Whom a gateway would notify now; `None` if the request has ended.
async fn planned(world: &World, gateway: &Gateway, id: &str) -> Option<Vec<String>> {
    let plan = gateway.notification_plan(&notice(world, id)).await.unwrap()?;
    Some(plan.to.into_iter().map(|(who, channel)| format!("{who} {}", channel.id)).collect())
}

fn sent(who: &str, channel: &str, attempt: Attempt) -> Sent {
    let (approver, label) = (approver(who), Label::new(channel));
    Sent { approver, channel: channel.parse().unwrap(), label, attempt, at: start(), wait: Duration::ZERO }
}

async fn at_second(world: &World, count: u64) {
    world.harness.set_now(start().plus(Duration::from_secs(count))).await;
}

async fn channel(world: &World) -> NotificationChannel {
    let known = world.gateway.notifications(&world.tenant, &approver("ada")).await.unwrap();
    known.channels[0].clone()
}

async fn nobody_is_notified_where_nobody_has_a_channel(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let mut queue = world.gateway.take_notices().unwrap();
    assert!(world.gateway.take_notices().is_none(), "one takes them");
    world.submit(&request("before").to("ada")).await.unwrap();
    assert_eq!(next(&mut queue).await, None);
    add_channel(&world, "bob", "phone").await;
    world.submit(&request("other").to("ada")).await.unwrap();
    assert_eq!(next(&mut queue).await.as_deref(), Some("other"));
    assert_eq!(planned(&world, &world.gateway, "other").await, Some(vec![]));
    world.gateway.record_notification(&notice(&world, "other"), &[], None).await.unwrap();
    at_second(&world, 300).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await, None, "there was nothing to do");
    assert_eq!(planned(&world, &world.gateway, "before").await, None);
}

async fn the_node_that_takes_a_request_sends_and_another_does_if_it_does_not_say_so(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let other = world.second_gateway().await;
    add_channel(&world, "ada", "phone").await;
    let (mut here, mut there) = (world.gateway.take_notices().unwrap(), other.take_notices().unwrap());
    world.submit(&request("r").to("ada")).await.unwrap();
    assert_eq!(next(&mut here).await.as_deref(), Some("r"));
    at_second(&world, 14).await;
    other.sweep().await.unwrap();
    assert_eq!(next(&mut there).await, None, "it is the first one's");
    at_second(&world, 15).await;
    other.sweep().await.unwrap();
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut there).await.as_deref(), Some("r"));
    assert_eq!(next(&mut here).await, None, "two don't send at once");
    assert_eq!(planned(&world, &other, "r").await, Some(vec!["ada phone".to_owned()]));
    // A node on which nobody sends leaves it to others, and the request as it is.
    at_second(&world, 31).await;
    world.second_gateway().await.sweep().await.unwrap();
    assert_eq!(world.status("r").await.unwrap().state, ExchangeState::PendingApproval);
    world.decide("ada", "r", "n").await.unwrap();
}

async fn what_was_sent_is_not_due_again(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    add_channel(&world, "ada", "laptop").await;
    let mut queue = world.gateway.take_notices().unwrap();
    world.submit(&request("r").to("ada")).await.unwrap();
    next(&mut queue).await.unwrap();
    let both = vec!["ada phone".to_owned(), "ada laptop".to_owned()];
    assert_eq!(planned(&world, &world.gateway, "r").await, Some(both));
    let refused = Attempt::Failed { reason: FailureReason::Refused, status: Some(403) };
    let attempts = [sent("ada", "phone", Attempt::Accepted), sent("ada", "laptop", refused)];
    world.gateway.record_notification(&notice(&world, "r"), &attempts, None).await.unwrap();
    at_second(&world, 500).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await, None);
    let robot = super::world::robot();
    let (viewer, id) = (Viewer::Enforcer(&robot), "r".parse().unwrap());
    let progress = world.gateway.progress(&world.tenant, viewer, &id).await.unwrap();
    let [phone, laptop] = &progress.approvers[0].notified[..] else { panic!("{progress:?}") };
    assert_eq!((phone.accepted_at, phone.failed), (Some(start()), None));
    assert_eq!((laptop.accepted_at, laptop.failed), (None, Some(FailureReason::Refused)));
}

async fn what_fails_for_now_is_due_again_and_what_is_gone_is_not_called(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    world.submit(&request("r").to("ada")).await.unwrap();
    next(&mut queue).await.unwrap();
    let busy = Attempt::Failed { reason: FailureReason::Busy, status: Some(503) };
    let failed = [sent("ada", "phone", busy)];
    world.gateway.record_notification(&notice(&world, "r"), &failed, None).await.unwrap();
    let (tenant, ada, phone): (_, _, ChannelId) = (&world.tenant, approver("ada"), "phone".parse().unwrap());
    world.gateway.record_attempts(tenant, &ada, &[(phone.clone(), busy)]).await.unwrap();
    assert_eq!(channel(&world).await.failing.unwrap().status, Some(503));
    at_second(&world, 9).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await, None);
    at_second(&world, 10).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await.as_deref(), Some("r"));
    let gone = Attempt::Failed { reason: FailureReason::Gone, status: Some(410) };
    world.gateway.record_attempts(tenant, &ada, &[(phone.clone(), gone)]).await.unwrap();
    assert_eq!(planned(&world, &world.gateway, "r").await, Some(vec![]));
    assert_eq!(channel(&world).await.failing.unwrap().reason, FailureReason::Gone);
    add_channel(&world, "ada", "phone").await;
    assert_eq!(planned(&world, &world.gateway, "r").await, Some(vec!["ada phone".to_owned()]));
}

async fn a_service_that_wants_time_is_left_alone_and_other_channels_do_not_wait_for_it(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let other = world.second_gateway().await;
    for id in ["phone", "laptop"] {
        add_channel(&world, "ada", id).await;
    }
    let (mut here, mut there) = (world.gateway.take_notices().unwrap(), other.take_notices().unwrap());
    world.submit(&request("r").to("ada")).await.unwrap();
    next(&mut here).await.unwrap();
    let busy = Attempt::Failed { reason: FailureReason::Busy, status: Some(503) };
    let failed =
        [Sent { wait: Duration::from_mins(1), ..sent("ada", "phone", busy) }, sent("ada", "laptop", busy)];
    world.gateway.record_notification(&notice(&world, "r"), &failed, None).await.unwrap();
    at_second(&world, 10).await;
    // The other node has not heard what the service said; the record has.
    other.sweep().await.unwrap();
    assert_eq!(next(&mut there).await.as_deref(), Some("r"));
    let plan = other.notification_plan(&notice(&world, "r")).await.unwrap().unwrap();
    let to: Vec<String> = plan.to.iter().map(|(_, channel)| channel.id.to_string()).collect();
    assert_eq!((to, plan.later), (vec!["laptop".to_owned()], Some(start().plus(Duration::from_secs(70)))));
    let accepted = [sent("ada", "laptop", Attempt::Accepted)];
    other.record_notification(&notice(&world, "r"), &accepted, plan.later).await.unwrap();
    at_second(&world, 69).await;
    other.sweep().await.unwrap();
    assert_eq!(next(&mut there).await, None);
    at_second(&world, 70).await;
    other.sweep().await.unwrap();
    assert_eq!(next(&mut there).await.as_deref(), Some("r"));
    assert_eq!(planned(&world, &other, "r").await, Some(vec!["ada phone".to_owned()]));
}

async fn more_than_a_node_can_send_is_left_for_later_and_nothing_is_lost(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    let all = 300;
    for number in 0..all {
        world.submit(&request(&format!("r{number}")).to("ada")).await.unwrap();
        next(&mut queue).await.unwrap();
    }
    let (mut seconds, mut got) = (15, std::collections::BTreeSet::new());
    while got.len() < all && seconds < 120 {
        at_second(&world, seconds).await;
        world.gateway.sweep().await.unwrap();
        while let Some(id) = next(&mut queue).await {
            world.gateway.record_notification(&notice(&world, &id), &[], None).await.unwrap();
            assert!(got.insert(id), "claimed once");
        }
        seconds += 5;
    }
    assert_eq!(got.len(), all);
    assert!(seconds > 20, "not all at once");
}

async fn a_request_that_has_ended_is_not_notified_of(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    for id in ["decided", "withdrawn", "cancelled"] {
        world.submit(&request(id).to("ada")).await.unwrap();
        next(&mut queue).await.unwrap();
    }
    let id = |text: &str| text.parse::<RequestId>().unwrap();
    world.decide("ada", "decided", "n").await.unwrap();
    world.gateway.withdraw(&world.tenant, &super::world::robot(), &id("withdrawn")).await.unwrap();
    world.gateway.cancel(&world.tenant, &id("cancelled")).await.unwrap();
    for id in ["decided", "withdrawn", "cancelled", "unknown"] {
        assert_eq!(planned(&world, &world.gateway, id).await, None, "{id}");
        // Whoever was about to send it notes it late.
        let late = [sent("ada", "phone", Attempt::Accepted)];
        world.gateway.record_notification(&notice(&world, id), &late, None).await.unwrap();
    }
    at_second(&world, 100).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await, None);
    assert_eq!(world.status("decided").await.unwrap().state, ExchangeState::Decided);
}

async fn a_request_that_waits_for_its_notification_still_expires_in_time(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    world.submit(&request("r").to("ada").for_minutes(1)).await.unwrap();
    next(&mut queue).await.unwrap();
    at_second(&world, 59).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await.as_deref(), Some("r"), "nobody has noted it");
    at_second(&world, 60).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await, None);
    assert_eq!(world.expired("ada").await, ["r"]);
}

async fn quiet_hours_put_a_notification_off_until_their_end(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    // It is 12:00 UTC at the start.
    let hours = QuietHours { from: 11 * 60, to: 12 * 60 + 5, utc_offset_minutes: 0 };
    world.gateway.set_quiet_hours(&world.tenant, &approver("ada"), Some(hours)).await.unwrap();
    world.submit(&request("r").to("ada")).await.unwrap();
    next(&mut queue).await.unwrap();
    let plan = world.gateway.notification_plan(&notice(&world, "r")).await.unwrap().unwrap();
    assert_eq!((plan.to.len(), plan.later), (0, Some(start().plus(Duration::from_mins(5)))));
    world.gateway.record_notification(&notice(&world, "r"), &[], plan.later).await.unwrap();
    world.at_minute(4).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await, None);
    world.at_minute(5).await;
    world.gateway.sweep().await.unwrap();
    assert_eq!(next(&mut queue).await.as_deref(), Some("r"));
    assert_eq!(planned(&world, &world.gateway, "r").await, Some(vec!["ada phone".to_owned()]));
}

const DAY: u64 = 24 * 60 * 60;

/// Whom a node is to send a test now.
async fn tested(world: &World, gateway: &Gateway, queue: &mut NoticeQueue) -> Vec<String> {
    gateway.sweep().await.unwrap();
    let mut people = Vec::new();
    while let Ok(DueTest { tenant, approver }) = queue.tests.try_recv() {
        assert_eq!(tenant, world.tenant);
        people.push(approver.to_string());
    }
    people
}

async fn a_weekly_test_is_sent_by_one_node_every_seven_days(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (tenant, ada, other) = (&world.tenant, approver("ada"), world.second_gateway().await);
    add_channel(&world, "ada", "phone").await;
    let (mut here, mut there) = (world.gateway.take_notices().unwrap(), other.take_notices().unwrap());
    world.gateway.set_weekly_test(tenant, &ada, true).await.unwrap();
    at_second(&world, 3 * DAY).await;
    // What is on stays as it is, and so does what becomes of the channel.
    world.gateway.set_weekly_test(tenant, &ada, true).await.unwrap();
    let accepted = [("phone".parse().unwrap(), Attempt::Accepted)];
    world.gateway.record_attempts(tenant, &ada, &accepted).await.unwrap();
    at_second(&world, 7 * DAY - 1).await;
    assert!(tested(&world, &world.gateway, &mut here).await.is_empty());
    at_second(&world, 7 * DAY).await;
    assert_eq!(tested(&world, &world.gateway, &mut here).await, ["ada"]);
    assert!(tested(&world, &other, &mut there).await.is_empty(), "two don't send at once");
    // A node that dies has noted nothing.
    at_second(&world, 7 * DAY + 14).await;
    assert!(tested(&world, &other, &mut there).await.is_empty());
    at_second(&world, 7 * DAY + 15).await;
    assert_eq!(tested(&world, &other, &mut there).await, ["ada"]);
    other.record_weekly_test(tenant, &ada).await.unwrap();
    at_second(&world, 14 * DAY + 14).await;
    assert!(tested(&world, &other, &mut there).await.is_empty());
    at_second(&world, 14 * DAY + 15).await;
    // A node on which nobody sends leaves it to others.
    world.second_gateway().await.sweep().await.unwrap();
    assert!(tested(&world, &other, &mut there).await.is_empty());
    at_second(&world, 14 * DAY + 45).await;
    assert_eq!(tested(&world, &other, &mut there).await, ["ada"]);
    // What is switched off while it is sent stays off.
    other.set_weekly_test(tenant, &ada, false).await.unwrap();
    other.record_weekly_test(tenant, &ada).await.unwrap();
    assert_eq!(other.notifications(tenant, &ada).await.unwrap().weekly_test, None);
    at_second(&world, 40 * DAY).await;
    assert!(tested(&world, &other, &mut there).await.is_empty());
}

async fn a_weekly_test_waits_for_the_end_of_quiet_hours_and_goes_to_nobody_without_channels(
    harness: Box<dyn StoreHarness>,
) {
    let world = World::new(harness);
    let (tenant, ada) = (&world.tenant, approver("ada"));
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    // It is 12:00 UTC at the start.
    let hours = QuietHours { from: 11 * 60, to: 12 * 60 + 5, utc_offset_minutes: 0 };
    world.gateway.set_quiet_hours(tenant, &ada, Some(hours)).await.unwrap();
    world.gateway.set_weekly_test(tenant, &ada, true).await.unwrap();
    world.gateway.set_weekly_test(tenant, &approver("bob"), true).await.unwrap();
    at_second(&world, 7 * DAY).await;
    assert!(tested(&world, &world.gateway, &mut queue).await.is_empty());
    at_second(&world, 7 * DAY + 299).await;
    assert!(tested(&world, &world.gateway, &mut queue).await.is_empty());
    at_second(&world, 7 * DAY + 300).await;
    assert_eq!(tested(&world, &world.gateway, &mut queue).await, ["ada"]);
    let gone = Attempt::Failed { reason: FailureReason::Gone, status: Some(410) };
    world.gateway.record_attempts(tenant, &ada, &[("phone".parse().unwrap(), gone)]).await.unwrap();
    at_second(&world, 8 * DAY).await;
    assert!(tested(&world, &world.gateway, &mut queue).await.is_empty(), "it is gone");
    let next = world.gateway.notifications(tenant, &ada).await.unwrap().weekly_test;
    assert_eq!(next, Some(start().plus(Duration::from_secs(15 * DAY))));
}

async fn the_operator_can_not_switch_notifications_off_by_setting_a_policy(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    add_channel(&world, "ada", "phone").await;
    let mut queue = world.gateway.take_notices().unwrap();
    world.gateway.set_policy(&world.tenant, &Policy::default()).await.unwrap();
    world.submit(&request("r").to("ada")).await.unwrap();
    assert_eq!(next(&mut queue).await.as_deref(), Some("r"));
}

async fn a_person_has_sixteen_channels_at_most(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for number in 0..16 {
        add_channel(&world, "ada", &format!("c{number}")).await;
    }
    let one_more = world.gateway.set_channel(&world.tenant, &approver("ada"), &spec("c16")).await;
    assert_eq!(super::world::status_of(&one_more, 200), 409);
    add_channel(&world, "ada", "c3").await;
    world.gateway.remove_channel(&world.tenant, &approver("ada"), &"c0".parse().unwrap()).await.unwrap();
    add_channel(&world, "ada", "c16").await;
}

async fn a_receipt_is_for_ones_own_requests(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for who in ["ada", "eve"] {
        add_channel(&world, who, "phone").await;
    }
    world.submit(&request("r").to("ada")).await.unwrap();
    let accepted = [sent("ada", "phone", Attempt::Accepted)];
    world.gateway.record_notification(&notice(&world, "r"), &accepted, None).await.unwrap();
    let displayed = async |who: &str| {
        let (phone, ids) = ("phone".parse().unwrap(), ["r".parse().unwrap(), "unknown".parse().unwrap()]);
        let event = ReceiptEvent::Displayed;
        world.gateway.record_receipt(&world.tenant, &approver(who), &phone, event, &ids).await.unwrap();
        let robot = super::world::robot();
        let (viewer, id) = (Viewer::Enforcer(&robot), "r".parse().unwrap());
        let progress = world.gateway.progress(&world.tenant, viewer, &id).await.unwrap();
        progress.approvers[0].notified[0].displayed_at.is_some()
    };
    assert!(!displayed("eve").await);
    assert!(displayed("ada").await);
    assert!(channel(&world).await.displayed_at.is_some());
}
