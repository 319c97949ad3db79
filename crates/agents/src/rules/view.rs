//! A call as rules look at it: every command, text and path in it.

use std::path::{Path, PathBuf};

use countersign_client::payload::{Effect, EffectKind};
use serde_json::Value;

use super::{
    site::{Site, Target},
    texts::{Part, Texts, base_name},
};
use crate::{
    calls::call::{Action, Call},
    examine::effects::{self, Place},
    programs::{self, row::Does},
};

/// Arguments of other tools that a shell may interpret.
const TEXT_KEYS: &[&str] = &["command", "cmd", "commands", "script", "shell", "code"];

/// What stands before the name of a file in a patch.
const PATCH_MARKS: &[&str] = &[
    "*** Add File: ",
    "*** Update File: ",
    "*** Delete File: ",
    "*** Move to: ",
    "+++ b/",
    "--- a/",
    "+++ ",
    "--- ",
];

/// More arguments of a tool are not examined.
const MAX_ARGUMENTS: usize = 1_000;

/// A longer word is no path.
const MAX_PATH: usize = 4096;

/// All that a call names.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) call: &'a Call,
    pub(super) site: Site,
    /// What a shell would interpret.
    pub(super) texts: Texts,
    /// Files that are read or changed; for other tools every argument that may be a path.
    pub(super) targets: Vec<Target>,
    /// Whether there is more than can be examined in time.
    pub(super) is_too_large: bool,
}

impl<'a> View<'a> {
    /// `home` is the folder of the user; `has_cd_path` says whether `cd` looks elsewhere too.
    pub(super) fn of(call: &'a Call, home: Option<&Path>, has_cd_path: bool) -> Self {
        let site = Site::of(&call.cwd);
        let mut view = Self { call, site, texts: Texts::default(), targets: Vec::new(), is_too_large: false };
        match &call.action {
            Action::Shell(text) => view.texts = Texts::read(text, &view.site.cwd, has_cd_path),
            Action::Read(_) | Action::Edit(_) => {
                let paths = call.raw_paths();
                view.targets = paths.iter().filter_map(|path| view.target(path)).collect();
                if paths.is_empty() {
                    view.targets = vec![Target::of(&view.site.cwd, "")];
                }
            }
            Action::Other(arguments) => view.add_arguments("", arguments, home, has_cd_path),
            Action::Plan(_) | Action::Questions(_) | Action::Network(_) | Action::Own(_) => {}
        }
        view
    }

    fn target(&self, path: &Path) -> Option<Target> {
        path.to_str().map(|path| Target::of(&self.site.cwd, path))
    }

    fn add_arguments(&mut self, key: &str, value: &Value, home: Option<&Path>, has_cd_path: bool) {
        if self.targets.len() + self.texts.parts.len() > MAX_ARGUMENTS {
            self.is_too_large = true;
            return;
        }
        let is_text = TEXT_KEYS.contains(&key);
        match value {
            Value::String(text) if is_text => {
                let read = Texts::read(text, &self.site.cwd, has_cd_path);
                self.texts.parts.extend(read.parts);
                self.texts.unclear.extend(read.unclear);
            }
            Value::String(text) if text.len() <= MAX_PATH && !text.contains('\n') => {
                let expanded = text.strip_prefix("~/").and_then(|rest| Some(home?.join(rest)));
                let path = expanded.unwrap_or_else(|| PathBuf::from(text.trim_start_matches("file://")));
                self.targets.extend(self.target(&path));
            }
            Value::String(text) => {
                let paths = text
                    .lines()
                    .filter_map(|line| PATCH_MARKS.iter().find_map(|mark| line.strip_prefix(mark)));
                let paths: Vec<&str> = paths.take(MAX_ARGUMENTS + 1).collect();
                self.is_too_large |= paths.len() > MAX_ARGUMENTS;
                let targets: Vec<Target> =
                    paths.iter().filter_map(|path| self.target(Path::new(path.trim()))).collect();
                self.targets.extend(targets);
            }
            Value::Array(list) if is_text && list.len() > MAX_ARGUMENTS => self.is_too_large = true,
            Value::Array(list) if is_text && list.iter().all(Value::is_string) => {
                let words = list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                self.texts.add_words(words, &self.site.cwd, has_cd_path);
            }
            Value::Array(list) => {
                for value in list {
                    self.add_arguments(key, value, home, has_cd_path);
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    self.add_arguments(key, value, home, has_cd_path);
                }
            }
            _ => {}
        }
    }

    /// The files that a command may name: its words, values of its options, its redirections, wherever it may run.
    pub(super) fn named_by(&self, part: &Part) -> Vec<Target> {
        let cwd = [self.site.cwd.clone()];
        let places = if part.places.is_empty() { &cwd } else { part.places.as_slice() };
        let program = part.words.first().filter(|word| word.contains('/'));
        let words = program.into_iter().chain(part.words.iter().skip(1));
        let words = words.chain(part.redirections.iter().map(|redirection| &redirection.path));
        let values =
            words.flat_map(|word| [Some(word.as_str()), word.split_once('=').map(|(_, value)| value)]);
        let values: Vec<&str> = values.flatten().filter(|word| is_path(word)).collect();
        places.iter().flat_map(|place| values.iter().map(|word| Target::of(place, word))).collect()
    }

    /// What one command does, and whether all of that is known.
    pub(super) fn effects_of(&self, part: &Part) -> (Vec<Effect>, bool) {
        let (mut found, mut is_known) = (Vec::new(), !part.places.is_empty());
        // What entering a folder means is seen below.
        for place in part.places.iter().filter(|_| part.entered().is_none()) {
            let place = Place { cwd: place, repository: self.site.root() };
            if let Some(effects) = effects::of(&part.words, &place) {
                found.extend(effects);
            } else {
                is_known = false;
                found.extend(behind(&part.words, &place));
            }
        }
        let writes = part.redirections.iter().filter(|it| it.writes && it.path != "/dev/null");
        found.extend(writes.map(|it| Effect::on(EffectKind::Overwrites, &it.path)));
        for target in self.named_by(part).iter().filter(|target| target.named != Path::new("/dev/null")) {
            found.extend(self.effects_on(target));
        }
        found.sort_by(|a, b| (a.kind.as_str(), &a.detail).cmp(&(b.kind.as_str(), &b.detail)));
        found.dedup();
        (found, is_known)
    }

    /// The effects of touching a file, with links followed.
    pub(super) fn effects_on(&self, target: &Target) -> Vec<Effect> {
        let on = |kind| Effect::on(kind, target.named.display().to_string());
        let leaves = (!self.site.is_inside(target)).then(|| on(EffectKind::LeavesRepository));
        let secret = target.is_secret().then(|| on(EffectKind::TouchesSecrets));
        leaves.into_iter().chain(secret).collect()
    }
}

/// What is known of a command that is not known: the program may run the words behind it, as `timeout 60 git push` does.
fn behind(words: &[String], place: &Place<'_>) -> Vec<Effect> {
    let gets_rights = |word: &String| {
        programs::find(base_name(word)).is_some_and(|program| program.does == Does::EscalatesPrivileges)
    };
    let raised = words.iter().find(|word| gets_rights(word));
    let raised = raised.map(|word| Effect::on(EffectKind::EscalatesPrivileges, base_name(word)));
    let inner = (1..words.len()).filter_map(|start| effects::of(&words[start..], place)).flatten();
    inner.chain(raised).collect()
}

/// Whether a word can name a file other than one with an ordinary name in the working directory that does not exist.
fn is_path(word: &str) -> bool {
    !word.is_empty() && word.len() <= MAX_PATH && !word.contains('\0')
}
