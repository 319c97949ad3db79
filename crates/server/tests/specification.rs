//! A client that was written from the specification alone, in another language, goes through every endpoint on both
//! stores. See tests/from-the-specification.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::process::Command;

use support::process::{Gateway, On};

fn passes_the_client_of_the_specification(on: On) {
    let gateway = Gateway::start(on);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/from-the-specification");
    let output = Command::new("python3")
        .current_dir(folder)
        .args(["run.py", "--url", &format!("http://{}", gateway.address)])
        .args(["--enforcer-key", &gateway.key("acme", "enforcer", None)])
        .args(["--approver-key", &gateway.key("acme", "approver", None)])
        .args(["--operator-key", &gateway.key("acme", "operator", None)])
        .output()
        .expect("python3 with websocket-client is on the PATH: run `just setup`");
    let text = String::from_utf8_lossy(&output.stdout);
    let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("FAIL")).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} failures\n{}\n{errors}", failed.len(), failed.join("\n"));
    assert!(text.contains("581 passed, 0 failed"), "{}", text.lines().last().unwrap_or_default());
}

#[test]
fn a_client_written_from_the_specification_alone_works_on_sqlite() {
    passes_the_client_of_the_specification(On::Sqlite);
}

#[test]
fn a_client_written_from_the_specification_alone_works_on_postgres() {
    passes_the_client_of_the_specification(On::Postgres);
}
