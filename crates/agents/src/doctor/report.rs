//! What was looked at, and what came out.

use serde::Serialize;

use crate::tool::finding::{Finding, Level};

/// Something that is as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Passed {
    /// What it is about, such as the name of a profile or of a host.
    pub subject: String,
    /// What is so, in a sentence without its full stop.
    pub what: String,
}

/// Everything, in the order in which it was looked at.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    pub passed: Vec<Passed>,
    pub findings: Vec<Finding>,
}

impl Report {
    /// Adds something that is as it should be.
    pub fn pass(&mut self, subject: &str, what: impl Into<String>) {
        self.passed.push(Passed { subject: subject.to_owned(), what: what.into() });
    }

    /// Adds something to put right.
    pub fn find(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// Adds the outcome of one look.
    pub fn add(&mut self, subject: &str, outcome: Result<String, Finding>) {
        match outcome {
            Ok(what) => self.pass(subject, what),
            Err(finding) => self.find(finding),
        }
    }

    /// Whether anything has to be put right. Notes do not count.
    pub fn has_problems(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Problem)
    }
}
