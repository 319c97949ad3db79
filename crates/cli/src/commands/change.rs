//! `change`: another call in place of the one that is asked for.

use std::{fs, io::Write as _, path::Path, process::Command, time::Duration};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    output::{object, say, short},
    terminal::Terminal,
};
use countersign_client::{
    approver::InboxItem,
    edit::{Edit, Place},
    payload::visible_code,
    reply::{Choice, Words},
    request::OpenedRequest,
};
use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    id::RequestId,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{decide::send, inbox::Desk, options::Options};
use crate::review;

/// How long the machine has to ask about the changed call.
const ASKED_WITHIN: Duration = Duration::from_secs(15);

/// Change what a request asks for before you approve it.
///
/// Opens the command, the text or the patch in your editor (VISUAL or EDITOR), or takes the new text from --to. Nothing runs by
/// that: the machine checks the changed call, and asks this device about it. Then approve it with `countersign approve`.
///
/// Claude Code, OpenCode with an up-to-date plugin and `countersign exec` run a changed call. Of others, reject the request and
/// say with --reason what to do instead.
#[derive(Debug, Args)]
pub(super) struct Change {
    /// The id of the request, or the beginning of it. Not needed if only one is waiting.
    #[arg(value_name = "ID")]
    request: Option<String>,
    /// The new text, in place of an editor.
    #[arg(long, value_name = "TEXT")]
    to: Option<String>,
    /// Which text, if the call has several: its name, such as `content`.
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
}

impl Change {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let desk = Desk::open(options)?;
        let request = desk.request(self.request.as_deref()).await?;
        let place = self.place(&request)?;
        let text = match self.to {
            Some(text) => text,
            None => edited(place)?,
        };
        let edit = Edit([(place.pointer.clone(), text.clone())].into());
        edit.check(&request.edits).map_err(|error| {
            Failure::new(Exit::Usage, format!("nothing was sent: {error}"))
                .next("run it again, and change the text")
        })?;
        say(&format!(
            "Changing: {}\n{}",
            review::title(&review::payload(&request)),
            compared(&place.text, &text)
        ));
        let words = Words { edit: Some(edit), ..Words::default() };
        let valid_until = desk.approver.clock.now().plus(review::APPROVAL_VALID);
        let choice = Choice { outcome: DecisionOutcome::Reject, scope: Scope::Once, valid_until, words };
        send(&desk, &request, &choice, options).await?;
        let asked = asked(&desk, &request.request_id).await;
        if options.json {
            let id = asked.as_ref().map(|asked| &asked.request_id);
            return object(&json!({ "requestId": request.request_id, "decision": "changed", "askedAs": id }));
        }
        say(&match asked {
            Some(asked) => format!(
                "✓ changed; the machine asks about it now\n  {}\n  Approve it with `countersign approve {}`.",
                review::title(&review::payload(&asked)),
                short(&asked.request_id)
            ),
            None => "✓ changed, and the machine has not asked about it: a rule may forbid it, or it has stopped waiting.\n  \
                     Nothing was run. If it asks later, `countersign inbox` shows it."
                .to_owned(),
        });
        Ok(())
    }

    /// What of the request is to be changed.
    fn place<'a>(&self, request: &'a OpenedRequest) -> Result<&'a Place, Failure> {
        let is_named = |place: &&Place| self.part.as_deref().is_none_or(|part| name(place) == part);
        let found: Vec<&Place> = request.edits.iter().filter(is_named).collect();
        match (found.as_slice(), &self.part) {
            ([place], _) => Ok(place),
            ([], None) => {
                Err(Failure::new(Exit::Usage, "the machine that asks does not take a change of this")
                    .next("reject it, and say what to do instead: `countersign reject ID --reason TEXT`"))
            }
            (_, part) => {
                let names: Vec<String> =
                    request.edits.iter().map(|place| visible_code(name(place))).collect();
                let what = match part {
                    Some(part) => format!("it has no text {}", visible_code(part)),
                    None => "it has several texts".to_owned(),
                };
                Err(Failure::new(Exit::Usage, what)
                    .next(format!("say which with --part: {}", names.join(", "))))
            }
        }
    }
}

/// What people call a place: the end of its pointer.
fn name(place: &Place) -> &str {
    place.pointer.rsplit('/').next().unwrap_or_default()
}

/// The two texts, as lines with a sign before each.
fn compared(before: &str, after: &str) -> String {
    let signed = |sign: char, text: &str| {
        text.split('\n').map(|line| format!("  {sign} {}", visible_code(line))).collect::<Vec<_>>()
    };
    [signed('-', before), signed('+', after)].concat().join("\n")
}

/// The text as the person leaves it in their editor.
fn edited(place: &Place) -> Result<String, Failure> {
    let failed =
        |error: std::io::Error| Failure::new(Exit::Failed, format!("the text can't be edited: {error}"));
    drop(Terminal::open("an editor needs a terminal")?);
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok());
    let editor = editor.filter(|editor| !editor.trim().is_empty()).unwrap_or_else(|| "vi".to_owned());
    let mut file =
        tempfile::Builder::new().prefix("countersign-").suffix(".txt").tempfile().map_err(failed)?;
    file.write_all(place.text.as_bytes()).and_then(|()| file.flush()).map_err(failed)?;
    // As every program does it: the variable may have arguments, and the file is none of its words.
    let script = format!("exec {editor} \"$1\"");
    let ended = Command::new("sh").args(["-c", &script, "sh"]).arg(file.path()).status().map_err(failed)?;
    if !ended.success() {
        return Err(Failure::new(
            Exit::TakenBack,
            format!("`{editor}` ended with an error, so nothing was sent"),
        )
        .next("set EDITOR, or give the new text with --to"));
    }
    read(file.path(), &place.text).map_err(failed)
}

/// What stands in a file; the line end that editors add is not part of it.
fn read(path: &Path, before: &str) -> std::io::Result<String> {
    let mut text = fs::read_to_string(path)?;
    if text.ends_with('\n') && !before.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// The request about the changed call, as soon as it is there.
async fn asked(desk: &Desk, changed: &RequestId) -> Option<OpenedRequest> {
    let until = Instant::now() + ASKED_WITHIN;
    let is_it = |request: &OpenedRequest| request.is_edited && request.supersedes.as_ref() == Some(changed);
    while Instant::now() < until {
        let opened =
            desk.items().await.unwrap_or_default().into_iter().filter_map(|item: InboxItem| item.opened.ok());
        if let Some(request) = opened.into_iter().find(is_it) {
            return Some(request);
        }
        sleep(Duration::from_millis(200)).await;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editors_last_line_end_is_no_change() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let after = |written: &str, before: &str| {
            fs::write(file.path(), written).unwrap();
            read(file.path(), before).unwrap()
        };
        assert_eq!(after("ls -l\n", "ls"), "ls -l");
        assert_eq!(after("a\nb\n", "a\n"), "a\nb\n");
        assert_eq!(after("", "ls"), "");
    }

    #[test]
    fn what_changes_is_shown_line_by_line_and_can_not_paint_the_screen() {
        assert_eq!(compared("a\nb", "a\n\u{1b}[2J"), "  - a\n  - b\n  + a\n  + ⟨U+001B⟩[2J");
    }
}
