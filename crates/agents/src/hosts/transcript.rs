//! Recorded sessions of Claude Code and Codex CLI: which calls were made.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::calls::call::Call;

/// The calls in a transcript, and how many of its lines are no JSON.
#[derive(Debug, Default)]
pub struct Transcript {
    /// In the order in which they were made.
    pub calls: Vec<Call>,
    /// Lines that can't be read.
    pub unreadable: usize,
}

impl Transcript {
    /// Reads the lines of a transcript. `cwd` is the folder where nothing else is said.
    pub fn read(text: &str, cwd: &Path) -> Self {
        let mut transcript = Self::default();
        let mut folder = cwd.to_owned();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Value>(line) {
                Ok(line) => transcript.add(&line, &mut folder),
                Err(_) => transcript.unreadable += 1,
            }
        }
        transcript
    }

    fn add(&mut self, line: &Value, folder: &mut PathBuf) {
        let payload = &line["payload"];
        // Claude Code says the folder in each line, Codex CLI when it changes.
        if let Some(cwd) = line["cwd"].as_str().or_else(|| payload["cwd"].as_str()) {
            *folder = PathBuf::from(cwd);
        }
        self.calls.extend(super::ALL.iter().flat_map(|host| (host.messages.recorded)(line, folder)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::call::Action;

    #[test]
    fn calls_are_found_with_their_folders() {
        let text = r#"{"type":"user","cwd":"/a","message":{"role":"user","content":"please"}}
{"type":"assistant","cwd":"/a","message":{"content":[{"type":"text","text":"I will"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}
{"type":"assistant","cwd":"/b","message":{"content":[{"type":"tool_use","id":"t2","name":"Read","input":{"file_path":"/b/x"}}]}}
not json
{"type":"session_meta","payload":{"id":"x","cwd":"/c"}}
{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make\"}","call_id":"c"}}
{"type":"turn_context","payload":{"cwd":"/d"}}
{"type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[]}}
"#;
        let transcript = Transcript::read(text, Path::new("/start"));
        let found: Vec<(&str, &str)> =
            transcript.calls.iter().map(|call| (call.tool.as_str(), call.cwd.to_str().unwrap())).collect();
        assert_eq!(found, [("Bash", "/a"), ("Read", "/b"), ("exec_command", "/c"), ("apply_patch", "/d")]);
        assert_eq!(transcript.calls[2].action, Action::Shell("make".to_owned()));
        assert_eq!(transcript.unreadable, 1);
    }
}
