//! Stub, replaced by the rules.
use crate::agent::call::Call;
use std::{path::Path, time::Duration};
pub struct Rules;
#[derive(Debug)]
pub struct RulesError(pub String);
impl std::fmt::Display for RulesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
pub struct Ruling {
    pub verdict: Verdict,
    pub reason: String,
    pub rule: String,
}
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}
pub struct Turn {
    pub person: String,
    pub after: Duration,
}
impl Rules {
    pub fn load(_: &Path) -> Result<Self, RulesError> {
        Ok(Self)
    }
    pub fn decide(&self, _: &Call) -> Ruling {
        Ruling { verdict: Verdict::Ask, reason: String::new(), rule: String::new() }
    }
    pub fn people(&self, _: &Call) -> Vec<Turn> {
        Vec::new()
    }
}
