//! What a row of the table can say about a program.

use countersign_client::payload::EffectKind;

use super::reading::Reading;

// CONTRIBUTING: add a program, step 1
/// One program. Effects and rules each ask for some columns; where they disagree about a program, the columns do.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// The names by which it is run, without folders.
    pub names: &'static [&'static str],
    /// What it does, as approvers are told.
    pub does: Does,
    /// Options by which it runs another program, or does what is not known. They come before those that write.
    pub runs: Options,
    /// Options by which it writes a file, although it otherwise only reads.
    pub writes: Options,
    /// What keeps it harmless, so that rules allow it; absent if nothing does.
    pub reads: Option<Reading>,
    /// What it does with words and files that can be commands.
    pub roles: &'static [Role],
    /// Its commands, as in `git log`.
    pub commands: &'static [Command],
}

/// What a program does, and from which words that is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// It is not known here.
    Unknown,
    /// It reads or prints, or makes what did not exist.
    Nothing,
    /// It reads its first operand, and overwrites the second if there is one.
    WritesSecondOperand,
    /// It overwrites its last operand.
    Overwrites,
    /// It deletes its operands.
    Deletes,
    /// It looks for files. What its tests run is not known, but options that write come first.
    Finds {
        /// Tests that run a program.
        runs: Options,
        /// Tests that delete what is found.
        deletes: Options,
    },
    /// It edits by a script, which is its first operand.
    Edits {
        /// Options that have the script in place of the operand.
        script: Options,
        /// Options by which files are overwritten.
        in_place: Options,
    },
    /// It selects and prints by a text, which is its first operand, and can do more.
    Selects,
    /// It connects to another machine.
    Network {
        /// When it sends what is here.
        sends: When,
        /// Options before a method of HTTP: one that changes something sends too.
        methods: &'static [&'static str],
        /// When it overwrites files here.
        saves: When,
    },
    /// Its first word is one of its commands, with targets behind it.
    Git,
    /// Its first operand is one of its commands.
    PackageManager,
    /// Any of its operands can be one of its commands, which act elsewhere.
    RemoteControl,
    /// It runs the command that follows with more privileges.
    EscalatesPrivileges,
    /// It interprets the text after `-c`.
    Shell,
}

/// What else a program does with its words and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It interprets the word after an option with `c`.
    Shell,
    /// It executes what it reads, or what follows.
    Executor,
    /// It runs the file that it is given; with a version behind its name too.
    Interpreter,
    /// It runs the command that follows, which approvers see in its place.
    Wrapper,
    /// It does nothing with its words but read or print, so that a name among them is only a name.
    WordsAreData,
}

/// The roles of most readers.
pub(super) const WORDS: &[Role] = &[Role::WordsAreData];

/// With which options a program sends or saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Whatever the options are, it does.
    Always,
    /// Whatever the options are, it does not.
    Never,
    /// With one of these options.
    With(Options),
}

/// Arguments that have one meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whole words, also with `=` and a value behind them.
    pub words: &'static [&'static str],
    /// Short options, also joined ones, such as `f` in `-xf`.
    pub letters: &'static str,
    /// How operands with this meaning begin.
    pub operands: Option<char>,
}

/// One command of a program.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// The words for it; `get-*` stands for every word that begins so.
    pub names: &'static [&'static str],
    /// What it does, as approvers are told; absent if that is not known.
    pub causes: Option<&'static [Cause]>,
    /// The first operands with which that is known; empty if it does not depend on them.
    pub known_with: &'static [&'static str],
    /// Options by which it runs another program, beside those of its program.
    pub runs: Options,
    /// What keeps it harmless; absent if nothing does.
    pub reads: Option<Reading>,
    /// What it does with its words; they are data only if the program says so too.
    pub roles: &'static [Role],
}

/// An effect of a command.
#[derive(Debug, Clone, Copy)]
pub struct Cause {
    /// What kind it is.
    pub kind: EffectKind,
    /// Whether approvers are told what it is on.
    pub has_detail: bool,
    /// With which options; absent if with any.
    pub with: Option<Options>,
}

impl Program {
    pub(super) const fn new(names: &'static [&'static str], does: Does) -> Self {
        let (runs, writes) = (Options::NONE, Options::NONE);
        Self { names, does, runs, writes, reads: None, roles: &[], commands: &[] }
    }

    /// A program that only reads or prints.
    pub(super) const fn reader(names: &'static [&'static str]) -> Self {
        Self::new(names, Does::Nothing)
    }

    pub(super) const fn runs(self, runs: Options) -> Self {
        Self { runs, ..self }
    }

    pub(super) const fn writes(self, writes: Options) -> Self {
        Self { writes, ..self }
    }

    pub(super) const fn reads(self, reads: Reading) -> Self {
        Self { reads: Some(reads), ..self }
    }

    pub(super) const fn roles(self, roles: &'static [Role]) -> Self {
        Self { roles, ..self }
    }

    pub(super) const fn commands(self, commands: &'static [Command]) -> Self {
        Self { commands, ..self }
    }

    /// Its command of this name.
    pub fn command(&self, name: &str) -> Option<&'static Command> {
        self.commands.iter().find(|command| command.is_named(name))
    }
}

impl Command {
    fn is_named(&self, name: &str) -> bool {
        self.names.iter().any(|known| match known.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *known == name,
        })
    }

    /// A command with these names, and what it does.
    pub(super) const fn new(names: &'static [&'static str], causes: &'static [Cause]) -> Self {
        Self { causes: Some(causes), ..Self::unknown(names) }
    }

    /// A command of which approvers are not told what it does.
    pub(super) const fn unknown(names: &'static [&'static str]) -> Self {
        Self { names, causes: None, known_with: &[], runs: Options::NONE, reads: None, roles: &[] }
    }

    /// Known only with one of these first operands.
    pub(super) const fn known_with(self, known_with: &'static [&'static str]) -> Self {
        Self { known_with, ..self }
    }

    pub(super) const fn runs(self, runs: Options) -> Self {
        Self { runs, ..self }
    }

    pub(super) const fn reads(self, reads: Reading) -> Self {
        Self { reads: Some(reads), ..self }
    }

    pub(super) const fn roles(self, roles: &'static [Role]) -> Self {
        Self { roles, ..self }
    }
}

impl Cause {
    /// An effect on what the command names.
    pub(super) const fn on(kind: EffectKind) -> Self {
        Self { kind, has_detail: true, with: None }
    }

    /// An effect of which only the kind is told.
    pub(super) const fn plain(kind: EffectKind) -> Self {
        Self { kind, has_detail: false, with: None }
    }

    /// Only with one of these options.
    pub(super) const fn with(self, options: Options) -> Self {
        Self { with: Some(options), ..self }
    }
}

impl Options {
    pub(super) const NONE: Self = Self::new(&[], "");

    pub(super) const fn new(words: &'static [&'static str], letters: &'static str) -> Self {
        Self { words, letters, operands: None }
    }

    pub(super) const fn or_operands(self, start: char) -> Self {
        Self { operands: Some(start), ..self }
    }

    /// Whether one of the arguments is among them.
    pub fn are_in(&self, arguments: &[&str]) -> bool {
        arguments.iter().any(|word| self.has_word(word) || self.has_letter(word) || self.has_operand(word))
    }

    fn has_word(&self, word: &str) -> bool {
        self.words.iter().any(|option| {
            word.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    }

    fn has_letter(&self, word: &str) -> bool {
        word.starts_with('-') && !word.starts_with("--") && word.contains(|char| self.letters.contains(char))
    }

    fn has_operand(&self, word: &str) -> bool {
        self.operands.is_some_and(|start| word.starts_with(start))
    }
}

impl When {
    /// Whether it happens with these arguments.
    pub fn is(&self, arguments: &[&str]) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::With(options) => options.are_in(arguments),
        }
    }
}
