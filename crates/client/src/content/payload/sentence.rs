//! What a payload does, in one sentence, and what was found in it: from its effects, and never from what an agent says.
//!
//! The words are those of `schemas/sentences.json`, which the page reads too; `vectors/sentences.json` holds both to the same
//! bytes.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

use super::{
    Payload,
    command::quoted,
    context::State,
    effect::Effect,
    found::{Found, Weight},
    patch::{FileStatus, Patch},
    visible::visible_code,
};

/// The table that the page reads too: a link to `schemas/`, so that the published crate has it.
const TABLE: &str = include_str!("sentences.json");

/// A list names at most this many things.
const MAX_LISTED: usize = 3;

/// A longer name is shortened. All of it is in the content.
const MAX_NAME: usize = 80;
const KEPT_START: usize = 60;
const KEPT_END: usize = 15;

#[derive(Debug, Default, Deserialize)]
struct Table {
    effects: Vec<Row>,
    payloads: BTreeMap<String, String>,
    states: BTreeMap<String, String>,
    words: BTreeMap<String, String>,
}

/// What is said about an effect.
#[derive(Debug, Deserialize)]
struct Row {
    effect: String,
    weight: Weight,
    /// Without a detail.
    none: String,
    /// With one, or several in a list.
    one: String,
    /// With a detail of two words or more, which stand for different things.
    two: Option<String>,
    /// On what an effect before it is on. Behind that if it begins with a comma.
    same: Option<String>,
    /// What else is said where it is found.
    note: Option<String>,
    /// What ends the sentence.
    tail: Option<String>,
    /// The same about several things.
    tails: Option<String>,
    /// Effects that go without saying.
    #[serde(default)]
    implies: Vec<String>,
    /// Whether it is only said if there is nothing else.
    #[serde(default)]
    only: bool,
}

/// The effects of one kind.
struct Group<'a> {
    row: &'a Row,
    details: Vec<&'a str>,
}

/// A part of a sentence, before it is joined to others.
struct Phrase<'a> {
    text: String,
    row: &'a Row,
    details: Vec<&'a str>,
}

static WORDS: LazyLock<Table> = LazyLock::new(|| serde_json::from_str(TABLE).unwrap_or_default());

impl Payload {
    /// What it does, in one plain sentence. It is made of the effects, and has nothing of what an agent says about itself.
    pub fn sentence(&self) -> String {
        let payloads = |name: &str| word(&WORDS.payloads, name);
        match self {
            Self::Patch(patch) => patch_sentence(patch),
            Self::Plan(_) => payloads("plan"),
            Self::Checkpoint(_) if self.call().is_some() => payloads("question"),
            Self::Checkpoint(_) => payloads("checkpoint"),
            Self::Raw(_) => payloads("raw"),
            Self::Command(_) | Self::Task(_) => {
                self.effects_sentence().unwrap_or_else(|| match self.call() {
                    Some(call) if matches!(self, Self::Task(_)) => {
                        fill(&payloads("tool"), &[("{}", &name(&call.tool))])
                    }
                    _ if matches!(self, Self::Task(_)) => payloads("task"),
                    _ => payloads(self.state().unwrap_or(State::NotExamined).as_str()),
                })
            }
        }
    }

    /// What was found in it, the most serious first. It never says that there is no danger.
    pub fn found(&self) -> Vec<Found> {
        let effects = self.effects().unwrap_or_default();
        let groups = grouped(effects);
        let mut found: Vec<Found> = groups.iter().flat_map(found_of).collect();
        let has = |name: &str| groups.iter().any(|group| group.row.effect == name);
        let is_unclear = groups.iter().any(|group| group.row.weight == Weight::Unclear);
        let says_code = ["tests", "builds", "runsCode", "runsGiven", "runsProgram"].into_iter().any(has);
        let of_state = |key: &str, weight| Found { text: self.of_state(key), weight };
        match (self, self.state()) {
            (Self::Raw(_), _) => found.push(of_state("raw", Weight::Unclear)),
            (_, Some(State::NotExamined)) if !is_unclear => {
                found.push(of_state("notExamined", Weight::Unclear));
            }
            (_, Some(State::Opaque)) if !says_code => found.push(of_state("opaque", Weight::Plain)),
            _ => {}
        }
        // The most serious first; the order of the table within.
        found.sort_by_key(|found| match found.weight {
            Weight::Danger => 0,
            Weight::Unclear => 1,
            Weight::Plain => 2,
        });
        found
    }

    /// What is said about how much is certain.
    fn of_state(&self, key: &str) -> String {
        match (self, self.call()) {
            (Self::Task(_), Some(call)) => {
                fill(&word(&WORDS.states, &format!("{key}Tool")), &[("{}", &name(&call.tool))])
            }
            _ => word(&WORDS.states, key),
        }
    }

    fn effects_sentence(&self) -> Option<String> {
        let groups = grouped(self.effects().unwrap_or_default());
        let mut phrases = phrases(&groups);
        if phrases.is_empty() {
            return None;
        }
        let dangers = phrases.iter().filter(|phrase| phrase.row.weight == Weight::Danger).count();
        let kept = dangers.max(MAX_LISTED).min(phrases.len());
        let is_cut = kept < phrases.len();
        phrases.truncate(kept);
        let mut texts: Vec<String> = phrases.iter().map(|phrase| phrase.text.clone()).collect();
        let is_unclear = phrases.iter().any(|phrase| phrase.row.weight == Weight::Unclear);
        if self.state() == Some(State::NotExamined) && !is_unclear {
            texts.push(word(&WORDS.words, "unclear"));
        } else if is_cut {
            texts.push(word(&WORDS.words, "more"));
        }
        let mut tails: Vec<&str> = Vec::new();
        for tail in phrases.iter().filter_map(|phrase| phrase.row.tail(phrase.details.len())) {
            if !tails.contains(&tail) {
                tails.push(tail);
            }
        }
        let sentence = capitalised(&joined(&texts));
        Some([sentence.as_str()].into_iter().chain(tails).collect::<Vec<_>>().join(". "))
    }
}

/// The effects by kind, in the order of the table.
fn grouped(effects: &[Effect]) -> Vec<Group<'_>> {
    let of_row = |row: &'static Row| {
        let of_kind = |effect: &&Effect| effect.kind.as_str() == row.effect;
        let mut details: Vec<&str> = Vec::new();
        for effect in effects.iter().filter(of_kind) {
            match effect.detail.as_deref() {
                Some(detail) if !details.contains(&detail) => details.push(detail),
                _ => {}
            }
        }
        effects.iter().any(|effect| of_kind(&effect)).then_some(Group { row, details })
    };
    WORDS.effects.iter().filter_map(of_row).collect()
}

impl Row {
    /// What ends a sentence about so many things.
    fn tail(&self, count: usize) -> Option<&str> {
        let several = self.tails.as_deref().filter(|_| count != 1);
        several.or(self.tail.as_deref())
    }

    /// What is said about these details.
    fn phrase(&self, details: &[&str]) -> String {
        match (details, &self.two) {
            ([], _) => self.none.clone(),
            ([detail], Some(two)) if detail.contains(' ') => {
                let (first, rest) = detail.split_once(' ').unwrap_or((detail, ""));
                fill(two, &[("{first}", &name(first)), ("{rest}", &name(rest))])
            }
            _ => fill(&self.one, &[("{}", &listed(details))]),
        }
    }
}

/// The parts of a sentence, the most serious first.
fn phrases<'a>(groups: &[Group<'a>]) -> Vec<Phrase<'a>> {
    let implied: Vec<&str> =
        groups.iter().flat_map(|group| group.row.implies.iter().map(String::as_str)).collect();
    let mut phrases: Vec<Phrase<'a>> = Vec::new();
    for group in groups {
        let (row, details) = (group.row, &group.details);
        let is_said = |phrase: &Phrase<'_>| phrase.details == *details;
        if implied.contains(&row.effect.as_str()) && (details.is_empty() || phrases.iter().any(is_said)) {
            continue;
        }
        let earlier = phrases.iter_mut().find(|phrase| !details.is_empty() && phrase.details == *details);
        match (&row.same, earlier) {
            (Some(same), Some(phrase)) if same.starts_with(',') => phrase.text.push_str(same),
            (Some(same), Some(_)) => {
                phrases.push(Phrase { text: same.clone(), row, details: details.clone() });
            }
            _ if row.two.is_some() && details.len() > 1 => {
                phrases.extend(details.iter().map(|detail| {
                    let details = vec![*detail];
                    Phrase { text: row.phrase(&details), row, details }
                }));
            }
            _ => phrases.push(Phrase { text: row.phrase(details), row, details: details.clone() }),
        }
    }
    if phrases.iter().any(|phrase| !phrase.row.only) {
        phrases.retain(|phrase| !phrase.row.only);
    }
    phrases
}

fn found_of(group: &Group<'_>) -> Vec<Found> {
    let one = |details: &[&str]| {
        let phrase = capitalised(&group.row.phrase(details));
        let note = group.row.tail(details.len()).or(group.row.note.as_deref());
        let text = match note {
            Some(note) => format!("{phrase}. {note}"),
            None => format!("{phrase}."),
        };
        Found { text, weight: group.row.weight }
    };
    match group.details.as_slice() {
        [] => vec![one(&[])],
        details => details.iter().map(|detail| one(&[detail])).collect(),
    }
}

fn patch_sentence(patch: &Patch) -> String {
    let payloads = |name: &str| word(&WORDS.payloads, name);
    let deleted = patch.files.iter().filter(|file| file.status == FileStatus::Deleted).count();
    let count = patch.files.len();
    let mut text = if let [file] = patch.files.as_slice() {
        let from = file.previous_path.as_deref().map(name).unwrap_or_default();
        fill(&payloads(file.status.as_str()), &[("{from}", &from), ("{}", &name(&file.path))])
    } else {
        let key = match deleted {
            0 => "manyChanged",
            all if all == count => "manyDeleted",
            _ => "someDeleted",
        };
        let place = match patch.place().as_str() {
            "" => String::new(),
            place => fill(&payloads("place"), &[("{}", &name(place))]),
        };
        let (count, deleted) = (count.to_string(), deleted.to_string());
        fill(&payloads(key), &[("{count}", &count), ("{deleted}", &deleted), ("{place}", &place)])
    };
    for row in &WORDS.effects {
        let is_there = patch.effects.iter().flatten().any(|effect| effect.kind.as_str() == row.effect);
        if let Some(same) = row.same.as_deref().filter(|same| is_there && same.starts_with(',')) {
            text.push_str(same);
        }
    }
    let (added, removed) = patch.lines();
    let (added, removed) = (added.to_string(), removed.to_string());
    text + &fill(&payloads("lines"), &[("{added}", &added), ("{removed}", &removed)])
}

/// A name from others, so that it can't be taken for words of ours: quoted unless it is one plain word.
fn name(text: &str) -> String {
    let folder = text.strip_suffix('/').filter(|folder| !folder.is_empty());
    let named = folder.unwrap_or(text);
    let chars: Vec<char> = named.chars().collect();
    let part = |chars: &[char]| visible_code(&quoted(&chars.iter().collect::<String>()));
    let shown = match chars.len() > MAX_NAME {
        true => format!("{}…{}", part(&chars[..KEPT_START]), part(&chars[chars.len() - KEPT_END..])),
        false => part(&chars),
    };
    match folder {
        Some(_) => fill(&word(&WORDS.words, "folder"), &[("{}", &shown)]),
        None => shown,
    }
}

/// Names as a list that does not grow long.
fn listed(details: &[&str]) -> String {
    let mut names: Vec<String> = details.iter().copied().map(name).collect();
    if names.len() > MAX_LISTED {
        let more = names.len() - (MAX_LISTED - 1);
        names.truncate(MAX_LISTED - 1);
        names.push(fill(&word(&WORDS.words, "moreDetails"), &[("{count}", &more.to_string())]));
    }
    in_a_row(&names, &word(&WORDS.words, "and"))
}

/// Phrases as one sentence. Where one has a list of its own, a comma keeps them apart.
fn joined(phrases: &[String]) -> String {
    let and = word(&WORDS.words, "and");
    let has_list = phrases.iter().any(|phrase| phrase.contains(&and) || phrase.contains(','));
    in_a_row(phrases, &if has_list { word(&WORDS.words, "commaAnd") } else { and })
}

fn in_a_row(parts: &[String], last: &str) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{}{last}{end}", first.join(&word(&WORDS.words, "comma"))),
    }
}

/// A template with its places filled. What is put in is not looked into.
fn fill(template: &str, places: &[(&str, &str)]) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let filled_in = places.iter().find_map(|(place, with)| Some((*with, from.strip_prefix(place)?)));
        let (with, after) = filled_in.unwrap_or(("{", &from[1..]));
        filled.push_str(with);
        rest = after;
    }
    filled + rest
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

fn word(words: &BTreeMap<String, String>, name: &str) -> String {
    words.get(name).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::EffectKind;

    #[test]
    fn the_table_has_a_row_for_each_effect_and_the_weight_that_it_has() {
        assert_eq!(WORDS.effects.len(), EffectKind::ALL.len());
        for kind in EffectKind::ALL {
            let row = WORDS.effects.iter().find(|row| row.effect == kind.as_str()).unwrap();
            assert_eq!(row.weight == Weight::Danger, kind.is_dangerous(), "{kind}");
        }
    }

    #[test]
    fn every_word_that_is_asked_for_is_in_the_table() {
        for status in ["added", "modified", "deleted", "renamed", "copied"] {
            assert!(word(&WORDS.payloads, status).contains("{}"), "{status}");
        }
        for state in State::ALL {
            assert!(!word(&WORDS.payloads, state.as_str()).is_empty(), "{state}");
        }
        for name in ["opaque", "notExamined"] {
            assert!(
                !word(&WORDS.states, name).is_empty()
                    && word(&WORDS.states, &format!("{name}Tool")).contains("{}")
            );
        }
    }
}
