//! Who has access to a file besides its owner.

/// Who besides its owner has something to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// Its owner alone reads and writes it.
    Nobody,
    /// It belongs to another user, who can read and change it.
    #[cfg_attr(all(not(unix), not(test)), expect(dead_code, reason = "nobody else can say it"))]
    Owner,
    /// Others have access that they must not have.
    #[cfg_attr(all(not(unix), not(test)), expect(dead_code, reason = "nobody else can say it"))]
    Access,
    /// This system does not say, or nobody has taught us how to ask.
    #[cfg_attr(all(unix, not(test)), expect(dead_code, reason = "Unix always says it"))]
    Unknown,
}
