//! Every schema table of the specification against generated objects: what our readers accept and
//! reject, cross-checked with `schemas/proto.schema.json` by an independent validator.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use countersign_wire::{
    ack, artifact, core_envelope, decision, envelope, exchange, failure, inbox, machine, pairing, parse,
    presence, prompt, refresh, requested_actions, session,
};
use serde_json::{Value, json};

/// One table: a schema, our reader of it, an object with every member, and which of them are required.
struct Table {
    schema: &'static str,
    accepts: fn(&[u8]) -> bool,
    closed: bool,
    required: &'static [&'static str],
    full: Value,
}

impl Table {
    fn minimal(&self) -> Value {
        let members = self.full.as_object().unwrap();
        members.iter().filter(|(name, _)| self.required.contains(&name.as_str())).map(owned).collect()
    }

    fn without(&self, name: &str) -> Value {
        let members = self.full.as_object().unwrap();
        members.iter().filter(|(known, _)| *known != name).map(owned).collect()
    }

    fn with(&self, name: &str, value: Value) -> Value {
        let mut object = self.full.clone();
        object[name] = value;
        object
    }
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

const AT: &str = "2026-02-21T12:00:00Z";
const LATER: &str = "2026-02-21T12:10:00Z";
const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";

macro_rules! table {
    ($schema:ident, $type:ty, $closed:ident, [$($required:literal),*], $full:tt) => {
        Table {
            schema: stringify!($schema),
            accepts: |text| parse::<$type>(text).is_ok(),
            closed: stringify!($closed) == "closed",
            required: &[$($required),*],
            full: json!($full),
        }
    };
}

// CONTRIBUTING: add a message type, step 3
#[expect(clippy::too_many_lines, reason = "a table: one entry per schema")]
fn tables() -> Vec<Table> {
    vec![
        table!(Artifact, artifact::Artifact<'_>, closed,
            ["requestId", "artifactType", "repoRef", "createdAt", "expiresAt", "payload", "artifactHashAlg", "artifactHash"],
            { "requestId": "r", "sessionId": "s", "artifactType": "plan.review", "repoRef": "repo", "baseRevision": "b",
              "createdAt": AT, "expiresAt": LATER, "payload": {"a": 1}, "artifactHashAlg": "SHA-256", "artifactHash": HASH,
              "metadata": {}, "extensions": {} }),
        table!(SealedArtifact, artifact::SealedArtifact<'_>, open, ["artifactType", "artifactHash", "ciphertext"],
            { "artifactType": "command.review", "artifactHash": HASH, "ciphertext": "c", "expiresAt": LATER, "metadata": {} }),
        table!(Decision, decision::Decision<'_>, closed,
            ["requestId", "artifactHashAlg", "artifactHash", "repoRef", "decision", "scope", "expiresAt", "nonce", "sigAlg",
             "signerKeyId", "signature"],
            { "requestId": "r", "artifactHashAlg": "SHA-256", "artifactHash": HASH, "repoRef": "repo", "decision": "approve",
              "scope": "once", "expiresAt": LATER, "nonce": "n", "sigAlg": "Ed25519", "signerKeyId": "k", "signature": "s",
              "policyHints": {} }),
        table!(CoreEnvelope, core_envelope::CoreEnvelope<'_>, closed, ["envelopeId", "msgType", "sender", "recipient", "createdAt", "body"],
            { "envelopeId": "e", "msgType": "artifact.submit", "sender": {"actor": "HE", "deviceId": "d"},
              "recipient": {"actor": "GW", "deviceId": "g"}, "createdAt": AT, "body": {}, "trace": {} }),
        table!(Party, core_envelope::Party, closed, ["actor", "deviceId"], { "actor": "MA", "deviceId": "d" }),
        table!(Envelope, envelope::Envelope<'_>, closed, ["msgType", "requestId", "createdAt", "sender", "body"],
            { "msgId": "m", "msgType": "artifact.submit", "requestId": "r", "createdAt": AT, "expiresAt": LATER,
              "sender": {"enforcerId": "e"}, "recipient": {"approverId": "a"}, "trace": {}, "body": {} }),
        table!(Sender, envelope::Sender, closed, [], { "enforcerId": "e", "approverId": "a", "gatewayId": "g" }),
        table!(Recipient, envelope::Recipient, closed, [], { "enforcerId": "e", "approverId": "a" }),
        table!(ExchangeStatus, exchange::ExchangeStatus<'_>, closed, ["requestId", "state", "createdAt", "expiresAt"],
            { "requestId": "r", "state": "decided", "createdAt": AT, "expiresAt": LATER, "artifactHash": HASH, "decision": {} }),
        table!(Accepted, exchange::Accepted, open, ["requestId", "state"],
            { "requestId": "r", "state": "pendingApproval", "artifactHash": HASH }),
        table!(MessageAck, ack::MessageAck, open, [], { "msgId": "m", "status": "received", "ackAt": AT }),
        table!(AckAccepted, ack::AckAccepted, open, ["requestId"], { "requestId": "r", "msgId": "m" }),
        table!(InboxPage, inbox::InboxPage<envelope::Envelope<'_>>, open, ["items", "nextCursor"], { "items": [], "nextCursor": "c" }),
        table!(RefreshRequest, refresh::RefreshRequest, open, ["msgType", "msgId", "requestId", "createdAt"],
            { "msgType": "refresh.request", "msgId": "m", "requestId": "r", "createdAt": AT, "reason": "stale" }),
        table!(PromptSend, prompt::PromptSend<'_>, closed,
            ["requestId", "artifactType", "createdAt", "target", "text", "promptHashAlg", "promptHash"],
            { "requestId": "r", "sessionId": "s", "repoRef": "repo", "artifactType": "prompt.send", "createdAt": AT,
              "target": "agentChat", "text": "go on", "metadata": {}, "promptHashAlg": "SHA-256", "promptHash": HASH,
              "extensions": {} }),
        table!(SealedPrompt, prompt::SealedPrompt<'_>, open, ["target", "promptHash", "ciphertext"],
            { "requestId": "r", "sessionId": "s", "target": "tool", "promptHash": HASH, "ciphertext": {"a": 1} }),
        table!(PromptAck, prompt::PromptAck<'_>, closed, ["requestId", "promptHash", "status", "ackAt"],
            { "requestId": "r", "promptHash": HASH, "status": "queued", "ackAt": AT, "details": {} }),
        table!(SessionStart, session::SessionEvent<'_>, closed, ["sessionId", "eventType", "createdAt", "agentHost"],
            { "sessionId": "s", "eventType": "session.start", "createdAt": AT, "agentHost": "h", "repoRef": "repo",
              "metadata": {} }),
        table!(SessionSnapshot, session::SessionEvent<'_>, closed,
            ["sessionId", "eventType", "snapshotId", "snapshotType", "createdAt", "payload", "snapshotHashAlg", "snapshotHash"],
            { "sessionId": "s", "eventType": "session.snapshot", "snapshotId": "i", "snapshotType": "diff_summary",
              "createdAt": AT, "payload": {}, "snapshotHashAlg": "SHA-256", "snapshotHash": HASH, "metadata": {} }),
        table!(SessionStatus, session::SessionEvent<'_>, closed, ["sessionId", "eventType", "state", "updatedAt"],
            { "sessionId": "s", "eventType": "session.status", "state": "waiting_approval", "updatedAt": AT, "details": {} }),
        table!(SessionEnd, session::SessionEvent<'_>, closed, ["sessionId", "eventType", "endedAt", "reason"],
            { "sessionId": "s", "eventType": "session.end", "endedAt": AT, "reason": "user_end", "metadata": {} }),
        table!(RequestedActions, requested_actions::RequestedActions, closed, ["version", "actions"],
            { "version": 1, "actions": [{ "id": "go", "caption": "Go", "style": "primary", "decision": "approve" }] }),
        table!(RequestedAction, requested_actions::Action, closed, ["id", "caption", "decision"],
            { "id": "go", "caption": "Go", "style": "danger", "decision": "reject" }),
        table!(PairingInitiateRequest, pairing::InitiateRequest, open, ["enforcerId", "publicKey"],
            { "enforcerId": "e", "enforcerLabel": "l", "workspaceName": "w", "publicKey": "p" }),
        table!(PairingInitiateResponse, pairing::InitiateResponse, open, ["code", "nonce", "expiresAt"],
            { "code": "BCDF-GHJK", "nonce": "n", "expiresAt": LATER }),
        table!(PairingResolveResponse, pairing::ResolveResponse, open, ["nonce", "publicKey"],
            { "nonce": "n", "enforcerId": "e", "enforcerLabel": "l", "workspaceName": "w", "publicKey": "p" }),
        table!(PairingCompleteRequest, pairing::CompleteRequest, open, ["nonce", "approverId", "publicKey"],
            { "nonce": "n", "approverId": "a", "publicKey": "p" }),
        table!(PairingCompleteResponse, pairing::CompleteResponse, open, ["routingToken"],
            { "routingToken": "t", "enforcerLabel": "l", "workspaceName": "w" }),
        table!(PairingStatus, pairing::PairingStatus, open, ["status", "expiresAt", "approverId", "publicKey", "routingToken"],
            { "status": "completed", "expiresAt": LATER, "approverId": "a", "publicKey": "p", "routingToken": "t" }),
        table!(PairingStatus, pairing::PairingStatus, open, ["status", "expiresAt"], { "status": "pending", "expiresAt": LATER }),
        table!(PresenceRecord, presence::PresenceRecord, open, ["enforcerDeviceId", "status", "lastSeenAt", "transport"],
            { "enforcerDeviceId": "e", "status": "online", "lastSeenAt": AT, "transport": "websocket", "workspaceName": "w",
              "enforcerLabel": "l", "capabilities": {"push": true} }),
        table!(Capabilities, presence::Capabilities, open, [], { "push": true, "poll": false, "sse": true }),
        table!(MachineReport, machine::MachineReport, open, ["version", "tool", "policy"],
            { "version": 1, "tool": "0.1.0", "policy": {"state": "none"}, "hooks": {"at": AT, "hosts": []},
              "doctor": {"at": AT, "problems": 0} }),
        table!(MachinePolicy, machine::MachinePolicy, open, ["state"],
            { "state": "inForce", "id": "0123456789ab", "mode": "gate" }),
        table!(MachineHooks, machine::MachineHooks, open, ["at", "hosts"],
            { "at": AT, "hosts": [{"host": "claude", "armed": true}] }),
        table!(MachineHook, machine::MachineHook, open, ["host", "armed"],
            { "host": "claude", "mode": "gate", "keeper": "system", "armed": true }),
        table!(MachineDoctor, machine::MachineDoctor, open, ["at", "problems"], { "at": AT, "problems": 1 }),
        table!(Hello, presence::Hello, open, ["msgType"],
            { "msgType": "hello", "capabilities": {"push": true}, "workspaceName": "w", "enforcerLabel": "l" }),
        table!(TransportError, failure::TransportError, open, ["code", "message", "retryable"],
            { "code": "c", "message": "m", "retryable": false }),
        table!(GatewayError, failure::GatewayError<'_>, open, ["code", "message", "retryable"],
            { "code": "c", "message": "m", "retryable": true, "requestId": "r", "details": {} }),
    ]
}

fn schemas() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/proto.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs `cases` of every table: our reader and the schema must both give the expected result or, without an
/// expectation, the same result.
fn run(cases: impl Fn(&Table) -> Vec<(String, Value, Option<bool>)>) -> usize {
    let document = schemas();
    let mut count = 0;
    for table in tables() {
        let mut schema = document.clone();
        schema["$ref"] = json!(format!("#/$defs/{}", table.schema));
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        for (name, object, expected) in cases(&table) {
            count += 1;
            let ours = (table.accepts)(object.to_string().as_bytes());
            let theirs = validator.is_valid(&object);
            assert_eq!(
                ours, theirs,
                "{}: {name}: ours {ours}, the schema's {theirs}: {object}",
                table.schema
            );
            assert_eq!(ours, expected.unwrap_or(ours), "{}: {name}: {object}", table.schema);
        }
    }
    count
}

fn minimal_and_full(table: &Table) -> Vec<(String, Value, Option<bool>)> {
    let mut cases = vec![
        ("minimal".to_owned(), table.minimal(), Some(true)),
        ("full".to_owned(), table.full.clone(), Some(true)),
    ];
    for name in table.full.as_object().unwrap().keys() {
        if !table.required.contains(&name.as_str()) {
            cases.push((format!("without optional {name}"), table.without(name), Some(true)));
        }
    }
    cases
}

fn missing_member(table: &Table) -> Vec<(String, Value, Option<bool>)> {
    table.required.iter().map(|name| (format!("without {name}"), table.without(name), Some(false))).collect()
}

fn wrong_type(table: &Table) -> Vec<(String, Value, Option<bool>)> {
    let kinds =
        [json!(null), json!(true), json!(7), json!(0.5), json!("x"), json!([]), json!([{}]), json!({})];
    let mut cases = Vec::new();
    for (name, good) in table.full.as_object().unwrap() {
        for wrong in &kinds {
            let two_types = name == "ciphertext" || name == "nextCursor";
            if std::mem::discriminant(wrong) != std::mem::discriminant(good) {
                let expected = if two_types { None } else { Some(false) };
                cases.push((format!("{name} is {wrong}"), table.with(name, wrong.clone()), expected));
            }
        }
    }
    cases
}

fn unknown_member(table: &Table) -> Vec<(String, Value, Option<bool>)> {
    let first = table.full.as_object().unwrap().keys().next().unwrap();
    [json!("x"), json!(null), json!({})]
        .iter()
        .flat_map(|value| {
            ["unknown".to_owned(), String::new(), first.to_uppercase(), format!("{first} ")]
                .map(|name| (format!("with {name:?}"), table.with(&name, value.clone()), Some(!table.closed)))
        })
        .collect()
}

fn odd_value(table: &Table) -> Vec<(String, Value, Option<bool>)> {
    let strings = [
        "",
        " ",
        "no such word",
        "APPROVE",
        "Ed25519 ",
        "sha-256",
        "2026-02-21",
        "2026-02-30T12:00:00Z",
        "2026-02-21T12:00:00",
        "2026-02-21 12:00:00Z",
        "2026-02-21t12:00:00.5+01:00",
        "line\nbreak",
        "nul\u{0}",
        "\u{202e}backwards",
        "é😀",
    ];
    let upper_hash = HASH.to_uppercase();
    let long =
        [&"x".repeat(256), &"x".repeat(257), &"x".repeat(512), &"x".repeat(513), &HASH[1..], &upper_hash];
    let mut cases = Vec::new();
    for (name, good) in table.full.as_object().unwrap() {
        let odd: Vec<Value> = match good {
            Value::String(_) => {
                strings.iter().chain(&long.map(|text| text as &str)).map(|text| json!(text)).collect()
            }
            Value::Number(_) => vec![json!(0), json!(1.0), json!(1.5), json!(2), json!(-1)],
            Value::Array(items) => {
                let Some(item) = items.first() else { continue };
                let several = |count: usize| {
                    let differing = |index| {
                        let mut item = item.clone();
                        item["id"] = json!(format!("go{index}"));
                        item
                    };
                    (0..count).map(differing).collect::<Value>()
                };
                vec![json!([]), json!(["x"]), several(5), several(6)]
            }
            _ => continue,
        };
        cases.extend(odd.into_iter().map(|value| (format!("{name} is odd"), table.with(name, value), None)));
    }
    cases
}

#[test]
fn minimal_and_full_objects_are_accepted() {
    assert!(run(minimal_and_full) >= 100);
}

#[test]
fn a_missing_required_member_is_refused() {
    assert!(run(missing_member) >= 100);
}

#[test]
fn a_member_of_the_wrong_type_is_refused() {
    assert!(run(wrong_type) >= 500);
}

#[test]
fn an_unknown_member_is_refused_exactly_where_the_table_is_closed() {
    assert!(run(unknown_member) >= 100);
}

#[test]
fn odd_values_are_accepted_exactly_where_the_schemas_accept_them() {
    assert!(run(odd_value) >= 500);
}

#[test]
fn the_schemas_are_valid_schemas() {
    jsonschema::meta::validate(&schemas()).unwrap();
}

#[test]
fn every_schema_of_the_file_is_run() {
    let run: Vec<&str> = tables().iter().map(|table| table.schema).collect();
    let parts_of_others = [
        "Id",
        "Timestamp",
        "Sha256",
        "Label",
        "PublicKey",
        "Ciphertext",
        "State",
        "DecisionValue",
        "SessionEvent",
    ];
    for name in schemas()["$defs"].as_object().unwrap().keys() {
        assert!(
            run.contains(&name.as_str()) || parts_of_others.contains(&name.as_str()),
            "{name} is never run"
        );
    }
}

#[test]
fn the_refusal_names_the_member() {
    let text = br#"{"msgType":"x","requestId":"r","createdAt":"2026-02-21T12:00:00Z","sender":{"enforcerId":7},"body":{}}"#;
    let Err(error) = parse::<envelope::Envelope<'_>>(text) else { panic!("accepted") };
    assert_eq!(error.to_string(), "sender.enforcerId is not a string");

    let actions = br#"{"version":1,"actions":[{"id":"a","caption":"A","decision":"approve"},{"id":"b","caption":"B","decision":"maybe"}]}"#;
    let Err(error) = parse::<requested_actions::RequestedActions>(actions) else { panic!("accepted") };
    assert_eq!(error.to_string(), "actions[1].decision is none of approve reject");

    let secret = br#"{"msgType":"x","requestId":"r","createdAt":"my secret","sender":{},"body":{}}"#;
    let Err(error) = parse::<envelope::Envelope<'_>>(secret) else { panic!("accepted") };
    assert_eq!(error.to_string(), "createdAt is not an RFC 3339 date and time");
}

#[test]
fn capabilities_keep_any_value_under_a_namespaced_key_and_ignore_other_keys() {
    let mut schema = schemas();
    schema["$ref"] = json!("#/$defs/Capabilities");
    let validator = jsonschema::validator_for(&schema).unwrap();
    for value in [json!(null), json!(7), json!("x"), json!([{}]), json!({ "a": [1.0] })] {
        let text = json!({ "push": true, "org.example.key": value, "unknown": value });
        assert!(validator.is_valid(&text), "{text}");
        let read = parse::<presence::Capabilities>(text.to_string().as_bytes()).unwrap().into_view();
        assert_eq!(serde_json::to_value(&read).unwrap(), json!({ "push": true, "org.example.key": value }));
    }
}
