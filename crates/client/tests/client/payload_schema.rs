//! Our readers of payloads against `schemas/payload.schema.json`, by an independent validator: full and minimal objects,
//! each with a member missing, unknown, of another type or of an odd value.

use countersign_client::payload::{BoundRole, EffectKind, FileRole, FileStatus, Payload, State};
use countersign_wire::{RawObject, artifact::ArtifactType, hash::Sha256Hex};
use serde_json::{Value, json};

const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";
const DIFF: &str = "@@ -1 +1,2 @@\n-a\n+b\n+c\n";

/// A schema, the artifact type that it is for, and an object with every member.
struct Table {
    schema: &'static str,
    artifact_type: ArtifactType,
    full: Value,
}

fn tables() -> Vec<Table> {
    let marker = |mut object: Value| {
        object["schema"] = json!("org.proto.payload");
        object["version"] = json!(2);
        object["words"] = json!("I tidy up");
        object
    };
    let effects = json!([{ "effect": "deletes", "detail": "build" }]);
    let table = |schema, artifact_type, full| Table { schema, artifact_type, full: marker(full) };
    let command = json!({ "cwd": "/", "env": [{ "name": "CI", "value": "1" }], "stdin": { "digest": HASH, "size": 7 },
        "files": [{ "path": "a.sh", "role": "script", "digest": Sha256Hex::digest(b"ls"), "size": 2, "content": "ls" }],
        "effects": effects, "state": "examined" });
    let with = |mut object: Value, name: &str, value: Value| {
        object[name] = value;
        object
    };
    let plan = json!({ "text": "# Plan", "steps": ["one"], "effects": effects });
    vec![
        table("Command", ArtifactType::CommandReview, with(command.clone(), "argv", json!(["ls", ""]))),
        table("Command", ArtifactType::CommandReview, with(command, "shell", json!("ls"))),
        table(
            "Patch",
            ArtifactType::PatchReview,
            json!({ "diff": DIFF, "effects": effects, "files": [
                { "path": "a", "status": "renamed", "previousPath": "b", "added": 2, "removed": 1, "baseDigest": HASH, "resultDigest": HASH },
                { "path": "n", "status": "added", "added": 0, "removed": 0, "resultDigest": HASH },
                { "path": "d", "status": "deleted", "added": 0, "removed": 0, "baseDigest": HASH } ] }),
        ),
        table("Plan", ArtifactType::PlanReview, plan.clone()),
        table("Task", ArtifactType::TaskReview, plan.clone()),
        table("Task", ArtifactType::TaskReview, with(with(plan, "state", json!("opaque")), "call", call())),
        table(
            "Checkpoint",
            ArtifactType::CheckpointReview,
            json!({ "summary": "half", "changes": ["one"], "earlier": [{ "requestId": "r", "artifactHash": HASH }], "effects": effects }),
        ),
    ]
}

fn call() -> Value {
    json!({ "kind": "hook.claude", "moment": "PreToolUse", "tool": "Bash", "folder": "/w", "repository": "/w",
        "message": { "a": 1 }, "aside": { "/b": 2 }, "digest": HASH,
        "environment": [{ "name": "CI", "value": "1" }, { "name": "TOKEN", "mac": HASH }],
        "files": [{ "path": "/w/a", "role": "before", "digest": HASH }, { "path": "/w/b", "role": "operand" }], "shown": [] })
}

fn document() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/payload.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn validator(schema: &str) -> jsonschema::Validator {
    let mut document = document();
    document["$ref"] = json!(format!("#/$defs/{schema}"));
    jsonschema::options().build(&document).unwrap()
}

fn accepts(artifact_type: ArtifactType, object: &Value) -> bool {
    let text = object.to_string();
    !matches!(Payload::read(artifact_type, &RawObject::parse(text.as_bytes()).unwrap()), Payload::Raw(_))
}

/// The JSON pointers of every value in an object.
fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let name = name.replace('/', "~1");
                into.push(format!("{at}/{name}"));
                pointers(value, &format!("{at}/{name}"), into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                into.push(format!("{at}/{index}"));
                pointers(value, &format!("{at}/{index}"), into);
            }
        }
        _ => {}
    }
}

/// Every change of one place: without it, and with another value.
fn variants(full: &Value) -> Vec<(String, Value)> {
    let mut places = Vec::new();
    pointers(full, "", &mut places);
    let mut variants = vec![("full".to_owned(), full.clone())];
    for place in &places {
        let (parent, name) = place.rsplit_once('/').unwrap();
        let mut without = full.clone();
        if let Some(Value::Object(members)) = without.pointer_mut(parent) {
            members.remove(&name.replace("~1", "/"));
            variants.push((format!("without {place}"), without));
        }
        for value in values() {
            let mut changed = full.clone();
            *changed.pointer_mut(place).unwrap() = value.clone();
            variants.push((format!("{place} is {value}"), changed));
        }
    }
    for place in places.iter().map(String::as_str).chain([""]) {
        let mut with = full.clone();
        if let Some(Value::Object(members)) = with.pointer_mut(place) {
            members.insert("unknown".to_owned(), json!(1));
            variants.push((format!("{place} with an unknown member"), with));
        }
    }
    variants
}

fn values() -> Vec<Value> {
    let words = [
        "",
        "x",
        "a=b",
        "org.proto.payload",
        "ls",
        "line\nbreak",
        HASH,
        "modified",
        "added",
        "copied",
        "network",
    ];
    let mut values: Vec<Value> = words.map(|word| json!(word)).to_vec();
    values.extend([json!(null), json!(true), json!(0), json!(1.0), json!(1.5), json!(-1), json!(2)]);
    values.extend([
        json!(9_007_199_254_740_992_u64),
        json!([]),
        json!([""]),
        json!(["x"]),
        json!([{}]),
        json!({}),
    ]);
    values
}

/// Rules that a schema can't say: digests and sizes of contents, the lines of a diff, order, and whether claims hold.
fn breaks_a_rule_beyond_the_schema(object: &Value) -> bool {
    let files = object["files"].as_array();
    let lies = |file: &Value| {
        file["content"].as_str().is_some_and(|content| {
            file["digest"] != json!(Sha256Hex::digest(content.as_bytes()))
                || file["size"].as_f64() != Some(2.0)
                || content.len() != 2
        })
    };
    let sum = |name: &str| files.into_iter().flatten().filter_map(|file| file[name].as_f64()).sum::<f64>();
    let counts = object["diff"] == json!(DIFF) && (sum("added"), sum("removed")) == (2.0, 1.0);
    let claims =
        object.pointer("/call/shown").and_then(Value::as_array).is_some_and(|claims| !claims.is_empty());
    let names = |at: usize| object.pointer(&format!("/call/environment/{at}/name")).and_then(Value::as_str);
    let is_unsorted = names(0).zip(names(1)).is_some_and(|(one, next)| one >= next);
    let lies = files.is_some_and(|files| files.iter().any(lies)) || !object["diff"].is_null() && !counts;
    lies || claims || is_unsorted
}

#[test]
fn our_readers_and_the_schema_agree() {
    let mut count = 0;
    for table in tables() {
        let validator = validator(table.schema);
        assert!(validator.is_valid(&table.full), "{}", table.full);
        for (name, object) in variants(&table.full) {
            count += 1;
            let (ours, theirs) = (accepts(table.artifact_type, &object), validator.is_valid(&object));
            let expected = theirs && !breaks_a_rule_beyond_the_schema(&object);
            assert_eq!(ours, expected, "{}: {name}: the schema says {theirs}: {object}", table.schema);
        }
    }
    assert!(count > 2_000, "{count}");
}

#[test]
fn the_schema_has_the_same_words() {
    let document = document();
    let words = |pointer: &str| document.pointer(pointer).unwrap().clone();
    let ours = |words: &[&str]| json!(words);
    let effects: Vec<&str> = EffectKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(words("/$defs/Effect/properties/effect/enum"), ours(&effects));
    let statuses: Vec<&str> = FileStatus::ALL.iter().map(|status| status.as_str()).collect();
    assert_eq!(words("/$defs/PatchFile/properties/status/enum"), ours(&statuses));
    let states: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    assert_eq!(words("/$defs/State/enum"), ours(&states));
    let roles: Vec<&str> = BoundRole::ALL.iter().map(|role| role.as_str()).collect();
    assert_eq!(words("/$defs/BoundFile/properties/role/enum"), ours(&roles));
    let roles: Vec<&str> = FileRole::ALL.iter().map(|role| role.as_str()).collect();
    assert_eq!(words("/$defs/CommandFile/properties/role/enum"), ours(&roles));
}

/// The examples of docs/payloads.md are payloads, and valid.
#[test]
fn the_examples_in_the_documentation_are_payloads() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/payloads.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut seen = Vec::new();
    for section in page.split("\n## ").skip(1) {
        let Some(artifact_type) =
            ArtifactType::ALL.iter().find(|kind| section.starts_with(&format!("`{kind}`")))
        else {
            continue;
        };
        let (_, example) = section.split_once("```json\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        let example: Value = serde_json::from_str(example).unwrap();
        assert!(accepts(*artifact_type, &example), "{artifact_type}");
        let schema = match artifact_type {
            ArtifactType::CommandReview => "Command",
            ArtifactType::PatchReview => "Patch",
            ArtifactType::PlanReview | ArtifactType::TaskReview => "Plan",
            ArtifactType::CheckpointReview => "Checkpoint",
        };
        assert!(validator(schema).is_valid(&example), "{artifact_type}");
        seen.push(schema);
    }
    assert_eq!(seen, ["Command", "Patch", "Plan", "Checkpoint"]);
}
