//! Inboxes: own and shared requests merged, hidden and expired ones, paging during concurrent changes.

use countersign_core::use_cases::{
    acknowledge::Acknowledger,
    inbox::{List, Position},
};
use countersign_wire::{exchange::ExchangeState, id::RequestId};

use super::world::{World, approver, request, status_of};
use crate::store_suite::{StoreHarness, cases};
use countersign_wire::ack::MessageAck;

cases! {
    own_and_shared_requests_are_merged_in_the_order_they_came,
    an_item_is_complete_and_byte_for_byte,
    a_request_for_nobody_is_seen_by_approvers_that_come_later,
    a_page_ends_where_its_limit_is_and_the_next_goes_on,
    a_walk_shows_what_is_pending_throughout_exactly_once,
    a_page_ends_when_its_bodies_are_too_large,
    hiding_is_for_one_approver_and_only_once,
    a_hidden_request_can_still_be_decided,
    an_acknowledged_request_stays_in_the_inbox_and_is_not_pushed_again,
    what_expires_moves_to_the_expired_list,
    reading_the_expired_list_expires_only_a_page_of_them_itself,
    an_expired_request_can_be_hidden_from_its_list,
    a_hidden_request_stays_hidden_when_it_expires_and_is_not_pushed,
    what_an_approver_acknowledged_is_shown_to_the_enforcer,
    decided_withdrawn_and_cancelled_requests_are_on_no_list,
    a_page_skips_deliveries_that_are_no_requests,
}

async fn own_and_shared_requests_are_merged_in_the_order_they_came(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for (minute, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        world.at_minute(minute as u64).await;
        let request = request(id);
        let request = if minute % 2 == 0 { request.to("ada") } else { request };
        world.submit(&request).await.unwrap();
    }
    assert_eq!(world.inbox("ada").await, ["a", "b", "c", "d", "e"]);
    assert_eq!(world.inbox("bob").await, ["b", "d"]);
    assert_eq!(world.list("ada", List::Active, 1).await.len(), 5);
}

async fn an_item_is_complete_and_byte_for_byte(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let large = "x".repeat(2 << 20);
    for about in ["small", large.as_str()] {
        let request = request(&about[..1]).about(about);
        world.submit(&request).await.unwrap();
        let items = world.list("ada", List::Active, 50).await;
        let item = items.last().unwrap();
        assert!(item.body == request.body().as_bytes());
        assert_eq!((&item.request_id, &item.enforcer), (&request.id, &request.enforcer));
        assert_eq!(item.expires_at, request.expires_at);
    }
}

async fn a_request_for_nobody_is_seen_by_approvers_that_come_later(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r")).await.unwrap();
    for newcomer in ["one", "two", "three"] {
        assert_eq!(world.inbox(newcomer).await, ["r"]);
    }
}

async fn a_page_ends_where_its_limit_is_and_the_next_goes_on(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for index in 0..7 {
        world.submit(&request(&format!("r{index}"))).await.unwrap();
    }
    let ada = approver("ada");
    let page = async |from, limit| {
        world.gateway.inbox(&world.tenant, &ada, List::Active, from, limit).await.unwrap()
    };
    let first = page(Position::default(), 3).await;
    assert_eq!(first.items.len(), 3);
    let second = page(first.next.unwrap(), 4).await;
    assert_eq!((second.items.len(), second.next), (4, None));
    assert_eq!(page(Position::default(), 7).await.next, None);
    for limit in [1, 2, 6, 7, 8, 200] {
        assert_eq!(world.list("ada", List::Active, limit).await.len(), 7, "limit {limit}");
    }
}

async fn a_walk_shows_what_is_pending_throughout_exactly_once(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for index in 0..20 {
        let request = request(&format!("stays{index}"));
        let request = if index % 3 == 0 { request.to("ada") } else { request };
        world.submit(&request).await.unwrap();
        world.submit(&super::world::request(&format!("goes{index}"))).await.unwrap();
    }
    let ada = approver("ada");
    for limit in [1, 3, 7] {
        let mut seen = Vec::new();
        let mut position = Some(Position::default());
        let mut step = 0;
        while let Some(from) = position {
            let page = world.gateway.inbox(&world.tenant, &ada, List::Active, from, limit).await.unwrap();
            seen.extend(page.items.into_iter().map(|item| item.request_id.to_string()));
            position = page.next;
            // Some requests are decided and others are submitted between the pages.
            if step < 20 {
                drop(world.decide("bob", &format!("goes{step}"), "n").await);
                world.submit(&request(&format!("comes{limit}-{step}"))).await.unwrap();
            }
            step += 1;
        }
        for index in 0..20 {
            let id = format!("stays{index}");
            assert_eq!(seen.iter().filter(|seen| **seen == id).count(), 1, "{id} with limit {limit}");
        }
    }
}

async fn a_page_ends_when_its_bodies_are_too_large(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for id in ["a", "b", "c"] {
        world.submit(&request(id).about(&id.repeat(2 << 20))).await.unwrap();
    }
    let ada = approver("ada");
    let page = world.gateway.inbox(&world.tenant, &ada, List::Active, Position::default(), 50).await.unwrap();
    assert_eq!(page.items.len(), 1, "two of 2 MB are over the 4 MiB of a page");
    assert_eq!(world.inbox("ada").await, ["a", "b", "c"]);
}

async fn hiding_is_for_one_approver_and_only_once(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    let hide = async |who| world.gateway.hide(&world.tenant, &approver(who), &id).await;
    hide("ada").await.unwrap();
    assert_eq!(status_of(&hide("ada").await, 200), 404);
    assert!(world.inbox("ada").await.is_empty());
    assert_eq!(world.inbox("bob").await, ["r"]);
    let unknown = world.gateway.hide(&world.tenant, &approver("ada"), &"x".parse().unwrap()).await;
    assert_eq!(status_of(&unknown, 200), 404);
}

async fn a_hidden_request_can_still_be_decided(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r").to("ada")).await.unwrap();
    world.gateway.hide(&world.tenant, &approver("ada"), &"r".parse().unwrap()).await.unwrap();
    world.decide("ada", "r", "n").await.unwrap();
}

async fn an_acknowledged_request_stays_in_the_inbox_and_is_not_pushed_again(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let (ada, bob) = (approver("ada"), approver("bob"));
    world.submit(&request("own").to("ada")).await.unwrap();
    world.submit(&request("shared")).await.unwrap();
    for id in ["own", "shared"] {
        let by = Acknowledger::Approver(&ada);
        world
            .gateway
            .acknowledge(&world.tenant, by, &id.parse().unwrap(), &MessageAck::default())
            .await
            .unwrap();
    }
    assert_eq!(world.inbox("ada").await, ["own", "shared"]);
    world.submit(&request("next")).await.unwrap();
    let read = async |who: &countersign_wire::id::ApproverId| {
        let reader = countersign_core::delivery::feed::Reader::Approver(who.clone());
        let news = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
        news.into_iter().map(|item| item.delivery.subject.id).collect::<Vec<_>>()
    };
    assert_eq!(read(&ada).await, ["next"]);
    assert_eq!(read(&bob).await, ["shared", "next"]);
}

async fn what_expires_moves_to_the_expired_list(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("own").to("ada").for_minutes(5)).await.unwrap();
    world.submit(&request("shared").for_minutes(5)).await.unwrap();
    world.submit(&request("later")).await.unwrap();
    assert!(world.expired("ada").await.is_empty());
    world.at_minute(5).await;
    assert_eq!(world.inbox("ada").await, ["later"]);
    let mut expired = world.expired("ada").await;
    expired.sort();
    assert_eq!(expired, ["own", "shared"]);
    assert_eq!(world.expired("bob").await, ["shared"]);
}

async fn reading_the_expired_list_expires_only_a_page_of_them_itself(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for index in 0..150 {
        world.submit(&request(&format!("own-{index:03}")).to("ada")).await.unwrap();
        world.submit(&request(&format!("shared-{index:03}"))).await.unwrap();
    }
    world.at_minute(10).await;
    let ada = approver("ada");
    let read = async || {
        world.gateway.expire_overdue(&world.tenant, &ada).await.unwrap();
        world
            .gateway
            .inbox(&world.tenant, &ada, List::Expired, Position::default(), 1_000)
            .await
            .unwrap()
            .items
    };
    assert_eq!(read().await.len(), 200, "the rest is left to the sweeper");
    for item in read().await {
        assert_eq!(world.status(item.request_id.as_str()).await.unwrap().state, ExchangeState::Expired);
    }
    assert_eq!(read().await.len(), 300);
    assert_eq!(world.gateway.sweep().await.unwrap().processed, 0, "they are due again when they are buried");
}

async fn an_expired_request_can_be_hidden_from_its_list(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let id: RequestId = "r".parse().unwrap();
    world.submit(&request("r")).await.unwrap();
    world.at_minute(10).await;
    world.gateway.hide(&world.tenant, &approver("ada"), &id).await.unwrap();
    assert!(world.expired("ada").await.is_empty());
    assert_eq!(world.expired("bob").await, ["r"]);
    let again = world.gateway.hide(&world.tenant, &approver("ada"), &id).await;
    assert_eq!(status_of(&again, 200), 404);
}

async fn decided_withdrawn_and_cancelled_requests_are_on_no_list(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for id in ["decided", "withdrawn", "cancelled"] {
        world.submit(&request(id)).await.unwrap();
    }
    world.decide("ada", "decided", "n").await.unwrap();
    world
        .gateway
        .withdraw(&world.tenant, &super::world::robot(), &"withdrawn".parse().unwrap())
        .await
        .unwrap();
    world.gateway.cancel(&world.tenant, &"cancelled".parse().unwrap()).await.unwrap();
    world.at_minute(20).await;
    assert!(world.inbox("ada").await.is_empty());
    assert!(world.expired("ada").await.is_empty());
    for id in ["decided", "withdrawn", "cancelled"] {
        let hidden = world.gateway.hide(&world.tenant, &approver("ada"), &id.parse().unwrap()).await;
        assert_eq!(status_of(&hidden, 200), 404, "{id}");
    }
}

async fn a_page_skips_deliveries_that_are_no_requests(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for index in 0..30 {
        let id = format!("r{index}");
        world.submit(&request(&id).to("ada")).await.unwrap();
        world.gateway.withdraw(&world.tenant, &super::world::robot(), &id.parse().unwrap()).await.unwrap();
    }
    world.submit(&request("last").to("ada")).await.unwrap();
    let ada = approver("ada");
    let page = world.gateway.inbox(&world.tenant, &ada, List::Active, Position::default(), 1).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None), "the first page has it, and is the last");
}

async fn a_hidden_request_stays_hidden_when_it_expires_and_is_not_pushed(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for name in ["own", "shared"] {
        let request = if name == "own" { request(name).to("ada") } else { request(name) };
        world.submit(&request).await.unwrap();
        world.gateway.hide(&world.tenant, &approver("ada"), &name.parse().unwrap()).await.unwrap();
    }
    world.submit(&request("visible")).await.unwrap();
    let reader = countersign_core::delivery::feed::Reader::Requests(approver("ada"));
    let pushed = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    let pushed: Vec<&str> = pushed.iter().map(|item| item.delivery.subject.id.as_str()).collect();
    assert_eq!(pushed, ["visible"], "hidden requests are not pushed");
    world.at_minute(60 * 24 * 365).await;
    let expired = async |who: &str| -> Vec<String> {
        let items = world.list(who, List::Expired, 10).await;
        let mut listed: Vec<String> = items.into_iter().map(|item| item.request_id.to_string()).collect();
        listed.sort();
        listed
    };
    assert_eq!(expired("ada").await, ["visible"]);
    assert_eq!(expired("bob").await, ["shared", "visible"], "nobody else notices");
    let again = world.gateway.hide(&world.tenant, &approver("ada"), &"shared".parse().unwrap()).await;
    assert_eq!(status_of(&again, 200), 404);
}

async fn what_an_approver_acknowledged_is_shown_to_the_enforcer(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    world.submit(&request("r").to("ada")).await.unwrap();
    let (ada, id) = (approver("ada"), "r".parse().unwrap());
    assert!(world.status("r").await.unwrap().seen.is_empty());
    for status in ["received", "shown on the lock screen"] {
        let ack = MessageAck { status: Some(status.parse().unwrap()), ..MessageAck::default() };
        let by = Acknowledger::Approver(&ada);
        world.gateway.acknowledge(&world.tenant, by, &id, &ack).await.unwrap();
        let seen = world.status("r").await.unwrap().seen;
        assert_eq!(seen.len(), 1);
        assert_eq!(
            (&seen[0].approver, seen[0].status.as_deref()),
            (&ada, Some(status)),
            "the last one counts"
        );
    }
}
