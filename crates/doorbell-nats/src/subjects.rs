//! The subjects of one cell.

use countersign_core::model::channels::NodeId;

use crate::{error::OpenError, options::MAX_CELL};

/// The name of a cell, checked: it is a part of subjects, in which `.`, `*` and `>` have a meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell(String);

impl Cell {
    pub(crate) fn new(name: &str) -> Result<Self, OpenError> {
        let allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        match (1..=MAX_CELL).contains(&name.len()) && name.bytes().all(allowed) {
            true => Ok(Self(name.to_owned())),
            false => Err(OpenError::Cell),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// What every node subscribes to.
    pub(crate) fn rings(&self) -> String {
        format!("countersign.{}.rings", self.0)
    }

    /// What one node subscribes to.
    pub(crate) fn node(&self, node: &NodeId) -> String {
        format!("countersign.{}.node.{}", self.0, node.0)
    }

    /// All of them, for people.
    pub(crate) fn all(&self) -> String {
        format!("countersign.{}.>", self.0)
    }
}

/// Characters of a node's id.
const MAX_NODE: usize = 64;

/// Whether this id can be a part of a subject. Those of our nodes are ULIDs.
pub(crate) fn is_node_id(text: &str) -> bool {
    (1..=MAX_NODE).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_a_word_that_means_nothing_in_a_subject() {
        for name in ["main", "eu-1", "a_b", "0", &"x".repeat(64)] {
            assert_eq!(Cell::new(name).unwrap().rings(), format!("countersign.{name}.rings"));
        }
        for name in ["", "a.b", "*", ">", "a b", "Main", "ä", "a\n", &"x".repeat(65)] {
            assert!(matches!(Cell::new(name), Err(OpenError::Cell)), "{name}");
        }
    }

    #[test]
    fn an_id_that_would_be_another_subject_is_not_used() {
        assert!(is_node_id("01M7EQ8EEGT8XRFSSXQZS10P4N") && is_node_id("node_1-a"));
        for text in ["", "a.b", "*", ">", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_node_id(text), "{text}");
        }
    }
}
