//! What examines a call looks at files as the caller sees them, through `tool::files` alone: a keeper decides for callers that
//! have other files under the same paths.

use std::path::{Path, PathBuf};

/// Where calls are read, examined and decided.
const EXAMINING: &[&str] = &[
    "calls",
    "examine",
    "execution",
    "hook/about.rs",
    "hosts/apply_patch.rs",
    "hosts/claude/adapter.rs",
    "hosts/claude/tools.rs",
    "hosts/codex/adapter.rs",
    "hosts/copilot/adapter.rs",
    "hosts/gemini/adapter.rs",
    "hosts/input.rs",
    "hosts/opencode/adapter.rs",
    "hosts/transcript.rs",
    "programs",
    "rules",
];

/// What belongs to whoever decides, and why.
const OF_THE_DECIDER: &[(&str, &str)] = &[
    ("examine/environment/last.rs", "what this machine has kept of earlier calls"),
    ("execution/held.rs", "what a process that runs a command holds of it"),
    ("rules/change.rs", "the person's own file"),
    ("rules/asking_itself.rs", "the program that runs, /proc/self/exe"),
];

/// What reads the files of this process.
const DIRECT: &[&str] = &[
    " fs::",
    "(fs::",
    "|fs::",
    "!fs::",
    "std::fs::",
    "File::open",
    ".exists()",
    ".canonicalize()",
    ".read_dir()",
];

fn files(path: PathBuf, found: &mut Vec<PathBuf>) {
    match path.is_dir() {
        true => path.read_dir().unwrap().for_each(|entry| files(entry.unwrap().path(), found)),
        false => found.push(path),
    }
}

#[test]
fn whatever_examines_a_call_reads_the_callers_files() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/src");
    let mut found = Vec::new();
    for name in EXAMINING {
        files(source.join(name), &mut found);
    }
    let mut wrong = Vec::new();
    for file in found {
        let name = file.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
        let is_tests = name.ends_with("tests.rs") || name.contains("/tests/");
        if is_tests || OF_THE_DECIDER.iter().any(|(exempt, _)| *exempt == name) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        wrong.extend(
            lines
                .filter(|line| DIRECT.iter().any(|direct| line.contains(direct)))
                .map(|line| format!("{name}: {}", line.trim())),
        );
    }
    assert!(wrong.is_empty(), "read through tool::files instead:\n{}", wrong.join("\n"));
}
