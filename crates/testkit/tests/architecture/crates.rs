//! Which crate may depend on which.

use std::{collections::BTreeMap, process::Command};

use serde_json::Value;

// CONTRIBUTING: add a store, step 5
/// What each crate may depend on, and what its tests may use besides.
const ARROWS: &[(&str, &[&str], &[&str])] = &[
    ("wire", &[], &[]),
    ("client", &["wire"], &["core", "server", "testkit"]),
    ("agents", &["client", "wire"], &[]),
    ("cli", &["agents", "client", "wire"], &[]),
    ("core", &["wire"], &[]),
    ("doorbell-nats", &["core", "wire"], &["store-sqlite", "testkit"]),
    ("store-sqlite", &["core", "wire"], &["testkit"]),
    ("store-postgres", &["core", "wire"], &["store-sharded", "testkit"]),
    ("store-sharded", &["core", "wire"], &[]),
    (
        "server",
        &["core", "doorbell-nats", "store-postgres", "store-sharded", "store-sqlite", "wire"],
        &["testkit"],
    ),
    ("testkit", &["core", "store-sharded", "wire"], &[]),
    ("lab", &["client", "core", "server", "store-postgres", "store-sqlite", "testkit", "wire"], &[]),
];

#[test]
fn crates_depend_only_on_what_the_architecture_allows() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline", "--manifest-path", manifest])
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let arrows: BTreeMap<&str, (&[&str], &[&str])> =
        ARROWS.iter().map(|(name, uses, in_tests)| (*name, (*uses, *in_tests))).collect();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap().strip_prefix("countersign-").unwrap();
        let (uses, in_tests) = arrows.get(name).unwrap_or_else(|| unreachable!("{name} is not in ARROWS"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let Some(ours) = dependency["name"].as_str().unwrap().strip_prefix("countersign-") else {
                continue;
            };
            let allowed = uses.contains(&ours) || dependency["kind"] == "dev" && in_tests.contains(&ours);
            assert!(allowed, "{name} must not depend on {ours}");
        }
    }
    assert_eq!(metadata["packages"].as_array().unwrap().len(), ARROWS.len(), "a crate is missing");
}
