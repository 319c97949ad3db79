//! `bench client` measures every operation at both sizes, and memory.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_operation_is_measured_beside_the_bare_crates() {
    let run = Command::new(env!("CARGO_BIN_EXE_countersign-lab"))
        .args(["bench", "client", "--rounds", "2", "--kib", "1", "--large-kib", "32", "--json"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report: Value = serde_json::from_slice(&run.stdout).unwrap();
    let operations = report["operations"].as_array().unwrap();
    assert_eq!(operations.len(), 8);
    for operation in operations {
        for side in ["ours_us", "bare_us"] {
            let times = operation[side].as_array().unwrap();
            assert!(times.len() == 2 && times.iter().all(|time| time.as_f64().unwrap() > 0.0));
        }
        assert!(operation["ratio"].as_f64().unwrap() > 0.0);
    }
    let idle = report["idle"].as_array().unwrap();
    assert_eq!(idle.len(), 2);
    assert!(idle.iter().all(|idle| idle["enforcer_rss"].as_u64() > Some(1 << 20)));
}
