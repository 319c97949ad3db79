//! Processes, as `/proc` shows them.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _};

use super::super::process::Process;

/// The process with this number, if there is one.
pub fn process(id: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let command_line = fs::read(format!("/proc/{id}/cmdline")).ok()?;
    parse(&stat, &command_line)
}

/// Whether a process runs that was started with this word as its last argument, or as another one where the system shows them.
pub fn has_argument(id: u32, word: &OsStr) -> bool {
    let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).any(|it| it == word.as_bytes())
}

/// `<id> (<name>) <state> <parent> <group> <session> <terminal> …`; the name may have spaces and parentheses.
fn parse(stat: &str, command_line: &[u8]) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let words = command_line.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    Some(Process {
        parent: fields.get(1)?.parse().ok()?,
        has_terminal: *fields.get(4)? != "0",
        arguments: words.map(|word| String::from_utf8_lossy(word).into_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_hides_nothing() {
        let found = parse("7 (a) b 1 (x) S 42 7 7 34816 7", b"a\0b\0").unwrap();
        assert_eq!(
            found,
            Process { parent: 42, has_terminal: true, arguments: vec!["a".to_owned(), "b".to_owned()] }
        );
        assert!(!parse("7 (a) S 42 7 7 0 -1", b"").unwrap().has_terminal);
    }
}
