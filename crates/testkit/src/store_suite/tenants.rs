//! Tenants are isolated, even if all their records and mailboxes have the same names.

use countersign_core::store::{Change, Kind, Mailbox, MailboxKey, MarkKind, PayloadId};
use countersign_wire::id::TenantId;

use super::{StoreHarness, cases, fixtures::*, start};

cases![
    records_of_two_tenants_are_distinct,
    guards_check_their_own_tenant,
    deletions_stay_in_their_tenant,
    a_payload_of_another_tenant_is_not_found,
    a_payload_of_another_tenant_can_not_be_dropped,
    mailboxes_of_two_tenants_count_by_themselves,
    removals_stay_in_their_tenant,
    marks_stay_in_their_tenant,
    deliveries_by_subject_stays_in_its_tenant,
    scans_stay_in_their_tenant,
    no_longer_due_stays_in_its_tenant,
    names_of_tenants_are_exact,
];

fn us() -> TenantId {
    tenant_named("us")
}

fn them() -> TenantId {
    tenant_named("them")
}

async fn delivered(store: &Handle, tenant: &TenantId, mailbox: &Mailbox) -> Vec<u64> {
    let found = store.deliveries(tenant, all_of(mailbox)).await.unwrap().deliveries;
    found.into_iter().map(|delivery| delivery.number).collect()
}

/// Delivers the same message to the same mailbox in both tenants.
async fn deliver_to_both(store: &Handle, mailbox: &Mailbox) {
    for tenant in [us(), them()] {
        let new = Change::new(tenant).deliver(delivery(mailbox, "m", &exchange("same")));
        assert_eq!(commit_ok(store, new).await.1, [1]);
    }
}

async fn records_of_two_tenants_are_distinct(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    let ours = put_ok(&store, Change::new(us()).put(&same, "ours")).await;
    assert_eq!(load_in(&store, &them(), &same).await, None);
    let theirs = put_ok(&store, Change::new(them()).put(&same, "theirs")).await;
    commit_ok(&store, Change::new(them()).put(&same, "theirs, again")).await;
    assert_eq!(load_in(&store, &us(), &same).await, Some(record(&same, ours, "ours")));
    assert_eq!(load_in(&store, &them(), &same).await, Some(record(&same, theirs + 1, "theirs, again")));
}

async fn guards_check_their_own_tenant(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    let ours = put_ok(&store, Change::new(us()).if_absent(&same).put(&same, "ours")).await;
    let guards = [Change::new(them()).if_version(&same, ours), Change::new(them()).if_seen(&same, ours)];
    for guard in guards {
        let (current, _) = commit_conflict(&store, guard).await;
        assert_eq!(current, [None]);
    }
    let unseen = Change::new(them()).if_absent(&same).if_seen(&same, 0);
    let theirs = put_ok(&store, unseen.put(&same, "theirs")).await;
    let (current, _) = commit_conflict(&store, Change::new(them()).if_absent(&same)).await;
    assert_eq!(current, [Some(record(&same, theirs, "theirs"))]);
}

async fn deletions_stay_in_their_tenant(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    let version = put_ok(&store, Change::new(us()).put(&same, "ours")).await;
    commit_ok(&store, Change::new(them()).delete(&same)).await;
    assert_eq!(load_in(&store, &us(), &same).await, Some(record(&same, version, "ours")));
}

async fn a_payload_of_another_tenant_is_not_found(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    for (id, size) in [(PayloadId(1), 5), (PayloadId(2), 2 << 20)] {
        commit_ok(&store, Change::new(us()).put(&same, "x").add_payload(id, bytes_of(size))).await;
        assert!(payload_in(&store, &us(), id).await == Some(bytes_of(size)));
        assert!(payload_in(&store, &them(), id).await.is_none(), "{size} bytes");
    }
}

async fn a_payload_of_another_tenant_can_not_be_dropped(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    for (id, size) in [(PayloadId(1), 5), (PayloadId(2), 2 << 20)] {
        commit_ok(&store, Change::new(us()).put(&same, "x").add_payload(id, bytes_of(size))).await;
        commit_ok(&store, Change::new(them()).drop_payload(id)).await;
        assert!(payload_in(&store, &us(), id).await == Some(bytes_of(size)), "{size} bytes");
    }
}

async fn mailboxes_of_two_tenants_count_by_themselves(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    deliver_to_both(&store, &ann).await;
    let more = Change::new(them()).deliver(delivery(&ann, "m", &exchange("same")));
    assert_eq!(commit_ok(&store, more).await.1, [2]);
    assert_eq!(delivered(&store, &us(), &ann).await, [1]);
    assert_eq!(delivered(&store, &them(), &ann).await, [1, 2]);
    let nobody = tenant_named("nobody");
    let query = [them(), nobody, us()].map(|tenant| MailboxKey { tenant, mailbox: ann.clone() });
    assert_eq!(store.heads(&query).await, Ok(vec![Some(2), Some(0), Some(1)]));
}

async fn removals_stay_in_their_tenant(harness: Box<dyn StoreHarness>) {
    let (store, ann, bob) = (harness.store(), inbox("ann"), inbox("bob"));
    deliver_to_both(&store, &ann).await;
    deliver_to_both(&store, &bob).await;
    let removals = Change::new(them()).remove(one(&ann, 1)).remove(by_subject(&exchange("same"), &[]));
    commit_ok(&store, removals).await;
    for mailbox in [&ann, &bob] {
        assert_eq!(delivered(&store, &us(), mailbox).await, [1]);
        assert_eq!(delivered(&store, &them(), mailbox).await, NO_NUMBERS);
    }
}

async fn marks_stay_in_their_tenant(harness: Box<dyn StoreHarness>) {
    let (store, shared) = (harness.store(), Mailbox::Shared);
    deliver_to_both(&store, &shared).await;
    commit_ok(&store, Change::new(them()).mark(&shared, 1, "ann", MarkKind::Hidden)).await;
    for (tenant, count) in [(us(), 1), (them(), 0)] {
        let found = store.deliveries(&tenant, unmarked(&shared, "ann", MarkKind::Hidden)).await.unwrap();
        assert_eq!(found.deliveries.len(), count, "{tenant}");
    }
}

async fn deliveries_by_subject_stays_in_its_tenant(harness: Box<dyn StoreHarness>) {
    let (store, ann) = (harness.store(), inbox("ann"));
    let ours = Change::new(us()).deliver(delivery(&ann, "ours", &exchange("same")));
    commit_ok(&store, ours).await;
    assert_eq!(store.deliveries_by_subject(&them(), "same").await, Ok(vec![]));
    assert_eq!(store.deliveries_by_subject(&us(), "same").await.unwrap().len(), 1);
}

async fn scans_stay_in_their_tenant(harness: Box<dyn StoreHarness>) {
    let (store, ours, theirs) = (harness.store(), exchange("ours"), exchange("theirs"));
    let version = put_ok(&store, Change::new(us()).put(&ours, "x")).await;
    commit_ok(&store, Change::new(them()).put(&theirs, "y")).await;
    let found = store.scan(&us(), Kind::Exchange, None, 10).await;
    assert_eq!(found, Ok(vec![record(&ours, version, "x")]));
}

async fn no_longer_due_stays_in_its_tenant(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    commit_ok(&store, Change::new(us()).due_at(start(), &same)).await;
    commit_ok(&store, Change::new(them()).no_longer_due(&same)).await;
    assert_eq!(claim(&store, 10).await, [(start(), same)]);
}

async fn names_of_tenants_are_exact(harness: Box<dyn StoreHarness>) {
    let (store, same) = (harness.store(), exchange("same"));
    let names = ["acme", "Acme", "acme ", " acme", "acm", "%", "_", "acme'--", "😀"];
    for name in names {
        commit_ok(&store, Change::new(tenant_named(name)).if_absent(&same).put(&same, name)).await;
    }
    for name in names {
        let found = load_in(&store, &tenant_named(name), &same).await;
        assert_eq!(found.unwrap().content, name, "{name:?}");
    }
}
