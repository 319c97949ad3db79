//! Shell texts by the thousand, with quoting, substitution, newlines and look-alikes: what is not certain is not allowed,
//! and what is allowed runs in a real shell nothing but what was read.

use std::{collections::BTreeSet, process::Command};

use countersign_client::{pattern::Pattern, shell};

use super::*;

/// Commands that are allowed as they are, by what is built in or by the rule of the test.
const ALLOWED: &[&str] = &[
    "ls",
    "ls -la src",
    "cat README.md",
    "git status",
    "git log --oneline -5",
    "cargo test",
    "cargo test a",
    "cargo test 'a b' c",
    "grep -n x README.md",
    "echo \"a  b\"",
];

/// Texts around a command. `@` is the command; whatever runs `evil` is never allowed.
const TEXTS: &[&str] = &[
    "@",
    "@ ; evil",
    "@\nevil",
    "@ && evil",
    "@ || evil",
    "@ | evil",
    "@ & evil",
    "@ |& evil",
    "@;evil",
    "@&&evil",
    "evil; @",
    "$(evil) @",
    "@ $(evil)",
    "@ `evil`",
    "@ \"$(evil)\"",
    "@ '$(evil)'",
    "@ \"`evil`\"",
    "@ '`evil`'",
    "@ <(evil)",
    "@ >(evil)",
    "@ ${x:-$(evil)}",
    "@ ${x:=evil}",
    "@ $((`evil`))",
    "@ #x\nevil",
    "@ 'a\nb'",
    "@ \\\n evil",
    "@\\\nevil",
    "@ 'x' ; 'evil'",
    "@;e''vil",
    "@;e\\vil",
    "@;\"evil\"",
    "@&&e$()vil",
    "x=evil; $x",
    "eval evil; @",
    "eval '@; evil'",
    "@ <<E\n$(evil)\nE",
    "@ <<'E'\nx\nE\nevil",
    "@ <<<\"$(evil)\"",
    "! @ ; evil",
    "! evil",
    "(evil); @",
    "(@)",
    "{ evil; }; @",
    "{ @; }",
    "if @; then evil; fi",
    "for i in 1; do evil; done",
    "while evil; do break; done",
    "until evil; do :; done",
    "case x in x) evil;; esac",
    "f() { evil; }; f",
    "function f { evil; }; f",
    "@ 2>&1 | evil",
    "@ > out",
    "@ >> out",
    "@ >| out",
    "@ &> out",
    "@ >& out",
    "@ 3> out",
    "> out",
    "@ 2> /dev/null",
    "@ >/dev/null 2>&1",
    "@ && @",
    "@ ; @",
    "@\n@",
    "@ | @",
    "@ || @;",
    "@;",
    "\t@",
    " @ ",
    "@ \u{a0}evil",
    "@\u{a0};evil",
    "@\revil",
    "@\u{2028}evil",
    "@\u{ff1b}evil",
    "@\u{37e}evil",
    "@ \u{ff04}(evil)",
    "@ \u{2019}; evil \u{2019}",
    "@\u{0}evil",
    "@\u{b}evil",
    "@\u{c}evil",
    "A=$(evil) @",
    "A=1 @",
    "A=1; @",
    "A=1 B=2 @",
    "@ A=1",
    "@ $'x\\'; evil'",
    "@ $'x'",
    "@ $\"$(evil)\"",
    "@ ~+",
    "@ ~",
    "@ {a,evil}",
    "@ {1..3}",
    "@ *",
    "@ ?",
    "@ [a-z]*",
    "coproc evil",
    "time evil",
    "exec evil",
    "command evil",
    "builtin eval evil",
    "trap evil EXIT",
    "alias ls=evil; ls",
    "[[ -n $(evil) ]]",
    "(( $(evil) ))",
    "@ !!",
    "@ !evil",
    "\"@\"",
    "'@'",
    "@ '",
    "@ \"",
    "@ \\",
    "@ 'a\\'; evil '",
    "@ \"a\\\"; evil \"",
    "@ \"a\\\\\"; evil",
    "@ 'a'\\''b'",
    "@ a\\;evil",
    "@ a\\ b",
    "@ \"a;evil\"",
    "@ 'a && evil'",
    "@ '#'; evil",
    "@ a#b",
    "@ -- 'x'",
    "@ =evil",
    "=evil",
    "%1",
    "@ %1",
    "cd src && @",
    "cd src; @",
    "cd .. && @",
    "cd; @",
    "cd - && @",
    "pushd src; @",
    ". ./evil",
    "source ./evil",
    "set -- evil; \"$@\"",
    "IFS=x; @",
    "export A=1; @",
    "unset PATH; @",
    "env evil",
    "xargs evil",
    "sudo evil",
    "nohup evil",
    "sh -c evil",
    "sh -c '@'",
    "bash -lc '@; evil'",
    "@ | sh",
    "@ | xargs evil",
    "\u{441}at README.md",
    "l\u{455}",
    "c\u{430}rgo test",
    "git \u{2013}version",
    "ls \u{2010}la",
    "LS",
    "Cargo test",
    "ls\u{200b}",
    "\u{200b}ls",
    "\u{feff}ls",
    "l\\s",
    "'ls'",
    "\"ls\"",
    "l's'",
    "$LS",
    "${LS}",
    "`echo ls`",
    "/bin/ls",
    "./ls",
    "../ls",
    "ls /",
    "ls ..",
    "cat /etc/passwd",
    "cat .env",
    "cat ''",
    "cat '.env'",
    "cat .\\env",
    "cat \".env\"",
    "cat .e'n'v",
    "cat ./.env",
    "cat src/../.env",
    "cat README.md .env",
    "cargo test --all",
    "cargo 'test'",
    "cargo \"test\" a",
    "cargo test '--all'",
    "cargo test \"--all\"",
    "cargo test -- --nocapture",
    "cargo test a '-x'",
    "cargo +nightly test",
    "cargo test a\tb",
    "cargo\ttest",
    "git status -s",
    "git -c x=y status",
    "git --git-dir=x status",
    "git diff --output=x",
    "git log --output x",
    "rg --pre evil x",
    "find . -exec evil",
    "find . -delete",
    "sort -o x y",
    "sed -i s/a/b/ README.md",
    "sed -n 1e README.md",
    "sed -n 1p README.md",
];

fn texts() -> Vec<String> {
    let mut texts: BTreeSet<String> = BTreeSet::new();
    let fill = |text: &str, command: &str| text.replace('@', command);
    for text in TEXTS {
        for command in ALLOWED {
            texts.insert(fill(text, command));
        }
    }
    // One text in another.
    for (outer, inner) in TEXTS.iter().enumerate().flat_map(|(at, outer)| {
        let inner = [7, 31, 64].map(|step| TEXTS[(at * step + step) % TEXTS.len()]);
        inner.map(|inner| (outer, inner))
    }) {
        texts.insert(fill(&fill(outer, inner), "cargo test a"));
    }
    texts.into_iter().collect()
}

/// What a real shell runs for each text: the words of every command. Nothing is found on its path, so nothing runs.
fn run_by_bash(texts: &[String], folder: &Path) -> Vec<Vec<Vec<String>>> {
    // What runs in the background writes before the next text begins.
    let quoted = |text: &String| {
        format!("( eval '{}'; wait ) </dev/null", text.replace('\0', "").replace('\'', r"'\''"))
    };
    // Each record is one write, so that both sides of a pipe can write.
    let handler = "command_not_found_handle() { printf '%s\\037' \"$@\" \"$END\" >&9; return 0; }\n\
                   enable -n echo test pwd true false kill :\nEND=$'\\035'\nPATH=/nonexistent\nexec 9>&1 >/dev/null 2>&1\n";
    let script: Vec<String> = texts.iter().map(quoted).collect();
    let script = format!("{handler}{}\n", script.join("\nprintf '\\036' >&9\n"));
    let file = folder.join("script");
    fs::write(&file, script).unwrap();
    let work = folder.join("work");
    fs::create_dir_all(work.join("src")).unwrap();
    let output = Command::new("bash").arg(&file).current_dir(work).output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = |line: &str| {
        line.strip_suffix('\u{1f}').unwrap_or(line).split('\u{1f}').map(str::to_owned).collect::<Vec<_>>()
    };
    let commands =
        |text: &str| text.split("\u{1d}\u{1f}").filter(|line| !line.is_empty()).map(words).collect();
    output.split('\u{1e}').map(commands).collect()
}

#[test]
fn nothing_is_allowed_that_is_not_certain() {
    let world = World::new(&rule(&["verdict = \"allow\"", "command = \"cargo test **\""]), "");
    let texts = texts();
    assert!(texts.len() >= 1_000, "{}", texts.len());
    let folder = tempfile::tempdir().unwrap();
    let ran = run_by_bash(&texts, folder.path());
    assert_eq!(ran.len(), texts.len());
    let rules = world.load().unwrap();
    let pattern = Pattern::new(["cargo", "test", "**"]).unwrap();
    let root = world.root().display().to_string();
    let (mut allowed, mut granted, mut evil, mut compared) = (0, 0, 0, 0);
    for (text, ran) in texts.iter().zip(&ran) {
        let call = Call { tool: "Bash".to_owned(), cwd: world.root(), action: Action::Shell(text.clone()) };
        let is_allowed = rules.decide(&call).verdict == Verdict::Allow;
        let is_granted = shell::plain_commands(text, &root)
            .is_some_and(|commands| commands.iter().all(|argv| pattern.covers(argv)));
        let runs_evil = ran.iter().any(|words| words.iter().any(|word| word == "evil") && words[0] == "evil");
        evil += usize::from(runs_evil);
        assert!(!(runs_evil && (is_allowed || is_granted)), "{text:?} runs {ran:?}");
        let read = shell::commands(text);
        assert!(read.is_some() || !(is_allowed || is_granted), "{text:?} is not understood");
        allowed += usize::from(is_allowed);
        granted += usize::from(is_granted);
        // What is allowed runs nothing but what was read.
        for words in ran.iter().filter(|_| is_allowed || is_granted) {
            assert!(
                read.as_ref().unwrap().iter().any(|command| command.words == *words),
                "{text:?} runs {words:?}"
            );
            compared += 1;
        }
    }
    assert!(
        allowed > 150 && granted > 30 && evil > 400 && compared > 150,
        "{allowed} {granted} {evil} {compared}"
    );
}
