//! Built in: agents do not run the commands of this tool that decide, grant, or change rules, keys and hooks.

use super::texts::{MAX_MENTIONS, Part, Texts, base_name, mentions, unquoted, words_after};
use crate::{programs, tool::files};

/// Commands that ask, only read, or start another agent that is asked about. Everything else is refused, also what does not exist
/// yet.
pub const FOR_AGENTS: &[&str] = &[
    "ask",
    "completions",
    "doctor",
    "exec",
    "help",
    "listen",
    "man",
    "policy",
    "run",
    "sessions",
    "show",
    "status",
    "verify",
    "wait",
];

/// Words that are commands of ours and not for agents, to be looked for where a text is not understood.
pub const NOT_FOR_AGENTS: &[&str] = &[
    "approve",
    "ask-again",
    "away",
    "change",
    "config",
    "devices",
    "down",
    "export",
    "fleet",
    "grants",
    "here",
    "history",
    "hook",
    "inbox",
    "install",
    "join",
    "keeper",
    "keys",
    "mcp",
    "pair",
    "prompt",
    "recovery",
    "reject",
    "rules",
    "stop",
    "uninstall",
    "up",
    "vouch",
];

const TOOL: &str = "countersign";
const GATEWAY: &str = "countersign-gateway";

/// Why an agent may not run these texts; `None` if nothing of ours in them decides.
pub(super) fn against(texts: &Texts) -> Option<String> {
    let executes = texts.executes_input();
    let of_part = |part: &Part| against_part(part, executes);
    texts
        .parts
        .iter()
        .find_map(of_part)
        .or_else(|| texts.unclear.iter().find_map(|text| against_unclear(text)))
}

fn against_part(part: &Part, executes: bool) -> Option<String> {
    let writes = part.redirections.iter().filter(|it| it.writes);
    if let Some(file) = writes.map(|it| it.path.as_str()).find(|path| is_ours(path)) {
        return Some(format!("agents may not replace {file}"));
    }
    let words = &part.words;
    if let Some(reason) = against_cargo(part) {
        return Some(reason);
    }
    for (position, word) in words.iter().enumerate() {
        if position > 0 && is_reader(part) && !executes {
            return None;
        }
        if word.chars().any(|char| char.is_whitespace() || ";|&'\"(".contains(char)) {
            if let Some(reason) = against_unclear(word) {
                return Some(reason);
            }
        } else if is_ours(word) && !(position > 0 && is_something_else(part, word)) {
            let next = subcommand(&words[position + 1..]);
            let is_for_agents = next.is_some_and(|next| FOR_AGENTS.contains(&next));
            if !is_for_agents || name_of(word) == GATEWAY {
                let name = name_of(word);
                return Some(match (next, position) {
                    (Some(next), _) => {
                        format!("agents may not run `{name} {next}`: it decides what agents may do")
                    }
                    (None, 0) => format!("agents may not run `{name}` without saying what for"),
                    (None, _) => format!("agents may not give `{name}` to `{}`", part.program()),
                });
            }
        }
    }
    None
}

/// `cargo run -p countersign-cli -- approve`.
fn against_cargo(part: &Part) -> Option<String> {
    let runs = part.words.iter().any(|word| matches!(word.as_str(), "run" | "r"));
    let is_ours = part.words.iter().any(|word| word.to_lowercase().contains(TOOL));
    let decides = |word: &&String| NOT_FOR_AGENTS.contains(&word.to_lowercase().as_str());
    let is_cargo = part.words.iter().any(|word| base_name(word) == "cargo");
    let found = part.words.iter().find(decides).filter(|_| is_cargo && runs && is_ours)?;
    Some(format!("agents may not run `{TOOL} {found}`: it decides what agents may do"))
}

fn name_of(word: &str) -> String {
    base_name(word).to_lowercase()
}

fn is_ours(word: &str) -> bool {
    matches!(name_of(word).as_str(), TOOL | GATEWAY)
}

/// An address, or a folder that only has the name.
fn is_something_else(part: &Part, word: &str) -> bool {
    word.contains("://") || part.places.iter().any(|place| files::is_dir(&place.join(word)))
}

/// Whether a program only reads or prints, so that a name among its words is only a name.
pub(super) fn is_reader(part: &Part) -> bool {
    programs::takes_words_as_data(&part.program(), &part.words)
}

/// The command among arguments, after the options that every command has; `None` if there is none, or it can't be said.
fn subcommand(arguments: &[String]) -> Option<&str> {
    let mut arguments = arguments.iter().map(String::as_str);
    loop {
        match arguments.next()? {
            "--json" => {}
            "--profile" => drop(arguments.next()?),
            option if option.starts_with("--profile=") => {}
            "--help" | "-h" | "--version" | "-V" => return Some("help"),
            word => return (!word.starts_with('-')).then_some(word),
        }
    }
}

/// A text that is not understood may name us only for what agents may do.
fn against_unclear(text: &str) -> Option<String> {
    let refused = |what: &str| {
        Some(format!(
            "the text is not understood and {what}; agents may not run what decides what agents may do"
        ))
    };
    for variant in unquoted(text).map(|text| text.to_lowercase()) {
        if mentions(&variant, GATEWAY).next().is_some() {
            return refused("names countersign-gateway");
        }
        let decides = NOT_FOR_AGENTS.iter().find(|word| mentions(&variant, word).next().is_some());
        if mentions(&variant, TOOL).nth(MAX_MENTIONS).is_some() {
            return refused("names countersign very often");
        }
        for start in mentions(&variant, TOOL) {
            let rest = words_after(&variant, start + TOOL.len());
            let words: Vec<String> = rest.split_whitespace().map(str::to_owned).collect();
            let next = subcommand(&words);
            if next.is_some_and(|next| FOR_AGENTS.contains(&next)) {
                continue;
            }
            if rest.starts_with([' ', '\t']) && rest.contains(['$', '`', '*', '?', '[', '{']) {
                return refused("runs countersign with words that are not known");
            }
            if let Some(word) = decides {
                return refused(&format!("names `{TOOL}` and `{word}`"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn denied(text: &str) -> bool {
        against(&Texts::read(text, Path::new("/srv"), false)).is_some()
    }

    #[test]
    fn what_decides_is_not_for_agents() {
        for text in [
            "countersign approve r-1",
            "countersign --json approve r-1",
            "countersign --profile me approve r-1",
            "countersign --profile=me reject r-1",
            "countersign rules init",
            "countersign uninstall claude",
            "countersign hook claude",
            "countersign something-new",
            "countersign",
            "countersign --unknown approve",
            "/usr/local/bin/countersign approve r-1",
            "./target/debug/countersign approve r-1",
            "Countersign approve r-1",
            "sudo countersign approve r-1",
            "env A=1 countersign approve r-1",
            "A=1 countersign approve r-1",
            "nohup nice -n 5 countersign approve r-1",
            "sh -c 'countersign approve r-1'",
            "bash -lc 'cd /tmp && countersign approve r-1'",
            "xargs countersign approve",
            "echo r-1 | xargs countersign approve",
            "echo countersign approve r-1 | sh",
            "find . -exec countersign approve {} \\;",
            "countersign exec -- countersign approve r-1",
            "cargo run -p countersign-cli -- approve r-1",
            "cargo run --bin=countersign approve r-1",
            "cargo +nightly run --package countersign-cli -- grants revoke x",
            "countersign-gateway admin",
            "ls && countersign approve r-1",
            "yes | countersign approve r-1",
            "count''ersign approve r-1",
            "count\\ersign approve r-1",
            "countersign $'approve' r-1",
            "countersign $X",
            "count${x}ersign approve r-1",
            "$(echo countersign) approve r-1",
            "eval countersign approve r-1",
            "{ countersign approve r-1; }",
            "if true; then countersign approve r-1; fi",
            "countersign approve r-1 &",
            "for i in 1; do countersign recovery accept; done",
            "countersign \\\n approve r-1",
            "python3 -c 'import os; os.system(\"countersign approve r-1\")'",
            "ssh localhost 'countersign approve r-1'",
            "rm /usr/local/bin/countersign",
            "cp evil /usr/local/bin/countersign",
            "echo x > /usr/local/bin/countersign",
            "pkill countersign",
            "systemctl --user stop countersign-gateway",
            "command countersign approve r-1",
            "exec countersign approve r-1",
            "time countersign approve r-1",
        ] {
            assert!(denied(text), "{text}");
        }
    }

    #[test]
    fn asking_and_talking_about_it_is() {
        for text in [
            "countersign exec -- make",
            "countersign exec -- make $X",
            "countersign --json status",
            "countersign ask --json -- ls",
            "countersign --help",
            "grep -rn countersign src",
            "echo countersign approve",
            "git commit -m 'countersign approve explains itself'",
            "git clone https://example.org/acme/countersign",
            "cd countersign",
            "cargo test -p countersign-cli",
            "cargo run -p other -- approve",
            "ls countersign*",
            "make approve",
        ] {
            assert!(!denied(text), "{text}");
        }
    }
}
