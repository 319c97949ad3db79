//! A process, whichever system shows it.

/// A process as the system shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The number of the process that has started it.
    pub parent: u32,
    /// Whether a person could see what it writes to its terminal.
    pub has_terminal: bool,
    /// The words of its command line.
    pub arguments: Vec<String>,
}
