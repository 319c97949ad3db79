//! What a machine says of itself in the capabilities of its enforcer (docs/protocol.md#what-a-machine-says-of-itself).
//!
//! The gateway and the whole tenant read it, so it has no name, no path and nothing of what agents do. Nothing in it is proven.

use std::{fmt, str::FromStr};

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, Rule, hash::Sha256Hex, timestamp::Timestamp, vocabulary::vocabulary,
    written::written_as_string,
};

/// The key under `capabilities`.
pub const KEY: &str = "org.countersign.machine";

/// The only version of the form. A member that is added needs no other: readers ignore what they don't know.
const VERSION: u8 = 1;

/// Agent hosts in one report.
const MAX_HOSTS: usize = 16;

/// Problems that are counted.
const MAX_PROBLEMS: u16 = 999;

vocabulary! {
    /// What has become of the policy of a machine.
    pub enum PolicyState {
        /// Nobody has laid down anything.
        None = "none",
        /// It counts for every call.
        InForce = "inForce",
        /// It is there and can't be used, so agents are denied everything.
        Unusable = "unusable",
    }

    /// Which calls a hook asks about.
    pub enum HookMode {
        /// Every call, unless rules decide.
        Gate = "gate",
        /// What the host would ask about.
        Relay = "relay",
    }

    /// Where the keeper runs that decides for a hook.
    pub enum KeeperPlace {
        /// Under the user's own account.
        User = "user",
        /// Under an account of its own.
        System = "system",
    }
}

/// What a machine says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineReport {
    version: u8,
    /// The version of the program that says it.
    pub tool: Word,
    /// What its administrator has laid down.
    pub policy: MachinePolicy,
    /// The hooks in agent hosts; `None` if nobody has looked yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<MachineHooks>,
    /// The last result of the doctor; `None` if it never ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doctor: Option<MachineDoctor>,
}

/// The policy of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachinePolicy {
    /// What has become of it.
    pub state: PolicyState,
    /// Which one it is; `None` if there is none, or it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<PolicyId>,
    /// What it makes of every hook; `None` if each is what it was installed as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<HookMode>,
}

/// The hooks of a machine, when somebody has last looked at them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineHooks {
    /// When that was, by the machine's clock.
    pub at: Timestamp,
    /// The agent hosts in which there is a hook, at most 16.
    pub hosts: Vec<MachineHook>,
}

/// The hook in one agent host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineHook {
    /// The host's name, as on a command line.
    pub host: Word,
    /// What it was installed as; `None` if its line is not one that was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<HookMode>,
    /// Whom it asks; `None` if it decides itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeper: Option<KeeperPlace>,
    /// Whether nothing was found that keeps it from stopping a call.
    pub armed: bool,
}

/// What the doctor has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MachineDoctor {
    /// When it looked, by the machine's clock.
    pub at: Timestamp,
    /// How many things have to be put right; at most 999.
    pub problems: u16,
}

impl MachineReport {
    /// Of a machine at whose hooks nobody has looked.
    pub fn new(tool: Word, policy: MachinePolicy) -> Self {
        Self { version: VERSION, tool, policy, hooks: None, doctor: None }
    }
}

impl MachineDoctor {
    /// With this many problems, or as many as are counted.
    pub fn new(at: Timestamp, problems: usize) -> Self {
        Self { at, problems: u16::try_from(problems).unwrap_or(u16::MAX).min(MAX_PROBLEMS) }
    }
}

impl FromMembers<'_> for MachineReport {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        if !matches!(members.required("version")?, 1.0) {
            return Err(Error::breaks("version", "must be 1"));
        }
        Ok(Self {
            version: VERSION,
            tool: members.required("tool")?,
            policy: members.required("policy")?,
            hooks: members.optional("hooks")?,
            doctor: members.optional("doctor")?,
        })
    }
}

impl FromMembers<'_> for MachinePolicy {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            state: members.required("state")?,
            id: members.optional("id")?,
            mode: members.optional("mode")?,
        })
    }
}

impl FromMembers<'_> for MachineHooks {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let (at, hosts) = (members.required("at")?, members.required::<Vec<MachineHook>>("hosts")?);
        match hosts.len() <= MAX_HOSTS {
            true => Ok(Self { at, hosts }),
            false => Err(Error::breaks("hosts", "must be at most 16 items")),
        }
    }
}

impl FromMembers<'_> for MachineHook {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            host: members.required("host")?,
            mode: members.optional("mode")?,
            keeper: members.optional("keeper")?,
            armed: members.required("armed")?,
        })
    }
}

impl FromMembers<'_> for MachineDoctor {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let (at, problems) = (members.required("at")?, members.required::<f64>("problems")?);
        let count = (0..=MAX_PROBLEMS).find(|count| f64::from(*count).total_cmp(&problems).is_eq());
        let problems =
            count.ok_or_else(|| Error::breaks("problems", "must be a whole number of at most 999"))?;
        Ok(Self { at, problems })
    }
}

/// A version or a name: 1 to 32 ASCII letters, digits, dots, hyphens, pluses and underscores, so that it can be shown as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Word(Box<str>);

/// Which policy a file is: the first twelve hex digits of its SHA-256. Enough to tell those of one administrator apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct PolicyId(Box<str>);

impl Word {
    /// The longest, in bytes.
    const MAX: usize = 32;

    /// The beginning of a text, without what has no place in a word.
    pub fn cleaned(text: &str) -> Self {
        let plain: String =
            text.bytes().filter(|byte| is_plain(*byte)).take(Self::MAX).map(char::from).collect();
        Self(if plain.is_empty() { "-".into() } else { plain.into() })
    }

    /// The text, which is not empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl PolicyId {
    /// Hex digits of it.
    const DIGITS: usize = 12;

    /// That of a file with this content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256Hex::digest(content).to_string().chars().take(Self::DIGITS).collect())
    }

    /// Twelve lowercase hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-+_".contains(&byte)
}

impl FromStr for Word {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        match (1..=Self::MAX).contains(&text.len()) && text.bytes().all(is_plain) {
            true => Ok(Self(text.into())),
            false => Err(Rule("must be 1 to 32 letters, digits and . - + _")),
        }
    }
}

impl FromStr for PolicyId {
    type Err = Rule;

    /// Also from the whole digest, as `sha256sum` writes it.
    fn from_str(text: &str) -> Result<Self, Rule> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        match (Self::DIGITS..=64).contains(&text.len()) && text.bytes().all(is_digit) {
            true => Ok(Self(text[..Self::DIGITS].into())),
            false => Err(Rule("must be 12 to 64 lowercase hex digits")),
        }
    }
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

written_as_string!(Word, PolicyId);
