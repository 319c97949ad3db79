//! Programs that run others: shells, interpreters, wrappers, and those that raise privileges.

use super::row::{Does, Program, Role};

/// The rows. Which words of an interpreter are a script, [`Grammar`] says.
pub(super) const PROGRAMS: &[Program] = &[
    Program::new(&["bash", "dash", "sh", "zsh"], Does::Shell).roles(SHELL),
    // Rules read the text after `-c`, effects do not.
    Program::new(&["ash", "fish", "ksh"], Does::Unknown).roles(SHELL),
    Program::new(&["node", "perl", "php", "python", "python3", "ruby"], Does::Unknown)
        .roles(&[Role::Executor, Role::Interpreter]),
    Program::new(&["Rscript", "deno", "lua", "nodejs", "osascript", "pwsh", "pypy", "tclsh"], Does::Unknown)
        .roles(&[Role::Interpreter]),
    Program::new(
        &[
            "at",
            "batch",
            "bunx",
            "busybox",
            "bwrap",
            "chroot",
            "crontab",
            "ed",
            "emacs",
            "entr",
            "ex",
            "expect",
            "fakeroot",
            "firejail",
            "flock",
            "gdb",
            "ltrace",
            "nsenter",
            "nvim",
            "parallel",
            "pipx",
            "proot",
            "runuser",
            "screen",
            "script",
            "setarch",
            "setpriv",
            "socat",
            "start-stop-daemon",
            "strace",
            "systemd-run",
            "tmux",
            "toybox",
            "unshare",
            "uvx",
            "vi",
            "vim",
            "watch",
            "xargs",
        ],
        Does::Unknown,
    )
    .roles(&[Role::Executor]),
    Program::new(
        &[
            "chrt", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time",
            "timeout", "xvfb-run",
        ],
        Does::Unknown,
    )
    .roles(&[Role::Wrapper]),
    Program::new(&["doas", "su", "sudo"], Does::EscalatesPrivileges).roles(&[Role::Executor]),
    // Rules do not take it for an executor.
    Program::new(&["pkexec"], Does::EscalatesPrivileges),
];

const SHELL: &[Role] = &[Role::Shell, Role::Executor, Role::Interpreter];

/// How the words of an interpreter are read: `NAME [flags] SCRIPT ARGS…`. No flag has a value. What is written otherwise is
/// not examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grammar {
    /// The names by which it is run; versions such as `python3.11` count too.
    names: &'static [&'static str],
    /// Short flags, also joined.
    letters: &'static str,
    /// Flags that are whole words.
    words: &'static [&'static str],
    /// How the name of a script must end; empty if it does not matter.
    pub ends: &'static [&'static str],
    /// Whether it looks for a script without a slash elsewhere too.
    pub searches: bool,
    /// Whether it runs the text after `-c`, as a POSIX shell.
    pub takes_text: bool,
    /// Whether it runs the text after `-lc` like that, once it has read the start-up files of a login.
    pub takes_login_text: bool,
    /// The flag after which the code itself follows.
    pub code: Option<&'static str>,
    /// The flag after which the name of a module follows.
    pub module: Option<&'static str>,
    /// The flag by which it runs tests: all of its operands are scripts then, and without any it finds them.
    pub tests: Option<&'static str>,
}

const PLAIN: Grammar = Grammar {
    names: &[],
    letters: "",
    words: &[],
    ends: &[],
    searches: false,
    takes_text: false,
    takes_login_text: false,
    code: None,
    module: None,
    tests: None,
};

const GRAMMARS: &[Grammar] = &[
    Grammar { names: &["sh", "dash"], letters: "eux", takes_text: true, ..PLAIN },
    Grammar {
        names: &["bash"],
        letters: "eux",
        searches: true,
        takes_text: true,
        takes_login_text: true,
        ..PLAIN
    },
    Grammar { names: &["zsh"], letters: "eux", searches: true, takes_login_text: true, ..PLAIN },
    Grammar { names: &["ash", "ksh"], letters: "eux", searches: true, ..PLAIN },
    Grammar {
        names: &["python", "pypy"],
        letters: "BEIOSbqsu",
        code: Some("-c"),
        module: Some("-m"),
        ..PLAIN
    },
    Grammar {
        names: &["node", "nodejs"],
        words: &[
            "--enable-source-maps",
            "--expose-gc",
            "--no-deprecation",
            "--no-warnings",
            "--test",
            "--trace-deprecation",
            "--trace-uncaught",
            "--trace-warnings",
        ],
        // It would add one.
        ends: &[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"],
        tests: Some("--test"),
        code: Some("-e"),
        ..PLAIN
    },
    Grammar { names: &["perl", "ruby"], letters: "w", code: Some("-e"), ..PLAIN },
    Grammar { names: &["lua", "php", "tclsh"], ..PLAIN },
    Grammar { names: &["Rscript"], words: &["--vanilla"], ..PLAIN },
];

/// Words after which an interpreter only says what it is.
const SAYS: &[&str] = &["--version", "-V", "--help"];

impl Grammar {
    /// The grammar of a program by its name, without folders.
    pub fn of(name: &str) -> Option<&'static Self> {
        let unversioned = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
        let is_named = |grammar: &&Self| grammar.names.iter().any(|it| *it == name || *it == unversioned);
        GRAMMARS.iter().find(is_named)
    }

    /// Whether a word is a flag that changes nothing about which script runs.
    pub fn is_flag(&self, word: &str) -> bool {
        let is_short =
            |letters: &str| !letters.is_empty() && letters.chars().all(|it| self.letters.contains(it));
        self.words.contains(&word) || word.strip_prefix('-').is_some_and(is_short)
    }

    /// Whether it runs nothing with these words.
    pub fn only_says(&self, arguments: &[&str]) -> bool {
        matches!(arguments, [word] if SAYS.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpreter_has_one_grammar() {
        let mut names: Vec<&str> = GRAMMARS.iter().flat_map(|grammar| grammar.names).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(Grammar::of("python3.11"), Grammar::of("python"));
        assert_eq!(Grammar::of("make"), None);
    }

    #[test]
    fn flags_have_no_values() {
        for (name, word, expected) in [
            ("sh", "-e", true),
            ("bash", "-eux", true),
            ("bash", "-p", false),
            ("bash", "-ec", false),
            ("sh", "-", false),
            ("sh", "--", false),
            ("sh", "-o", false),
            ("python3", "-u", true),
            ("python3", "-uB", true),
            ("python3", "-W", false),
            ("python3", "-m", false),
            ("python3", "-c", false),
            ("node", "--test", true),
            ("node", "--test=x", false),
            ("node", "-r", false),
            ("perl", "-w", true),
            ("perl", "-we", false),
        ] {
            assert_eq!(Grammar::of(name).unwrap().is_flag(word), expected, "{name} {word}");
        }
    }
}
