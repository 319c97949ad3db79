//! The tools of Claude Code: what a name and its arguments mean.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::{
    calls::call::{Action, Call, FileChange},
    hosts::input,
    tool::files,
};

/// Where the content of a file before a change comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The file as it is now.
    Disk,
    /// The arguments alone: the call was made long ago.
    Arguments,
}

/// A call of one of Claude Code's tools. What its arguments do not say clearly stays a call of a tool with arguments.
pub fn call(tool: &str, input: &Value, cwd: &Path) -> Call {
    claude(tool, input, cwd, Before::Disk)
}

/// The calls in a line of a transcript. Files are not looked at, since they have changed since.
pub(super) fn recorded(line: &Value, folder: &Path) -> Vec<Call> {
    let blocks = line["message"]["content"].as_array().into_iter().flatten();
    let uses = blocks.filter(|block| line["type"] == "assistant" && block["type"] == "tool_use");
    let call = |block: &Value| Some(recorded_call(block["name"].as_str()?, &block["input"], folder));
    uses.filter_map(call).collect()
}

fn recorded_call(tool: &str, input: &Value, cwd: &Path) -> Call {
    claude(tool, input, cwd, Before::Arguments)
}

fn claude(tool: &str, input: &Value, cwd: &Path, before: Before) -> Call {
    let action = claude_action(tool, input, cwd, before).unwrap_or_else(|| Action::Other(input.clone()));
    Call { tool: tool.to_owned(), cwd: cwd.to_owned(), action }
}

fn claude_action(tool: &str, input: &Value, cwd: &Path, before: Before) -> Option<Action> {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let path = |key: &str| text(key).map(|path| cwd.join(path));
    match tool {
        "Bash" => text("command").map(|command| Action::Shell(command.to_owned())),
        "Write" => {
            let (path, after) = (path("file_path")?, text("content")?);
            change(path, before, |_| Some(after.to_owned()), None)
        }
        "Edit" => {
            let edit = Replacement::read(input)?;
            change(path("file_path")?, before, |text| edit.apply(&text?), Some(edit.old))
        }
        "MultiEdit" => {
            let edits: Option<Vec<Replacement<'_>>> =
                input.get("edits")?.as_array()?.iter().map(Replacement::read).collect();
            let edits = edits.filter(|edits| !edits.is_empty())?;
            let all = |text: Option<String>| edits.iter().try_fold(text?, |text, edit| edit.apply(&text));
            change(path("file_path")?, before, all, Some(edits[0].old))
        }
        "Read" => Some(Action::Read(vec![path("file_path")?])),
        "Grep" | "LS" => Some(Action::Read(path("path").into_iter().collect())),
        "Glob" => {
            Some(Action::Read(vec![below(path("path").unwrap_or_else(|| cwd.to_owned()), text("pattern")?)?]))
        }
        "WebFetch" => text("url").map(|url| Action::Network(url.to_owned())),
        "WebSearch" => text("query").map(|query| Action::Network(format!("a search for {query}"))),
        "ExitPlanMode" => Some(Action::Plan(plan(input, before))),
        "AskUserQuestion" => input::questions(input).map(Action::Questions),
        _ => own(tool, input),
    }
}

/// Tools that touch nothing outside of Claude Code, with the arguments that are known. The calls of a subagent are asked about
/// one by one.
const OWN: &[(&str, &[&str])] = &[
    ("Agent", &["description", "prompt", "subagent_type", "model", "run_in_background"]),
    ("BashOutput", &["bash_id", "filter"]),
    ("KillShell", &["shell_id"]),
    ("Task", &["description", "prompt", "subagent_type", "model", "run_in_background"]),
    ("TaskOutput", &["task_id", "block", "timeout"]),
    ("TodoWrite", &["todos"]),
];

fn own(tool: &str, input: &Value) -> Option<Action> {
    let (_, known) = OWN.iter().find(|(name, _)| *name == tool)?;
    let is_known = input.as_object()?.keys().all(|key| known.contains(&key.as_str()));
    is_known.then(|| Action::Own(input.clone()))
}

/// The plan itself, or the file that the agent has written it to.
fn plan(input: &Value, before: Before) -> String {
    let text = |key: &str| input.get(key).and_then(Value::as_str);
    let file = || {
        files::read_text(Path::new(text("planFilePath")?), input::MAX_FILE)
            .ok()
            .filter(|_| before == Before::Disk)
    };
    text("plan").map(str::to_owned).or_else(file).unwrap_or_default()
}

/// The folder in which a pattern of paths begins; `None` if it may go up after a star.
fn below(folder: PathBuf, pattern: &str) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = Path::new(pattern).components().collect();
    let has_star = |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
    let fixed = parts.iter().position(has_star).unwrap_or(parts.len());
    let climbs = pattern.contains("..") && fixed < parts.len();
    (!climbs).then(|| parts[..fixed].iter().fold(folder, |path, part| path.join(part)))
}

/// One replacement, as Claude Code makes it.
struct Replacement<'a> {
    old: &'a str,
    new: &'a str,
    is_everywhere: bool,
}

impl<'a> Replacement<'a> {
    fn read(value: &'a Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let is_everywhere = value.get("replace_all").and_then(Value::as_bool).unwrap_or(false);
        Some(Self { old: text("old_string")?, new: text("new_string")?, is_everywhere })
    }

    /// The text afterwards; `None` if the host would refuse: nothing to replace, or more than one place.
    fn apply(&self, text: &str) -> Option<String> {
        if self.old.is_empty() {
            // A new file, or one that is empty.
            return text.is_empty().then(|| self.new.to_owned());
        }
        match (text.matches(self.old).count(), self.is_everywhere) {
            (0, _) => None,
            (1, _) | (_, true) => Some(text.replace(self.old, self.new)),
            _ => None,
        }
    }
}

/// One file before and after. `recorded` is what stood there when the call was made, as far as it is known.
fn change(
    path: PathBuf,
    before: Before,
    after: impl Fn(Option<String>) -> Option<String>,
    recorded: Option<&str>,
) -> Option<Action> {
    let content = match before {
        Before::Arguments => recorded.map(|text| text.as_bytes().to_vec()),
        Before::Disk => input::content(&path).ok()?,
    };
    let text = match &content {
        // Who replaces a whole file need not know what was in it.
        Some(content) => std::str::from_utf8(content).ok().map(str::to_owned),
        None => Some(String::new()),
    };
    let after = match before {
        Before::Disk => after(text)?,
        Before::Arguments => after(text).unwrap_or_default(),
    };
    Some(Action::Edit(vec![FileChange { path, before: content, after: Some(after.into_bytes()) }]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use std::fs;

    use super::*;
    use crate::calls::call::Question;

    fn action(tool: &str, input: &Value, cwd: &Path) -> Action {
        call(tool, input, cwd).action
    }

    #[test]
    fn tools_are_what_they_do() {
        let cwd = Path::new("/repo");
        for (tool, input, expected) in [
            ("Bash", json!({"command": "ls", "description": "x"}), Action::Shell("ls".to_owned())),
            ("Read", json!({"file_path": "/a/b"}), Action::Read(vec!["/a/b".into()])),
            ("Grep", json!({"pattern": "x", "path": "src"}), Action::Read(vec!["/repo/src".into()])),
            ("Grep", json!({"pattern": "x"}), Action::Read(vec![])),
            ("LS", json!({"path": "/x"}), Action::Read(vec!["/x".into()])),
            ("Glob", json!({"pattern": "src/**/*.rs"}), Action::Read(vec!["/repo/src".into()])),
            ("Glob", json!({"pattern": "/etc/*"}), Action::Read(vec!["/etc".into()])),
            ("Glob", json!({"pattern": "../x"}), Action::Read(vec!["/repo/../x".into()])),
            ("Glob", json!({"pattern": "*/../../x"}), Action::Other(json!({"pattern": "*/../../x"}))),
            ("WebFetch", json!({"url": "https://x", "prompt": "p"}), Action::Network("https://x".to_owned())),
            ("WebSearch", json!({"query": "q"}), Action::Network("a search for q".to_owned())),
            ("ExitPlanMode", json!({"plan": "# P"}), Action::Plan("# P".to_owned())),
            ("mcp__x__y", json!({"a": 1}), Action::Other(json!({"a": 1}))),
            ("Task", json!({"prompt": "p"}), Action::Own(json!({"prompt": "p"}))),
            ("Task", json!({"prompt": "p", "cwd": "/"}), Action::Other(json!({"prompt": "p", "cwd": "/"}))),
            ("TodoWrite", json!({"todos": []}), Action::Own(json!({"todos": []}))),
            ("Bash", json!({"cmd": "ls"}), Action::Other(json!({"cmd": "ls"}))),
        ] {
            assert_eq!(action(tool, &input, cwd), expected, "{tool}");
        }
        let asked = json!({"questions": [{"question": "Which?", "multiSelect": true, "options": [{"label": "a", "description": "d"}, {"label": "b"}]}]});
        let expected = Question {
            text: "Which?".to_owned(),
            choices: vec!["a".to_owned(), "b".to_owned()],
            is_multiple: true,
        };
        assert_eq!(action("AskUserQuestion", &asked, cwd), Action::Questions(vec![expected]));
    }

    #[test]
    fn an_edit_is_the_file_before_and_after_or_nothing_certain() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        fs::write(&path, "one two two\n").unwrap();
        let edit = |old: &str, new: &str, everywhere: bool| {
            let input =
                json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": everywhere});
            match action("Edit", &input, folder.path()) {
                Action::Edit(files) => Some(String::from_utf8(files[0].after.clone().unwrap()).unwrap()),
                _ => None,
            }
        };
        assert_eq!(edit("one", "1", false).as_deref(), Some("1 two two\n"));
        assert_eq!(edit("two", "2", true).as_deref(), Some("one 2 2\n"));
        assert_eq!(edit("two", "2", false), None, "not unique");
        assert_eq!(edit("three", "3", false), None, "not there");
        assert_eq!(edit("", "x", false), None, "would replace what is there");
        let edits = json!({"file_path": path, "edits": [
            {"old_string": "one", "new_string": "two"},
            {"old_string": "two two two", "new_string": "2"},
        ]});
        let Action::Edit(files) = action("MultiEdit", &edits, folder.path()) else { unreachable!() };
        assert_eq!(files[0].after.as_deref(), Some(&b"2\n"[..]));
        assert_eq!(files[0].before.as_deref(), Some(&b"one two two\n"[..]));
        let write = |path: &str| action("Write", &json!({"file_path": path, "content": "x"}), folder.path());
        let Action::Edit(files) = write("new.txt") else { unreachable!() };
        assert_eq!((files[0].before.clone(), files[0].after.clone()), (None, Some(b"x".to_vec())));
        fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
        assert!(matches!(write("binary"), Action::Edit(_)));
        let input = json!({"file_path": "binary", "old_string": "a", "new_string": "b"});
        assert!(matches!(action("Edit", &input, folder.path()), Action::Other(_)));
        assert!(matches!(action("Edit", &json!({"file_path": "."}), folder.path()), Action::Other(_)));
        let recorded = recorded_call("Edit", &input, folder.path()).action;
        assert!(matches!(recorded, Action::Edit(_)), "the file is not looked at");
    }
}
