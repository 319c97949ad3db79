//! Our entries in a settings file of a host: put in, updated in place, taken out, and found again.

use serde_json::Value;

use super::{
    json_scan::{Kind, Node, Problem},
    json_text::{Document, Step},
    json_value::Json,
};
use crate::hook_line::{host_name::HostName, is_ours};

/// How a host's file with hooks looks.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub host: HostName,
    /// Whether the host allows comments in it.
    pub has_comments: bool,
    /// Whether an entry is a group of handlers with a matcher; otherwise it is a handler itself.
    pub is_grouped: bool,
    /// The text of a new file, before anything is put in.
    pub skeleton: &'static str,
    /// Variables that the file makes empty for everything that the host starts, the hook too.
    pub emptied: &'static [&'static str],
}

/// One entry for each event, in the order of the file.
pub type Entries = Vec<(&'static str, Json)>;

/// An entry of ours, as it is in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub event: String,
    /// Its place in the list of its event.
    pub index: usize,
    /// The place of the handler in its group.
    pub handler_index: usize,
    pub line: usize,
    /// The group, or the handler where there are no groups.
    pub entry: Value,
    /// The handler that runs our program.
    pub handler: Value,
}

impl Format {
    /// The text with every entry in it, exactly once and up to date. `None` stands for a file that does not exist.
    pub fn put(self, text: Option<&str>, entries: &Entries) -> Result<String, Problem> {
        let text = text.filter(|text| !text.trim().is_empty()).unwrap_or(self.skeleton);
        let mut document = Document::parse(text, self.has_comments)?;
        check_shape(&document, entries)?;
        document = self.without(document, entries)?;
        for (event, entry) in entries {
            document = self.put_one(document, entries, event, entry)?;
        }
        Ok(self.with_emptied(document)?.text().to_owned())
    }

    /// The text without any entry of ours.
    pub fn take(self, text: &str) -> Result<String, Problem> {
        if text.trim().is_empty() {
            return Ok(text.to_owned());
        }
        let document = Document::parse(text, self.has_comments)?;
        let document = self.without(document, &Vec::new())?;
        Ok(self.without_emptied(document)?.text().to_owned())
    }

    /// Whether every variable is empty that should be.
    pub fn empties_all(self, text: &str) -> bool {
        let found = self.member(text, "env").unwrap_or_default();
        self.emptied.iter().all(|name| found.get(name) == Some(&Value::from("")))
    }

    /// What others have set stays: then none is added, because it could not be told which are ours.
    fn with_emptied(self, document: Document) -> Result<Document, Problem> {
        let path = |name: &str| [key("env"), key(name)];
        if self.emptied.iter().any(|name| document.get(&path(name)).is_some()) {
            return Ok(document);
        }
        let members: Vec<_> = self.emptied.iter().map(|name| (*name, Json::text(""))).collect();
        match document.get(&[key("env")]) {
            _ if members.is_empty() => Ok(document),
            None => document.append(&[], Some("env"), &Json::Object(members)),
            Some(node) if !matches!(node.kind, Kind::Object(_)) => {
                Err(Problem { line: document.line(node), what: "\"env\" is not an object".to_owned() })
            }
            Some(_) => members.iter().try_fold(document, |document, (name, value)| {
                document.append(&[key("env")], Some(name), value)
            }),
        }
    }

    fn without_emptied(self, document: Document) -> Result<Document, Problem> {
        match self.empties_all(document.text()) {
            true => {
                let names = self.emptied.iter().rev();
                names
                    .into_iter()
                    .try_fold(document, |document, name| document.remove(&[key("env"), key(name)]))
            }
            false => Ok(document),
        }
    }

    /// Every handler of ours, under whatever event.
    pub fn find(self, text: &str) -> Result<Vec<Found>, Problem> {
        match text.trim().is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.found_in(&Document::parse(text, self.has_comments)?)),
        }
    }

    /// The value of a member of the root, such as a switch that turns all hooks off.
    pub fn member(self, text: &str, key: &str) -> Option<Value> {
        let document = Document::parse(text, self.has_comments).ok()?;
        document.get(&[Step::Key(key.to_owned())]).map(|node| document.value(node))
    }

    fn put_one(
        self,
        document: Document,
        entries: &Entries,
        event: &str,
        entry: &Json,
    ) -> Result<Document, Problem> {
        let hooks = [key("hooks")];
        if document.get(&hooks).is_none() {
            return document.append(&[], Some("hooks"), &Json::Object(members_of(entries)));
        }
        let list = [key("hooks"), key(event)];
        if document.get(&list).is_none() {
            return document.append(&hooks, Some(event), &Json::List(vec![entry.clone()]));
        }
        let found = self.found_in(&document).into_iter().find(|found| found.event == event);
        match found {
            Some(found) if found.entry == entry.to_value() => Ok(document),
            Some(found) if self.is_alone(&found) => {
                let path = [key("hooks"), key(event), Step::Index(found.index)];
                document.replace(&path, entry)
            }
            Some(found) => {
                // Somebody else's handler is in the same group, whose matcher is theirs to choose.
                self.remove(&document, &found)?.append(&list, None, entry)
            }
            None => document.append(&list, None, entry),
        }
    }

    /// Removes every entry of ours but the first of each event that is wanted.
    fn without(self, mut document: Document, wanted: &Entries) -> Result<Document, Problem> {
        loop {
            let all = self.found_in(&document);
            let is_kept = |at: usize, found: &Found| {
                let is_first = !all[..at].iter().any(|other| other.event == found.event);
                is_first && wanted.iter().any(|(event, _)| *event == found.event)
            };
            // From the end, so that the places of the others stay.
            let superfluous = all.iter().enumerate().rev().find(|(at, found)| !is_kept(*at, found));
            let Some((_, found)) = superfluous else { return Ok(document) };
            document = self.remove(&document, found)?;
        }
    }

    fn remove(self, document: &Document, found: &Found) -> Result<Document, Problem> {
        let mut path = vec![key("hooks"), key(&found.event), Step::Index(found.index)];
        if !self.is_alone(found) {
            path.extend([key("hooks"), Step::Index(found.handler_index)]);
        }
        document.remove(&path)
    }

    /// Whether everything in the entry is ours.
    fn is_alone(self, found: &Found) -> bool {
        let handlers = found.entry.get("hooks").and_then(Value::as_array);
        !self.is_grouped || handlers.is_some_and(|all| all.iter().all(|one| is_ours(one, self.host)))
    }

    fn found_in(self, document: &Document) -> Vec<Found> {
        let Some(Kind::Object(events)) = document.get(&[key("hooks")]).map(|node| &node.kind) else {
            return Vec::new();
        };
        let mut all = Vec::new();
        for event in events {
            let Kind::Array(entries) = &event.value.kind else { continue };
            for (index, node) in entries.iter().enumerate() {
                let entry = document.value(node);
                let handlers = match (self.is_grouped, entry.get("hooks").and_then(Value::as_array)) {
                    (true, Some(handlers)) => handlers.clone(),
                    (true, None) => Vec::new(),
                    (false, _) => vec![entry.clone()],
                };
                let ours = handlers.into_iter().enumerate().filter(|(_, it)| is_ours(it, self.host));
                all.extend(ours.map(|(handler_index, handler)| Found {
                    event: event.key.clone(),
                    index,
                    handler_index,
                    line: document.line(node),
                    entry: entry.clone(),
                    handler,
                }));
            }
        }
        all
    }
}

fn members_of(entries: &Entries) -> Vec<(&'static str, Json)> {
    entries.iter().map(|(event, entry)| (*event, Json::List(vec![entry.clone()]))).collect()
}

/// The parts that we add to must be what the host expects; guessing would lose something.
fn check_shape(document: &Document, entries: &Entries) -> Result<(), Problem> {
    let problem = |node: &Node, what: String| Err(Problem { line: document.line(node), what });
    let Some(hooks) = document.get(&[key("hooks")]) else { return Ok(()) };
    if !matches!(hooks.kind, Kind::Object(_)) {
        return problem(hooks, "\"hooks\" is not an object".to_owned());
    }
    for (event, _) in entries {
        if let Some(list) = document.get(&[key("hooks"), key(event)])
            && !matches!(list.kind, Kind::Array(_))
        {
            return problem(list, format!("\"hooks\".\"{event}\" is not a list"));
        }
    }
    Ok(())
}

fn key(name: &str) -> Step {
    Step::Key(name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORMAT: Format = Format {
        host: HostName { word: "claude", name: "Claude Code" },
        has_comments: true,
        is_grouped: true,
        skeleton: "{}\n",
        emptied: &[],
    };

    fn entries(seconds: u64) -> Entries {
        let line = format!("/bin/countersign hook claude --mode gate --host-timeout {seconds}");
        let handler = Json::Object(vec![("type", Json::text("command")), ("command", Json::text(line))]);
        let group = Json::Object(vec![("matcher", Json::text("*")), ("hooks", Json::List(vec![handler]))]);
        vec![("PreToolUse", group.clone()), ("Stop", group)]
    }

    /// What can be between two tokens.
    fn blank() -> impl Strategy<Value = &'static str> {
        prop::sample::select(vec![
            "",
            "",
            " ",
            "\n",
            "\n  ",
            "\n\t",
            "\r\n ",
            "  ",
            "/* , } */",
            " // [\n",
            "\n\n",
        ])
    }

    fn list(open: char, close: char, items: &[String], blanks: &[&str]) -> String {
        let mut text = open.to_string();
        for (at, item) in items.iter().enumerate() {
            let [before, after] = [2 * at, 2 * at + 1].map(|at| blanks[at % blanks.len()]);
            text.extend([if at == 0 { "" } else { "," }, before, item, after]);
        }
        text + blanks[items.len() % blanks.len()] + &close.to_string()
    }

    fn value() -> impl Strategy<Value = String> {
        let leaf =
            prop::sample::select(vec!["1", "\"a\"", "null", "-0.5e3", "\"// ü \\\" [\"", "[]", "{}", "{ }"]);
        leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
            let blanks = || prop::collection::vec(blank(), 7);
            prop_oneof![
                (prop::collection::vec(inner.clone(), 0..4), blanks())
                    .prop_map(|(items, blanks)| list('[', ']', &items, &blanks)),
                (prop::collection::vec(inner, 0..4), blanks()).prop_map(|(items, blanks)| {
                    let member = |(at, item): (usize, &String)| format!("\"k{at}\":{item}");
                    list('{', '}', &items.iter().enumerate().map(member).collect::<Vec<_>>(), &blanks)
                }),
            ]
        })
    }

    /// An object with some of these keys, each with a value of its own.
    fn object(
        keys: &'static [&'static str],
        value: impl Strategy<Value = String> + 'static,
    ) -> impl Strategy<Value = String> {
        let chosen = prop::sample::subsequence(keys, 0..=keys.len()).prop_shuffle();
        (chosen, prop::collection::vec(value, keys.len()), prop::collection::vec(blank(), 9)).prop_map(
            |(keys, values, blanks)| {
                let member = |(key, value)| format!("\"{key}\":{}{value}", blanks[0]);
                list('{', '}', &keys.iter().zip(&values).map(member).collect::<Vec<_>>(), &blanks)
            },
        )
    }

    fn settings() -> impl Strategy<Value = String> {
        let lists = (prop::collection::vec(value(), 0..3), prop::collection::vec(blank(), 5))
            .prop_map(|(items, blanks)| list('[', ']', &items, &blanks))
            .boxed();
        let hooks = object(&["PreToolUse", "Stop", "Other"], lists);
        let root = (hooks, object(&["a", "b", "c"], value().boxed()), any::<bool>(), blank(), blank());
        root.prop_map(|(hooks, others, is_first, before, after)| {
            let inner = &others[1..others.len() - 1];
            let has_others = inner.contains('"');
            let text = match (has_others, is_first) {
                (false, _) => format!("{{\"hooks\": {hooks}{inner}}}"),
                (true, true) => format!("{{\"hooks\": {hooks},{inner}}}"),
                (true, false) => format!("{{{inner},\"hooks\": {hooks}}}"),
            };
            format!("{before}{text}{after}")
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_the_format_it_is_back_to_the_byte(text in prop_oneof![settings(), object(&["a", "b"], value())]) {
            let with = FORMAT.put(Some(&text), &entries(600)).unwrap();
            prop_assert_eq!(FORMAT.find(&with).unwrap().len(), 2);
            prop_assert_eq!(&FORMAT.put(Some(&with), &entries(600)).unwrap(), &with);
            let other = FORMAT.put(Some(&with), &entries(700)).unwrap();
            prop_assert!(other.contains("700") && !other.contains("600"));
            prop_assert_eq!(FORMAT.take(&other).unwrap(), text);
        }
    }
}
