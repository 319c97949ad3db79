//! A request as lines in sections that fold: what will happen, then files or scripts.

use std::borrow::Cow;

use countersign_client::{
    payload::{Command, CommandFile, FileRole, Invocation, Patch, PatchFile, Payload, visible, visible_code},
    request::OpenedRequest,
};

use super::{diff, kind::Kind};
use crate::{danger, review};

/// A file with more lines is folded at first.
const LONG: usize = 200;

/// A script with more lines is folded at first.
const LONG_SCRIPT: usize = 60;

/// More lines than this are not unfolded at first, however many files they are in.
const LONG_TOGETHER: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: Kind,
    /// As it came, or as it is shown.
    text: Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    /// It has nothing invisible.
    Shown(String),
    /// It comes from others, and is made visible when it is drawn.
    Foreign(String),
}

impl Line {
    /// A line of ours, or one that was made visible.
    pub fn shown(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: Text::Shown(text.into()) }
    }

    /// A line from others.
    pub fn foreign(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: Text::Foreign(text.into()) }
    }

    /// Whether nobody else has written it as it is.
    pub fn is_ours(&self) -> bool {
        matches!(self.text, Text::Shown(_))
    }

    /// The line as it is drawn. A tab is `⟨⇥⟩ `, which no other text looks like.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.text {
            Text::Shown(text) => Cow::Borrowed(text),
            Text::Foreign(text) => Cow::Owned(visible_code(text).replace("⟨U+0009⟩", "⟨⇥⟩ ")),
        }
    }
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Its name, made visible; `None` for what is never folded.
    pub title: Option<String>,
    pub lines: Vec<Line>,
    /// Whether it is folded at first.
    pub is_folded: bool,
}

/// What has to be done before a request can be approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Care {
    /// Nothing but the question.
    Ordinary,
    /// It is dangerous, or nobody knows what runs: everything has to be unfolded, and this text typed.
    Serious(String),
}

/// A request to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// What will happen, on one line.
    pub headline: String,
    /// The effects, such as `[publishes origin main]`.
    pub chips: String,
    /// How careful an approval has to be.
    pub care: Care,
    /// Everything, in order. The first section and the last, the proof, have no title.
    pub sections: Vec<Section>,
}

impl Document {
    /// The document about a request.
    pub fn of(request: &OpenedRequest) -> Self {
        let payload = review::payload(request);
        let mut sections = vec![Section { title: None, lines: facts(request, &payload), is_folded: false }];
        let (lines, files) = body(&payload);
        sections[0].lines.extend(lines);
        sections.extend(files);
        sections.push(Section { title: None, lines: proof(request, &payload), is_folded: false });
        fold_long(&mut sections);
        Self {
            headline: review::title(&payload),
            chips: review::chips(&payload),
            care: care(&payload),
            sections,
        }
    }

    /// The sections that fold.
    pub fn files(&self) -> usize {
        self.sections.iter().filter(|section| section.title.is_some()).count()
    }
}

fn care(payload: &Payload) -> Care {
    danger::word_for(payload).map_or(Care::Ordinary, Care::Serious)
}

fn fold_long(sections: &mut [Section]) {
    let mut together = 0;
    for section in sections.iter_mut().filter(|section| section.title.is_some()) {
        together += section.lines.len();
        section.is_folded |= section.lines.len() > LONG || together > LONG_TOGETHER;
    }
}

fn facts(request: &OpenedRequest, payload: &Payload) -> Vec<Line> {
    let place = request.repo_name.as_deref().map(visible);
    let place = place.map(|place| format!(" in {place}")).unwrap_or_default();
    let asked = format!("asked by {}{place}", visible(request.enforcer.as_str()));
    let again = review::asked_again(request).map(str::to_owned);
    let notes = [asked].into_iter().chain(again).chain(review::about(payload));
    notes.map(|note| Line::shown(Kind::Note, note)).chain([empty()]).collect()
}

/// What exactly is signed, and by whom it was asked.
fn proof(request: &OpenedRequest, payload: &Payload) -> Vec<Line> {
    let notes = review::proof(request, payload).into_iter().map(|note| Line::shown(Kind::Note, note));
    [empty()].into_iter().chain(notes).collect()
}

fn empty() -> Line {
    Line::shown(Kind::Text, "")
}

fn body(payload: &Payload) -> (Vec<Line>, Vec<Section>) {
    let (mut lines, files) = match payload {
        Payload::Command(command) => (command_lines(command), command_files(command)),
        Payload::Patch(patch) => patch_body(patch),
        Payload::Plan(plan) | Payload::Task(plan) => {
            let steps =
                plan.steps.iter().enumerate().map(|(number, step)| {
                    Line::shown(Kind::Text, format!("{}. {}", number + 1, visible(step)))
                });
            (prose(&plan.text).chain(steps).collect(), Vec::new())
        }
        Payload::Checkpoint(checkpoint) => {
            let changes = checkpoint
                .changes
                .iter()
                .map(|change| Line::shown(Kind::Text, format!("- {}", visible(change))));
            (prose(&checkpoint.summary).chain(changes).collect(), Vec::new())
        }
        Payload::Raw(raw) => {
            let reason = format!("shown as the JSON that it is: {}", raw.reason);
            ([Line::shown(Kind::Note, reason)].into_iter().chain(foreign(&raw.text)).collect(), Vec::new())
        }
    };
    let rest = review::rest_of_the_call(payload);
    lines.extend(rest.into_iter().map(|line| Line::shown(Kind::Text, line)));
    lines.extend(review::found(payload).into_iter().map(|line| Line::shown(Kind::Note, line)));
    (lines, files)
}

fn foreign(text: &str) -> impl Iterator<Item = Line> + '_ {
    text.split('\n').map(|line| Line::foreign(Kind::Text, line))
}

fn prose(text: &str) -> impl Iterator<Item = Line> + '_ {
    text.split('\n').map(|line| Line::shown(Kind::Text, visible(line)))
}

fn command_lines(command: &Command) -> Vec<Line> {
    let text = |text: String| Line::shown(Kind::Text, text);
    let mut lines = match &command.invocation {
        Invocation::Shell(shell) => {
            shell.split('\n').map(|line| text(format!("sh    {}", visible_code(line)))).collect()
        }
        Invocation::Argv(_) => {
            vec![text(format!("runs  {}", Payload::Command(command.clone()).headline()))]
        }
    };
    lines.push(text(format!("in    {}", visible_code(&command.cwd))));
    for variable in &command.env {
        let value = variable.value.as_deref().map_or_else(|| "(not shown)".to_owned(), visible_code);
        lines.push(text(format!("with  {}={value}", visible_code(&variable.name))));
    }
    if let Some(stdin) = &command.stdin {
        lines.push(text(format!("reads {} bytes from standard input", stdin.size)));
    }
    if let Some(revision) = &command.base_revision {
        lines.push(text(format!("at    commit {}", visible_code(revision))));
    }
    // A program without content has nothing to unfold.
    for file in command.files.iter().filter(|file| !folds(file)) {
        let (path, role) = (visible_code(&file.path), file.role.as_str());
        lines.push(text(format!("{role} {path}, {} bytes", file.size)));
    }
    lines
}

/// Whether a file of a command has a section. A script whose content is missing has one too, which says so.
fn folds(file: &CommandFile) -> bool {
    file.content.is_some() || file.role == FileRole::Script
}

fn command_files(command: &Command) -> Vec<Section> {
    let section = |file: &CommandFile| {
        let mut lines = Vec::new();
        match &file.content {
            Some(content) => {
                lines.extend(foreign(content.strip_suffix('\n').unwrap_or(content)));
                if !content.ends_with('\n') {
                    lines.push(Line::shown(Kind::Note, "(no line break at the end)"));
                }
            }
            None => lines.push(Line::shown(Kind::Note, "the content was not sent; only its digest is known")),
        }
        let (role, path) = (file.role.as_str(), visible_code(&file.path));
        // What is short is there to be read at once. Of a script that was not sent there is nothing to read.
        let is_folded = file.content.is_none() || lines.len() > LONG_SCRIPT;
        Section { title: Some(format!("{role} {path}, {} bytes", file.size)), lines, is_folded }
    };
    command.files.iter().filter(|file| folds(file)).map(section).collect()
}

fn patch_body(patch: &Patch) -> (Vec<Line>, Vec<Section>) {
    let list = |file: &PatchFile| {
        let from = file.previous_path.as_deref().map(|path| format!(" from {}", visible_code(path)));
        let (status, name) = (file.status.as_str(), visible_code(&file.path));
        let counts = format!("(+{} −{})", file.added, file.removed);
        Line::shown(Kind::Text, format!("{status} {name}{} {counts}", from.unwrap_or_default()))
    };
    let lines = patch.files.iter().map(list).collect();
    let sections = diff::files(&patch.diff).into_iter().map(|file| Section {
        title: Some(format!("{} (+{} −{})", visible_code(&file.name), file.added, file.removed)),
        lines: file.lines.into_iter().map(|(kind, text)| Line::foreign(kind, text)).collect(),
        is_folded: file.is_binary,
    });
    (lines, sections.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::fixture::{patch, request, scripts};

    /// Every line in order, with the place of the last one that has content.
    fn lines(payload: &Payload) -> Vec<String> {
        let document = Document::of(&request("r0", payload));
        document
            .sections
            .iter()
            .flat_map(|section| &section.lines)
            .map(|line| line.text().into_owned())
            .collect()
    }

    #[test]
    fn ids_and_hashes_come_after_the_content() {
        for (payload, content) in [(scripts(), "make two.sh"), (patch(&[3]), "+let value_2")] {
            let lines = lines(&payload);
            let last = lines.iter().rposition(|line| line.contains(content)).unwrap();
            let is_proof =
                |line: &&String| line.contains("SHA-256") || line.contains("r0") || line.contains("hash");
            assert!(!lines[..=last].iter().any(|line| is_proof(&line)), "{lines:?}");
            assert!(lines[last..].iter().any(|line| line.contains("SHA-256")), "{lines:?}");
            let plain = review::lines(&request("r0", &payload), crate::tui::fixture::noon());
            let last = plain.iter().rposition(|line| line.contains(content)).unwrap();
            assert!(!plain[..=last].iter().any(|line| is_proof(&line)), "{plain:?}");
        }
    }

    #[test]
    fn a_short_script_is_there_to_be_read_and_a_long_one_is_folded() {
        let with = |content: Option<String>| {
            let mut payload = scripts();
            let Payload::Command(command) = &mut payload else { unreachable!("a command") };
            command.files.truncate(1);
            match content {
                Some(content) => {
                    command.files[0] = CommandFile::with_content("a.sh", FileRole::Script, content);
                }
                None => command.files[0].content = None,
            }
            Document::of(&request("r0", &payload)).sections[1].is_folded
        };
        assert!(!with(Some("make\n".repeat(LONG_SCRIPT))));
        assert!(with(Some("make\n".repeat(LONG_SCRIPT + 1))));
        assert!(with(None), "there is nothing to read");
    }
}
