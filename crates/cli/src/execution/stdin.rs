//! The standard input of a command: a terminal is passed through; anything else is read before asking, so that the bytes
//! which were hashed are those that the command reads.

use std::io::{self, IsTerminal as _};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    output::{StatusLine, say},
};
use countersign_client::payload::Input;
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};

use super::held::Held;

/// What a command reads.
#[derive(Debug)]
pub enum Stdin {
    /// The terminal of the person who runs it.
    Terminal,
    /// Bytes that were read already.
    Bytes {
        /// The bytes, which nobody can change.
        held: Held,
        /// Their digest and size; `None` if there are none.
        input: Option<Input>,
    },
}

impl Stdin {
    /// Where a command would be run: the terminal, or else nothing to read.
    pub fn unread() -> Result<Self, Failure> {
        if io::stdin().is_terminal() {
            return Ok(Self::Terminal);
        }
        let nothing = Held::of(&mut io::empty(), &mut |_| ());
        let (held, ..) = nothing.map_err(|error| Failure::new(Exit::Failed, error))?;
        Ok(Self::Bytes { held, input: None })
    }
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
    let input = (size > 0).then_some(Input { digest, size });
    Ok(Stdin::Bytes { held, input })
}
