//! The table of all failures as a snapshot, so that no status or code changes unnoticed.

use std::fmt::Write as _;

use countersign_wire::failure::Failure;

#[test]
fn table_of_failures_is_as_documented() {
    let mut table = String::new();
    for failure in Failure::ALL {
        let retry = if failure.retryable() { "retry" } else { "final" };
        writeln!(
            table,
            "{} {retry} {:<36} {failure:?}: {}",
            failure.status(),
            failure.code(),
            failure.message()
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}
