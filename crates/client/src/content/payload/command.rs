//! The payload of `command.review`: what will be executed, where, and with what.

use countersign_wire::{Error, FromMembers, Members, hash::Sha256Hex};
use serde::Serialize;

use super::{
    context::Context,
    effect::Effect,
    part::{Text, count, list, text},
    visible::visible_code,
};
use crate::json::vocabulary;

/// A command before it is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// What will be executed.
    #[serde(flatten)]
    pub invocation: Invocation,
    /// The working directory, as an absolute path.
    pub cwd: String,
    /// The variables that matter to the command, as the enforcer chooses them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<Variable>,
    /// What it reads from its standard input; absent if that is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Input>,
    /// The executable, and the scripts among the operands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CommandFile>,
    /// The commit that is checked out where it runs; absent outside of a repository.
    #[serde(rename = "baseRevision", skip_serializing_if = "Option::is_none")]
    pub base_revision: Option<String>,
    /// What it does; absent if the enforcer has not examined it, empty if it has found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// The call behind it, and who asks.
    #[serde(flatten)]
    pub context: Context,
}

/// A command as it is given to the system, or to a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Invocation {
    /// A program and its arguments, without a shell. The program is not empty.
    Argv(Vec<String>),
    /// A text that a shell interprets.
    Shell(String),
}

/// An environment variable of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// The name, without an equals sign.
    pub name: String,
    /// The value; absent if it is a secret and only known to be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// What a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Input {
    /// SHA-256 of all of it.
    pub digest: Sha256Hex,
    /// Its size in bytes.
    pub size: u64,
}

vocabulary! {
    /// What a file is to a command.
    pub enum FileRole {
        /// The program that is executed.
        Executable = "executable",
        /// An operand that is interpreted.
        Script = "script",
    }
}

/// A file that decides what a command does. It is checked again before the command is executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandFile {
    /// Where it is, absolute or relative to `cwd`.
    pub path: String,
    /// What it is to the command.
    pub role: FileRole,
    /// SHA-256 of its content.
    pub digest: Sha256Hex,
    /// Its size in bytes.
    pub size: u64,
    /// The content, if it is text and was not too large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl CommandFile {
    /// A file whose content is shown.
    pub fn with_content(path: impl Into<String>, role: FileRole, content: impl Into<String>) -> Self {
        let content = content.into();
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let digest = Sha256Hex::digest(content.as_bytes());
        Self { path: path.into(), role, digest, size, content: Some(content) }
    }
}

impl Command {
    /// A command with nothing but its working directory.
    pub fn new(invocation: Invocation, cwd: impl Into<String>) -> Self {
        Self {
            invocation,
            cwd: cwd.into(),
            env: Vec::new(),
            stdin: None,
            files: Vec::new(),
            base_revision: None,
            effects: None,
            context: Context::default(),
        }
    }

    /// The whole command on one line, as a shell would read it.
    pub(super) fn headline(&self) -> String {
        match &self.invocation {
            Invocation::Shell(text) => visible_code(text),
            Invocation::Argv(words) => {
                let quoted: Vec<String> = words.iter().map(|word| visible_code(&quoted(word))).collect();
                quoted.join(" ")
            }
        }
    }
}

/// A word so that a POSIX shell reads exactly it.
pub fn quoted(word: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"@%+=:,./-_".contains(&byte) || !byte.is_ascii();
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl Command {
    /// Takes the members after the marker.
    pub(super) fn from_members(members: &mut Members<'_>, context: Context) -> Result<Self, Error> {
        let invocation = match (members.optional::<Vec<String>>("argv")?, members.optional::<Text>("shell")?)
        {
            (Some(argv), None) if argv.first().is_some_and(|program| !program.is_empty()) => {
                Invocation::Argv(argv)
            }
            (Some(_), None) => return Err(Error::breaks("argv", "must begin with a program")),
            (None, Some(Text(text))) => Invocation::Shell(text),
            (Some(_), Some(_)) => return Err(Error::breaks("shell", "must not be beside argv")),
            (None, None) => return Err(Error::missing("argv")),
        };
        Ok(Self {
            invocation,
            cwd: text(members, "cwd")?,
            env: list(members, "env")?,
            stdin: members.optional("stdin")?,
            files: list(members, "files")?,
            base_revision: members.optional::<Text>("baseRevision")?.map(|Text(revision)| revision),
            effects: members.optional("effects")?,
            context,
        })
    }
}

impl FromMembers<'_> for Variable {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let variable = Self { name: text(members, "name")?, value: members.optional("value")? };
        if variable.name.contains('=') {
            return Err(Error::breaks("name", "must not have an equals sign"));
        }
        members.close()?;
        Ok(variable)
    }
}

impl FromMembers<'_> for Input {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let input = Self { digest: members.required("digest")?, size: count(members, "size")? };
        members.close()?;
        Ok(input)
    }
}

impl FromMembers<'_> for CommandFile {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let file = Self {
            path: text(members, "path")?,
            role: members.required("role")?,
            digest: members.required("digest")?,
            size: count(members, "size")?,
            content: members.optional("content")?,
        };
        members.close()?;
        // What is read must be what is executed.
        if let Some(content) = &file.content {
            if Sha256Hex::digest(content.as_bytes()) != file.digest {
                return Err(Error::breaks("digest", "is not that of the content"));
            }
            if u64::try_from(content.len()) != Ok(file.size) {
                return Err(Error::breaks("size", "is not that of the content"));
            }
        }
        Ok(file)
    }
}
