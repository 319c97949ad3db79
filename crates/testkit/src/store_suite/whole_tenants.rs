//! Tenants as a whole: which there are, what they take, and that nothing is left of one that was erased.

use countersign_core::store::{
    AuditRow, Change, InInboxes, Key, Kind, Mailbox, MarkKind, PAYLOAD_OVERHEAD, PayloadId,
};
use countersign_wire::{id::TenantId, msg_type::MsgType};

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    tenants_are_listed_in_order_and_by_pages,
    what_lies_in_inboxes_is_counted_over_all_tenants,
    bytes_are_counted_when_they_come_and_go,
    a_change_that_conflicts_counts_nothing,
    an_erased_tenant_leaves_only_its_own_record_and_others_everything,
    a_tenant_is_erased_in_parts,
];

fn us() -> TenantId {
    tenant_named("us")
}

async fn listed(store: &Handle, after: Option<&TenantId>, limit: u32) -> Vec<String> {
    let mut all = Vec::new();
    for shard in (0..store.shard_count()).map(countersign_core::store::Shard) {
        all.extend(store.tenants(shard, after, limit).await.expect("the store answers"));
    }
    all.sort_unstable();
    all.iter().map(ToString::to_string).collect()
}

async fn bytes(store: &Handle, tenant: &TenantId) -> u64 {
    store.stored_bytes(tenant).await.expect("the store answers")
}

async fn tenants_are_listed_in_order_and_by_pages(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    assert_eq!(listed(&store, None, 10).await, NO_IDS);
    for name in ["b", "a", "a-b", "c"] {
        for id in ["x", "y"] {
            commit_ok(&store, Change::new(tenant_named(name)).put(&exchange(id), "x")).await;
        }
    }
    assert_eq!(listed(&store, None, 10).await, ["a", "a-b", "b", "c"]);
    assert_eq!(listed(&store, Some(&tenant_named("a-b")), 10).await, ["b", "c"]);
    if store.shard_count() == 1 {
        assert_eq!(listed(&store, Some(&tenant_named("a")), 2).await, ["a-b", "b"]);
    }
    commit_ok(&store, Change::new(tenant_named("b")).delete(&exchange("x")).delete(&exchange("y"))).await;
    assert_eq!(listed(&store, None, 10).await, ["a", "a-b", "c"], "only those with a record");
}

async fn in_inboxes(store: &Handle, limit: u32) -> InInboxes {
    let mut all = InInboxes { records: 0, oldest: None };
    for shard in (0..store.shard_count()).map(countersign_core::store::Shard) {
        let found = store.in_inboxes(shard, limit).await.expect("the store answers");
        all.records += found.records;
        all.oldest = all.oldest.into_iter().chain(found.oldest).min();
    }
    all
}

async fn what_lies_in_inboxes_is_counted_over_all_tenants(harness: Box<dyn StoreHarness>) {
    let (store, them) = (harness.store(), tenant_named("them"));
    assert_eq!(in_inboxes(&store, 100).await, InInboxes { records: 0, oldest: None });
    let to = |tenant: &TenantId, id: &str, mailboxes: &[Mailbox]| {
        let mut change = Change::new(tenant.clone()).put(&exchange(id), "x");
        let deliveries = mailboxes.iter().map(|mailbox| delivery(mailbox, &format!("m-{id}"), &exchange(id)));
        change.deliveries.extend(deliveries);
        change
    };
    let robot = Mailbox::Enforcer("robot".parse().expect("an id"));
    let elsewhere = [
        robot,
        Mailbox::News(approver("ann")),
        Mailbox::SharedNews,
        Mailbox::ExpiredOfApprover(approver("ann")),
        Mailbox::ExpiredShared,
    ];
    commit_ok(&store, to(&us(), "elsewhere", &elsewhere)).await;
    assert_eq!(in_inboxes(&store, 100).await.records, 0, "none of these is an inbox");
    harness.set_now(later(1)).await;
    commit_ok(&store, to(&us(), "both", &[inbox("ann"), inbox("bob")])).await;
    harness.set_now(later(2)).await;
    commit_ok(&store, to(&us(), "shared", &[Mailbox::Shared])).await;
    commit_ok(&store, to(&them, "both", &[inbox("ann")])).await;
    assert_eq!(in_inboxes(&store, 100).await, InInboxes { records: 3, oldest: Some(later(1)) });
    assert!(in_inboxes(&store, 1).await.records <= u64::from(store.shard_count()));
    let mut ended = Change::new(us());
    ended.removals.push(by_subject(&exchange("both"), &[MsgType::ApprovalRequest]));
    commit_ok(&store, ended).await;
    assert_eq!(in_inboxes(&store, 100).await, InInboxes { records: 2, oldest: Some(later(2)) });
}

async fn bytes_are_counted_when_they_come_and_go(harness: Box<dyn StoreHarness>) {
    let (store, them) = (harness.store(), tenant_named("them"));
    assert_eq!(bytes(&store, &us()).await, 0);
    let small = Change::new(us()).add_payload(PayloadId(1), bytes_of(100));
    commit_ok(&store, small.add_payload(PayloadId(2), bytes_of(300_000))).await;
    commit_ok(&store, Change::new(them.clone()).add_payload(PayloadId(3), bytes_of(7))).await;
    assert_eq!(bytes(&store, &us()).await, 300_100 + 2 * PAYLOAD_OVERHEAD);
    assert_eq!(bytes(&store, &them).await, 7 + PAYLOAD_OVERHEAD);
    commit_ok(&store, Change::new(us()).drop_payload(PayloadId(2)).drop_payload(PayloadId(3))).await;
    assert_eq!(bytes(&store, &us()).await, 100 + PAYLOAD_OVERHEAD);
    assert_eq!(bytes(&store, &them).await, 7 + PAYLOAD_OVERHEAD, "another tenant's is not dropped");
    commit_ok(&store, Change::new(us()).drop_payload(PayloadId(1)).drop_payload(PayloadId(9))).await;
    assert_eq!(bytes(&store, &us()).await, 0);
}

async fn a_change_that_conflicts_counts_nothing(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for size in [10, 300_000] {
        let change = Change::new(us()).if_version(&exchange("none"), 1);
        commit_conflict(&store, change.add_payload(PayloadId(1), bytes_of(size))).await;
        assert_eq!(bytes(&store, &us()).await, 0, "{size}");
    }
}

/// Something in every table.
async fn fill(store: &Handle, tenant: &TenantId, number: u128) {
    let (ann, ours) = (inbox("ann"), exchange("ours"));
    let mut all = Change::new(tenant.clone()).put(&ours, "x").put(&key(Kind::Credential, "k"), "x");
    all.audit.push(AuditRow { subject: ours.clone(), event: "{}".into() });
    let all = all.add_payload(PayloadId(number), bytes_of(10)).due_at(start(), &ours);
    let all = all.add_payload(PayloadId(number + 1), bytes_of(100_000));
    commit_ok(store, all.deliver(delivery(&ann, "m", &ours))).await;
    commit_ok(store, Change::new(tenant.clone()).mark(&ann, 1, "ann", MarkKind::Hidden)).await;
}

fn suspension() -> Key {
    key(Kind::Tenant, "tenant")
}

async fn an_erased_tenant_leaves_only_its_own_record_and_others_everything(harness: Box<dyn StoreHarness>) {
    let (store, them) = (harness.store(), tenant_named("them"));
    fill(&store, &us(), 1).await;
    fill(&store, &them, 11).await;
    let suspended = Change::new(us()).put(&suspension(), "x").due_at(start(), &suspension());
    commit_ok(&store, suspended).await;
    let mut rounds = 0;
    while store.erase(&us(), 100).await.expect("the store answers") > 0 {
        rounds += 1;
        assert!(rounds < 10, "it comes to an end");
    }
    for kind in Kind::ALL {
        let left = store.scan(&us(), *kind, None, 10).await.expect("the store answers").len();
        assert_eq!(left, usize::from(*kind == Kind::Tenant), "{kind:?}");
    }
    assert_eq!(payload_in(&store, &us(), PayloadId(1)).await, None);
    assert_eq!(bytes(&store, &us()).await, 0);
    let page = store.deliveries(&us(), all_of(&inbox("ann"))).await.expect("the store answers");
    assert_eq!((page.deliveries.len(), page.head), (0, 0), "the mailbox is gone too");
    let (due, _) = store.claim_due(10).await.expect("the store answers");
    let due: Vec<(TenantId, Key)> = due.into_iter().map(|due| (due.tenant, due.key)).collect();
    assert_eq!(due, [(them.clone(), exchange("ours")), (us(), suspension())]);
    assert_eq!(bytes(&store, &them).await, 100_010 + 2 * PAYLOAD_OVERHEAD);
    assert!(payload_in(&store, &them, PayloadId(12)).await.is_some());
    let page = store.deliveries(&them, all_of(&inbox("ann"))).await.expect("the store answers");
    assert_eq!((page.deliveries.len(), page.head), (1, 1));
    let last = Change::new(us()).delete(&suspension()).no_longer_due(&suspension());
    commit_ok(&store, last).await;
    assert_eq!(listed(&store, None, 10).await, ["them"]);
}

async fn a_tenant_is_erased_in_parts(harness: Box<dyn StoreHarness>) {
    let store = harness.store();
    for at in 0..25 {
        commit_ok(&store, Change::new(us()).put(&exchange(&at.to_string()), "x")).await;
    }
    let mut parts = Vec::new();
    loop {
        match store.erase(&us(), 10).await.expect("the store answers") {
            0 => break,
            erased => parts.push(erased),
        }
    }
    if parts != [25] {
        assert_eq!(parts, [10, 10, 5]);
    }
}
