//! A verification is a list of checks: each has a name, looks at what was read, and says why it refuses it. Production
//! runs the whole list; no argument, field or setting leaves a check out. Tests do, by functions that exist in tests only,
//! to show for each check that no other catches what it catches.

/// The name of a check, and the function that refuses what must not pass.
pub(crate) type Check<C, E> = (&'static str, fn(&C) -> Result<(), E>);

/// Runs every check in order; the first that refuses ends it.
pub(crate) fn all<C, E>(checks: &[Check<C, E>], read: &C) -> Result<(), E> {
    checks.iter().try_for_each(|(_, check)| check(read))
}

/// The outcome of a check that is a condition.
pub(crate) fn ensure<E>(is_true: bool, error: E) -> Result<(), E> {
    if is_true { Ok(()) } else { Err(error) }
}

/// Runs every check but one; all of them if none has this name.
#[cfg(test)]
pub(crate) fn all_but<C, E>(left_out: &str, checks: &[Check<C, E>], read: &C) -> Result<(), E> {
    checks.iter().filter(|(name, _)| *name != left_out).try_for_each(|(_, check)| check(read))
}

/// The names in a list, so that a test can show that it has an attack for each.
#[cfg(test)]
pub(crate) fn names<C, E>(checks: &[Check<C, E>]) -> Vec<&'static str> {
    checks.iter().map(|(name, _)| *name).collect()
}
