//! What is said about payloads: the cases are in the file already, and what belongs to them is written anew.

use countersign_client::payload::Payload;
use countersign_wire::RawObject;
use serde_json::{Value, json};

const FILE: &str = "vectors/sentences.json";

pub(super) fn document() -> Value {
    let mut document: Value = serde_json::from_slice(&std::fs::read(FILE).unwrap()).unwrap();
    for case in document["cases"].as_array_mut().unwrap() {
        let payload = case["payload"].to_string();
        let artifact_type = case["artifactType"].as_str().unwrap().parse().unwrap();
        let payload = Payload::read(artifact_type, &RawObject::parse(payload.as_bytes()).unwrap());
        case["sentence"] = payload.sentence().into();
        let found = payload.found().into_iter();
        case["found"] = found.map(|it| json!({ "text": it.text, "weight": it.weight.as_str() })).collect();
    }
    document
}
