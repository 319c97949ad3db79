//! Lies about what was decided.

use std::{collections::BTreeMap, sync::Arc};

use countersign_client::{
    clock::{Clock as _, SystemClock},
    enforcer::{AskError, Enforcer},
    journal::FileJournal,
    keys::DeviceKeys,
    reply::{VerifiedDecision, decide},
    request::{OpenedRequest, Request},
};
use countersign_wire::{
    decision::{Decision, DecisionOutcome},
    parse,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{EXCHANGES, Scene, choice, rounds};
use crate::support::evil::Given;

/// One exchange, with the decision that the approver has signed.
struct Decided {
    request: Request,
    opened: OpenedRequest,
    decision: Value,
    outcome: DecisionOutcome,
}

/// What became of a lie: the kind of the error, or `accepted`.
fn kind(result: &Result<VerifiedDecision, AskError>) -> String {
    match result {
        Ok(_) => "accepted".to_owned(),
        Err(AskError::Rejected(rejected)) => format!("{rejected:?}"),
        Err(other) => format!("{other:?}"),
    }
}

/// The gateway's answer to whoever waits.
fn envelope(request: &Request, decision: &Value) -> Vec<u8> {
    json!({
        "msgType": "decision.deliver", "requestId": request.request_id, "createdAt": SystemClock.now(),
        "sender": { "gatewayId": "gw" }, "body": decision,
    })
    .to_string()
    .into_bytes()
}

impl Scene {
    /// Exchanges that were decided in turn with yes and no. The gateway has kept what it saw, and the enforcer has not
    /// asked for any of them yet.
    async fn decided(&self, count: usize) -> Vec<Decided> {
        let seen: Arc<Mutex<BTreeMap<String, Value>>> = Arc::default();
        let keeping = seen.clone();
        self.evil.forth(move |asked| {
            if asked.path == "/v1/decisions" {
                let mut envelope: Value = serde_json::from_slice(&asked.body).unwrap();
                let id = envelope["requestId"].as_str().unwrap().to_owned();
                keeping.lock().insert(id, envelope["body"].take());
            }
            None
        });
        let mut requests = BTreeMap::new();
        for number in 0..count {
            let request = self.submit(number).await;
            requests.insert(request.request_id.clone(), request);
        }
        let mut decided = Vec::new();
        for (number, item) in self.ada.inbox(&self.adas).await.unwrap().into_iter().enumerate() {
            let opened = item.opened.unwrap();
            let outcome = [DecisionOutcome::Approve, DecisionOutcome::Reject][number % 2];
            self.ada.decide(&opened, &choice(outcome)).await.unwrap();
            let request = requests.remove(&opened.request_id).unwrap();
            let decision = seen.lock().remove(request.request_id.as_str()).unwrap();
            decided.push(Decided { request, opened, decision, outcome });
        }
        assert_eq!((decided.len(), requests.len()), (count, 0));
        decided
    }

    /// Lets the enforcer wait, and answers it with these bytes.
    async fn answered(&self, robot: &Enforcer, request: &Request, given: Given) -> String {
        self.evil.forth(move |asked| asked.path.contains("/wait").then(|| given.clone()));
        kind(&robot.wait(request, &self.robots).await)
    }

    /// Lets the enforcer wait, and answers it with this decision.
    async fn decision_given(&self, request: &Request, decision: &Value) -> String {
        self.answered(&self.robot, request, Given::invented(200, envelope(request, decision))).await
    }

    /// The enforcer after a restart: everything that it knows is in its files.
    fn restarted(&self) -> Enforcer {
        let keys = DeviceKeys::from_secret(&self.robot.keys.to_secret()).unwrap();
        let journal = Arc::new(FileJournal::new(self.world.data.path().join("journal")));
        let (http, id) = (self.robot.http.clone(), self.robot.id.clone());
        Enforcer { http, id, keys, clock: Arc::new(SystemClock), journal }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_of_one_exchange_is_refused_in_every_other_one_and_counts_once_in_its_own() {
    let scene = Scene::start().await;
    let decided = scene.decided(EXCHANGES).await;
    let mut attempts = 0;
    for (mine, own) in decided.iter().enumerate() {
        for other in decided.iter().enumerate().filter(|(at, _)| *at != mine).map(|(_, other)| other) {
            let is_same_repository = own.request.repo_ref == other.request.repo_ref;
            let mut lie = other.decision.clone();
            // It is made to fit better and better, until only the signature is wrong.
            let steps = [
                (None, "OtherRequest"),
                (Some("requestId"), "OtherContent"),
                (Some("artifactHash"), if is_same_repository { "Signature" } else { "OtherRepository" }),
                (Some("repoRef"), "Signature"),
            ];
            for (member, expected) in steps {
                if let Some(member) = member {
                    lie[member] = own.decision[member].clone();
                }
                assert_eq!(scene.decision_given(&own.request, &lie).await, expected, "{member:?}");
                attempts += 1;
            }
            for member in ["signature", "policyHints"] {
                let mut lie = own.decision.clone();
                lie[member] = other.decision[member].clone();
                assert_eq!(scene.decision_given(&own.request, &lie).await, "Signature", "{member}");
                attempts += 1;
            }
        }
    }
    assert_eq!(attempts, EXCHANGES * (EXCHANGES - 1) * 6);
    // None of it has used anything up: what was really decided is accepted, once.
    scene.evil.honest();
    for own in &decided {
        let decision = scene.robot.wait(&own.request, &scene.robots).await.unwrap();
        assert_eq!(decision.outcome, own.outcome);
    }
    let restarted = scene.restarted();
    for own in &decided {
        let another = decide(
            &own.opened,
            &choice(DecisionOutcome::Approve),
            &scene.ada.id,
            &scene.ada.keys,
            SystemClock.now(),
        );
        let another: Value = serde_json::from_str(&another.unwrap()).unwrap();
        for robot in [&scene.robot, &restarted] {
            for (decision, expected) in [(&own.decision, "Replayed"), (&another, "Settled")] {
                let given = Given::invented(200, envelope(&own.request, decision));
                assert_eq!(scene.answered(robot, &own.request, given).await, expected);
                attempts += 1;
            }
        }
    }
    assert_eq!(attempts, EXCHANGES * (EXCHANGES - 1) * 6 + EXCHANGES * 4);
}

/// Every way to change one member: its path, what it becomes (`None` takes it away), and what the enforcer says.
fn changes(decision: &Value) -> Vec<(Vec<&'static str>, Option<Value>, &'static str)> {
    let flipped = match decision["decision"].as_str().unwrap() {
        "approve" => "reject",
        _ => "approve",
    };
    let later = SystemClock.now().plus(std::time::Duration::from_hours(48));
    let earlier = SystemClock.now().plus(std::time::Duration::from_secs(90));
    let other_hash = "0".repeat(64);
    let set = |path: &[&'static str], value: Value, expected| (path.to_vec(), Some(value), expected);
    let mut changes = vec![
        set(&["decision"], flipped.into(), "Signature"),
        set(&["decision"], "APPROVE".into(), "Malformed"),
        set(&["scope"], "timebox".into(), "Signature"),
        set(&["scope"], "session".into(), "Signature"),
        set(&["scope"], "always".into(), "Malformed"),
        set(&["expiresAt"], json!(later), "Signature"),
        set(&["expiresAt"], json!(earlier), "Signature"),
        set(&["expiresAt"], "2020-01-01T00:00:00Z".into(), "Signature"),
        set(&["requestId"], "another".into(), "OtherRequest"),
        set(&["artifactHash"], other_hash.as_str().into(), "OtherContent"),
        set(&["artifactHashAlg"], "SHA-1".into(), "Malformed"),
        set(&["repoRef"], "repo:another".into(), "OtherRepository"),
        set(&["nonce"], "AAAAAAAAAAAAAAAAAAAAAA".into(), "Signature"),
        set(&["sigAlg"], "none".into(), "Malformed"),
        set(&["signature"], "".into(), "Malformed"),
        set(&["signature"], "A".repeat(86).into(), "Signature"),
        set(
            &["signerKeyId"],
            DeviceKeys::generate().unwrap().fingerprint().to_string().into(),
            "UnknownSigner",
        ),
        set(&["signerKeyId"], "nobody".into(), "UnknownSigner"),
        set(&["policyHints"], json!({}), "Signature"),
        set(&["policyHints", "sessionId"], "s".into(), "Signature"),
        set(&["policyHints", "sealed", "content"], "AAAA".into(), "Signature"),
        set(&["policyHints", "sealed", "nonce"], "AAAAAAAAAAAAAAAA".into(), "Signature"),
        set(&["policyHints", "sealed", "recipients"], json!([]), "Signature"),
        (vec!["policyHints"], None, "Signature"),
        (vec!["policyHints", "sealed"], None, "Signature"),
    ];
    for member in ["requestId", "artifactHash", "repoRef", "decision", "scope", "expiresAt", "nonce"] {
        changes.push((vec![member], None, "Malformed"));
        changes.push(set(&[member], Value::Null, "Malformed"));
    }
    for member in ["artifactHashAlg", "sigAlg", "signerKeyId", "signature"] {
        changes.push((vec![member], None, "Malformed"));
        changes.push(set(&[member], json!(1), "Malformed"));
    }
    changes
}

fn changed(decision: &Value, path: &[&str], value: Option<&Value>) -> Value {
    let mut lie = decision.clone();
    let (last, outer) = path.split_last().unwrap();
    let object = outer.iter().fold(&mut lie, |at, name| &mut at[*name]).as_object_mut().unwrap();
    match value {
        Some(value) => drop(object.insert((*last).to_owned(), value.clone())),
        None => assert!(object.remove(*last).is_some(), "{path:?}"),
    }
    lie
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_with_anything_changed_is_refused() {
    let scene = Scene::start().await;
    let decided = scene.decided(2).await;
    let (mut attempts, mut number) = (0, 1_u64);
    for own in &decided {
        for (path, value, expected) in changes(&own.decision) {
            let lie = changed(&own.decision, &path, value.as_ref());
            assert_eq!(scene.decision_given(&own.request, &lie).await, expected, "{path:?} {value:?}");
            attempts += 1;
        }
        // Any byte of it, changed to any other one that the envelope can contain.
        let text = envelope(&own.request, &own.decision);
        let start = text.windows(8).position(|part| part == b"\"body\":{").unwrap() + 7;
        let end = start + own.decision.to_string().len();
        for round in 0..rounds() / 2 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let seed = usize::try_from(number >> 33).unwrap();
            let (at, byte) = (start + seed % (end - start), b' ' + u8::try_from(seed / 4_096 % 95).unwrap());
            let mut lie = text.clone();
            if lie[at] == byte {
                continue;
            }
            lie[at] = byte;
            let said = scene.answered(&scene.robot, &own.request, Given::invented(200, lie.clone())).await;
            let expected = ["Malformed", "OtherRequest", "OtherContent", "OtherRepository", "UnknownSigner"];
            let is_refused =
                expected.contains(&said.as_str()) || said == "Signature" || said == "Call(NotUnderstood)";
            assert!(is_refused, "round {round}: {said}, byte {at} of {}", String::from_utf8_lossy(&lie));
            attempts += 1;
        }
    }
    assert!(attempts >= 80 + rounds() / 2, "{attempts} attempts");
    scene.evil.honest();
    for own in &decided {
        assert_eq!(scene.robot.wait(&own.request, &scene.robots).await.unwrap().outcome, own.outcome);
    }
}

/// Signs again with another key, under a name.
fn signed(decision: &Value, name: &str, keys: &DeviceKeys) -> Value {
    let text = decision.to_string();
    let mut read = parse::<Decision<'_>>(text.as_bytes()).unwrap().into_view();
    name.clone_into(&mut read.signer_key_id);
    serde_json::to_value(read.sign(&keys.signing_key()).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_the_gateway_has_invented_is_refused() {
    let scene = Scene::start().await;
    let decided = scene.decided(4).await;
    let mut attempts = 0;
    for round in 0..rounds() / 4 {
        let (own, gateway) = (&decided[round % 4], DeviceKeys::generate().unwrap());
        // It knows everything that is sealed, so its decision is perfect but for the key.
        let invented = decide(
            &own.opened,
            &choice(DecisionOutcome::Approve),
            &scene.ada.id,
            &gateway,
            SystemClock.now(),
        );
        let invented: Value = serde_json::from_str(&invented.unwrap()).unwrap();
        let ada = scene.ada.keys.fingerprint().to_string();
        let robot = scene.robot.keys.fingerprint().to_string();
        for (lie, expected) in [
            (signed(&invented, &ada, &gateway), "Signature"),
            (signed(&own.decision, &ada, &gateway), "Signature"),
            (signed(&invented, &robot, &gateway), "UnknownSigner"),
            (invented, "UnknownSigner"),
        ] {
            assert_eq!(scene.decision_given(&own.request, &lie).await, expected);
            attempts += 1;
        }
    }
    // A bare claim that there is an approval.
    let own = &decided[0].request;
    for (state, expected) in
        [("approved", "TakenBack"), ("decided", "TakenBack"), ("", "TakenBack"), ("expired", "Expired")]
    {
        let headers = vec![format!("proto-exchange-state: {state}")];
        let given = Given { status: 204, headers, body: Vec::new() };
        assert_eq!(scene.answered(&scene.robot, own, given).await, expected, "{state}");
        attempts += 1;
    }
    for body in ["", "{}", "true", r#"{"decision":"approve"}"#, r#"{"body":{"decision":"approve"}}"#] {
        let said = scene.answered(&scene.robot, own, Given::invented(200, body)).await;
        assert_eq!(said, "Call(NotUnderstood)", "{body}");
        attempts += 1;
    }
    assert_eq!(attempts, rounds() / 4 * 4 + 9);
    // Answers that are lost are asked for again.
    let lost = Arc::new(Mutex::new(0));
    let losing = lost.clone();
    scene.evil.honest();
    scene.evil.back(move |asked, given| {
        let mut lost = losing.lock();
        let is_lost = asked.path.contains("/wait") && *lost < 2;
        *lost += usize::from(is_lost);
        (!is_lost).then_some(given)
    });
    assert_eq!(kind(&scene.robot.wait(own, &scene.robots).await), "accepted");
    assert_eq!(*lost.lock(), 2);
}
