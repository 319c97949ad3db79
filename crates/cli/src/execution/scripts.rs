//! Which words of a command are files that decide what it does.

use std::path::Path;

/// Programs that run the file that they are given.
const INTERPRETERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "ash",
    "node",
    "nodejs",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "Rscript",
    "pwsh",
    "osascript",
    "tclsh",
    "awk",
    "gawk",
    "sed",
];

/// Programs that run the command that follows them.
const WRAPPERS: &[&str] = &[
    "env", "nice", "nohup", "timeout", "time", "stdbuf", "setsid", "ionice", "chrt", "taskset", "exec",
    "xvfb-run",
];

/// Options whose value is a file that is loaded before the script.
const PRELOADS: &[&str] =
    &["-r", "--require", "--import", "--loader", "-f", "--file", "--rcfile", "--init-file"];

/// Options after which there is no script file: the text is on the command line.
const TEXTS: &[&str] = &["-c", "-e", "-E", "-m", "-p", "--eval", "--print", "-s", "-Command"];

/// The positions of the words that are scripts or programs, apart from the first word. `is_file` says whether a word is the
/// path of a regular file.
pub(super) fn positions(argv: &[String], is_file: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut position = 0;
    let mut found = Vec::new();
    while is_wrapper(&argv[position]) {
        let is_its_own = |word: &String| {
            word.starts_with('-')
                || word.contains('=')
                || word.starts_with(|char: char| char.is_ascii_digit())
        };
        let Some(next) = (position + 1..argv.len()).find(|next| !is_its_own(&argv[*next])) else {
            return found;
        };
        position = next;
        if argv[position].contains('/') && is_file(&argv[position]) {
            found.push(position);
        }
    }
    if is_interpreter(&argv[position]) {
        found.extend(scripts(argv, position + 1, is_file));
    }
    found
}

/// The scripts of an interpreter: files that it loads first, and the first operand.
fn scripts(argv: &[String], start: usize, is_file: impl Fn(&str) -> bool) -> Vec<usize> {
    let mut found = Vec::new();
    for position in start..argv.len() {
        let word = &argv[position];
        let before = &argv[position - 1];
        if TEXTS.contains(&word.as_str()) {
            break;
        }
        if word.starts_with('-') || !is_file(word) {
            continue;
        }
        found.push(position);
        if !PRELOADS.contains(&before.as_str()) {
            break;
        }
    }
    found
}

/// The last part of a path, which is how programs are known.
pub(super) fn base_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}

fn is_wrapper(word: &str) -> bool {
    WRAPPERS.contains(&base_name(word))
}

/// Whether a program runs the file that it is given; versions such as `python3.11` count too.
pub(super) fn is_interpreter(word: &str) -> bool {
    let name = base_name(word);
    let unversioned = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    INTERPRETERS.contains(&name)
        || INTERPRETERS.contains(&unversioned)
        || matches!(unversioned, "python" | "pypy")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_found_behind_interpreters_and_wrappers() {
        for (command, expected) in [
            ("sh clean.sh", vec![1]),
            ("bash -eu clean.sh other.sh", vec![2]),
            ("python3.11 -u tool.py data.csv", vec![2]),
            ("/usr/bin/python tool.py", vec![1]),
            ("node -r hook.js app.js", vec![2, 3]),
            ("env A=1 timeout 10 sh clean.sh", vec![5]),
            ("timeout 10 ./deploy.sh", vec![2]),
            ("sh -c text clean.sh", vec![]),
            ("python -m http.server clean.sh", vec![]),
            ("git add clean.sh", vec![]),
            ("./clean.sh", vec![]),
            ("env", vec![]),
            ("nice -n 5 sh missing", vec![]),
        ] {
            let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
            let is_file = |word: &str| {
                ["clean.sh", "other.sh", "tool.py", "data.csv", "hook.js", "app.js", "./deploy.sh"]
                    .contains(&word)
            };
            assert_eq!(positions(&argv, is_file), expected, "{command}");
        }
    }
}
