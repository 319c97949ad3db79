//! `bench expiries` runs with a synchronous standby, and checks that each exchange expires once.

use std::process::Command;

#[test]
fn a_short_run_prints_one_json_object_and_a_backlog_delays_nobody_else() {
    let run = Command::new(env!("CARGO_BIN_EXE_countersign-lab"))
        .args(["bench", "expiries", "--exchanges", "3000", "--seconds", "1", "--rounds", "1", "--json"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let figure = |name: &str| report.pointer(name).and_then(serde_json::Value::as_f64).unwrap();
    assert!(figure("/ratio") > 0.0 && figure("/ratio_of_two_nodes") > 0.0, "{report}");
    assert_eq!(
        report["stretches"].as_array().unwrap().len(),
        4,
        "decisions twice, expiries on one node and on two"
    );
    assert!(figure("/fairness/quiet_ms") < figure("/fairness/backlog_ms"), "{report}");
}
