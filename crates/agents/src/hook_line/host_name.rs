//! What a host is called.

use std::fmt;

/// The names of a program that hosts an agent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName {
    /// The word for it on a command line, which is also the name of its program.
    pub word: &'static str,
    /// What people call it.
    pub name: &'static str,
}

impl fmt::Debug for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)
    }
}
