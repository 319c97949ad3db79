//! What lines are.

/// What a line is, which decides how it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a section, which folds.
    Title,
    Text,
    /// About what is shown, and not part of it.
    Note,
    /// A line of a diff that is added; it begins with `+`.
    Added,
    /// A line of a diff that is removed; it begins with `-`.
    Removed,
    /// Where a part of a diff is.
    Hunk,
}
