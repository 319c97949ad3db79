//! What an enforcer is called where people see it.

use countersign_wire::Label;
use serde_json::{Map, Value};

/// What an enforcer says of itself, in the clear: the gateway and the whole tenant read it, so it has nothing that is
/// sealed elsewhere, such as the name of a repository. Each is cut after 128 characters; an empty one is not said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The machine, as people call it.
    pub enforcer_label: Label,
    /// What runs there under this identity.
    pub workspace_name: Label,
}

impl Names {
    /// Cuts what is too long, and replaces what can't be seen.
    pub fn new(enforcer_label: &str, workspace_name: &str) -> Self {
        Self { enforcer_label: Label::new(enforcer_label), workspace_name: Label::new(workspace_name) }
    }

    /// Adds them to an object, under the names of the specification (2.10, 4.6).
    pub(crate) fn add_to(&self, object: &mut Map<String, Value>) {
        for (name, label) in
            [("enforcerLabel", &self.enforcer_label), ("workspaceName", &self.workspace_name)]
        {
            if !label.as_str().is_empty() {
                object.insert(name.to_owned(), label.as_str().into());
            }
        }
    }
}

impl Default for Names {
    /// Both are empty, so nothing is said.
    fn default() -> Self {
        Self::new("", "")
    }
}

impl From<&str> for Names {
    /// The name of the machine alone.
    fn from(enforcer_label: &str) -> Self {
        Self::new(enforcer_label, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_after_128_characters_and_an_empty_one_is_not_said() {
        let mut said = Map::new();
        Names::from("").add_to(&mut said);
        assert!(said.is_empty());
        Names::new(&"ä".repeat(200), "agent\u{202e}").add_to(&mut said);
        assert_eq!(said["enforcerLabel"], "ä".repeat(128));
        assert_eq!(said["workspaceName"], "agent\u{fffd}");
    }
}
