//! Patterns of names and paths: `*` for any characters of a name, `?` for one, `**` for any number of folders.

use std::path::{Path, PathBuf};

/// A pattern of a path, below the root of the repository or from the root of the file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob {
    text: String,
    parts: Vec<String>,
    is_absolute: bool,
}

impl Glob {
    /// A pattern as it is written in a file. `~/` is the folder of the user.
    pub(super) fn new(text: &str, home: Option<&Path>) -> Result<Self, &'static str> {
        let expanded = match text.strip_prefix("~/") {
            Some(rest) => home.ok_or("begins with ~, and this user has no home")?.join(rest),
            None => PathBuf::from(text),
        };
        let Some(path) = expanded.to_str() else { return Err("is not UTF-8") };
        let is_absolute = path.starts_with('/');
        let parts: Vec<String> =
            path.split('/').filter(|part| !part.is_empty() && *part != ".").map(str::to_owned).collect();
        if parts.is_empty() {
            return Err("is empty");
        }
        if parts.iter().any(|part| part == ".." || (part.contains("**") && part != "**")) {
            return Err("has `..`, or `**` that is not a whole name");
        }
        if path.contains(['[', ']', '{', '}', '~']) {
            return Err("has a character that means nothing here: only `*`, `?` and `**` do");
        }
        Ok(Self { text: text.to_owned(), parts, is_absolute })
    }

    /// The pattern as it was written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a path is exactly this.
    pub(super) fn covers(&self, path: &Path, root: Option<&Path>) -> bool {
        self.names(path, root).is_some_and(|names| fits(&self.parts, &names))
    }

    /// Whether a path is this, or in a folder that is this.
    pub(super) fn touches(&self, path: &Path, root: Option<&Path>) -> bool {
        let Some(names) = self.names(path, root) else { return false };
        (0..=names.len()).any(|length| fits(&self.parts, &names[..length]))
    }

    /// Whether what it means can lie below a path.
    pub(super) fn is_below(&self, path: &Path, root: Option<&Path>) -> bool {
        let Some(names) = self.names(path, root).filter(|names| !names.is_empty()) else { return false };
        let literal = self.parts.iter().take_while(|part| !part.contains(['*', '?']));
        let literal: Vec<&String> = literal.collect();
        literal.len() >= names.len() && literal.iter().zip(&names).all(|(part, name)| part == name)
    }

    /// Whether a text that is not understood may mean it: every fixed piece of the pattern is in the text.
    pub(super) fn is_mentioned(&self, text: &str) -> bool {
        let pieces =
            self.parts.iter().flat_map(|part| part.split(['*', '?'])).filter(|piece| !piece.is_empty());
        let mut pieces = pieces.peekable();
        pieces.peek().is_none() || pieces.all(|piece| text.contains(piece))
    }

    fn names<'a>(&self, path: &'a Path, root: Option<&Path>) -> Option<Vec<&'a str>> {
        let path = if self.is_absolute { path } else { path.strip_prefix(root?).ok()? };
        let names = path.components().filter(|part| !matches!(part, std::path::Component::RootDir));
        names.map(|part| part.as_os_str().to_str()).collect()
    }
}

fn fits(parts: &[String], names: &[&str]) -> bool {
    match parts.split_first() {
        None => names.is_empty(),
        Some((first, rest)) if first == "**" => {
            (0..=names.len()).any(|skipped| fits(rest, &names[skipped..]))
        }
        Some((first, rest)) => {
            names.split_first().is_some_and(|(name, others)| wildcard(first, name) && fits(rest, others))
        }
    }
}

/// Whether a name fits a pattern with `*` and `?`.
pub(super) fn wildcard(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut read, mut star) = (0, 0, None);
    while read < name.len() {
        if at < pattern.len() && pattern[at] == '*' {
            star = Some((at, read));
            at += 1;
        } else if at < pattern.len() && (pattern[at] == '?' || pattern[at] == name[read]) {
            at += 1;
            read += 1;
        } else if let Some((position, taken)) = star {
            star = Some((position, taken + 1));
            at = position + 1;
            read = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_folders() {
        let root = Path::new("/srv/repo");
        let covers = |glob: &str, path: &str| {
            Glob::new(glob, Some(Path::new("/home/ada"))).unwrap().covers(Path::new(path), Some(root))
        };
        for (glob, path, expected) in [
            ("src/**", "/srv/repo/src/a/b.rs", true),
            ("src/**", "/srv/repo/src", true),
            ("src/**", "/srv/repo/srcs/a", false),
            ("src/*.rs", "/srv/repo/src/a.rs", true),
            ("src/*.rs", "/srv/repo/src/a/b.rs", false),
            ("**/*.sql", "/srv/repo/a/b/c.sql", true),
            ("**/*.sql", "/srv/repo/c.sql", true),
            ("**/*.sql", "/srv/other/c.sql", false),
            ("src/?.rs", "/srv/repo/src/é.rs", true),
            ("/etc/*", "/etc/hosts", true),
            ("~/notes/**", "/home/ada/notes/a", true),
            ("src", "/srv/repo/src/a", false),
        ] {
            assert_eq!(covers(glob, path), expected, "{glob} {path}");
        }
        let src = Glob::new("src", None).unwrap();
        assert!(src.touches(Path::new("/srv/repo/src/a"), Some(root)));
        let deep = Glob::new("db/migrations/*.sql", None).unwrap();
        assert!(deep.is_below(Path::new("/srv/repo/db"), Some(root)));
        assert!(!deep.is_below(root, Some(root)) && !deep.is_below(Path::new("/srv/repo/d"), Some(root)));
        assert!(deep.is_mentioned("rm db/migrations/$X.sql") && !deep.is_mentioned("rm db/$X"));
    }

    #[test]
    fn a_pattern_that_says_something_else_is_none() {
        for text in ["", "/", "../x", "a**", "a/[b]", "~ada/x", "{a,b}", "."] {
            Glob::new(text, Some(Path::new("/home/ada"))).unwrap_err();
        }
    }

    #[test]
    fn wildcards_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("mcp__*", "mcp__github__get", true),
            ("*", "", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("Bash", "bash", false),
            ("**", "x", true),
        ] {
            assert_eq!(wildcard(pattern, name), expected, "{pattern} {name}");
        }
    }
}
