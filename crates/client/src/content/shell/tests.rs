//! What is understood, what is not, and that a real shell reads the same.

use super::*;

fn words(text: &str) -> Option<Vec<Vec<String>>> {
    Some(commands(text)?.into_iter().map(|command| command.words).collect())
}

#[test]
fn simple_commands_are_split() {
    let split = |text: &str| {
        words(text).map(|found| found.iter().map(|it| it.join("␣")).collect::<Vec<_>>().join(" / "))
    };
    for (text, expected) in [
        ("ls", "ls"),
        ("cargo test --all", "cargo␣test␣--all"),
        ("a && b || c; d | e", "a / b / c / d / e"),
        ("a\nb;", "a / b"),
        ("echo 'a b' \"c d\" e\\ f", "echo␣a b␣c d␣e f"),
        ("echo \"a\\\"b\"", "echo␣a\"b"),
        ("grep -E \"\\.sql$\"", "grep␣-E␣\\.sql$"),
        ("grep \"a\\|b\" \"^c$|d\"", "grep␣a\\|b␣^c$|d"),
        ("A=1 B='x y' make test", "make␣test"),
        ("cargo test > log.txt 2>&1", "cargo␣test"),
        ("sort < in >> out", "sort"),
        ("echo ''", "echo␣"),
        ("git show HEAD~1", "git␣show␣HEAD~1"),
    ] {
        assert_eq!(split(text).as_deref(), Some(expected), "{text}");
    }
    let found = commands("A=1 cargo test 2> log.txt < in").unwrap();
    assert_eq!(found[0].assignments, [("A".to_owned(), "1".to_owned())]);
    let redirections: Vec<(bool, &str)> =
        found[0].redirections.iter().map(|it| (it.writes, it.path.as_str())).collect();
    assert_eq!(redirections, [(true, "log.txt"), (false, "in")]);
}

const NOT_UNDERSTOOD: &[&str] = &[
    "",
    " ",
    ";",
    "&&",
    "a &&",
    "a |",
    "&& a",
    "a & b",
    "a &",
    "echo $HOME",
    "echo `id`",
    "echo $(id)",
    "ls *.rs",
    "ls a?",
    "ls [ab]",
    "echo {a,b}",
    "ls ~",
    "ls a:~",
    "ls a=~",
    "ls ''~",
    "cat <<EOF",
    "cat <(id)",
    "a > ",
    "a >| b",
    "a >& b",
    "a &> b",
    "(a)",
    "{ a; }",
    "if a; then b; fi",
    "for x in a; do b; done",
    "! a",
    "eval a",
    "source a",
    ". a",
    "exec a",
    "export A=1",
    "A=1",
    "> file",
    "a # comment",
    "echo 'a",
    "echo \"a",
    "echo \"$A\"",
    "echo \"`id`\"",
    "a\\\nb",
    "\"A\"=1 b",
    "a |& b",
    "a >&3",
    "command rm x",
    "time rm x",
    "[[ a ]]",
    "a;; b",
    "a || || b",
    "%1",
    "a 3>b",
    "a 12<b",
    "=ls",
    "cat '.e\0nv'",
    "cat 'a\rb'",
    "echo '\u{1b}[2J'",
    "cat =ls",
    "noglob rm x",
    "a\rb",
    "a\u{a0}b",
];

#[test]
fn what_is_not_certain_is_not_understood() {
    for text in NOT_UNDERSTOOD {
        assert_eq!(commands(text), None, "{text:?}");
    }
}

#[test]
fn plain_commands_only_run() {
    let plain = |text: &str| {
        plain_commands(text, "/work").map(|found| found.iter().map(|it| it.join(" ")).collect::<Vec<_>>())
    };
    for (text, expected) in [
        ("cargo test a", &["cargo test a"][..]),
        ("cd /work && cargo test a 2>&1 | cat > /dev/null", &["cargo test a", "cat"]),
    ] {
        assert_eq!(plain(text).unwrap(), expected, "{text}");
    }
    for text in [
        "A=1 cargo test",
        "cargo test > log",
        "cargo test < in",
        "cd /tmp && cargo test",
        "cd .. && cargo test",
        "cd && cargo test",
        "cd -P /work && cargo test",
        "cd /work",
        "cargo test $X",
    ] {
        assert_eq!(plain(text), None, "{text}");
    }
}

/// What texts are put together from.
const PIECES: &[&str] = &[
    "a",
    "b-c",
    "'x y'",
    "\"q r\"",
    "\\ z",
    "1",
    "=",
    "A=2",
    "&&",
    "||",
    ";",
    "|",
    " ",
    " ",
    " ",
    "\n",
    "$",
    "*",
    "'",
    "\"",
    "\\",
    "#",
    "~",
    "é",
    "2>&1",
    "!",
    "%",
    "^",
    "@",
    "a~",
    "b:",
    "\"\\.s$\"",
    "\"\\|\"",
    "\"a$ b\"",
    "\"c$|\"",
    "\"\\",
];

/// Where this module understands a text, a real shell must read the same words from it.
#[test]
fn a_real_shell_reads_the_same_words() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    };
    let mut understood = Vec::new();
    while understood.len() < 400 {
        let text: String = (0..=random(9)).map(|_| PIECES[random(PIECES.len())]).collect();
        if let Some(found) = words(&text) {
            understood.push((text, found));
        }
    }
    // Every command word is replaced by a function that prints its words; the shell does the splitting.
    let quoted = |text: &str| format!("eval '{}'", text.replace('\'', r"'\''"));
    let texts: Vec<String> = understood.iter().map(|(text, _)| quoted(text)).collect();
    let script = texts.join("\nprintf '\\036'\n");
    let names: std::collections::BTreeSet<&String> =
        understood.iter().flat_map(|(_, found)| found.iter().map(|command| &command[0])).collect();
    let handler = "command_not_found_handle() { printf '%s\\037' \"$@\"; printf '\\035'; return 0; }\nPATH=/nonexistent\nexec 2>/dev/null\n";
    assert!(names.iter().all(|name| !SHELL_WORDS.contains(&name.as_str())));
    let output =
        std::process::Command::new("bash").arg("-c").arg(format!("{handler}{script}")).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let mut compared = 0;
    for (printed, (text, found)) in output.split('\u{1e}').zip(&understood) {
        // With && and || the shell may run only some of them, and a pipe hides what is not last.
        let last = found.last().unwrap();
        let ran: Vec<Vec<&str>> = printed
            .split('\u{1d}')
            .filter(|line| !line.is_empty())
            .map(|line| line.trim_end_matches('\u{1f}').split('\u{1f}').collect())
            .collect();
        for command in &ran {
            assert!(
                found.iter().any(|known| known == command || known.iter().all(String::is_empty)),
                "{text:?}: {command:?}"
            );
        }
        if !text.contains("||") && !last[0].is_empty() && !last.last().unwrap().is_empty() {
            assert_eq!(
                ran.last().map(|it| it.iter().map(|word| (*word).to_owned()).collect()),
                Some(last.clone()),
                "{text:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn people_are_shown_what_documents_comments_and_long_lines_say() {
    let whole = |text: &str| {
        let found = commands_and_documents(text)?;
        let line = |command: &SimpleCommand| {
            let document = command.document.as_deref().map(|it| format!(" <<{it:?}")).unwrap_or_default();
            format!("{}{document}", command.words.join("␣"))
        };
        Some(found.iter().map(line).collect::<Vec<_>>().join(" / "))
    };
    for (text, expected) in [
        ("cat <<'EOF'\na $b `c`\nEOF\nls", r#"cat <<"a $b `c`\n" / ls"#),
        ("cat <<EOF > x && ls\nplain\nEOF", r#"cat <<"plain\n" / ls"#),
        ("python3 - <<'E'\nE", r#"python3␣- <<"""#),
        ("# first\n\nls # second\n# third", "ls"),
        ("ls \\\n  -la", "ls␣-la"),
        ("a &&\n  b |\n c", "a / b / c"),
        ("[ -f x ] && ls", "[␣-f␣x␣] / ls"),
        ("find . -exec ls {} \\;", "find␣.␣-exec␣ls␣{}␣;"),
        ("set -e; export A=1", "set␣-e / export␣A=1"),
    ] {
        assert_eq!(whole(text).as_deref(), Some(expected), "{text:?}");
        assert_eq!(commands(text), None, "{text:?}: nobody allows it without asking");
    }
    for text in [
        "cat <<EOF\n$HOME\nEOF",
        "cat <<EOF\n`id`\nEOF",
        "cat <<EOF\na\\\nEOF\nEOF",
        "cat <<'EOF'\nnever ends",
        "cat <<'EOF'",
        "cat <<-'EOF'\na\nEOF",
        "cat <<<a",
        "cat <<A <<B\na\nA\nb\nB",
        "cat <<'A' 'x\ny'\na\nA",
        "cat <<'A B'\na\nA B",
        "a\\\nb",
        "a;; b",
        "eval a",
        "[[ -f x ]]",
        "ls {a,b}",
        "ls {}x",
    ] {
        assert_eq!(commands_and_documents(text), None, "{text:?}");
    }
}

/// A real shell takes the same text for the document.
#[test]
fn a_real_shell_reads_the_same_documents() {
    for shell in ["bash", "dash"] {
        for text in [
            "cat <<'EOF'\na $b `c` \\ 'd'\n\n EOF\nEOFX\nEOF",
            "cat <<EOF\nplain \"text\" ' # {}\nEOF\n",
            "cat <<\"E_1\" # comment\nx\nE_1\n# more",
            "cat <<'E' \nE",
        ] {
            let expected = commands_and_documents(text).unwrap().remove(0).document.unwrap();
            let output = std::process::Command::new(shell).arg("-c").arg(text).output();
            // Not every machine has every shell.
            let Ok(output) = output else { continue };
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{shell}: {text:?}");
        }
    }
}

#[test]
fn commands_know_how_they_are_joined() {
    let joints: Vec<Joint> =
        commands("a && b || c; d | e\nf").unwrap().iter().map(|command| command.joint).collect();
    let expected = [Joint::First, Joint::And, Joint::Or, Joint::Sequence, Joint::Pipe, Joint::Sequence];
    assert_eq!(joints, expected);
}
