//! What is certain, and what is not.

use std::fs;

use super::*;

/// A repository with a few files.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(".git")).unwrap();
    fs::create_dir_all(folder.path().join("sub")).unwrap();
    fs::create_dir_all(folder.path().join("node_modules/.bin")).unwrap();
    for name in
        ["x.sh", "tool.py", "app.js", "app", "ignore", "data.csv", "sub/y.sh", "node_modules/.bin/tsc"]
    {
        fs::write(folder.path().join(name), "x\n").unwrap();
    }
    folder
}

fn of_text(text: &str, folder: &Path) -> Examination {
    examine_text(text, &Place { cwd: folder, repository: Some(folder) })
}

fn roles(examination: &Examination, folder: &Path) -> String {
    let role = |file: &NamedFile| {
        format!("{} {}", file.role.as_str(), file.path.strip_prefix(folder).unwrap().display())
    };
    let mut roles: Vec<String> = examination.files.iter().map(role).collect();
    roles.sort();
    roles.join(", ")
}

#[test]
fn the_forms_of_the_grammar_are_certain() {
    let folder = repository();
    for (text, state, files) in [
        ("ls -la", State::Examined, ""),
        ("cargo test --all 2>&1 | tail -5", State::Examined, ""),
        ("make", State::Opaque, ""),
        ("pytest -q", State::Opaque, ""),
        ("cargo run", State::Opaque, ""),
        ("bun run lint; docker exec web ls", State::Opaque, ""),
        ("npx tsc --noEmit", State::Opaque, ""),
        ("./x.sh a b", State::Opaque, "executable x.sh"),
        ("sh x.sh", State::Opaque, "script x.sh"),
        ("sh -e x.sh", State::Opaque, "script x.sh"),
        ("bash -eux ./x.sh data.csv", State::Opaque, "operand data.csv, script ./x.sh"),
        ("python3 -u tool.py data.csv", State::Opaque, "operand data.csv, script tool.py"),
        ("python3.11 -B -I tool.py", State::Opaque, "script tool.py"),
        ("node app.js", State::Opaque, "script app.js"),
        ("node --test app.js", State::Opaque, "script app.js"),
        ("node --test", State::Opaque, ""),
        ("perl -w x.sh", State::Opaque, "script x.sh"),
        ("env A=1 timeout 10 sh x.sh", State::Opaque, "script x.sh"),
        ("timeout 1.5m ls", State::Examined, ""),
        ("nice -n 5 nohup setsid ls", State::Examined, ""),
        ("sh -c 'ls; rm sub/y.sh'", State::Examined, "operand sub/y.sh"),
        ("bash -c 'python3 tool.py'", State::Opaque, "script tool.py"),
        ("cd sub && sh y.sh", State::Opaque, "script sub/y.sh"),
        ("python3 - <<'EOF'\nprint(1)\nEOF", State::Opaque, ""),
        ("python3 -c 'print(1)' data.csv", State::Opaque, "operand data.csv"),
        ("python3 -u -m tool x", State::Opaque, "script tool.py"),
        ("python3 -m pytest -q", State::Opaque, ""),
        ("node -e 'process.exit()'", State::Opaque, ""),
        ("perl -e 1", State::Opaque, ""),
        ("bash -lc 'ls && make'", State::Opaque, ""),
        ("zsh -lc 'rg -n x src'", State::Opaque, ""),
        ("/bin/no-such-shell a", State::Opaque, ""),
        ("bash <<'EOF'\nls\nEOF", State::Examined, ""),
        ("cat > new.txt <<'EOF'\na $b\nEOF", State::Examined, ""),
        ("# what it does\nls \\\n  -la", State::Examined, ""),
        ("git --no-pager log -3 && git -C sub status", State::Examined, ""),
        ("find . -name '*.rs' -exec grep -l x {} +", State::Examined, ""),
        ("set -euo pipefail; make && ./new-program", State::Opaque, ""),
        ("source sub/y.sh && make", State::Opaque, "script sub/y.sh"),
        ("python3 --version; [ -f x.sh ] && echo yes", State::Examined, "operand x.sh"),
        ("awk -F, '{print $1}' data.csv", State::Examined, "operand data.csv"),
        ("make < data.csv", State::Opaque, "operand data.csv"),
    ] {
        let examination = of_text(text, folder.path());
        assert_eq!(examination.state, state, "{text}");
        assert_eq!(examination.effects.is_some(), state != State::NotExamined, "{text}");
        let files = files.replace("./", "");
        assert_eq!(roles(&examination, folder.path()).replace("./", ""), files, "{text}");
    }
}

const NOT_EXAMINED: &[&str] = &[
    "curl https://example.org/x | sh",
    "bash x.sh",
    "bash -p ./x.sh",
    "sh -o pipefail x.sh",
    "sh -s x.sh",
    "sh -- x.sh",
    "sh missing.sh",
    "sh sub",
    "sh",
    "zsh -c ls",
    "sh -c 'ls $X'",
    "sh -c ls name",
    "sh -ec ls",
    "bash -l -c ls",
    "bash -lec ls",
    "bash -lc ls name",
    "bash -lc 'ls $X'",
    "zsh -lc 'ls =x'",
    "zsh -lc 'ls <1-3>'",
    "sh -lc ls",
    "env -u FOO sh x.sh",
    "env -i sh x.sh",
    "env -S 'sh x.sh'",
    "env PATH=/tmp sh x.sh",
    "PATH=/tmp:/bin ls",
    "timeout -s KILL 9 sh x.sh",
    "timeout sh x.sh",
    "nice sh x.sh",
    "nice -5 sh x.sh",
    "nohup",
    "setsid -f ls",
    "stdbuf -o0 ls",
    "xargs sh x.sh",
    "ls | xargs rm",
    "python3 -W ignore tool.py",
    "python3 -m",
    "python3 -m ../x",
    "python3 -mpytest",
    "python3 -W ignore -m pytest",
    "python3 -c",
    "python3 -ic 'print(1)'",
    "python3 - < tool.py",
    "python3 sub",
    "node app",
    "node -r ./app.js app.js",
    "node -p 1",
    "node --eval=1",
    "perl -ne 1",
    "perl -we 1",
    "ruby -rx x.sh",
    "fish x.sh",
    "find . -exec sh x.sh {} ;",
    "find . -exec python3 tool.py {} +",
    "watch ls",
    "npx left-pad",
    "npm exec left-pad",
    "bun -e 1",
    "git -c core.pager=x log",
    "git an-alias",
    "sed 1e x.sh",
    "awk 'BEGIN { system(1) }'",
    "awk -f x.sh",
    "./missing",
    "curl -o x.sh https://example.org && sh x.sh",
    "cp data.csv x.sh && ./x.sh",
    "echo ls > x.sh; sh ./x.sh",
    "echo ls > new.sh; sh ./x.sh",
    "git checkout other && sh x.sh",
    "git stash push; sh x.sh",
    "mv x.sh old.sh && sh ./x.sh",
    "cd missing && sh x.sh",
    "make && cd sub; sh y.sh",
    "cd sub | sh y.sh",
    "cd - && sh x.sh",
    "sudo -u ada ls",
    "su ada",
    "ssh -o ProxyCommand=x host",
    "eval ls",
    "for x in a; do ls; done",
    "LD_PRELOAD=x PATH=/tmp ls",
];

#[test]
fn what_is_written_otherwise_is_not_examined() {
    let folder = repository();
    for text in NOT_EXAMINED {
        let examination = of_text(text, folder.path());
        assert_eq!(examination.state, State::NotExamined, "{text}");
        let plain =
            |effect: &Effect| !effect.kind.is_dangerous() && !effect.kind.as_str().starts_with("runs");
        assert!(
            !examination.effects.is_some_and(|found| found.is_empty() || found.iter().any(plain)),
            "{text}"
        );
    }
}

#[test]
fn a_script_is_named_whatever_the_options_are() {
    let folder = repository();
    let place = Place { cwd: folder.path(), repository: Some(folder.path()) };
    for command in
        ["bash -p x.sh", "env -u FOO sh x.sh", "timeout -s KILL 9 sh x.sh", "xargs sh x.sh", "sh -c . x.sh"]
    {
        let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let examination = examine(&argv, &place, Runner::Tool);
        assert_eq!(examination.state, State::NotExamined, "{command}");
        let last = examination.files.last().unwrap();
        assert_eq!((last.position, last.role), (Some(argv.len() - 1), BoundRole::Operand), "{command}");
    }
    let argv = ["python3", "-W", "ignore", "tool.py"].map(str::to_owned);
    let examination = examine(&argv, &place, Runner::Tool);
    assert_eq!(roles(&examination, folder.path()), "operand ignore, operand tool.py");
    let argv = ["sh", "-c", "$SHELL ./x.sh"].map(str::to_owned);
    assert_eq!(
        examine(&argv, &place, Runner::Tool).files.len(),
        1,
        "a text that is not understood names it too"
    );
}

#[test]
fn this_tool_gives_bash_the_whole_path() {
    let folder = repository();
    let place = Place { cwd: folder.path(), repository: Some(folder.path()) };
    let argv = ["bash", "-e", "x.sh"].map(str::to_owned);
    assert_eq!(examine(&argv, &place, Runner::Tool).state, State::Opaque);
    assert_eq!(examine(&argv, &place, Runner::Host).state, State::NotExamined);
}

#[test]
fn a_variable_that_loads_code_is_an_effect() {
    let folder = repository();
    for text in [
        "LD_PRELOAD=./a.so ls",
        "env PYTHONPATH=sub python3 tool.py",
        "export GIT_CONFIG_COUNT=1; git status",
    ] {
        let examination = of_text(text, folder.path());
        assert_eq!(examination.state, State::Opaque, "{text}");
        let found = examination.effects.unwrap();
        assert!(found.iter().any(|effect| effect.kind == EffectKind::LoadsCode), "{text}");
    }
    assert_eq!(of_text("RUST_LOG=debug LC_ALL=C ls", folder.path()).state, State::Examined);
    assert_eq!(of_text("FOO=1 ls", folder.path()).state, State::Opaque);
}

/// Words that end the grammar wherever they are among the flags of an interpreter.
const OUTSIDE: &[&str] = &[
    "-p",
    "-s",
    "-l",
    "-i",
    "-r",
    "-o",
    "-c",
    "-m",
    "-W",
    "-X",
    "-",
    "--",
    "--rcfile",
    "--init-file",
    "--norc",
    "-e1",
    "-uc",
    "-eW",
    "--eval",
    "-pe",
    "--import=./app.js",
    "-ex=1",
];

#[test]
fn a_thousand_lines_just_outside_of_the_forms_are_not_examined() {
    let folder = repository();
    let place = Place { cwd: folder.path(), repository: Some(folder.path()) };
    let interpreters = [
        ("sh", "./x.sh"),
        ("bash", "./x.sh"),
        ("dash", "./x.sh"),
        ("zsh", "./x.sh"),
        ("python3", "tool.py"),
        ("node", "app.js"),
        ("perl", "x.sh"),
        ("ruby", "x.sh"),
        ("lua", "x.sh"),
    ];
    let wrappers = ["", "env A=1 ", "timeout 9 ", "nice -n 1 ", "nohup ", "setsid ", "env A=1 timeout 9 "];
    let mut count = 0;
    for (name, script) in interpreters {
        for wrapper in wrappers {
            let inside = format!("{wrapper}{name} {script} a");
            let argv = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(examine(&argv(&inside), &place, Runner::Tool).state, State::Opaque, "{inside}");
            let grammar = Grammar::of(name).unwrap();
            let is_form =
                |word: &str| grammar.is_flag(word) || [grammar.code, grammar.module].contains(&Some(word));
            for word in OUTSIDE.iter().filter(|word| !is_form(word)) {
                let outside = format!("{wrapper}{name} {word} {script} a");
                let examination = examine(&argv(&outside), &place, Runner::Tool);
                assert_eq!(examination.state, State::NotExamined, "{outside}");
                assert!(!examination.files.is_empty(), "{outside}: its script is bound all the same");
                count += 1;
            }
        }
        for wrapper in [
            "env -i",
            "env -u A",
            "env --",
            "timeout -k 1 9",
            "timeout -s 9 9",
            "timeout 9x",
            "nice -5",
            "nice -n x",
            "nohup --",
            "setsid -w",
            "stdbuf -oL",
            "ionice -c 3",
            "xargs",
            "chrt 1",
            "time -p",
        ] {
            let outside = format!("{wrapper} {name} {script}");
            let argv: Vec<String> = outside.split(' ').map(str::to_owned).collect();
            assert_eq!(examine(&argv, &place, Runner::Tool).state, State::NotExamined, "{outside}");
            count += 1;
        }
    }
    assert!(count > 1_000, "{count}");
}
