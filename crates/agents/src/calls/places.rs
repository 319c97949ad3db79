//! What of a call an approver may change before they approve: the texts that say what is done, and not where or how it is.

use serde_json::Value;

use super::call::{Action, Call};

/// The members that have the text of a change, whatever a host calls them.
const TEXTS: &[&str] =
    &["command", "content", "file_text", "new_string", "newString", "new_str", "patch", "patchText"];

/// JSON pointers of the texts of a call, in a message that has its arguments there. A plan and questions have none: their
/// answers are words.
pub fn places(call: &Call, message: &Value, arguments: &str) -> Vec<String> {
    let Some(members) = message.pointer(arguments).and_then(Value::as_object) else { return Vec::new() };
    let is_changed = |name: &str| match &call.action {
        Action::Shell(_) => name == "command",
        Action::Edit(_) => TEXTS.contains(&name),
        // Of a tool that is not known here, every text may be what it does.
        Action::Other(_) => true,
        _ => false,
    };
    let texts = members.iter().filter(|(name, value)| value.is_string() && is_changed(name));
    texts.map(|(name, _)| format!("{arguments}/{}", escaped(name))).collect()
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    #[test]
    fn the_texts_of_what_is_done_may_be_changed_and_nothing_else() {
        let of = |action: Action, input: Value| {
            let call = Call { tool: "t".to_owned(), cwd: PathBuf::from("/w"), action };
            places(&call, &json!({ "tool_input": input }), "/tool_input")
        };
        let command = json!({ "command": "ls", "description": "list", "timeout": 1 });
        assert_eq!(of(Action::Shell("ls".to_owned()), command), ["/tool_input/command"]);
        let edit = json!({ "file_path": "/w/a", "old_string": "a", "new_string": "b", "replace_all": false });
        assert_eq!(of(Action::Edit(Vec::new()), edit), ["/tool_input/new_string"]);
        let mail = json!({ "to": "ada", "a/b~": "x", "copies": 2, "more": { "text": "x" } });
        assert_eq!(of(Action::Other(mail.clone()), mail), ["/tool_input/a~1b~0", "/tool_input/to"]);
        assert!(of(Action::Plan("p".to_owned()), json!({ "plan": "p" })).is_empty());
        assert!(of(Action::Shell("ls".to_owned()), json!("ls")).is_empty());
        let call =
            Call { tool: "t".to_owned(), cwd: PathBuf::from("/w"), action: Action::Shell("ls".to_owned()) };
        assert!(places(&call, &json!({ "command": "ls" }), "/tool_input").is_empty());
    }
}
