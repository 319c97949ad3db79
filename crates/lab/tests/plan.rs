//! The tables of docs/scaling.md are what `countersign-lab plan` prints: figures that were measured anew can't leave them behind.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path, process::Command};

const BEGIN: &str = "<!-- countersign-lab plan ";
const END: &str = "<!-- end -->";

fn plan(arguments: &str) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_countersign-lab"))
        .arg("plan")
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(run.status.success(), "{arguments}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).unwrap()
}

/// The page with every table as it is computed now.
fn computed(page: &str) -> String {
    let (first, rest) = page.split_once(BEGIN).unwrap();
    let parts = rest.split(BEGIN).map(|part| {
        let (arguments, rest) = part.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once(END).unwrap();
        format!("{BEGIN}{arguments} -->\n{}{END}{after}", plan(arguments))
    });
    [first.to_owned()].into_iter().chain(parts).collect()
}

/// `UPDATE_DOCS=1` puts the tables in place.
#[test]
fn the_tables_of_the_page_are_computed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scaling.md");
    let page = fs::read_to_string(&file).unwrap();
    let computed = computed(&page);
    assert!(page.matches(BEGIN).count() >= 4, "each table names its command");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, computed).unwrap();
    } else {
        assert_eq!(page, computed, "run it with UPDATE_DOCS=1");
    }
}

#[test]
fn a_figure_that_is_set_changes_the_plan() {
    let with = |value: &str| plan(&format!("--developers 1000 --table cost --set hour_gateway_ms={value}"));
    assert_ne!(with("1"), with("100000"));
}
