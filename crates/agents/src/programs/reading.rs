//! Programs that only read: every option that keeps them so, and what they read then. An option that is not listed asks.

/// What the operands of a program are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// There must be none.
    None,
    /// Files or folders whose names, sizes or content are shown.
    Paths,
    /// One file at most: a second would be written.
    OnePath,
    /// Files or folders that are read with what is in them.
    Trees,
    /// A pattern, then files; without files the standard input is read.
    PatternThenPaths,
    /// A pattern, then files or folders that are searched with all that is in them.
    PatternThenTrees,
    /// Words that are compared and never opened.
    Words,
    /// Anything: it is printed, options that are not known included.
    Anything,
    /// A format that begins with a plus sign.
    Format,
    /// Lines of a file, such as `1,80p`, then files.
    LinesThenPaths,
    /// Folders, then tests as `find` has them.
    Tests {
        /// Tests that only look.
        flags: &'static [&'static str],
        /// Those with a value.
        valued: &'static [&'static str],
    },
}

// CONTRIBUTING: add a program, step 2
/// Everything that a program may be given so that it only reads.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Short options without a value; they can be joined.
    pub flags: &'static str,
    /// Short options with a value, joined or as the next word.
    pub valued: &'static str,
    /// Long options; one that ends in `=` has a value.
    pub long: &'static [&'static str],
    /// What the other words are.
    pub operands: Operands,
    /// Whether `-20` is a number of lines.
    pub counts: bool,
}

/// What a harmless command reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reads<'a> {
    /// Files and folders as they are named.
    pub paths: Vec<&'a str>,
    /// Whether all that is in the folders is read too.
    pub searches: bool,
}

impl Reading {
    pub(super) const fn new(
        flags: &'static str,
        valued: &'static str,
        long: &'static [&'static str],
        operands: Operands,
    ) -> Self {
        Self { flags, valued, long, operands, counts: false }
    }

    pub(super) const fn counting(self) -> Self {
        Self { counts: true, ..self }
    }

    /// What a command reads; otherwise the word that makes it uncertain.
    pub fn of<'a>(&self, arguments: &[&'a str]) -> Result<Reads<'a>, &'a str> {
        match self.operands {
            Operands::Anything => return Ok(Reads::default()),
            Operands::Tests { flags, valued } => return reads_of_find(arguments, flags, valued),
            _ => {}
        }
        let (mut operands, mut has_pattern, mut is_silent) = (Vec::new(), false, false);
        let mut lists_files = false;
        let mut arguments = arguments.iter().copied();
        while let Some(word) = arguments.next() {
            if word == "--" {
                operands.extend(arguments.by_ref());
            } else if self.operands == Operands::Words && !self.is_option(word) {
                operands.push(word);
            } else if let Some(long) = word.strip_prefix("--").map(|_| word) {
                let name = long.split_once('=').map_or(long, |(name, _)| &long[..=name.len()]);
                if !self.long.contains(&name) {
                    return Err(word);
                }
                has_pattern |= name == "--regexp=";
                is_silent |= matches!(name, "--quiet" | "--silent");
                lists_files |= name == "--files";
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                let is_count = self.counts && short.bytes().all(|byte| byte.is_ascii_digit());
                if !is_count {
                    let takes_next = self.short_options(short).ok_or(word)?;
                    if takes_next {
                        arguments.next().ok_or(word)?;
                    }
                    has_pattern |= short.contains('e') && self.valued.contains('e');
                    is_silent |= short.contains('n') && self.flags.contains('n');
                }
            } else {
                operands.push(word);
            }
        }
        let searches = matches!(self.operands, Operands::Trees | Operands::PatternThenTrees) && !lists_files;
        let paths = match self.operands {
            Operands::None => operands.first().map_or(Ok(Vec::new()), |word| Err(*word))?,
            Operands::Paths | Operands::Trees => operands,
            Operands::OnePath => operands.get(1).map_or(Ok(operands.clone()), |word| Err(*word))?,
            Operands::PatternThenPaths | Operands::PatternThenTrees => {
                operands.split_off(usize::from(!has_pattern && !lists_files).min(operands.len()))
            }
            Operands::Words | Operands::Anything | Operands::Tests { .. } => Vec::new(),
            Operands::Format => match operands.iter().find(|word| !word.starts_with('+')) {
                Some(word) => return Err(word),
                None => Vec::new(),
            },
            Operands::LinesThenPaths => match operands.split_first() {
                Some((script, files)) if is_silent && is_range(script) => files.to_vec(),
                Some((script, _)) => return Err(script),
                None => return Err("sed"),
            },
        };
        Ok(Reads { paths, searches })
    }

    /// Whether a program that prints its words takes this one as an option.
    fn is_option(&self, word: &str) -> bool {
        word.starts_with('-')
            && (word.len() > 1)
            && (!self.flags.is_empty() || word.starts_with("--") || word == "-v")
    }

    /// Reads joined short options: whether the value of the last one is the next word; `None` if one is not known.
    fn short_options(&self, short: &str) -> Option<bool> {
        let mut letters = short.chars();
        while let Some(letter) = letters.next() {
            if self.valued.contains(letter) {
                return Some(letters.as_str().is_empty());
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(false)
    }
}

/// Lines that `sed -n` prints, such as `5p` or `1,80p`.
fn is_range(script: &str) -> bool {
    let Some(lines) = script.strip_suffix('p') else { return false };
    let is_line =
        |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    match lines.split_once(',') {
        Some((first, last)) => is_line(first) && is_line(last),
        None => is_line(lines),
    }
}

fn reads_of_find<'a>(arguments: &[&'a str], flags: &[&str], valued: &[&str]) -> Result<Reads<'a>, &'a str> {
    let mut paths = Vec::new();
    let mut arguments = arguments.iter().copied().peekable();
    while let Some(path) =
        arguments.next_if(|word| !word.starts_with('-') && !matches!(*word, "!" | "(" | ")"))
    {
        paths.push(path);
    }
    while let Some(word) = arguments.next() {
        if valued.contains(&word) {
            arguments.next().ok_or(word)?;
        } else if !flags.contains(&word) {
            return Err(word);
        }
    }
    Ok(Reads { paths, searches: false })
}

#[cfg(test)]
mod tests {
    use crate::programs;

    fn reading(command: &str) -> Option<String> {
        let words: Vec<&str> = command.split(' ').collect();
        let (reading, named) = programs::reading_of(&words)?;
        reading.of(&words[named..]).ok().map(|reads| reads.paths.join(" "))
    }

    #[test]
    fn what_only_reads_is_known_with_what_it_reads() {
        for (command, paths) in [
            ("ls -la src", "src"),
            ("cat -n a b", "a b"),
            ("cat -- -n", "-n"),
            ("grep -n -i pattern a b", "a b"),
            ("grep -e pattern a", "a"),
            ("grep -A3 x a", "a"),
            ("head -20 a", "a"),
            ("head -n 20 a", "a"),
            ("tail -n20 a", "a"),
            ("wc -l a", "a"),
            ("git status --short", ""),
            ("git diff --stat HEAD~1 -- src", "HEAD~1 src"),
            ("git log --oneline -5", ""),
            ("git log -n 5 -S needle src", "src"),
            ("git show HEAD:src/a.rs", "HEAD:src/a.rs"),
            ("rg -n pattern src", "src"),
            ("rg --files src", "src"),
            ("sed -n 1,80p a", "a"),
            ("sed -n $p a", "a"),
            ("find . -name *.rs -type f", "."),
            ("find src ( -name a -o -name b ) -print", "src"),
            ("sort -rn -k2 a", "a"),
            ("uniq -c", ""),
            ("echo -n --- /etc/passwd", ""),
            ("date +%s", ""),
            ("tr -d x", ""),
            ("cut -d: -f1 a", "a"),
        ] {
            assert_eq!(reading(command).as_deref(), Some(paths), "{command}");
        }
    }

    const NOT_HARMLESS: &[&str] = &[
        "git diff --output=x",
        "git diff --output x",
        "git diff --outpu=x",
        "git log --output=x",
        "git diff --ext-diff",
        "git diff --no-index a b",
        "git log --textconv",
        "git log --show-signature",
        "git grep -O x",
        "git -c core.pager=x log",
        "git -C /tmp status",
        "git --git-dir=x status",
        "git --exec-path=x status",
        "git branch new",
        "git branch -D x",
        "git tag v1",
        "git tag -d v1",
        "git remote add x y",
        "git stash",
        "git blame --contents x a",
        "rg --pre cat x",
        "rg --pre=cat x",
        "rg --hostname-bin=x x",
        "rg --hidden x",
        "rg -u x",
        "rg -. x",
        "rg -z x",
        "rg -L x",
        "rg -f file x",
        "rg --ignore-file x y",
        "grep -r x .",
        "grep -R x .",
        "grep -f file x",
        "grep --include=x x",
        "sort -o x a",
        "sort -ox a",
        "sort --output=x a",
        "sort --compress-program=x a",
        "sort -T x a",
        "sort --files0-from=x",
        "uniq a b",
        "find . -exec ls",
        "find . -execdir ls",
        "find . -ok ls",
        "find . -delete",
        "find . -fprint x",
        "find . -fprintf x y",
        "find . -fls x",
        "find -L . -name x",
        "find . -newer /etc/passwd",
        "sed -i s/a/b/ x",
        "sed -n -i 1p x",
        "sed 1p x",
        "sed -n 1w/tmp/x a",
        "sed -n 1e a",
        "sed -n s/a/b/wp a",
        "sed -e 1p a",
        "sed -f x a",
        "sed -n",
        "tail -f x",
        "tail -F x",
        "tail --follow x",
        "wc --files0-from=x",
        "date -s 1",
        "date 01010101",
        "date -f x",
        "file -m x a",
        "file -f x",
        "file -C",
        "diff -r a b",
        "diff --to-file=x a",
        "tree -o x",
        "ls --hyperlink",
        "cat --unknown x",
        "printf %s x",
        "du -L x",
        "du --files0-from=x",
        "env",
        "awk x",
        "./ls",
        "/bin/ls",
        "git",
        "jq env",
        "LS",
    ];

    #[test]
    fn an_option_that_writes_or_executes_is_not() {
        for command in NOT_HARMLESS {
            assert_eq!(reading(command), None, "{command}");
        }
    }
}
