//! A missing gateway is reported before anything is measured.

use std::process::Command;

#[test]
fn a_gateway_that_is_not_there_is_named_with_how_to_build_it() {
    for bench in [["bench", "latency"], ["bench", "channels"]] {
        let run = Command::new(env!("CARGO_BIN_EXE_countersign-lab"))
            .args(bench)
            .args(["--gateway", "/nowhere/countersign-gateway"])
            .output()
            .unwrap();
        let stderr = String::from_utf8(run.stderr).unwrap();
        assert!(!run.status.success());
        assert!(
            stderr.contains("/nowhere/countersign-gateway") && stderr.contains("cargo build"),
            "{stderr}"
        );
    }
}
