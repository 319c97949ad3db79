//! How results are printed: all figures as JSON for programs, or a table of them for people.

use serde::Serialize;

use crate::Failure;

/// The result of a command. As JSON, it has all figures and the arguments that they were measured with.
pub(crate) trait Report: Serialize {
    fn table(&self) -> String;
}

pub(crate) fn text(report: &impl Report, json: bool) -> Result<String, Failure> {
    if json { Ok(serde_json::to_string(report)?) } else { Ok(report.table()) }
}
