//! What an open artifact may carry under `extensions`.

use countersign_wire::{
    artifact::{Artifact, ArtifactSubmit},
    parse,
};
use serde_json::{Value, json};

fn artifact(extensions: &Value) -> String {
    json!({
        "requestId": "r", "artifactType": "command.review", "repoRef": "repo", "createdAt": "2026-02-21T12:00:00Z",
        "expiresAt": "2026-02-21T12:10:00Z", "payload": {}, "artifactHashAlg": "SHA-256",
        "artifactHash": "0".repeat(64), "extensions": extensions,
    })
    .to_string()
}

fn actions(ids: &[&str]) -> Value {
    let actions: Vec<Value> =
        ids.iter().map(|id| json!({ "id": id, "caption": "c", "decision": "approve" })).collect();
    json!({ "org.proto.requestedActions": { "version": 1, "actions": actions } })
}

fn refusal(extensions: &Value) -> Option<String> {
    parse::<ArtifactSubmit<'_>>(artifact(extensions).as_bytes()).err().map(|error| error.to_string())
}

#[test]
fn one_to_five_actions_with_different_ids_are_accepted() {
    assert_eq!(refusal(&actions(&["a"])), None);
    assert_eq!(refusal(&actions(&["a", "b", "c", "d", "e"])), None);
    assert_eq!(refusal(&json!({})), None);
    assert_eq!(refusal(&json!({ "com.example.anything": [1, 2] })), None);
}

#[test]
fn too_many_too_few_or_equal_actions_are_refused() {
    let place = "extensions.org.proto.requestedActions.actions";
    assert_eq!(refusal(&actions(&[])).unwrap(), format!("{place} must be 1 to 5 items"));
    assert_eq!(
        refusal(&actions(&["a", "b", "c", "d", "e", "f"])).unwrap(),
        format!("{place} must be 1 to 5 items")
    );
    assert_eq!(refusal(&actions(&["go", "Go"])).unwrap(), format!("{place} has the same id twice"));
    assert_eq!(refusal(&actions(&["É", "é"])).unwrap(), format!("{place} has the same id twice"));
}

#[test]
fn a_key_without_a_namespace_is_refused() {
    let refusal = refusal(&json!({ "plain": 1 })).unwrap();
    assert_eq!(refusal, "extensions has a key without a namespace, such as org.example.key");
}

#[test]
fn an_approver_can_still_read_an_artifact_with_broken_actions() {
    let text = artifact(&json!({ "org.proto.requestedActions": { "version": 2, "actions": "?" } }));
    let artifact = parse::<Artifact<'_>>(text.as_bytes()).unwrap();
    assert!(artifact.requested_actions().is_err());
}
