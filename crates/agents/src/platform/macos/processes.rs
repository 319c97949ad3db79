//! Processes, as `ps` shows them: what the system has for it can't be called without unsafe code.

use std::{
    ffi::OsStr,
    process::{Command, Stdio},
};

use super::super::process::Process;

/// Where every Mac has it. A search path could name another one.
const PS: &str = "/bin/ps";

/// The process with this number, if there is one.
pub fn process(id: u32) -> Option<Process> {
    if id == std::process::id() {
        // It is looked at again and again while somebody waits.
        let parent = rustix::process::getppid()?.as_raw_pid().try_into().ok()?;
        return Some(Process { parent, has_terminal: false, arguments: std::env::args().collect() });
    }
    parse(&shown(id, "ppid=,tty=,args=")?)
}

/// Whether a process runs that was started with this word as its last argument.
pub fn has_argument(id: u32, word: &OsStr) -> bool {
    shown(id, "args=").is_some_and(|line| ends_with(&line, &word.to_string_lossy()))
}

fn shown(id: u32, columns: &str) -> Option<String> {
    let mut command = Command::new(PS);
    command.args(["-ww", "-o", columns, "-p"]).arg(id.to_string());
    let output =
        command.env_clear().env("LC_ALL", "C").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// `<parent> <terminal> <command line>`. Words of the command line are not told from parts of words, so that there may be more
/// of them than there are.
fn parse(line: &str) -> Option<Process> {
    let mut words = line.split_whitespace();
    let (parent, terminal) = (words.next()?.parse().ok()?, words.next()?);
    let has_terminal = !terminal.starts_with(['?', '-']);
    Some(Process { parent, has_terminal, arguments: words.map(str::to_owned).collect() })
}

fn ends_with(line: &str, word: &str) -> bool {
    let line = line.trim_end_matches('\n');
    !word.is_empty() && line.strip_suffix(word).is_some_and(|rest| rest.ends_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ps_shows_is_read() {
        let found = parse("  501 ttys003  node /opt/homebrew/bin/gemini -p hello\n").unwrap();
        assert!(found.has_terminal && found.parent == 501);
        assert_eq!(found.arguments, ["node", "/opt/homebrew/bin/gemini", "-p", "hello"]);
        assert!(!parse("    1 ??       /usr/sbin/cfprefsd agent\n").unwrap().has_terminal);
        for text in ["", "\n", "x ttys000 a", "7"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn only_the_last_argument_is_the_mark() {
        let line = "/usr/local/bin/countersign keeper serve --home /Users/ada/My Files\n";
        assert!(ends_with(line, "/Users/ada/My Files"));
        for word in ["/Users/ada/My", "Users/ada/My Files", "", "serve"] {
            assert!(!ends_with(line, word), "{word}");
        }
    }

    #[test]
    fn real_processes_are_found_by_ps() {
        let own = process(std::process::id()).unwrap();
        let mut child = Command::new("sleep").arg("30").spawn().unwrap();
        let found = process(child.id());
        let has_mark = ["30", "3"].map(|word| has_argument(child.id(), OsStr::new(word)));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = found.unwrap();
        assert_eq!((found.parent, found.arguments), (std::process::id(), vec!["sleep".into(), "30".into()]));
        assert_eq!(has_mark, [true, false]);
        assert!(own.parent > 0);
        assert_eq!(process(child.id()), None);
    }
}
