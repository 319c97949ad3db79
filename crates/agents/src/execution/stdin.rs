//! The standard input of a command: a terminal is passed through; anything else is read before asking, so that the bytes
//! which were hashed are those that the command reads.

use std::io::{self, IsTerminal as _};

use countersign_client::payload::Input;
use countersign_wire::hash::Sha256Hex;
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use serde::{Deserialize, Serialize};

use super::held::Held;
use crate::tool::{
    exit::{Exit, Failure},
    output::{StatusLine, say},
};

/// What a command reads, as people are asked about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Reads {
    /// What somebody types at the terminal.
    Terminal,
    /// Nothing but an end.
    Nothing,
    /// Bytes that are there already.
    Bytes {
        /// SHA-256 of all of them.
        digest: Sha256Hex,
        /// How many there are.
        size: u64,
    },
}

impl Reads {
    /// The bytes, if there are any.
    pub fn input(self) -> Option<Input> {
        match self {
            Self::Terminal | Self::Nothing => None,
            Self::Bytes { digest, size } => Some(Input { digest, size }),
        }
    }
}

/// The standard input of a command that will run.
#[derive(Debug)]
pub enum Stdin {
    /// The terminal of the person who runs it.
    Terminal,
    /// Bytes that were read already.
    Bytes {
        /// The bytes, which nobody can change.
        held: Held,
        /// What is asked about them.
        reads: Reads,
    },
}

impl Stdin {
    /// What is asked about.
    pub fn reads(&self) -> Reads {
        match self {
            Self::Terminal => Reads::Terminal,
            Self::Bytes { reads, .. } => *reads,
        }
    }
}

/// What a command would read that is only asked about: the terminal, or else nothing.
pub fn unread() -> Reads {
    if io::stdin().is_terminal() { Reads::Terminal } else { Reads::Nothing }
}

/// How long to wait for the first byte before it is said what is waited for.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// Whether there is something to read, or an end, within a moment.
fn has_something(stdin: &io::Stdin) -> bool {
    let mut sources = [PollFd::new(stdin, PollFlags::IN)];
    poll(&mut sources, Some(&PATIENCE)).is_ok_and(|ready| ready > 0)
}

/// Reads the standard input to its end, unless it is a terminal. Long inputs show how much has been read.
pub fn read_stdin() -> Result<Stdin, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(Stdin::Terminal);
    }
    if !has_something(&stdin) {
        // An agent may have left it open, and would wait without knowing for what.
        say("  reading the standard input to its end; with < /dev/null there is none");
    }
    let mut line = StatusLine::default();
    let read = Held::of(&mut stdin.lock(), &mut |size| {
        line.show(&format!("  reading the standard input: {size} bytes so far"));
    });
    let (held, digest, size) = read.map_err(|error| {
        Failure::new(Exit::Failed, format!("the standard input can't be read: {error}"))
            .next("nothing was asked and nothing was run")
    })?;
    let reads = if size > 0 { Reads::Bytes { digest, size } } else { Reads::Nothing };
    Ok(Stdin::Bytes { held, reads })
}
