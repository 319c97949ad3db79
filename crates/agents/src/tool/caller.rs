//! Whoever wants to act: the variables and the folder of the process that a host has started.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// What is known of the process in whose place something is decided: this one, or one that asks a keeper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// Its environment, in its order.
    pub variables: Vec<(OsString, OsString)>,
    /// The folder that it is in; `None` if that is gone.
    pub folder: Option<PathBuf>,
}

impl Caller {
    /// This process, as it is now.
    pub fn this_process() -> Self {
        Self { variables: env::vars_os().collect(), folder: env::current_dir().ok() }
    }

    /// The value of a variable. Of several with one name the first counts, as it does for C.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_os_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_variables_with_one_name_the_first_counts() {
        let variables = [("A", "1"), ("B", ""), ("A", "2")].map(|(name, value)| (name.into(), value.into()));
        let caller = Caller { variables: variables.into(), folder: None };
        assert_eq!(caller.variable("A"), Some(OsStr::new("1")));
        assert_eq!(caller.variable("B"), Some(OsStr::new("")));
        assert_eq!(caller.variable("C"), None);
    }
}
