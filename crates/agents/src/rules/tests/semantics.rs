//! One test for each sentence of docs/rules.md.

use std::{os::unix::fs::symlink, time::Duration};

use serde_json::json;

use super::{
    Verdict::{Allow, Ask, Deny},
    *,
};

#[test]
fn what_no_rule_allows_is_asked_for() {
    let world = World::new("", "");
    for text in ["make", "cargo test", "rm x", "echo $HOME", "", "unknown", "curl https://example.org"] {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
    assert_eq!(world.edits("src/main.rs"), Ask);
    for action in [
        Action::Plan("# Plan".to_owned()),
        Action::Questions(Vec::new()),
        Action::Network("https://example.org".to_owned()),
        Action::Other(json!({"a": 1})),
    ] {
        assert_eq!(world.decide("Tool", action).verdict, Ask);
    }
}

#[test]
fn reading_inside_of_the_repository_is_allowed_and_secrets_are_not() {
    let world = World::new("", "");
    for path in ["src/main.rs", "src", "new-file", ".countersign/rules.toml"] {
        assert_eq!(world.reads(path), Allow, "{path}");
    }
    for path in ["../outside", "/etc/passwd", ".env", "deploy/id_rsa", "a.pem"] {
        assert_eq!(world.reads(path), Ask, "{path}");
    }
    assert_eq!(world.decide("Grep", Action::Read(Vec::new())).verdict, Allow);
    fs::write(world.root().join(".env"), "KEY=1").unwrap();
    let ruling = world.decide("Grep", Action::Read(Vec::new()));
    assert_eq!(ruling.verdict, Ask);
    assert!(ruling.reason.contains(".env"), "{ruling:?}");
    assert_eq!(world.decide("Glob", Action::Read(Vec::new())).verdict, Allow, "names only");
    symlink("/etc", world.root().join("link")).unwrap();
    assert_eq!(world.reads("link/passwd"), Ask);
    assert_eq!(world.shell("cat link/passwd"), Ask);
    // A program follows the link before it goes up.
    assert_eq!(world.reads("link/../etc/passwd"), Ask);
}

#[test]
fn outside_of_a_repository_nothing_is_allowed() {
    let world = World::new(&rule(&["verdict = \"allow\"", "command = \"cargo test **\""]), "");
    fs::remove_dir_all(world.root().join(".git")).unwrap();
    for text in ["ls", "cat README.md", "cargo test a"] {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
    assert_eq!(world.reads("README.md"), Ask);
}

#[test]
fn commands_that_only_read_are_allowed() {
    let world = World::new("", "");
    for text in [
        "ls",
        "ls -la src && cat README.md | head -5",
        "git status --short; git diff --stat HEAD~1 -- src",
        "git --no-pager log --oneline -5",
        "grep -n text src/main.rs 2>/dev/null",
        "rg text src 2>&1",
        "sed -n '1,20p' src/main.rs",
        "find . -name '*.rs' -type f | wc -l",
        "cd src && cat main.rs",
        "echo '---'",
        "cat < README.md",
    ] {
        assert_eq!(world.shell(text), Allow, "{text}");
    }
    for text in [
        "cat .env",
        "cat ../outside",
        "cd .. && cat x",
        "cd src; cat ../../x",
        "cd src | cat ../x",
        "cd /tmp && ls",
        "cd",
        "cd -",
        "A=1 ls",
        "PATH=. ls",
        "ls > out",
        "ls >> README.md",
        "cat < /etc/passwd",
        "git diff --output=x",
        "git show HEAD:.env",
        "sort -o README.md README.md",
        "find . -delete",
        "ls $(evil)",
        "ls *",
        "ls ~",
        "./ls",
        "ls & evil",
        "command ls",
    ] {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
}

#[test]
fn git_is_not_harmless_if_the_repository_names_programs() {
    let world = World::new("", "");
    assert_eq!(world.shell("git status"), Allow);
    fs::create_dir_all(world.root().join("bare")).unwrap();
    fs::write(world.root().join("bare/HEAD"), "x").unwrap();
    assert_eq!(world.shell("cd bare && git status"), Ask);
    fs::write(world.root().join(".git/config"), "[core]\n\tfsmonitor = ./evil\n").unwrap();
    let ruling = world.decide("Bash", Action::Shell("git status".to_owned()));
    assert_eq!(ruling.verdict, Ask);
    assert!(ruling.reason.contains("core.fsmonitor"), "{ruling:?}");
    assert_eq!(world.shell("ls"), Allow);
}

#[test]
fn the_strictest_rule_wins_whatever_the_order() {
    let allow = rule(&["verdict = \"allow\"", "command = \"cargo test **\""]);
    let ask = rule(&["verdict = \"ask\"", "command = \"cargo test slow\""]);
    let deny = rule(&["verdict = \"deny\"", "command = \"cargo test evil\""]);
    for files in [[&allow, &ask, &deny], [&deny, &ask, &allow], [&ask, &deny, &allow]] {
        let world = World::new(&files.map(String::as_str).concat(), "");
        assert_eq!(world.shell("cargo test quick"), Allow);
        assert_eq!(world.shell("cargo test slow"), Ask);
        assert_eq!(world.shell("cargo test evil"), Deny);
        assert_eq!(world.shell("cargo test quick; cargo test slow"), Ask);
        assert_eq!(world.shell("cargo test slow; cargo test evil"), Deny);
    }
    let strict = World::new(&rule(&["verdict = \"ask\"", "command = \"ls **\""]), "");
    assert_eq!(strict.shell("ls"), Ask, "also than what is built in");
}

#[test]
fn every_condition_of_a_rule_must_apply() {
    let text = rule(&[
        "verdict = \"deny\"",
        "tool = [\"Bash\", \"shell*\"]",
        "command = \"rm **\"",
        "path = \"migrations/**\"",
        "effect = [\"deletes\"]",
    ]);
    let world = World::new(&text, "");
    assert_eq!(world.shell("rm migrations/1.sql"), Deny);
    assert_eq!(world.decide("shell_exec", Action::Shell("rm migrations/1.sql".to_owned())).verdict, Deny);
    assert_eq!(world.decide("Other", Action::Shell("rm migrations/1.sql".to_owned())).verdict, Ask);
    assert_eq!(world.shell("rm src/main.rs"), Ask);
    assert_eq!(world.shell("touch migrations/1.sql"), Ask);
}

#[test]
fn an_allow_rule_must_cover_every_command() {
    let world = World::new(&rule(&["verdict = \"allow\"", "command = \"cargo test **\""]), "");
    for text in
        ["cargo test", "cargo test a b", "cd src && cargo test a 2>&1 | tail -5", "cargo test && git status"]
    {
        assert_eq!(world.shell(text), Allow, "{text}");
    }
    for text in [
        "cargo test --all",
        "cargo test; make",
        "cargo test | sh",
        "cargo test > log",
        "RUSTFLAGS=x cargo test",
        "cargo test $X",
        "/tmp/cargo test",
        "cargo build",
        "cargo test /etc/passwd",
        "cargo test ../x",
        "sh -c 'cargo test'",
    ] {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
}

#[test]
fn what_is_dangerous_is_asked_for_unless_the_rule_names_it() {
    let text = [
        rule(&["verdict = \"allow\"", "command = \"rm **\""]),
        rule(&["verdict = \"allow\"", "command = \"git push origin *\"", "effect = [\"publishes\"]"]),
        rule(&["verdict = \"allow\"", "command = \"cat **\""]),
        rule(&["verdict = \"allow\"", "command = \"make **\""]),
    ];
    let world = World::new(&text.concat(), "");
    let ruling = world.decide("Bash", Action::Shell("rm src/main.rs".to_owned()));
    assert_eq!(ruling.verdict, Ask);
    assert!(
        ruling.reason.contains("rules.toml:1 would allow") && ruling.reason.contains("deletes"),
        "{ruling:?}"
    );
    assert_eq!(world.shell("git push origin main"), Allow);
    assert_eq!(world.shell("git push origin +main"), Ask, "rewrites history, which is not named");
    assert_eq!(world.shell("cat .env"), Ask);
    assert_eq!(world.shell("cat /etc/passwd"), Ask);
    assert_eq!(world.shell("make test"), Allow, "the user says so, whatever make does");
}

#[test]
fn a_rule_for_a_command_and_a_path_covers_these_operands() {
    let text = rule(&[
        "verdict = \"allow\"",
        "command = \"rm **\"",
        "path = \"target/**\"",
        "effect = [\"deletes\"]",
    ]);
    let world = World::new(&text, "");
    assert_eq!(world.shell("rm target/a target/b/c"), Allow);
    for text in
        ["rm target/a src/main.rs", "rm target/../src/main.rs", "rm -r target/a", "cd src && rm ../target/a"]
    {
        assert_eq!(world.shell(text), Ask, "{text}");
    }
    symlink("/etc", world.root().join("target/out")).unwrap();
    assert_eq!(world.shell("rm target/out/x"), Ask);
}

#[test]
fn a_program_with_a_slash_is_meant_at_the_root() {
    let world = World::new(&rule(&["verdict = \"allow\"", "command = \"./run.sh **\""]), "");
    assert_eq!(world.shell("./run.sh a"), Allow);
    assert_eq!(world.shell("cd src && ./run.sh a"), Ask);
}

#[test]
fn changes_are_allowed_by_path_and_never_in_the_folder_of_git() {
    let text = rule(&["verdict = \"allow\"", "tool = [\"Edit\", \"Write\", \"Bash\"]", "path = \"**\""]);
    let world = World::new(&text, "");
    assert_eq!(world.edits("src/main.rs"), Allow);
    assert_eq!(world.shell("echo x > src/new.rs"), Allow, "a redirection is a change");
    for path in ["../x", "/etc/hosts", ".env", ".git/config", ".git/hooks/pre-commit", "src/../.git/config"] {
        assert_eq!(world.edits(path), Ask, "{path}");
    }
    assert_eq!(world.shell("echo x > .git/config"), Ask);
    assert_eq!(world.shell("echo x > .env"), Ask);
    let mut deleted = change(&world.root().join("src/main.rs"));
    deleted.after = None;
    assert_eq!(world.decide("Edit", Action::Edit(vec![deleted])).verdict, Ask, "it deletes");
    assert_eq!(world.decide("Edit", Action::Edit(Vec::new())).verdict, Ask);
    symlink(world.base(), world.root().join("out")).unwrap();
    assert_eq!(world.edits("out/x"), Ask);
    let both = vec![change(&world.root().join("src/main.rs")), change(&world.root().join(".env"))];
    assert_eq!(world.decide("Edit", Action::Edit(both)).verdict, Ask, "each file");
    let both = [text, rule(&["verdict = \"allow\"", "command = \"cargo test **\""])].concat();
    let both = World::new(&both, "");
    assert_eq!(both.shell("cargo test a > src/log"), Allow, "the command by one rule, the file by another");
    assert_eq!(both.shell("cargo test a > .env"), Ask);
    let by_tool = World::new(&rule(&["verdict = \"allow\"", "tool = \"Bash\""]), "");
    assert_eq!(by_tool.shell("echo x > src/new.rs"), Ask, "a tool alone is no file");
    assert_eq!(by_tool.shell("make"), Ask, "and no command");
}

#[test]
fn other_tools_are_allowed_by_name() {
    let world = World::new(&rule(&["verdict = \"allow\"", "tool = \"mcp__docs__*\""]), "");
    let other = |tool: &str, arguments| world.decide(tool, Action::Other(arguments)).verdict;
    assert_eq!(other("mcp__docs__search", json!({"q": "x"})), Allow);
    assert_eq!(other("mcp__other__search", json!({"q": "x"})), Ask);
    assert_eq!(other("mcp__docs__write", json!({"path": "~/.claude/settings.json"})), Deny);
    assert_eq!(other("mcp__docs__run", json!({"command": "countersign approve r-1"})), Deny);
    assert_eq!(other("mcp__docs__run", json!({"command": ["sh", "-c", "countersign approve r-1"]})), Deny);
    let patch = "*** Begin Patch\n*** Update File: .claude/settings.json\n@@\n";
    assert_eq!(other("mcp__docs__patch", json!({"input": patch})), Deny);
}

#[test]
fn a_tool_is_known_if_the_users_own_rules_name_it() {
    let named = rule(&["verdict = \"ask\"", "tool = \"mcp__docs__*\""]);
    let every = rule(&["verdict = \"ask\"", "tool = \"*\""]);
    let knows = |user: &str, repository: &str| {
        World::new(user, repository).load().unwrap().names_tool("mcp__docs__search")
    };
    assert!(knows(&named, ""));
    assert!(!knows("", "") && !knows(&every, ""), "every tool is none");
    assert!(!knows("", &named), "a repository's rules say nothing of it");
}

#[test]
fn a_denial_is_not_dodged() {
    let text = [
        rule(&["verdict = \"deny\"", "command = \"git push **\""]),
        rule(&["verdict = \"deny\"", "command = \"rm -rf **\""]),
        rule(&["verdict = \"deny\"", "path = \"migrations/**\""]),
        rule(&["verdict = \"deny\"", "effect = [\"escalatesPrivileges\"]"]),
    ];
    let world = World::new(&text.concat(), "");
    for text in [
        "git push",
        "git push --force origin main",
        "git -C . push",
        "git --no-pager push",
        "/usr/bin/git push",
        "ls && git push",
        "sudo git push",
        "env A=1 git push",
        "A=1 git push",
        "sh -c 'git push'",
        "bash -lc 'ls; git push'",
        "xargs git push",
        "g''it push $X",
        "git $X",
        "git -C . $(echo push)",
        "git p*",
        "x=git; $x push",
        "git pu${x}sh",
        "g\\it push $X",
        "$(echo git) push",
        "if true; then git push; fi",
        "git push &",
        "ssh host 'git push'",
        "rm -rf x",
        "rm -fr x",
        "rm -r -f x",
        "rm x -rf",
        "rm -rf $X",
        "rm migrations/1.sql",
        "rm -r migrations",
        "cd migrations && rm 1.sql",
        "echo x > migrations/2.sql",
        "sed -i s/a/b/ ./src/../migrations/1.sql",
        "cp x --target-directory=migrations",
        "rm migrations/$X",
        "sudo make",
        "make; sudo make",
        "timeout 60 sudo make",
    ] {
        assert_eq!(world.shell(text), Deny, "{text}");
    }
    let by_document = "git commit -m \"$(cat <<'EOF'\nFix the parser\nEOF\n)\"";
    assert_eq!(world.shell(by_document), Ask, "another command of the same program");
    for text in ["git stash push", "git commit -m 'git push later'", "rm -r x", "grep push README.md", "ls"] {
        assert_ne!(world.shell(text), Deny, "{text}");
    }
    assert_eq!(world.edits("migrations/1.sql"), Deny);
    assert_eq!(world.reads("migrations/1.sql"), Deny);
    symlink("migrations", world.root().join("same")).unwrap();
    assert_eq!(world.edits("same/1.sql"), Deny, "through a link");
    let ruling = world.decide("Bash", Action::Shell("g''it push $X".to_owned()));
    assert_eq!(ruling.reason, "a text that is not understood and names git is denied");
}

#[test]
fn a_repository_tightens_and_never_loosens() {
    let allow = rule(&["verdict = \"allow\"", "command = \"cargo test **\""]);
    let world = World::new(
        &allow,
        &rule(&["verdict = \"deny\"", "command = \"cargo test live\"", "reason = \"it costs\""]),
    );
    assert_eq!(world.shell("cargo test a"), Allow);
    let ruling = world.decide("Bash", Action::Shell("cargo test live".to_owned()));
    assert_eq!((ruling.verdict, ruling.reason.as_str()), (Deny, "it costs"));
    assert!(ruling.rule.ends_with("repo/.countersign/rules.toml:1"), "{ruling:?}");
    let loose = World::new("", &allow);
    assert!(loose.load().unwrap_err().what.contains("only tighten"));
    // A link to it is no way around its rules.
    symlink(world.root().join("src"), world.base().join("link")).unwrap();
    let cwd = world.base().join("link");
    let rules = Rules::of_folder(&world.base().join("tool"), None, &cwd).unwrap();
    let call = Call { tool: "Bash".to_owned(), cwd, action: Action::Shell("cargo test live".to_owned()) };
    assert_eq!(rules.decide(&call).verdict, Deny);
    // A repository within it is under the same rules.
    let inner = world.root().join("vendor/.git");
    fs::create_dir_all(&inner).unwrap();
    let cwd = world.root().join("vendor");
    let rules = Rules::of_folder(&world.base().join("tool"), None, &cwd).unwrap();
    let call = Call { tool: "Bash".to_owned(), cwd, action: Action::Shell("cargo test live".to_owned()) };
    assert_eq!(rules.decide(&call).verdict, Deny);
}

#[test]
fn agents_touch_neither_rules_nor_hooks_nor_what_decides() {
    let all = [
        rule(&["verdict = \"allow\"", "tool = [\"Bash\", \"Edit\", \"Read\"]", "path = \"**\""]),
        rule(&["verdict = \"allow\"", "command = \"countersign **\""]),
        rule(&["verdict = \"allow\"", "command = \"rm **\"", "effect = [\"deletes\", \"leavesRepository\"]"]),
    ];
    let world = World::new(&all.concat(), "");
    for text in [
        "countersign approve r-1",
        "countersign uninstall claude",
        "countersign rules init",
        "echo x > .countersign/rules.toml",
        "cat .countersign/rules.toml",
        "rm .claude/settings.json",
        "cd .claude && rm settings.json",
        "mkdir x; cd x; cd ../.claude; rm settings.json",
        "rm -rf ~/.claude",
        "rm ../tool/rules.toml",
        "cat ../tool/profiles/agent/keys",
        "echo '{}' | tee ~/.claude/settings.json",
        "python3 -c \"open('.claude/settings.json','w')\"",
        "git checkout .codex/config.toml",
    ] {
        assert_eq!(world.shell(text), Deny, "{text}");
    }
    for path in [
        ".countersign/rules.toml",
        ".claude/settings.json",
        ".claude/settings.local.json",
        "../home/.claude/settings.json",
        "../tool/rules.toml",
        ".codex/hooks.json",
        ".github/hooks/x.json",
    ] {
        assert_eq!(world.edits(path), Deny, "{path}");
    }
    assert_eq!(world.reads("../tool/profiles/agent/keys"), Deny);
    symlink(world.root().join(".claude"), world.root().join("innocent")).unwrap();
    fs::create_dir_all(world.root().join(".claude")).unwrap();
    assert_eq!(world.edits("innocent/settings.json"), Deny, "through a link");
    assert_eq!(world.shell("rm innocent/settings.json"), Deny, "through a link");
    assert_eq!(world.edits(".claude/commands/x.md"), Ask, "if a person says so");
}

#[test]
fn a_file_that_is_not_right_is_an_error() {
    for (user, repository) in
        [("x", ""), ("[[rule]]\nverdict = \"no\"\n", ""), ("", "[[rule]]\n"), ("[other]\n", "")]
    {
        World::new(user, repository).load().unwrap_err();
    }
}

#[test]
fn deciding_takes_no_time_that_anybody_notices() {
    let text = rule(&["verdict = \"allow\"", "command = \"cargo test **\""]).repeat(50);
    let world = World::new(&text, &rule(&["verdict = \"deny\"", "command = \"git push **\""]).repeat(50));
    let started = tokio::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(world.shell("cd src && cargo test a b c 2>&1 | tail -20"), Allow);
    }
    let each = started.elapsed() / 100;
    assert!(each < Duration::from_millis(50), "{each:?}");
}

/// A host goes on without a hook that takes too long.
#[test]
fn hostile_input_takes_no_time_either() {
    let world = World::new(&rule(&["verdict = \"deny\"", "command = \"git push **\""]), "");
    let rules = world.load().unwrap();
    let shell = |text: String| Action::Shell(text);
    let strings: Vec<String> = (0..100_000).map(|number| format!("/tmp/x{number}")).collect();
    for (name, action) in [
        ("names", shell("countersign x ".repeat(50_000))),
        ("names in a rule", shell("git $x ".repeat(100_000))),
        ("quotes", shell("'".repeat(500_000))),
        ("expansions", shell("${".repeat(300_000))),
        ("backquotes", shell("`".repeat(500_000))),
        ("long paths", shell(format!("ls {}", "a/".repeat(10_000)))),
        ("words", shell(format!("ls {}", "w ".repeat(1_900)))),
        ("programs behind programs", shell(format!("foo {}", "git ".repeat(1_500)))),
        ("shells in shells", shell("sh -c ".repeat(5_000))),
        ("folders", shell(format!("cd a;cd b;cd c;cd d;{}", "ls x;".repeat(100)))),
        ("arguments", Action::Other(json!({ "a": strings }))),
        ("words without a shell", Action::Other(json!({ "command": strings }))),
        ("a patch", Action::Other(json!({ "a": "+++ x\n".repeat(100_000) }))),
    ] {
        let started = tokio::time::Instant::now();
        let call = Call { tool: "Tool".to_owned(), cwd: world.root(), action };
        rules.decide(&call);
        let taken = started.elapsed();
        assert!(taken < Duration::from_secs(3), "{name}: {taken:?}");
    }
}
