//! The benches that load a gateway on PostgreSQL run with small numbers, and report what they compare.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use serde_json::Value;
use tempfile::TempDir;

const LAB: &str = env!("CARGO_BIN_EXE_countersign-lab");

/// Runs a bench with one short round, over the gateway that is part of the lab.
fn bench(name: &str, args: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let gateway = folder.path().join("gateway");
    fs::write(&gateway, format!("#!/bin/sh\nexec {LAB} gateway \"$@\"\n")).unwrap();
    fs::set_permissions(&gateway, fs::Permissions::from_mode(0o700)).unwrap();
    let run = Command::new(LAB)
        .args(["bench", name, "--json", "--gateway"])
        .arg(&gateway)
        .args(args)
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    serde_json::from_slice(&run.stdout).unwrap()
}

const SHORT: [&str; 4] = ["--seconds", "1", "--rounds", "1"];

fn figure(report: &Value, path: &str) -> f64 {
    report.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {report}"))
}

/// Every arm is measured in every round, and none of them is idle.
fn assert_all_measured(report: &Value, arms: usize) {
    assert_eq!(report["arms"].as_array().unwrap().len(), arms, "{report}");
    let stretches = report["stretches"].as_array().unwrap();
    assert_eq!(stretches.len() % arms, 0, "{report}");
    assert!(stretches.iter().all(|stretch| stretch["count"].as_u64().unwrap() > 0), "{report}");
    assert!(figure(report, "/ratio") > 0.0, "{report}");
}

#[test]
fn submissions_are_compared_with_bare_inserts_and_a_batching_driver() {
    let report = bench("submit", &[&SHORT[..], &["--in-flight", "8"]].concat());
    assert_all_measured(&report, 4);
    assert!(figure(&report, "/share_of_batching") > 0.0, "{report}");
    assert!(figure(&report, "/arms/0/cores/gateway") > 0.0, "{report}");
}

#[test]
fn whole_exchanges_are_compared_with_their_statements() {
    let report = bench("exchange", &[&SHORT[..], &["--in-flight", "4"]].concat());
    assert_all_measured(&report, 5);
    assert!(figure(&report, "/ratio_to_transactions") > 0.0, "{report}");
}

#[test]
fn a_quiet_tenant_is_measured_alone_and_beside_a_loud_one() {
    let report = bench("neighbours", &[&SHORT[..], &["--loud-in-flight", "16"]].concat());
    assert_all_measured(&report, 2);
    assert!(figure(&report, "/ratio_of_p99") > 0.0, "{report}");
    assert!(figure(&report, "/arms/1/figures/loud~1s") > 0.0, "{report}");
}

#[test]
fn large_submissions_are_compared_with_bare_inserts() {
    let report = bench("payload", &[&SHORT[..], &["--in-flight", "2", "--bytes", "300000"]].concat());
    assert_all_measured(&report, 2);
    assert!(figure(&report, "/megabytes_per_upload") > 0.0, "{report}");
}

#[test]
fn several_nodes_lose_nothing_that_they_have_accepted() {
    let args = ["--nodes", "4", "--enforcers", "4", "--seconds", "2", "--rate", "20", "--in-flight", "8"];
    let report = bench("cluster", &args);
    assert!(figure(&report, "/submitted") >= 30.0, "{report}");
    assert!(figure(&report, "/delivered") > 0.0, "{report}");
    assert_eq!(report["errors"], serde_json::json!({}), "{report}");
    assert_eq!(report["broken_websockets"], serde_json::json!({}), "{report}");
    assert_eq!(report["misdirected"], 0, "{report}");
    assert!((figure(&report, "/ratio") - 1.0).abs() < f64::EPSILON, "{report}");
}

#[test]
fn a_connect_over_tls_is_counted_beside_a_plain_one() {
    let report = bench("connects", &["--clients", "50", "--seconds", "1", "--settle", "0"]);
    assert!(figure(&report, "/resumed") > 0.0, "{report}");
    let each = report["each"].as_array().unwrap();
    assert_eq!(each.len(), 7, "{report}");
    let of = |name: &str| each.iter().find(|row| row["of"] == name).unwrap();
    for kind in ["plain", "TLS", "TLS, resumed"] {
        assert!(figure(of(&format!("connect, {kind}")), "/commits") >= 1.0, "{report}");
    }
}

#[test]
fn a_push_is_counted_beside_a_request_without() {
    let report = bench("pushes", &["--requests", "20", "--settle", "0"]);
    assert_eq!(report["pushed"], 20, "{report}");
    assert!(figure(&report, "/ratio") > 0.0, "{report}");
}

#[test]
fn an_hour_of_an_agent_is_counted_with_a_keeper_and_without() {
    let report = bench("hour", &["--turns", "2", "--tools", "4", "--host", "claude", "--settle", "1"]);
    assert_eq!(report["hour"]["asks"], 1, "{report}");
    for arm in report["arms"].as_array().unwrap() {
        for of in ["requests", "commits", "bytes_up", "connections"] {
            assert!(figure(arm, &format!("/{of}")) > 0.0, "{report}");
        }
        let stored: Vec<f64> = (0..3).map(|place| figure(arm, &format!("/stored_bytes/{place}"))).collect();
        assert!(stored[0] >= stored[1] && stored[1] >= stored[2], "what is old is deleted: {report}");
    }
    assert!(figure(&report, "/ratio") < 1.0, "one connection hears for all hooks: {report}");
}

#[test]
fn a_decision_crosses_nodes_with_nats_and_without() {
    let args = [&SHORT[..], &["--rate", "20", "--enforcers", "4"]].concat();
    let report = bench("nodes", &args);
    assert!(figure(&report, "/ratio") > 0.0, "{report}");
    let stretches = report.pointer("/rates/0/stretches").and_then(Value::as_array).unwrap();
    let stopped = report.pointer("/nats_stopped/stretches").and_then(Value::as_array).unwrap();
    for stretch in stretches.iter().chain(stopped) {
        assert!(figure(stretch, "/count") > 0.0 && figure(stretch, "/figures/missing") == 0.0, "{report}");
    }
}
