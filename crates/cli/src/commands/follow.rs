//! `inbox --follow`: a line for each request that arrives, and for each that ends.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    io::{self, Write as _},
    process::{Command, Stdio},
    sync::Arc,
};

use countersign_agents::tool::{
    exit::Failure,
    moment,
    output::{object, out, say},
};
use countersign_client::{
    approver::{Approver, InboxItem},
    payload::visible,
};
use countersign_wire::{exchange::ExchangeState, id::RequestId};
use serde_json::json;

use super::options::Options;
use crate::{
    review,
    source::{Incoming, Source},
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// Ring the terminal's bell.
    pub bell: bool,
    /// Show a notification of the desktop.
    pub notify: bool,
}

/// Follows the inbox until it is interrupted.
pub(super) async fn follow(
    approver: &Arc<Approver>,
    mut source: impl Source,
    manner: Manner,
    options: &Options,
) -> Result<(), Failure> {
    let mut known: BTreeMap<RequestId, String> = BTreeMap::new();
    let mut taken_back: BTreeSet<RequestId> = BTreeSet::new();
    let mut is_reachable = true;
    loop {
        let items = match source.next().await {
            Ok(Incoming::Inbox(items)) => items,
            Ok(Incoming::Ended(id, state)) => {
                if let Some(what) = known.remove(&id) {
                    if state == ExchangeState::Withdrawn {
                        taken_back.insert(id.clone());
                    }
                    let now = moment::clock(approver.clock.now());
                    let word = word(state);
                    report(word, &id, &format!("{now}  {word}: {what}"), options)?;
                }
                continue;
            }
            Err(failure) => {
                // Said once; the next reading may succeed.
                if std::mem::replace(&mut is_reachable, false) {
                    say(&format!("! {}", visible(&failure.to_string())));
                }
                continue;
            }
        };
        if !std::mem::replace(&mut is_reachable, true) {
            say("The gateway answers again.");
        }
        let now = moment::clock(approver.clock.now());
        let gone: Vec<RequestId> =
            known.keys().filter(|id| !items.iter().any(|item| item.request_id == **id)).cloned().collect();
        for item in items {
            let (who, what) = describe(&item);
            let asks = match &item.opened {
                Ok(request) if request.is_edited => "asks about your change",
                Ok(request) if request.supersedes.is_some() => "asks again",
                _ => "asks",
            };
            // Whoever was told of it hears nothing when it is asked anew for a device that was connected.
            let place = item.opened.as_ref().ok().and_then(|request| request.supersedes.clone());
            let is_moved = place.is_some_and(|old| taken_back.remove(&old));
            if let Entry::Vacant(entry) = known.entry(item.request_id) {
                report("asks", entry.key(), &format!("{now}  {who} {asks}: {what}"), options)?;
                if !is_moved {
                    ring(manner, &who);
                }
                entry.insert(what);
            }
        }
        for id in gone {
            let word = approver.status(&id).await.map_or("gone", |status| word(status.state));
            let what = known.remove(&id).unwrap_or_default();
            report(word, &id, &format!("{now}  {word}: {what}"), options)?;
        }
    }
}

/// How a request has ended.
fn word(state: ExchangeState) -> &'static str {
    match state {
        ExchangeState::Decided | ExchangeState::Delivered => "answered",
        ExchangeState::Expired => "expired",
        ExchangeState::Withdrawn => "taken back",
        ExchangeState::Cancelled => "cancelled",
        ExchangeState::PendingApproval => "gone",
    }
}

/// Who asks for what.
fn describe(item: &InboxItem) -> (String, String) {
    match &item.opened {
        Ok(request) => {
            let payload = review::payload(request);
            let what = format!("{} {}", payload.headline(), review::chips(&payload));
            (visible(request.enforcer.as_str()), what.trim_end().to_owned())
        }
        Err(error) => {
            ("somebody".to_owned(), format!("a request that can't be shown: {}", visible(&error.to_string())))
        }
    }
}

fn report(event: &str, id: &RequestId, line: &str, options: &Options) -> Result<(), Failure> {
    match options.json {
        true => object(&json!({ "event": event, "requestId": id })),
        false => out(line),
    }
}

/// Draws attention. A notification may be seen by others, so it says who asks and nothing else.
fn ring(manner: Manner, who: &str) {
    if manner.bell {
        let mut stderr = io::stderr().lock();
        drop(stderr.write_all(b"\x07").and_then(|()| stderr.flush()));
    }
    if manner.notify {
        // Somebody who has no such program has asked for nothing that is possible; the line is there anyway.
        let mut command = Command::new("notify-send");
        command.args(["--app-name=Countersign", "--", "Countersign", &notification(who)]);
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if let Ok(mut child) = started {
            std::thread::spawn(move || child.wait());
        }
    }
}

/// The text of a notification, in which desktops understand some HTML.
fn notification(who: &str) -> String {
    let who = who.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("{who} asks for your answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_has_no_markup_of_others() {
        assert_eq!(notification("<a href=x>&"), "&lt;a href=x&gt;&amp; asks for your answer");
    }
}
