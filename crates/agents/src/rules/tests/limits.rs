//! What no rule loosens, and what asks by itself.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{
    Verdict::{Allow, Ask, Deny},
    *,
};

#[test]
fn no_rule_for_a_command_covers_the_folder_of_git() {
    const EFFECT: &str = "effect = [\"overwrites\"]";
    let text = [
        rule(&["verdict = \"allow\"", "command = \"cp **\"", EFFECT]),
        rule(&["verdict = \"allow\"", "command = \"cp -t.git/hooks **\"", EFFECT]),
        rule(&["verdict = \"allow\"", "command = \"make **\""]),
        rule(&["verdict = \"allow\"", "command = \"install --target-directory=.git/hooks **\"", EFFECT]),
        rule(&["verdict = \"allow\"", "tool = [\"mcp__files__write\"]"]),
    ];
    let world = World::new(&text.concat(), "");
    fs::create_dir_all(world.root().join(".git/hooks")).unwrap();
    symlink(".git/hooks", world.root().join("plain")).unwrap();
    for text in ["cp src/main.rs src/other.rs", "make test", "cp README.md src", "cat .git/HEAD"] {
        assert_eq!(world.shell(text), Allow, "{text}");
    }
    for text in [
        "cp README.md .git/hooks/post-index-change",
        "cp README.md .GIT/hooks/x",
        "cp README.md src/../.git/hooks/x",
        "cp README.md plain/x",
        "cp -t.git/hooks README.md",
        "install --target-directory=.git/hooks README.md",
        "cd .git && cp ../README.md hooks/x",
        "cd .git/hooks && make",
        "make DIR=.git/hooks",
        "make DIRS=src:.git",
    ] {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
    let written =
        |path: &str| world.decide("mcp__files__write", Action::Other(json!({ "path": path }))).verdict;
    assert_eq!([written("src/x"), written(".git/hooks/x"), written(".mcp.json")], [Allow, Ask, Ask]);
}

#[test]
fn no_rule_covers_files_that_decide() {
    let text = [
        rule(&["verdict = \"allow\"", "tool = [\"Edit\"]", "path = \"**\""]),
        rule(&["verdict = \"allow\"", "path = \"~/**\"", "effect = [\"leavesRepository\"]"]),
        rule(&[
            "verdict = \"allow\"",
            "command = \"cp **\"",
            "effect = [\"leavesRepository\", \"overwrites\"]",
        ]),
    ];
    let world = World::new(&text.concat(), "");
    for (path, verdict) in [
        ("src/main.rs", Allow),
        ("../home/notes", Allow),
        (".claude/settings.json", Deny),
        (".claude/settings.local.json", Deny),
        (".github/copilot/settings.json", Deny),
        (".codex/config.toml", Deny),
        (".opencode/x", Deny),
        (".claude/skills/x/SKILL.md", Ask),
        (".claude/agents/x.md", Ask),
        (".claude/commands/x.md", Ask),
        (".gemini/commands/x.toml", Ask),
        (".mcp.json", Ask),
        ("../home/.bashrc", Ask),
        ("../home/.zshenv", Ask),
    ] {
        assert_eq!(world.edits(path), verdict, "{path}");
        let copy = world.shell(&format!("cp README.md {path}"));
        assert_eq!(copy, verdict, "cp {path}");
    }
}

/// `exec` asks by itself, and what it would run is under the same denials.
#[test]
fn denials_look_through_exec_of_our_own() {
    let world = World::new(&rule(&["verdict = \"deny\"", "command = \"rm **\""]), "");
    for text in [
        "countersign exec -- rm -rf x",
        "countersign --json exec --valid-for 5m -- rm x",
        "/usr/bin/countersign exec -- env rm x",
        "countersign exec -- sh -c 'rm x'",
        "countersign exec -- touch .claude/settings.json",
        "countersign exec -- cp a .countersign/rules.toml",
    ] {
        assert_eq!(world.shell(text), Deny, "{text}");
    }
    assert_eq!(world.shell("countersign exec -- make"), Ask);
}

#[test]
fn what_asks_by_itself_is_not_asked_about_first() {
    let world = World::new(&rule(&["verdict = \"deny\"", "command = \"rm **\""]), "");
    let own = std::env::current_exe().unwrap();
    symlink(&own, world.root().join("countersign")).unwrap();
    fs::write(world.root().join("copy"), "#!/bin/sh\n").unwrap();
    for text in [
        "./countersign exec -- make deploy",
        "./countersign exec --valid-for 5m --env CI -- npm publish",
        "./countersign ask plan plan.md",
    ] {
        assert_eq!(world.shell(text), Allow, "{text}");
    }
    for text in [
        "./copy exec -- make",
        "countersign exec -- make",
        "A=1 ./countersign exec -- make",
        "./countersign exec --profile other -- make",
        "./countersign exec -- make && make deploy",
        "cd src && ../countersign exec -- make",
        "./countersign exec -- make > Makefile",
        "xargs ./countersign exec -- make",
    ] {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
    for text in ["./countersign exec -- rm -rf x", "./countersign --profile other exec -- make"] {
        assert_ne!(world.shell(text), Allow, "{text}");
    }
}
