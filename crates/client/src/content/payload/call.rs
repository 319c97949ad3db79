//! The whole call behind a payload: what was asked for, and not what somebody says about it.

use std::collections::BTreeMap;

use countersign_wire::{Error, FromJson, FromMembers, Members, RawObject, hash::Sha256Hex};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};

use super::part::{Text, list, text, texts};
use crate::json::vocabulary;

/// What a host or `exec` was asked to do, with everything that decides what then happens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Who runs it: `exec`, or `hook.` and the host's word.
    pub kind: String,
    /// When it was asked: the host's name of the event; `run` for `exec`.
    pub moment: String,
    /// The tool as the host names it; the program for `exec`.
    pub tool: String,
    /// The working directory, an absolute path with links followed.
    pub folder: String,
    /// The root of the repository around it, likewise; absent outside of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// What the host has sent, without the members in `aside`.
    pub message: Map<String, Value>,
    /// Members of the message that are bound and not part of the grant key, by their JSON pointers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub aside: BTreeMap<String, Value>,
    /// SHA-256 of the host's message as it came; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256Hex>,
    /// The variables that count, sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<EnvironmentVariable>,
    /// The files that decide what happens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<BoundFile>,
    /// JSON pointers of the members of the message that the views show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
}

/// A variable of the environment of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnvironmentVariable {
    /// The name, without an equals sign.
    pub name: String,
    /// The value, or what stands for it.
    #[serde(flatten)]
    pub content: VariableContent,
}

/// What is known of a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum VariableContent {
    /// Its value, in the clear.
    Value(String),
    /// An HMAC of its value under a key that never leaves the enforcer.
    Mac(Sha256Hex),
}

/// A file that decides what a call does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoundFile {
    /// An absolute path with links followed.
    pub path: String,
    /// What it is to the call.
    pub role: BoundRole,
    /// SHA-256 of its content; absent if there is no file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Sha256Hex>,
}

vocabulary! {
    /// What a file is to a call.
    pub enum BoundRole {
        /// The program that is executed.
        Executable = "executable",
        /// The program that a script names in its first line.
        Interpreter = "interpreter",
        /// An operand that is interpreted.
        Script = "script",
        /// A file that an argument names.
        Operand = "operand",
        /// A file in a folder that was bound with the command.
        With = "with",
        /// A file that a shell reads when it starts.
        Startup = "startup",
        /// What an edit replaces.
        Before = "before",
    }
}

impl Call {
    /// A call with nothing but its message.
    pub fn new(kind: &str, moment: &str, tool: &str, folder: &str, message: Map<String, Value>) -> Self {
        Self {
            kind: kind.to_owned(),
            moment: moment.to_owned(),
            tool: tool.to_owned(),
            folder: folder.to_owned(),
            repository: None,
            message,
            aside: BTreeMap::new(),
            digest: None,
            environment: Vec::new(),
            files: Vec::new(),
            shown: Vec::new(),
        }
    }
}

impl Call {
    /// The same call of another command: what a pattern does not speak of, and must not differ.
    pub(crate) fn without_command(&self) -> Self {
        let mut message = Value::Object(self.message.clone());
        for pointer in self.shown.iter().filter(|it| COMMANDS.iter().any(|name| it.ends_with(name))) {
            if let Some(command) = message.pointer_mut(pointer) {
                *command = Value::Null;
            }
        }
        let message = match message {
            Value::Object(message) => message,
            _ => Map::new(),
        };
        let files = self.files.iter().filter(|file| file.role != BoundRole::Operand).cloned().collect();
        Self { message, files, aside: BTreeMap::new(), digest: None, shown: Vec::new(), ..self.clone() }
    }
}

/// The ends of pointers to what a command view shows.
const COMMANDS: [&str; 3] = ["/command", "/cmd", "/argv"];

impl FromMembers<'_> for Call {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let call = Self {
            kind: text(members, "kind")?,
            moment: text(members, "moment")?,
            tool: text(members, "tool")?,
            folder: text(members, "folder")?,
            repository: members.optional::<Text>("repository")?.map(|text| text.0),
            message: members.required::<Object>("message")?.0,
            aside: members
                .optional::<Object>("aside")?
                .map(|it| it.0.into_iter().collect())
                .unwrap_or_default(),
            digest: members.optional("digest")?,
            environment: list(members, "environment")?,
            files: list(members, "files")?,
            shown: texts(members, "shown")?,
        };
        members.close()?;
        if !call.environment.is_sorted_by(|one, next| one.name < next.name) {
            return Err(Error::breaks("environment", "must be sorted by name, each name once"));
        }
        Ok(call)
    }
}

impl FromMembers<'_> for EnvironmentVariable {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let name = text(members, "name")?;
        let content = match (members.optional("value")?, members.optional("mac")?) {
            (Some(value), None) => VariableContent::Value(value),
            (None, Some(mac)) => VariableContent::Mac(mac),
            _ => return Err(Error::breaks("value", "must be there, or mac, and not both")),
        };
        members.close()?;
        match name.contains('=') {
            true => Err(Error::breaks("name", "must not have an equals sign")),
            false => Ok(Self { name, content }),
        }
    }
}

impl FromMembers<'_> for BoundFile {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let file = Self {
            path: text(members, "path")?,
            role: members.required("role")?,
            digest: members.optional("digest")?,
        };
        members.close()?;
        Ok(file)
    }
}

/// An object with any members.
struct Object(Map<String, Value>);

impl FromJson<'_> for Object {
    fn from_json(value: &RawValue) -> Result<Self, Error> {
        let object = RawObject::from_json(value)?;
        let read = serde_json::from_str(object.as_str());
        read.map(Self).map_err(|_| Error::breaks("", "is not an object"))
    }
}
