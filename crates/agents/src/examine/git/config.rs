//! Git's settings, by a stricter grammar than Git's: what this reader accepts, Git reads in the same way.
//!
//! Refused, although Git reads it: a setting on the line of its section, a section with a dot in its name, a byte order mark,
//! a lone carriage return, control characters, and text that is not UTF-8. Includes are read as settings and not followed.

use std::{fmt, iter::Peekable, str::Chars};

/// A setting with the section in which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The section in lower case.
    pub section: String,
    /// What stands in quotes behind the section.
    pub subsection: Option<String>,
    /// The name in lower case.
    pub name: String,
    /// The value with quotes and escapes resolved; absent where only the name stands, which means true.
    pub value: Option<String>,
}

/// A text that is not of this grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Setting {
    /// As people write it: `section.name`, or `section.subsection.name`.
    pub fn key(&self) -> String {
        match &self.subsection {
            None => format!("{}.{}", self.section, self.name),
            Some(subsection) => format!("{}.{subsection}.{}", self.section, self.name),
        }
    }

    /// Whether it is this setting; names in lower case.
    pub fn is(&self, section: &str, subsection: Option<&str>, name: &str) -> bool {
        self.section == section && self.subsection.as_deref() == subsection && self.name == name
    }
}

/// Every setting of a text, in order.
pub fn parse(text: &str) -> Result<Vec<Setting>, Malformed> {
    let is_control = |char: char| char.is_control() && !matches!(char, '\n' | '\t');
    let text = text.replace("\r\n", "\n");
    if let Some(at) = text.find(is_control) {
        let line = text[..at].matches('\n').count() + 1;
        return Err(Malformed { line, what: "it has a control character" });
    }
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let mut settings = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    while let Some(char) = reader.next_of_line_start() {
        if char == '[' {
            section = Some(reader.header()?);
            continue;
        }
        let Some((section, subsection)) = section.clone() else {
            return Err(reader.malformed("a setting stands before the first section"));
        };
        let (name, value) = reader.setting(char)?;
        settings.push(Setting { section, subsection, name, value });
    }
    Ok(settings)
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { line: self.line, what }
    }

    fn next(&mut self) -> Option<char> {
        let char = self.rest.next();
        if char == Some('\n') {
            self.line += 1;
        }
        char
    }

    fn skip_blanks(&mut self) {
        while self.rest.next_if(|char| matches!(char, ' ' | '\t')).is_some() {}
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|char| char != '\n') {}
    }

    /// The first character of the next line that has more than blanks and a comment.
    fn next_of_line_start(&mut self) -> Option<char> {
        loop {
            self.skip_blanks();
            match self.next()? {
                '\n' => {}
                '#' | ';' => self.skip_line(),
                char => return Some(char),
            }
        }
    }

    /// The rest of `[section]` or `[section "subsection"]`, which must be alone on its line.
    fn header(&mut self) -> Result<(String, Option<String>), Malformed> {
        let mut section = String::new();
        while let Some(char) = self.rest.next_if(|char| is_name(*char)) {
            section.push(char.to_ascii_lowercase());
        }
        if section.is_empty() {
            return Err(self.malformed("a section has no name, or one that Git does not write"));
        }
        let subsection = match self.rest.next() {
            Some(']') => None,
            Some(' ' | '\t') => {
                self.skip_blanks();
                Some(self.subsection()?)
            }
            _ => return Err(self.malformed("a section has a name that Git does not write")),
        };
        self.skip_blanks();
        match self.next() {
            None | Some('\n') => {}
            Some('#' | ';') => self.skip_line(),
            Some(_) => return Err(self.malformed("something stands behind a section on its line")),
        }
        Ok((section, subsection))
    }

    /// What stands between quotes, and the bracket behind it.
    fn subsection(&mut self) -> Result<String, Malformed> {
        let what = "a section's second name is not in quotes";
        if self.rest.next() != Some('"') {
            return Err(self.malformed(what));
        }
        let mut name = String::new();
        loop {
            match self.rest.next() {
                Some('"') => break,
                Some('\\') => match self.rest.next() {
                    Some(char @ ('"' | '\\')) => name.push(char),
                    _ => return Err(self.malformed("a section's second name has an unknown escape")),
                },
                None | Some('\n') => return Err(self.malformed(what)),
                Some(char) => name.push(char),
            }
        }
        match self.rest.next() {
            Some(']') => Ok(name),
            _ => Err(self.malformed("a section does not end behind its second name")),
        }
    }

    /// `name = value`, or a name alone. The first character is read already.
    fn setting(&mut self, first: char) -> Result<(String, Option<String>), Malformed> {
        if !first.is_ascii_alphabetic() {
            return Err(self.malformed("a line is neither a section nor a setting"));
        }
        let mut name = String::from(first.to_ascii_lowercase());
        while let Some(char) = self.rest.next_if(|char| is_name(*char)) {
            name.push(char.to_ascii_lowercase());
        }
        self.skip_blanks();
        match self.rest.peek() {
            None | Some('\n') => {
                self.next();
                Ok((name, None))
            }
            Some('=') => {
                self.next();
                Ok((name, Some(self.value()?)))
            }
            Some(_) => Err(self.malformed("a setting has no equals sign")),
        }
    }

    /// The value up to the end of its line, or of a later one behind a backslash.
    fn value(&mut self) -> Result<String, Malformed> {
        let (mut value, mut blanks, mut is_quoted) = (String::new(), String::new(), false);
        self.skip_blanks();
        loop {
            let char = match self.next() {
                None | Some('\n') if is_quoted => return Err(self.malformed("a quote does not end")),
                None | Some('\n') => return Ok(value),
                Some('#' | ';') if !is_quoted => {
                    self.skip_line();
                    return Ok(value);
                }
                Some(char @ (' ' | '\t')) if !is_quoted => {
                    blanks.push(char);
                    continue;
                }
                Some('"') => {
                    is_quoted = !is_quoted;
                    value.push_str(&std::mem::take(&mut blanks));
                    continue;
                }
                Some('\\') => match self.next() {
                    Some('\n') => continue,
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(char @ ('"' | '\\')) => char,
                    _ => return Err(self.malformed("a value has an unknown escape")),
                },
                Some(char) => char,
            };
            value.push_str(&std::mem::take(&mut blanks));
            value.push(char);
        }
    }
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '-'
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use proptest::prelude::*;

    use super::*;

    fn keys(text: &str) -> Vec<(String, Option<String>)> {
        parse(text).unwrap().into_iter().map(|setting| (setting.key(), setting.value)).collect()
    }

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "# comment\n[Core]\r\n\tBare = false ; no\n\tx\n[remote \"O \\\"r\"] # c\n  url = \"a;#\\t b\" c  \n\
                    \tfetch = one \\\n  two\n[a] ; [b]\n";
        assert_eq!(
            keys(text),
            [
                ("core.bare".to_owned(), Some("false".to_owned())),
                ("core.x".to_owned(), None),
                ("remote.O \"r.url".to_owned(), Some("a;#\t b c".to_owned())),
                ("remote.O \"r.fetch".to_owned(), Some("one   two".to_owned())),
            ]
        );
    }

    #[test]
    fn what_is_not_of_the_grammar_is_refused() {
        for (text, line) in [
            ("[core] fsmonitor = \"touch x\" ;]", 1),
            ("[core] fsmonitor", 1),
            ("[core][diff]", 1),
            ("x = 1\n[core]", 1),
            ("\n[core\nx = 1", 2),
            ("[]\n", 1),
            ("[ core]\n", 1),
            ("[core ]\n", 1),
            ("[diff.foo]\n\ttextconv = x", 1),
            ("[core \"x]\n", 1),
            ("[core \"x\" ]\n", 1),
            ("[core \"x\\n\"]\n", 1),
            ("[core]\n1x = 1", 2),
            ("[core]\nx y = 1", 2),
            ("[core]\nx = \"1", 2),
            ("[core]\nx = \\q", 2),
            ("[core]\nx = 1\\", 2),
            ("\u{feff}[core]\n", 1),
            ("[core]\nx = \0", 2),
            ("[core]\nx = 1\rfsmonitor = y", 2),
            ("[core]\n\u{a0}x = 1", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text:?}: {}", parse(text).unwrap_err());
        }
    }

    /// What Git itself lists: `key`, a newline and the value, or the key alone, each ended by a zero byte.
    fn listed_by_git(text: &str) -> Option<Vec<(String, Option<String>)>> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("config"), text).unwrap();
        let output = Command::new("git")
            .args(["config", "--no-includes", "--list", "--null", "--file"])
            .arg(folder.path().join("config"))
            .output()
            .unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        let entry = |entry: &str| match entry.split_once('\n') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (entry.to_owned(), None),
        };
        output.status.success().then(|| listed.split_terminator('\0').map(entry).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        /// Git may refuse or accept what we refuse; what we accept, it must accept and read alike.
        #[test]
        fn what_is_accepted_is_what_git_reads(pieces in prop::collection::vec(prop::sample::select(vec![
            "[core]", "[Core \"Sub\"]", "[a-b \"x\\\\y\"]", "[diff.foo]", "\n", "\n", "\n", "\r\n", "\r", " ", "\t", "name", "fsMonitor", "=",
            " = ", "value", "\"", "\\", "\\\n", "\\n", "\\\"", "#", ";", "]", "[", "x = 1\n", "\u{feff}", "ü", ".",
        ]), 0..14)) {
            let text = pieces.concat();
            if let Ok(settings) = parse(&text) {
                let ours: Vec<_> = settings.iter().map(|setting| (setting.key(), setting.value.clone())).collect();
                prop_assert_eq!(Some(ours), listed_by_git(&text), "{:?}", text);
            }
        }
    }
}
