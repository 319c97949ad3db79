//! A new text of the user's rules beside the one in force: what it changes, and whether it only tightens.

use std::{fs, io, path::Path};

use toml::{Table, Value};

use super::{
    file::{self, MAX_BYTES, RulesError},
    rule::Owner,
};
use crate::tool::home::Home;

/// What a new text of rules would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The text in force; empty if there is no file.
    pub before: String,
    /// The new text, in which everything was checked.
    pub after: String,
    /// Whether it adds rules that ask or deny, and changes nothing else.
    pub only_tightens: bool,
}

impl Change {
    /// What a text would change in the rules of a home. A text that can't be used is an error.
    pub fn of(home: &Home, after: String) -> Result<Self, RulesError> {
        let path = home.rules_file();
        let wrong = |what: String| RulesError { place: path.display().to_string(), what, denies: false };
        if u64::try_from(after.len()).is_ok_and(|length| length > MAX_BYTES) {
            return Err(wrong(format!("would have more than {} KB", MAX_BYTES / 1024)));
        }
        let checked = |text: &str| file::parse(text, Path::new("the new rules"), Owner::User, home.user());
        checked(&after)?;
        let before = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| wrong(format!("can't be read: {error}")))?,
        };
        let only_tightens = match (before.parse::<Table>(), after.parse::<Table>()) {
            (Ok(before), Ok(after)) => only_tightens(&before, &after),
            // Rules that can't be used allow nothing, so whatever can be used loosens.
            _ => false,
        };
        Ok(Self { before, after, only_tightens })
    }

    /// What more rules at the end would change.
    pub fn adding(home: &Home, rules: &str) -> Result<Self, RulesError> {
        let change = Self::of(home, rules.trim_start().to_owned())?;
        match change.before.is_empty() {
            true => Ok(change),
            false => Self::of(home, format!("{}\n{rules}", change.before.trim_end())),
        }
    }

    /// Puts the new text in place, if the one in force is still the one that was compared.
    pub fn apply(&self, home: &Home) -> io::Result<()> {
        use io::Write as _;
        let path = home.rules_file();
        let now = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        if now != self.before {
            return Err(io::Error::other("the rules were changed meanwhile"));
        }
        // Made with mode 0600; whoever reads has one of the two, whole.
        let mut new = tempfile::NamedTempFile::new_in(home.folder())?;
        new.write_all(self.after.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Whether all that was there is still there, in its order, and only rules were added that ask or deny, and say nothing about
/// whom to ask.
fn only_tightens(before: &Table, after: &Table) -> bool {
    let others = |table: &Table| {
        let mut others = table.clone();
        others.remove("rule");
        others
    };
    let rules = |table: &Table| table.get("rule").and_then(Value::as_array).cloned().unwrap_or_default();
    let (before_rules, after_rules) = (rules(before), rules(after));
    let mut kept = before_rules.iter().peekable();
    let adds_only_strict = after_rules.iter().all(|rule| match kept.peek() {
        Some(next) if **next == *rule => kept.next().is_some(),
        _ => is_strict(rule),
    });
    others(before) == others(after) && adds_only_strict && kept.peek().is_none()
}

fn is_strict(rule: &Value) -> bool {
    let says = |name: &str| rule.get(name).and_then(Value::as_str);
    matches!(says("verdict"), Some("ask" | "deny")) && rule.get("ask").is_none() && rule.get("ring").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "[ask]\npeople = [{ person = \"ada\" }]\n[[rule]]\nverdict = \"allow\"\ncommand = \"make\"\n\
                          [[rule]]\nverdict = \"deny\"\ncommand = \"git push **\"\n";

    fn tightens(after: &str) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.rules_file(), BEFORE).unwrap();
        let change = Change::of(&home, after.to_owned()).unwrap();
        change.apply(&home).unwrap();
        assert_eq!(fs::read_to_string(home.rules_file()).unwrap(), after);
        change.only_tightens
    }

    #[test]
    fn only_rules_that_ask_or_deny_can_be_added_without_loosening() {
        let with = |more: &str| format!("{BEFORE}{more}");
        assert!(tightens(BEFORE));
        assert!(tightens(&format!("# a comment\n{BEFORE}")));
        assert!(tightens(&with("[[rule]]\nverdict = \"deny\"\ncommand = \"rm **\"\n")));
        assert!(tightens(&with("[[rule]]\nverdict = \"ask\"\ntool = \"Bash\"\nreason = \"so\"\n")));
        for loosens in [
            String::new(),
            with("[[rule]]\nverdict = \"allow\"\ncommand = \"rm **\"\n"),
            with("[[rule]]\nverdict = \"ask\"\nask = [{ person = \"eve\" }]\n"),
            with("[[rule]]\nverdict = \"ask\"\nring = \"quiet\"\n"),
            with("[exec]\nenv = [\"LD_PRELOAD\"]\n"),
            BEFORE.replace("ada", "eve"),
            BEFORE.replace("git push **", "git push --force"),
            BEFORE.replace("\"make\"", "\"make **\""),
            BEFORE.replace("\"deny\"", "\"ask\""),
        ] {
            assert!(!tightens(&loosens), "{loosens}");
        }
    }

    #[test]
    fn what_can_not_be_used_or_was_changed_meanwhile_is_not_put_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let error = Change::of(&home, "[[rule]]\nverdict = \"perhaps\"\n".to_owned()).unwrap_err();
        assert!(error.place.ends_with(":2"), "{error}");
        let change = Change::of(&home, BEFORE.to_owned()).unwrap();
        assert!(!change.only_tightens);
        fs::write(home.rules_file(), "# mine\n").unwrap();
        assert!(change.apply(&home).is_err());
        assert_eq!(fs::read_to_string(home.rules_file()).unwrap(), "# mine\n");
    }
}
