//! Every status that the OpenAPI document names was seen, and none that it does not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::world::World;

/// Statuses that every endpoint can return and that a test can't cause on each: rate limited, internal error, store
/// unavailable. They have tests of their own.
const ANY_ENDPOINT: [u16; 3] = [429, 500, 503];

/// The specification lets every endpoint return these; on these endpoints nothing can cause them.
const NEVER: [(&str, u16); 8] = [
    ("/v1/exchanges/{requestId}", 403),
    ("/v1/pairing/status/{nonce}", 403),
    ("/v1/presence/enforcers", 400),
    ("/v1/presence/enforcers", 403),
    ("/v1/presence/enforcers/{enforcerDeviceId}", 403),
    ("/v1/session/{sessionId}", 403),
    ("/v1/status", 400),
    ("/v1/status", 403),
];

pub fn check(worlds: &[Arc<World>]) -> bool {
    let document: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    let mut documented: BTreeMap<(String, String), BTreeSet<u16>> = BTreeMap::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(responses) = operation["responses"].as_object() else { continue };
            let statuses = responses.keys().map(|status| status.parse().unwrap()).collect();
            documented.insert((method.to_uppercase(), path.clone()), statuses);
        }
    }
    let mut seen: BTreeMap<(String, String), BTreeSet<u16>> = BTreeMap::new();
    let mut undocumented = BTreeSet::new();
    for world in worlds {
        for (method, path, status) in world.seen.lock().iter() {
            let path = path.strip_suffix('/').filter(|path| !path.is_empty()).unwrap_or(path);
            let template =
                documented.keys().find(|(known, template)| known == method && fits(template, path));
            match template {
                Some(row) if documented[row].contains(status) => {
                    seen.entry(row.clone()).or_default().insert(*status);
                }
                _ if [404, 405].contains(status) && template.is_none() => {}
                _ => drop(undocumented.insert(format!("{method} {path}: {status}"))),
            }
        }
    }
    let mut unseen = Vec::new();
    for ((method, path), statuses) in &documented {
        let seen = seen.get(&(method.clone(), path.clone())).cloned().unwrap_or_default();
        unseen.extend(
            statuses
                .difference(&seen)
                .filter(|status| {
                    !ANY_ENDPOINT.contains(status) && !NEVER.contains(&(path.as_str(), **status))
                })
                .map(|status| format!("{method} {path}: {status}")),
        );
    }
    println!(
        "coverage: {} endpoints, {} not seen, {} not documented",
        documented.len(),
        unseen.len(),
        undocumented.len()
    );
    for line in &unseen {
        println!("  documented and never seen: {line}");
    }
    for line in &undocumented {
        println!("  seen and not documented: {line}");
    }
    unseen.is_empty() && undocumented.is_empty()
}

/// Literal segments win over parameters, as in the router.
fn fits(template: &str, path: &str) -> bool {
    let literal = ["expired", "event", "enforcers", "rotate"];
    let (template, path): (Vec<&str>, Vec<&str>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template
            .iter()
            .zip(&path)
            .all(|(known, given)| known == given || known.starts_with('{') && !literal.contains(given))
}
