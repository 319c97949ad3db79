//! A shell text as rules see it: its commands, where each may run, and what is not understood.

use std::path::{Path, PathBuf};

use countersign_client::shell::{self, Redirection};

use crate::{
    examine::effects,
    programs::{self, row::Role},
};

/// More folders than this and nobody knows any more where a command runs.
const MAX_PLACES: usize = 16;

/// A longer text, or one with more words in all the folders where they may be files, is not examined word by word: a hook
/// that takes too long is ignored by its host.
const MAX_TEXT: usize = 32 * 1024;
const MAX_WORDS: usize = 2_000;

/// How many characters after a name may belong to its command.
const MAX_REST: usize = 512;

/// A text that is not understood and has a name more often than this is taken to mean it.
pub(super) const MAX_MENTIONS: usize = 100;

/// How deep a shell in a shell is read.
const MAX_DEPTH: usize = 8;

/// One command of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// Files that it reads and writes by redirection.
    pub(super) redirections: Vec<Redirection>,
    /// Whether variables are set for it.
    pub(super) is_assigned: bool,
    /// Every folder in which it may run: after `cd a;` it is either, since `cd` can fail. Empty if that is not known.
    pub(super) places: Vec<PathBuf>,
}

/// What a text consists of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// Every command that is understood, those of a shell in the shell included.
    pub(super) parts: Vec<Part>,
    /// Texts that are not understood.
    pub(super) unclear: Vec<String>,
}

impl Part {
    fn of_words(words: Vec<String>, cwd: &Path) -> Self {
        Self { words, redirections: Vec::new(), is_assigned: false, places: vec![cwd.to_owned()] }
    }

    /// The name by which its program is known.
    pub(super) fn program(&self) -> String {
        self.words.first().map(|word| base_name(word).to_lowercase()).unwrap_or_default()
    }

    /// The folder of `cd FOLDER`.
    pub(super) fn entered(&self) -> Option<&str> {
        match self.words.as_slice() {
            [cd, folder] if cd == "cd" && !folder.starts_with(['-', '+']) && !folder.is_empty() => {
                Some(folder)
            }
            _ => None,
        }
    }
}

impl Texts {
    /// Reads a text that a shell interprets in a folder. `has_cd_path`: whether `cd` looks elsewhere too.
    pub(super) fn read(text: &str, cwd: &Path, has_cd_path: bool) -> Self {
        let mut texts = Self::default();
        if text.len() <= MAX_TEXT {
            texts.collect(text, vec![cwd.to_owned()], has_cd_path, 0);
        }
        let count = |part: &Part| (part.words.len() + part.redirections.len()) * part.places.len().max(1);
        let is_too_much = texts.parts.iter().map(count).sum::<usize>() > MAX_WORDS;
        if is_too_much || text.len() > MAX_TEXT {
            texts = Self { parts: Vec::new(), unclear: vec![text.to_owned()] };
        }
        texts
    }

    /// Adds a program that is run without a shell.
    pub(super) fn add_words(&mut self, words: Vec<String>, cwd: &Path, has_cd_path: bool) {
        if let Some(inner) = inner_text(&words) {
            self.collect(inner, vec![cwd.to_owned()], has_cd_path, 1);
        }
        self.parts.push(Part::of_words(words, cwd));
    }

    /// Whether any of it executes what others write to it, so that no word is only a word.
    pub(super) fn executes_input(&self) -> bool {
        self.parts.iter().any(|part| programs::has_role(&part.program(), Role::Executor))
    }

    fn collect(&mut self, text: &str, mut places: Vec<PathBuf>, has_cd_path: bool, depth: usize) {
        let commands = shell::commands(text).filter(|_| depth < MAX_DEPTH);
        let Some(commands) = commands else { return self.unclear.push(text.to_owned()) };
        for command in commands {
            let part = Part {
                words: command.words,
                redirections: command.redirections,
                is_assigned: !command.assignments.is_empty(),
                places: places.clone(),
            };
            if let Some(inner) = inner_text(&part.words) {
                self.collect(inner, places.clone(), has_cd_path, depth + 1);
            }
            if part.program() == "cd" {
                places = after(&part, places, has_cd_path);
            }
            self.parts.push(part);
        }
    }
}

/// Where commands may run after `cd`.
fn after(part: &Part, places: Vec<PathBuf>, has_cd_path: bool) -> Vec<PathBuf> {
    let folder = part.entered().filter(|folder| !has_cd_path || folder.starts_with(['/', '.']));
    let Some(folder) = folder else { return Vec::new() };
    let mut all = places.clone();
    for place in places {
        let entered = effects::normal(&place.join(folder));
        if !all.contains(&entered) {
            all.push(entered);
        }
    }
    if all.len() > MAX_PLACES { Vec::new() } else { all }
}

/// The text that a shell among the words interprets: the word after an option with `c`, as in `bash -lc TEXT`.
fn inner_text(words: &[String]) -> Option<&str> {
    let shell = words.iter().position(|word| is_shell(word))?;
    let is_text_option =
        |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
    let option = words[shell..].iter().position(is_text_option)?;
    words.get(shell + option + 1).map(String::as_str)
}

/// Whether a program interprets text that it is given.
pub(super) fn is_shell(word: &str) -> bool {
    programs::has_role(base_name(word), Role::Shell)
}

/// The last part of a path, which is how programs are known.
pub(super) fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// A text as a shell may read it in the end: without quotes and backslashes, and without expansions that can be empty.
pub(super) fn unquoted(text: &str) -> [String; 2] {
    let plain: String =
        text.replace("\\\n", "").chars().filter(|char| !matches!(char, '\'' | '"' | '\\')).collect();
    let mut bare = String::with_capacity(plain.len());
    let (mut at, mut brace) = (0, plain.find('}'));
    while let Some(found) = plain[at..].find(['$', '`']) {
        let start = at + found;
        bare.push_str(&plain[at..start]);
        if brace.is_some_and(|brace| brace < start) {
            brace = plain[start..].find('}').map(|end| start + end);
        }
        let length = match &plain.as_bytes()[start..] {
            [b'$', b'{', ..] => brace.map_or(2, |brace| brace + 1 - start),
            [b'$', b'(', b')', ..] => 3,
            [b'$', b'@' | b'*' | b'!' | b'#' | b'?' | b'0'..=b'9', ..] | [b'`', b'`', ..] => 2,
            [b'$', rest @ ..] => {
                1 + rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
            }
            _ => 1,
        };
        at = start + length;
    }
    bare.push_str(&plain[at..]);
    [plain, bare]
}

/// Where a name stands in a text as a word of its own. Both in lower case.
pub(super) fn mentions<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-');
    text.match_indices(name).map(|(start, _)| start).filter(move |start| {
        let before = text[..*start].chars().next_back();
        let after = text[start + name.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// The rest of a command in a text, from a position on; not all of it if it is long.
pub(super) fn words_after(text: &str, start: usize) -> &str {
    let rest = &text[start..];
    let end = rest.char_indices().nth(MAX_REST).map_or(rest.len(), |(end, _)| end);
    rest[..end].split([';', '|', '&', '\n']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs(text: &str) -> (Vec<String>, Vec<String>) {
        let texts = Texts::read(text, Path::new("/srv"), false);
        (texts.parts.iter().map(|part| part.words.join(" ")).collect(), texts.unclear)
    }

    #[test]
    fn a_shell_in_a_shell_is_read_too() {
        assert_eq!(programs("sh -c 'rm x; ls'").0, ["rm x", "ls", "sh -c rm x; ls"]);
        assert_eq!(programs("sudo bash -lc 'a && b'").0, ["a", "b", "sudo bash -lc a && b"]);
        assert_eq!(programs("sh -c 'rm $X'").1, ["rm $X"]);
        assert_eq!(programs("echo $X").1, ["echo $X"]);
        assert_eq!(programs(&"ls;".repeat(MAX_TEXT)).1.len(), 1, "too long");
        assert_eq!(programs(&"a ".repeat(MAX_WORDS + 1)).1.len(), 1, "too many words");
        let mut deep = "ls".to_owned();
        for _ in 0..3 {
            deep = format!("sh -c '{}'", deep.replace('\'', r"'\''"));
        }
        assert_eq!(programs(&deep).0.len(), 4);
    }

    #[test]
    fn after_cd_a_command_may_run_in_either_folder() {
        let places = |text: &str, has_cd_path| {
            let texts = Texts::read(text, Path::new("/srv"), has_cd_path);
            let list = texts.parts.last().unwrap().places.iter().map(|place| place.display().to_string());
            list.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(places("cd a; ls", false), "/srv /srv/a");
        assert_eq!(places("cd a && cd .. && ls", false), "/srv /srv/a /");
        assert_eq!(places("cd a && ls", true), "");
        assert_eq!(places("cd ./a && ls", true), "/srv /srv/a");
        for text in ["cd && ls", "cd - && ls", "cd -P a && ls", "cd a b && ls", "cd '' && ls", "cd +1 && ls"]
        {
            assert_eq!(places(text, false), "", "{text}");
        }
        assert_eq!(places("cd a; cd b; cd c; cd d; cd e; cd f; ls", false), "", "too many");
    }

    #[test]
    fn quotes_and_empty_expansions_hide_no_word() {
        for text in ["count''ersign", "count\"\"ersign", r"count\ersign", "coun\\\ntersign"] {
            assert_eq!(unquoted(text)[0], "countersign", "{text}");
        }
        for text in ["count$@ersign", "count${x}ersign", "count$()ersign", "count``ersign", "count$*ersign"] {
            assert_eq!(unquoted(text)[1], "countersign", "{text}");
        }
        assert_eq!(mentions("a rm-x rm /bin/rm;rm", "rm").count(), 3);
    }
}
