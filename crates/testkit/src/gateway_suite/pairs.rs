//! Pairing and what rests on it: routing, registered keys, prompts, sessions; and presence.

use std::time::Duration;

use countersign_core::{
    Error,
    model::{credential::Role, pairing::CodeKey, viewer::Viewer},
    store::Kind,
    use_cases::{
        acknowledge::Acknowledger, presence::SelfDescription, prompt::PromptSubmission, session::Reported,
    },
};
use countersign_wire::{
    RawObject,
    api_key::ApiKey,
    exchange::State,
    hash::Sha256Hex,
    id::RequestId,
    keys::{KeyBundle, PublicKey, SigningKey},
    pairing::{CompleteRequest, CompleteResponse, InitiateRequest, InitiateResponse, PairingCode, Progress},
    parse,
    presence::{Status, Transport},
    prompt::AckStatus,
    refresh::RefreshBody,
    session::SessionEvent,
};
use tokio::{task::JoinSet, time::timeout};

use super::{
    cases,
    world::{World, approver, decide, decision, request, robot, status_of},
};
use crate::store_suite::StoreHarness;

cases! {
    a_code_leads_to_a_pair,
    a_code_is_bound_to_the_first_who_resolves_it,
    a_code_is_good_for_ten_minutes_and_once,
    a_code_is_not_in_the_store,
    the_sixth_guess_at_a_code_must_wait_even_if_it_is_right,
    guesses_at_a_code_that_come_at_once_are_no_more_than_five,
    one_key_on_both_sides_is_no_pair_whatever_proof_comes_with_it,
    an_approver_registers_no_more_keys_than_it_has_devices,
    a_session_that_an_approver_may_not_see_leads_no_prompt_anywhere,
    a_key_is_good_until_it_is_revoked_and_only_in_its_tenant,
    whoever_listens_to_a_key_hears_that_it_is_revoked,
    a_pairing_is_seen_by_its_two_parties_only,
    requests_of_a_paired_enforcer_go_to_its_approvers,
    a_routing_token_leads_to_its_approver_and_an_unknown_one_nowhere,
    a_registered_key_makes_the_gateway_check_signatures,
    two_completions_of_one_pairing_make_one_pair,
    a_prompt_reaches_its_enforcer_and_its_acknowledgement_comes_back,
    a_prompt_with_another_hash_conflicts,
    session_events_are_taken_once_and_not_after_the_end,
    presence_is_online_for_ten_minutes_after_a_call,
    everything_that_happens_is_in_the_audit,
}

fn codes() -> CodeKey {
    CodeKey([7; 32])
}

fn bundle(seed: u8) -> PublicKey {
    let mut agreement = [0; 32];
    (agreement[0], agreement[1]) = (9, seed);
    PublicKey::Bundle(Box::new(KeyBundle {
        signing: SigningKey::from_seed(&[seed; 32]).verifying_key(),
        agreement: countersign_wire::keys::AgreementKey::from_bytes(agreement).unwrap(),
        proof: None,
    }))
}

async fn initiate(world: &World) -> InitiateResponse {
    let request = InitiateRequest {
        enforcer_id: robot(),
        enforcer_label: Some("Robot".parse().unwrap()),
        workspace_name: None,
        public_key: bundle(1),
    };
    world.gateway.initiate_pairing(&world.tenant, request, &codes()).await.unwrap()
}

async fn complete(
    world: &World,
    begun: &InitiateResponse,
    who: &str,
    seed: u8,
) -> Result<CompleteResponse, Error> {
    let request =
        CompleteRequest { nonce: begun.nonce.clone(), approver_id: approver(who), public_key: bundle(seed) };
    world.gateway.complete_pairing(&world.tenant, &request).await
}

async fn pair(world: &World, who: &str, seed: u8) -> CompleteResponse {
    let begun = initiate(world).await;
    complete(world, &begun, who, seed).await.unwrap()
}

async fn a_code_leads_to_a_pair(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let status = async || {
        world
            .gateway
            .pairing_status(&world.tenant, Viewer::Enforcer(&robot()), &begun.nonce)
            .await
            .unwrap()
            .progress
    };
    assert_eq!(status().await, Progress::Pending);
    let resolved = world
        .gateway
        .resolve_pairing(&world.tenant, "phone", Some(&approver("ada")), begun.code, &codes())
        .await
        .unwrap();
    assert_eq!((&resolved.nonce, &resolved.public_key), (&begun.nonce, &bundle(1)));
    assert_eq!(status().await, Progress::Resolved);
    let completed = complete(&world, &begun, "ada", 2).await.unwrap();
    assert_eq!(completed.enforcer_label, Some("Robot".parse().unwrap()));
    assert!(
        matches!(status().await, Progress::Completed { routing_token, .. } if routing_token == completed.routing_token)
    );
    assert_eq!(world.gateway.paired_enforcers(&world.tenant, &approver("ada")).await.unwrap(), [robot()]);
}

async fn a_code_is_bound_to_the_first_who_resolves_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let resolve = async |who| {
        world
            .gateway
            .resolve_pairing(&world.tenant, "phone", Some(&approver(who)), begun.code, &codes())
            .await
    };
    resolve("ada").await.unwrap();
    resolve("ada").await.unwrap();
    assert_eq!(status_of(&resolve("eve").await, 200), 404);
    assert_eq!(status_of(&complete(&world, &begun, "eve", 3).await, 200), 404);
    complete(&world, &begun, "ada", 2).await.unwrap();
    assert_eq!(status_of(&complete(&world, &begun, "ada", 2).await, 200), 409);
}

async fn a_code_is_good_for_ten_minutes_and_once(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ada = approver("ada");
    let used = initiate(&world).await;
    complete(&world, &used, "ada", 2).await.unwrap();
    let resolved =
        world.gateway.resolve_pairing(&world.tenant, "phone", Some(&ada), used.code, &codes()).await;
    assert_eq!(status_of(&resolved, 200), 404);
    let late = initiate(&world).await;
    world.at_minute(10).await;
    let resolved =
        world.gateway.resolve_pairing(&world.tenant, "phone", Some(&ada), late.code, &codes()).await;
    assert_eq!(status_of(&resolved, 200), 404);
    assert_eq!(status_of(&complete(&world, &late, "ada", 2).await, 200), 404);
    let status = world.gateway.pairing_status(&world.tenant, Viewer::Enforcer(&robot()), &late.nonce).await;
    assert_eq!(status.unwrap().progress, Progress::Expired);
}

async fn the_sixth_guess_at_a_code_must_wait_even_if_it_is_right(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ada = approver("ada");
    let begun = initiate(&world).await;
    let resolve = async |gateway: &countersign_core::Gateway, principal: &str, code| {
        gateway.resolve_pairing(&world.tenant, principal, Some(&ada), code, &codes()).await
    };
    for _ in 0..5 {
        let wrong = "BBBB-BBBB".parse().unwrap();
        assert_eq!(status_of(&resolve(&world.gateway, "phone", wrong).await, 200), 404);
    }
    assert_eq!(status_of(&resolve(&world.gateway, "phone", begun.code).await, 200), 429);
    let elsewhere = world.second_gateway().await;
    assert_eq!(status_of(&resolve(&elsewhere, "phone", begun.code).await, 200), 429, "every node knows");
    assert_eq!(status_of(&resolve(&world.gateway, "laptop", begun.code).await, 200), 200, "others may");
    world.at_minute(10).await;
    let next = initiate(&world).await;
    assert_eq!(status_of(&resolve(&world.gateway, "phone", next.code).await, 200), 200);
}

async fn a_key_is_good_until_it_is_revoked_and_only_in_its_tenant(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let role = Role::Enforcer(Some(robot()));
    let made = world.gateway.create_key(&world.tenant, role.clone()).await.unwrap();
    let good = async |key: &ApiKey| world.gateway.authenticate(key).await.unwrap();
    assert_eq!(good(&made.key).await, Some(role));
    let id = made.key.key_id().clone();
    let guessed = ApiKey::new(world.tenant.clone(), id.clone(), [0; 32]).unwrap();
    assert_eq!(good(&guessed).await, None);
    let text = made.key.expose();
    assert!(
        !format!("{:?}", world.gateway.keys(&world.tenant).await.unwrap()).contains(&text[text.len() - 72..])
    );
    assert!(world.gateway.keys(&"other".parse().unwrap()).await.unwrap().is_empty());
    assert_eq!(status_of(&world.gateway.revoke_key(&"other".parse().unwrap(), &id).await, 200), 404);
    let at = world.gateway.revoke_key(&world.tenant, &id).await.unwrap();
    assert_eq!(world.gateway.revoke_key(&world.tenant, &id).await.unwrap(), at);
    assert_eq!(good(&made.key).await, None);
}

async fn a_code_is_not_in_the_store(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let code = initiate(&world).await.code;
    let (shown, letters) = (code.to_string(), String::from_utf8(code.letters().to_vec()).unwrap());
    for kind in [Kind::Pairing, Kind::PairingCode] {
        let records = world.gateway.store().scan(&world.tenant, kind, None, 10).await.unwrap();
        assert_eq!(records.len(), 1);
        let kept = format!("{}{}", records[0].key.id, String::from_utf8_lossy(&records[0].content));
        assert!(!kept.contains(&shown) && !kept.contains(&letters), "{kind:?} gives the code away");
    }
}

async fn a_pairing_is_seen_by_its_two_parties_only(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    complete(&world, &begun, "ada", 2).await.unwrap();
    let (ada, eve, stranger) = (approver("ada"), approver("eve"), "stranger".parse().unwrap());
    for (viewer, expected) in
        [(Viewer::Approver(&ada), 200), (Viewer::Approver(&eve), 404), (Viewer::Enforcer(&stranger), 404)]
    {
        let status = world.gateway.pairing_status(&world.tenant, viewer, &begun.nonce).await;
        assert_eq!(status_of(&status, 200), expected, "{viewer:?}");
    }
}

async fn requests_of_a_paired_enforcer_go_to_its_approvers(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    pair(&world, "bob", 3).await;
    world.submit(&request("paired")).await.unwrap();
    world.at_minute(1).await;
    world.submit(&request("other").by("another-robot")).await.unwrap();
    assert_eq!(world.inbox("ada").await, ["paired", "other"]);
    assert_eq!(world.inbox("bob").await, ["paired", "other"]);
    assert_eq!(world.inbox("eve").await, ["other"]);
    world.at_minute(2).await;
    world.submit(&request("addressed").to("eve")).await.unwrap();
    assert_eq!(world.inbox("eve").await, ["other", "addressed"]);
}

async fn a_routing_token_leads_to_its_approver_and_an_unknown_one_nowhere(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let ada = pair(&world, "ada", 2).await;
    pair(&world, "bob", 3).await;
    let trace = |token: &str| format!(r#"{{"routingToken":"{token}","keep":1}}"#);
    let submit = async |id: &str, trace: String| {
        let request = request(id);
        let body = request.body();
        let submission = countersign_core::use_cases::submit::Submission {
            tenant: world.tenant.clone(),
            enforcer: robot(),
            request_id: request.id.clone(),
            body: parse(body.as_bytes()).unwrap(),
            expires_at: None,
            recipient: None,
            trace: Some(RawObject::parse(trace.as_bytes()).unwrap()),
            idempotency_key: None,
        };
        status_of(&world.gateway.submit(submission).await, 202)
    };
    assert_eq!(submit("r", trace(ada.routing_token.as_str())).await, 202);
    assert_eq!(submit("x", trace("made-up")).await, 422);
    assert_eq!((world.inbox("ada").await.len(), world.inbox("bob").await.len()), (1, 0));
    let items = world.list("ada", countersign_core::use_cases::inbox::List::Active, 50).await;
    assert_eq!(items[0].trace.as_deref(), Some(br#"{"keep":1}"#.as_slice()), "approvers never see the token");
}

async fn a_registered_key_makes_the_gateway_check_signatures(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    world.submit(&request("r").to("ada")).await.unwrap();
    let id: RequestId = "r".parse().unwrap();
    let (own, foreign) = (SigningKey::from_seed(&[2; 32]), SigningKey::from_seed(&[9; 32]));
    for key in [None, Some(&foreign)] {
        let bad = decision(&id, "r", "n", key);
        let refused = decide(&world.gateway, &world.tenant, &approver("ada"), &id, &bad).await;
        assert_eq!(status_of(&refused, 200), 403);
        assert_eq!(world.status("r").await.unwrap().state, State::PendingApproval, "nothing has changed");
    }
    let good = decision(&id, "r", "n", Some(&own));
    decide(&world.gateway, &world.tenant, &approver("ada"), &id, &good).await.unwrap();
}

async fn two_completions_of_one_pairing_make_one_pair(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let (one, two) = tokio::join!(complete(&world, &begun, "ada", 2), complete(&world, &begun, "bob", 3));
    let mut statuses = [status_of(&one, 200), status_of(&two, 200)];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 404]);
    world.submit(&request("r")).await.unwrap();
    assert_eq!(world.inbox("ada").await.len() + world.inbox("bob").await.len(), 1);
}

fn prompt(id: &str, text: &str) -> String {
    let unhashed = format!(
        r#"{{"requestId":"{id}","artifactType":"prompt.send","createdAt":"2026-11-15T12:00:00Z","target":"agentChat","text":"{text}","promptHashAlg":"SHA-256"}}"#
    );
    let hash =
        Sha256Hex::of_object_without(RawObject::parse(unhashed.as_bytes()).unwrap(), "promptHash").unwrap();
    unhashed.replacen('{', &format!(r#"{{"promptHash":"{hash}","#), 1)
}

async fn send_prompt(world: &World, id: &str, text: &str) -> Result<AckStatus, Error> {
    let body = prompt(id, text);
    let submission = PromptSubmission {
        sees_all_sessions: false,
        tenant: world.tenant.clone(),
        approver: approver("ada"),
        request_id: id.parse().unwrap(),
        body: parse(body.as_bytes()).unwrap(),
        recipient: None,
        idempotency_key: None,
    };
    world.gateway.send_prompt(submission).await.map(|standing| standing.status)
}

async fn a_prompt_reaches_its_enforcer_and_its_acknowledgement_comes_back(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    assert_eq!(status_of(&send_prompt(&world, "p", "hi").await, 202), 422, "nobody to send it to");
    pair(&world, "ada", 2).await;
    assert_eq!(send_prompt(&world, "p", "hi").await.unwrap(), AckStatus::Queued);
    let reader = countersign_core::delivery::feed::Reader::Enforcer(robot());
    let told = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!(told[0].delivery.msg_type.as_str(), "prompt.send");
    let body =
        world.gateway.store().payloads(&world.tenant, &[told[0].delivery.payload.unwrap()]).await.unwrap();
    assert_eq!(body[0].as_deref(), Some(prompt("p", "hi").as_bytes()));

    let hash: serde_json::Value = serde_json::from_str(&prompt("p", "hi")).unwrap();
    let ack = |status: &str| {
        format!(
            r#"{{"requestId":"p","promptHash":{},"status":"{status}","ackAt":"2026-11-15T12:00:01Z"}}"#,
            hash["promptHash"]
        )
    };
    let acknowledge = async |status| {
        let ack = ack(status);
        world.gateway.acknowledge_prompt(&world.tenant, &robot(), &parse(ack.as_bytes()).unwrap()).await
    };
    acknowledge("delivered").await.unwrap();
    acknowledge("error").await.unwrap();
    assert_eq!(send_prompt(&world, "p", "hi").await.unwrap(), AckStatus::Queued, "the answer that was given");
    let reader = countersign_core::delivery::feed::Reader::Approver(approver("ada"));
    let told = world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap();
    assert_eq!((told.len(), told[0].delivery.msg_type.as_str()), (1, "prompt.ack"), "it never goes back");
}

async fn guesses_at_a_code_that_come_at_once_are_no_more_than_five(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let guesses = (0..40_u8).map(|number| {
        let code = PairingCode::draw(|| number);
        let (gateway, tenant) = (world.gateway.clone(), world.tenant.clone());
        async move {
            let ada = approver("ada");
            status_of(&gateway.resolve_pairing(&tenant, "phone", Some(&ada), code, &codes()).await, 200)
        }
    });
    let statuses = guesses.collect::<JoinSet<u16>>().join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 404).count(), 5, "{statuses:?}");
    assert!(statuses.iter().all(|status| [404, 429].contains(status)), "{statuses:?}");
}

async fn one_key_on_both_sides_is_no_pair_whatever_proof_comes_with_it(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let begun = initiate(&world).await;
    let PublicKey::Bundle(own) = bundle(1) else { unreachable!() };
    let PublicKey::Bundle(other) = bundle(2) else { unreachable!() };
    for stolen in [
        (*own).clone(),
        KeyBundle { proof: Some([7; 32]), ..(*own).clone() },
        KeyBundle { agreement: other.agreement, ..(*own).clone() },
        KeyBundle { signing: other.signing, ..(*own).clone() },
    ] {
        let request = CompleteRequest {
            nonce: begun.nonce.clone(),
            approver_id: approver("ada"),
            public_key: PublicKey::Bundle(Box::new(stolen)),
        };
        let refused = world.gateway.complete_pairing(&world.tenant, &request).await;
        assert_eq!(status_of(&refused, 200), 400);
    }
}

async fn an_approver_registers_no_more_keys_than_it_has_devices(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    for seed in 2..18 {
        pair(&world, "ada", seed).await;
    }
    let begun = initiate(&world).await;
    assert_eq!(status_of(&complete(&world, &begun, "ada", 18).await, 200), 400);
    complete(&world, &begun, "ada", 17).await.unwrap();
}

async fn a_session_that_an_approver_may_not_see_leads_no_prompt_anywhere(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let start =
        r#"{"sessionId":"s","eventType":"session.start","createdAt":"2026-11-15T12:00:00Z","agentHost":"h"}"#;
    let event = parse::<SessionEvent<'_>>(start.as_bytes()).unwrap();
    world.gateway.report_session(&world.tenant, &robot(), &event).await.unwrap();
    let send = async |id: &str, session: &str, sees_all_sessions: bool| {
        let text = format!(
            r#"{{"requestId":"{id}","sessionId":"{session}","target":"agentChat","promptHash":"{}","ciphertext":"c"}}"#,
            Sha256Hex::digest(id.as_bytes())
        );
        let submission = PromptSubmission {
            sees_all_sessions,
            tenant: world.tenant.clone(),
            approver: approver("ada"),
            request_id: id.parse().unwrap(),
            body: parse(text.as_bytes()).unwrap(),
            recipient: None,
            idempotency_key: None,
        };
        status_of(&world.gateway.send_prompt(submission).await, 202)
    };
    assert_eq!(send("p", "s", false).await, send("q", "nowhere", false).await);
    assert_eq!(send("r", "s", true).await, 202, "who may act as any approver sees them all");
    pair(&world, "ada", 2).await;
    assert_eq!(send("t", "s", false).await, 202);
}

async fn whoever_listens_to_a_key_hears_that_it_is_revoked(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let made = world.gateway.create_key(&world.tenant, Role::Operator).await.unwrap();
    let key_id = made.key.key_id().clone();
    let listener = world.gateway.listen_to_key(&world.tenant, key_id.as_str());
    assert!(world.gateway.key_is_active(&world.tenant, key_id.as_str()).await.unwrap());
    assert!(timeout(Duration::from_millis(50), listener.rung()).await.is_err());
    world.gateway.revoke_key(&world.tenant, &key_id).await.unwrap();
    timeout(Duration::from_secs(5), listener.rung()).await.unwrap();
    assert!(!world.gateway.key_is_active(&world.tenant, key_id.as_str()).await.unwrap());
}

async fn a_prompt_with_another_hash_conflicts(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    pair(&world, "ada", 2).await;
    send_prompt(&world, "p", "hi").await.unwrap();
    assert_eq!(status_of(&send_prompt(&world, "p", "ho").await, 202), 409);
}

async fn session_events_are_taken_once_and_not_after_the_end(harness: Box<dyn StoreHarness>) {
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
    assert_eq!(report(status).await.unwrap(), Reported::New, "before the start is fine");
    assert_eq!(report(start).await.unwrap(), Reported::New);
    assert_eq!(report(start).await.unwrap(), Reported::Duplicate);
    assert_eq!(report(older).await.unwrap(), Reported::New);
    assert_eq!(report(&snapshot("one")).await.unwrap(), Reported::New);
    assert_eq!(report(&snapshot("one")).await.unwrap(), Reported::Duplicate);
    assert_eq!(status_of(&report(&snapshot("two")).await, 202), 409);
    let sealed_anew = snapshot("one").replace(r#""ciphertext":"c""#, r#""ciphertext":"d""#);
    assert_eq!(report(&sealed_anew).await.unwrap(), Reported::Duplicate, "the same snapshot, sealed anew");
    let older_start = start.replace("12:00:00Z", "11:00:00Z").replace(r#""h""#, r#""g""#);
    assert_eq!(report(&older_start).await.unwrap(), Reported::New);
    assert_eq!(report(end).await.unwrap(), Reported::New);
    assert_eq!(report(end).await.unwrap(), Reported::Duplicate);
    let late = status.replace("planning", "editing");
    assert_eq!(status_of(&report(&late).await, 202), 409);

    let (ada, eve, id) = (approver("ada"), approver("eve"), "s".parse().unwrap());
    let session = world.gateway.session(&world.tenant, Viewer::Approver(&ada), &id).await.unwrap();
    assert_eq!(session.activity.unwrap().as_str(), "planning", "what is older does not undo what is newer");
    assert_eq!(session.agent_host.as_deref(), Some("h"), "so it is with the start");
    assert!(session.end.is_some() && session.snapshots.len() == 1);
    assert_eq!(status_of(&world.gateway.session(&world.tenant, Viewer::Approver(&eve), &id).await, 200), 404);
    let reader = countersign_core::delivery::feed::Reader::Approver(ada.clone());
    assert_eq!(world.gateway.feed(&world.tenant, &reader, &[]).next().await.unwrap().len(), 6);
    assert!(world.inbox("ada").await.is_empty(), "news is not in the inbox");
}

async fn presence_is_online_for_ten_minutes_after_a_call(harness: Box<dyn StoreHarness>) {
    let world = World::new(harness);
    let says =
        SelfDescription { enforcer_label: Some("Robot".parse().unwrap()), ..SelfDescription::default() };
    world.gateway.record_presence(&world.tenant, &robot(), Transport::Websocket, says).await.unwrap();
    world
        .gateway
        .record_presence(&world.tenant, &robot(), Transport::Poll, SelfDescription::default())
        .await
        .unwrap();
    let seen = world.gateway.presence_of(&world.tenant, &robot()).await.unwrap();
    assert_eq!((seen.status, seen.transport), (Status::Online, Transport::Poll));
    assert_eq!(seen.enforcer_label, Some("Robot".parse().unwrap()));
    // A call within a minute of one that was noted is not noted, and counts for ten minutes all the same.
    world.at_minute(10).await;
    assert_eq!(world.gateway.presence_of(&world.tenant, &robot()).await.unwrap().status, Status::Online);
    world.at_minute(11).await;
    let list = world.gateway.presence_list(&world.tenant).await.unwrap();
    assert_eq!((list.len(), list[0].status), (1, Status::Offline));
    let unknown = world.gateway.presence_of(&world.tenant, &"nobody".parse().unwrap()).await;
    assert_eq!(status_of(&unknown, 200), 404);
}

async fn everything_that_happens_is_in_the_audit(harness: Box<dyn StoreHarness>) {
    let mut world = World::new(harness);
    let recording = crate::recording::Recording::new(world.harness.store());
    world.gateway = super::world::gateway(recording.clone(), &world.doorbell, 1);
    let (ada, robot) = (approver("ada"), robot());
    let id = |text: &str| text.parse::<RequestId>().unwrap();

    let begun = initiate(&world).await;
    world.gateway.resolve_pairing(&world.tenant, "phone", Some(&ada), begun.code, &codes()).await.unwrap();
    complete(&world, &begun, "ada", 2).await.unwrap();
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
    world.gateway.acknowledge(&world.tenant, by, &id("decided"), None).await.unwrap();
    world.gateway.withdraw(&world.tenant, &robot, &id("withdrawn")).await.unwrap();
    world.gateway.cancel(&world.tenant, &id("cancelled")).await.unwrap();
    send_prompt(&world, "p", "hi").await.unwrap();
    let start =
        r#"{"sessionId":"s","eventType":"session.start","createdAt":"2026-11-15T12:00:00Z","agentHost":"h"}"#;
    world.gateway.report_session(&world.tenant, &robot, &parse(start.as_bytes()).unwrap()).await.unwrap();
    world.at_minute(10).await;
    world.gateway.sweep().await.unwrap();

    let committed = recording.take();
    // That a code was tried is a counter and not an event; what came of it is one.
    let happened = |change: &&countersign_core::store::Change| {
        let put = change.puts.iter().any(|put| put.key.kind != Kind::FailedCodeAttempts);
        put || !change.marks.is_empty()
    };
    for change in committed.iter().filter(happened) {
        assert!(!change.audit.is_empty(), "nothing is said of {:?}", change.puts);
    }
    let told: Vec<String> = committed
        .iter()
        .flat_map(|change| &change.audit)
        .map(|row| String::from_utf8(row.event.to_vec()).unwrap())
        .collect();
    for word in [
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
    ] {
        assert!(told.iter().any(|line| line.contains(word)), "{word} is not in the audit: {told:#?}");
    }
    assert!(
        !told.iter().any(|line| line.contains("ciphertext") || line.contains("unchecked")),
        "bodies in the audit"
    );
}
