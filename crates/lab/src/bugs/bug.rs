//! Which bugs there are.

use std::fmt;

use clap::ValueEnum;

/// A bug that a node, or an enforcer's process, can be run with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bug {
    /// The heads of mailboxes are not compared: what no ring announces is not found.
    RingOnly,
    /// Exchanges are written without comparing their versions.
    VersionGuard,
    /// Exchanges are decided without comparing the store's time at the commit.
    ExpiryGuard,
    /// Deliveries get their numbers before the order of commits is known, as from a plain sequence.
    SequenceNumbers,
    /// What a tenant does not have is looked up in others.
    TenantFilter,
    /// A commit is answered before it happens.
    EarlyAnswer,
    /// The oldest channel of an enforcer gets its messages.
    OldestChannel,
    /// A replay is answered after a read, without a commit that confirms it.
    ReplayFromRead,
    /// A commit whose outcome is unknown counts as done.
    UnknownAsDone,
    /// What was handed over before is taken for what is handed over now.
    StaleHandOver,
    /// Nodes count as alive for ever.
    EndlessLease,
    /// The journal is written after the enforcer has acted.
    LateJournal,
}

impl Bug {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied()
    }

    /// As on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
