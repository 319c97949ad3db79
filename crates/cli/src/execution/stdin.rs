//! The standard input of a command: a terminal is passed through; anything else is read before asking, so that the bytes
//! which were hashed are those that the command reads.

use std::io::{self, IsTerminal as _};

use countersign_client::payload::Input;

use super::held::Held;
use crate::{
    exit::{Exit, Failure},
    output::StatusLine,
};

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

/// Reads the standard input to its end, unless it is a terminal. Long inputs show how much has been read.
pub fn read_stdin() -> Result<Stdin, Failure> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(Stdin::Terminal);
    }
    let mut line = StatusLine::default();
    line.show("  reading the standard input to its end; there is none with < /dev/null");
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
