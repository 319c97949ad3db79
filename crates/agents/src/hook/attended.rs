//! Whether a person would see the host's own prompt. In doubt nobody would: then nothing is left to it.

use std::time::Duration;

use crate::{
    hosts::Host,
    platform::{Process, process},
};

/// How far up the host may be: a hook may be started through a shell.
const MAX_ANCESTORS: usize = 8;

/// How often it is looked whether the host still waits.
const LOOK_TIME: Duration = Duration::from_millis(500);

/// Whether the host that has started a hook runs in a terminal and asks there.
pub fn is_attended(host: Host, hook: u32) -> bool {
    host_asks(host, &ancestors(hook))
}

/// Those who have started a process, the nearest first.
fn ancestors(of: u32) -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = process(of).map_or(0, |process| process.parent);
    while let Some(process) = (found.len() < MAX_ANCESTORS && next > 1).then(|| process(next)).flatten() {
        next = process.parent;
        found.push(process);
    }
    found
}

/// The processes between a hook and its host, such as a shell. A host that stops waiting ends the nearest to it.
#[derive(Debug)]
pub struct Between {
    /// A process and its parent.
    links: Vec<(u32, u32)>,
}

impl Between {
    /// As it is now. Without a host that is known, only the hook's parent is watched.
    pub fn now(host: Host, hook: u32) -> Self {
        let ancestors = ancestors(hook);
        let to_host = ancestors.iter().position(|process| is_host(host, process)).unwrap_or(0);
        let parent = process(hook).map_or(0, |process| process.parent);
        let parents = ancestors[..to_host].iter().map(|process| process.parent);
        let mut child = hook;
        let mut links = Vec::new();
        for parent in std::iter::once(parent).chain(parents) {
            links.push((child, parent));
            child = parent;
        }
        Self { links }
    }

    /// Whether one of them is gone.
    pub fn is_broken(&self) -> bool {
        let is_same =
            |(child, parent): &(u32, u32)| process(*child).is_some_and(|process| process.parent == *parent);
        !self.links.iter().all(is_same)
    }

    /// Waits until the host, or what is between it and the hook, has ended.
    pub async fn broken(host: Host, hook: u32) {
        let between = Self::now(host, hook);
        while !between.is_broken() {
            tokio::time::sleep(LOOK_TIME).await;
        }
    }
}

fn is_host(host: Host, process: &Process) -> bool {
    process.arguments.iter().take(3).any(|word| names(host, word))
}

/// The host is the nearest ancestor with its name.
fn host_asks(host: Host, ancestors: &[Process]) -> bool {
    let is_host = |process: &&Process| is_host(host, process);
    ancestors
        .iter()
        .find(is_host)
        .is_some_and(|found| found.has_terminal && !is_headless(host, &found.arguments))
}

/// Whether a word of a command line is the program of a host, also through an interpreter.
fn names(host: Host, word: &str) -> bool {
    let file = word.rsplit('/').next().unwrap_or(word);
    let file = file.trim_end_matches(".js").trim_end_matches(".exe");
    file == host.word()
        || file.starts_with(&format!("{}-", host.word()))
        || word.contains(&format!("/{}/", host.word()))
}

/// Whether these arguments make it run without asking anybody.
fn is_headless(host: Host, arguments: &[String]) -> bool {
    let name = |argument: &String| argument.split('=').next().unwrap_or(argument).to_owned();
    arguments.iter().any(|argument| host.headless.contains(&name(argument).as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::{claude, codex, copilot, gemini, opencode};

    fn process(line: &str, has_terminal: bool) -> Process {
        let arguments = line.split(' ').map(str::to_owned).collect();
        Process { parent: 1, has_terminal, arguments }
    }

    #[test]
    fn only_a_host_that_asks_in_a_terminal_is_attended() {
        for (host, line, has_terminal, expected) in [
            (claude::HOST, "claude", true, true),
            (claude::HOST, "/opt/bin/claude --permission-mode default please", true, true),
            (claude::HOST, "claude -p please", true, false),
            (claude::HOST, "claude --print", true, false),
            (claude::HOST, "claude", false, false),
            (codex::HOST, "node /x/bin/codex.js", true, true),
            (codex::HOST, "codex exec please", true, false),
            (codex::HOST, "/x/codex-linux-sandbox", true, true),
            (gemini::HOST, "node /x/bin/gemini -p=x", true, false),
            (gemini::HOST, "node --no-warnings /x/bin/gemini", true, true),
            (opencode::HOST, "opencode run x", true, false),
            (opencode::HOST, "opencode", true, true),
            (copilot::HOST, "copilot -p x", true, false),
            (claude::HOST, "bash", true, false),
        ] {
            let ancestors = [process("sh -c hook", true), process(line, has_terminal)];
            assert_eq!(host_asks(host, &ancestors), expected, "{line}");
        }
        assert!(!host_asks(claude::HOST, &[]));
    }
}
