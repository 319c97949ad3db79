//! The manual: docs/cli.md is made from the help, so neither can lie.

use clap::CommandFactory as _;
use countersign_agents::rules::{FOR_AGENTS, NOT_FOR_AGENTS};
use countersign_cli::commands::Cli;

const INTRODUCTION: &str = "# Command reference

`countersign` is for people and agents. This page has its help, command by command;
`UPDATE_DOCS=1 cargo nextest run -p countersign-cli manual` regenerates it.

## Exit codes

| code | meaning |
|---|---|
| 0 | done; with `exec`, the command ended with 0 |
| 2 | the arguments were not understood |
| 81 | rejected by a person |
| 82 | expired: nobody answered in time |
| 83 | the gateway could not be reached, or refused |
| 84 | what would run is not what was approved |
| 85 | not set up: an identity, a pairing or a gateway is missing |
| 86 | something else failed; nothing was done |
| 87 | `doctor` or `fleet` has found something to put right |
| 126, 127 | `exec`: the command can't be started, or does not exist |
| 130 | taken back |
| other | `exec`: the code of the command, or 128 and the number of the signal that ended it |

## With `--json`

One object on stdout. A failure has `outcome` (`rejected`, `expired`, `unreachable`, `changed`, `notSetUp`, `failed`, `usage`,
`notExecutable`, `notFound`, `takenBack`), `message`, `next` and `detail`. `doctor` and `fleet` have `ok` or `findings`: `doctor` with
`findings`, `passed` and `hosts`, `fleet` with `machines`. `exec` has what the command wrote to its standard output in the object too,
as `stdout`. Everything for people goes to stderr.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut add = |name: &str, mut command: clap::Command| {
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        page.extend(["\n## `", name, "`\n\n```text\n", lines.join("\n").trim_end(), "\n```\n"]);
    };
    let mut root = Cli::command().term_width(100);
    root.build();
    add("countersign", root.clone());
    for command in root.get_subcommands().filter(|command| command.get_name() != "help") {
        let name = format!("countersign {}", command.get_name());
        add(&name, command.clone());
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            add(&format!("{name} {}", inner.get_name()), inner.clone());
        }
    }
    page
}

#[test]
fn the_page_is_the_help() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page(), "run again with UPDATE_DOCS=1");
}

#[test]
fn every_command_is_for_agents_or_not() {
    let tool = Cli::command();
    let mut commands: Vec<&str> = tool.get_subcommands().map(clap::Command::get_name).collect();
    commands.push("help");
    commands.sort_unstable();
    let mut known = [FOR_AGENTS, NOT_FOR_AGENTS].concat();
    known.sort_unstable();
    assert_eq!(known, commands);
}
