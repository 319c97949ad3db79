//! Calls as Claude Code records them: the verdict on each, with its reason.

use super::*;
use crate::hosts::transcript::Transcript;

const CALLS: &str = include_str!("recorded.jsonl");

const USER: &str = r#"
[[rule]]
verdict = "allow"
command = "cargo test **"

[[rule]]
verdict = "allow"
tool = ["Edit", "Write", "MultiEdit", "Bash"]
path = "src/**"

[[rule]]
verdict = "allow"
command = "rm **"
path = "target/**"
effect = ["deletes"]

[[rule]]
verdict = "allow"
tool = "mcp__docs__*"

[[rule]]
verdict = "deny"
command = "git push **"
reason = "a person pushes"

[[rule]]
verdict = "deny"
effect = ["escalatesPrivileges"]
"#;

const REPOSITORY: &str = r#"
[[rule]]
verdict = "ask"
path = "migrations/**"
reason = "migrations are reviewed"
"#;

#[test]
fn each_recorded_call_has_its_verdict_and_reason() {
    let world = World::new(USER, REPOSITORY);
    fs::write(world.root().join(".env"), "KEY=1").unwrap();
    let (root, base) = (world.root().display().to_string(), world.base().display().to_string());
    let transcript = Transcript::read(&CALLS.replace("REPO", &root), &world.root());
    assert!(transcript.calls.len() >= 100 && transcript.unreadable == 0);
    let rules = world.load().unwrap();
    let line = |call: &Call| {
        let ruling = rules.decide(call);
        let what = match &call.action {
            Action::Shell(text) => text.clone(),
            _ => call.raw_paths().iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" "),
        };
        let text = format!(
            "{} {} {}\n    {}\n    {}",
            ruling.verdict.word(),
            call.tool,
            what.replace('\n', "⏎"),
            ruling.reason.replace('\n', "⏎"),
            ruling.rule
        );
        text.replace(&root, "REPO").replace(&base, "BASE")
    };
    let lines: Vec<String> = transcript.calls.iter().map(line).collect();
    insta::assert_snapshot!(lines.join("\n"));
}
