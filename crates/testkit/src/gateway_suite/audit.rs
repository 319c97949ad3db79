//! The audit log: every state change writes a row, and no row contains a body.

use countersign_core::{
    model::viewer::Viewer,
    store::{Change, Kind},
    use_cases::{acknowledge::Acknowledger, join::JoinOutcome, pairs::PairFilter, rotate::DEFAULT_OVERLAP},
};
use countersign_wire::{ack::MessageAck, id::RequestId, parse, refresh::RefreshBody};

use super::{
    invitations::{invite, mac_key, nonce},
    pairing_fixtures::{codes, complete, initiate},
    prompts::send_prompt,
    vouchers::{recovery, said, vouch},
    world::{World, approver, minutes, request, robot},
};
use crate::{
    recording_store::RecordingStore,
    store_suite::{StoreHarness, cases},
};

cases! {
    everything_that_happens_is_in_the_audit,
}

/// What the rows of [`run_every_use_case`] must contain.
const AUDITED: &[&str] = &[
    "pairing.initiated",
    "pairing.resolved",
    "pairing.completed",
    "pendingApproval",
    "decided",
    "delivered",
    "expired",
    "withdrawn",
    "cancelled",
    "refresh.requested",
    "inbox.hidden",
    "prompt.sent",
    "session.start",
    "pair.removed",
    "pair.vouched",
    "pair.ended",
    "recovery.vouched",
    "invitation.created",
    "invitation.revoked",
    "invitation.used",
    "key.created",
    "key.rotated",
];

async fn everything_that_happens_is_in_the_audit(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let recording = RecordingStore::new(world.harness.store());
    world.gateway = super::world::gateway(recording.clone(), &world.doorbell, 1);
    run_every_use_case(&world).await;
    let committed = recording.take_committed();
    for change in committed.iter().filter(|change| must_be_audited(change)) {
        assert!(!change.audit.is_empty(), "no audit row for {:?}", change.puts);
    }
    let events: Vec<String> = committed
        .iter()
        .flat_map(|change| &change.audit)
        .map(|row| String::from_utf8(row.event.to_vec()).unwrap())
        .collect();
    for word in AUDITED {
        assert!(events.iter().any(|line| line.contains(word)), "{word} is not in the audit: {events:#?}");
    }
    assert!(
        !events.iter().any(|line| line.contains("ciphertext") || line.contains("unchecked")),
        "bodies in the audit"
    );
}

async fn run_every_use_case(world: &World) {
    let (ada, robot) = (approver("ada"), robot());
    let id = |text: &str| text.parse::<RequestId>().unwrap();
    let begun = initiate(world).await;
    world.gateway.resolve_pairing(&world.tenant, "phone", Some(&ada), begun.code, &codes()).await.unwrap();
    complete(world, &begun, "ada", 2).await.unwrap();
    for voucher in [vouch("ada", 3, minutes(9)), recovery("ada", 4, minutes(20))] {
        world.gateway.present_voucher(&world.tenant, &said("ada", 2, voucher)).await.unwrap();
    }
    for name in ["decided", "withdrawn", "cancelled", "expired"] {
        world.submit(&request(name).to("bob")).await.unwrap();
    }
    world
        .gateway
        .refresh(&world.tenant, &approver("bob"), &id("decided"), &RefreshBody::default())
        .await
        .unwrap();
    world.gateway.hide(&world.tenant, &approver("bob"), &id("decided")).await.unwrap();
    world.decide("bob", "decided", "n").await.unwrap();
    let by = Acknowledger::Enforcer(&robot);
    world.gateway.acknowledge(&world.tenant, by, &id("decided"), &MessageAck::default()).await.unwrap();
    world.gateway.withdraw(&world.tenant, &robot, &id("withdrawn")).await.unwrap();
    world.gateway.cancel(&world.tenant, &id("cancelled")).await.unwrap();
    send_prompt(world, "p", "hi").await.unwrap();
    let start =
        r#"{"sessionId":"s","eventType":"session.start","createdAt":"2026-11-15T12:00:00Z","agentHost":"h"}"#;
    world.gateway.report_session(&world.tenant, &robot, &parse(start.as_bytes()).unwrap()).await.unwrap();
    let pairs = world.gateway.pairs(&world.tenant, &PairFilter::default(), None, 10).await.unwrap().pairs;
    let (paired, _) = pairs.iter().find(|(_, pair)| pair.vouched.is_none()).unwrap();
    world.gateway.remove_pair(&world.tenant, Viewer::Approver(&ada), paired).await.unwrap();
    let made = invite(world, 5).await;
    let JoinOutcome::Joined(joined) =
        world.gateway.join(&made.invitation, &nonce("a"), &mac_key()).await.unwrap()
    else {
        panic!("the invitation is valid")
    };
    world.gateway.rotate_key(&joined.key, &nonce("a"), DEFAULT_OVERLAP, &mac_key()).await.unwrap();
    world.gateway.revoke_invitation(&world.tenant, made.invitation.id()).await.unwrap();
    world.at_minute(10).await;
    world.gateway.sweep().await.unwrap();
}

/// A counted code attempt is not audited; its result is.
fn must_be_audited(change: &Change) -> bool {
    let put = change.puts.iter().any(|put| put.key.kind != Kind::FailedCodeAttempts);
    put || !change.marks.is_empty()
}
