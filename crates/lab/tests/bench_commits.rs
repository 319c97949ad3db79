//! `bench commits` runs on both stores.

use std::process::Command;

#[test]
fn a_short_run_prints_one_json_object_with_a_positive_ratio() {
    let run = Command::new(env!("CARGO_BIN_EXE_countersign-lab"))
        .args(["bench", "commits", "--seconds", "1", "--rounds", "1", "--json"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(report["ratio"].as_f64().unwrap() > 0.0, "{report}");
    let stretches = report["stretches"].as_array().unwrap();
    assert_eq!(stretches.len(), 10, "five variants, two workloads");
    for stretch in stretches {
        assert!(stretch["commits"].as_u64().unwrap() > 0, "{stretch}");
    }
}
