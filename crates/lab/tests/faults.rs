//! A minute with one failover and two tenants that move keeps every promise, and a schedule can be repeated.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

const LAB: &str = env!("CARGO_BIN_EXE_countersign-lab");

#[test]
fn a_minute_of_faults_with_a_failover_breaks_no_promise() {
    let folder = TempDir::new().unwrap();
    let kept = folder.path().join("kept");
    let run = Command::new(LAB)
        .args([
            "faults",
            "--seconds",
            "60",
            "--failovers",
            "1",
            "--moves",
            "2",
            "--seed",
            "3001",
            "--json",
            "--keep",
        ])
        .arg(&kept)
        .output()
        .unwrap();
    let progress = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{progress}\n{}", String::from_utf8_lossy(&run.stdout));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(report["violations"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(report["failovers"], 1, "{report}");
    assert_eq!(report["moves"], 2, "{report}");
    assert!(report["faults"].as_u64().unwrap() >= 4, "{report}");
    assert!(report["acknowledged"].as_u64().unwrap() > 500, "{report}");
    let kinds = report["recovery"].as_array().unwrap();
    let failover = kinds.iter().find(|recovery| recovery["kind"] == "failover").unwrap();
    assert_eq!(failover["never"], 0, "writes succeed after it: {report}");
    for file in ["history.jsonl", "timeline.html", "node-0/log"] {
        assert!(kept.join(file).metadata().unwrap().len() > 0, "{file}");
    }
}

#[test]
fn a_folder_that_is_not_empty_is_refused() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let run = Command::new(LAB).args(["faults", "--keep"]).arg(folder.path()).output().unwrap();
    assert!(!run.status.success());
    assert!(String::from_utf8_lossy(&run.stderr).contains("is not empty"));
}
