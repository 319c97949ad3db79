//! What is asked about: a call as its host has it, or as an approver has changed it (docs/edits.md).

use std::borrow::Cow;

use countersign_client::{payload::visible, taken::Taken};
use serde_json::Value;

use super::settings::Settings;
use crate::{
    asking::Rejection,
    calls::{call::Call, event::Kind, message::Message, places::places},
};

/// How often a call may be changed before it is approved.
const MAX_CHANGES: usize = 10;

/// The most of a changed text that the agent is told, in characters: it is no more than news.
const MAX_NOTED: usize = 2_000;

/// A call with the message that it is in.
pub(super) struct Subject<'a> {
    pub(super) message: Cow<'a, Message>,
    pub(super) call: Cow<'a, Call>,
    /// The rejection whose edit has made it of another one; `None` of the call as the host has it.
    pub(super) of: Option<Rejection>,
    changes: usize,
}

impl<'a> Subject<'a> {
    /// A call as its host has it.
    pub(super) fn of_host(message: &'a Message, call: &'a Call) -> Self {
        Self { message: Cow::Borrowed(message), call: Cow::Borrowed(call), of: None, changes: 0 }
    }

    /// JSON pointers of what an approver may change of it: where the host takes other arguments, and somebody waits for them.
    pub(super) fn edits(&self, settings: &Settings) -> Vec<String> {
        let arguments = (settings.host.messages.edits)(&self.message.value);
        match arguments.filter(|_| settings.defer_for.is_none() && self.changes < MAX_CHANGES) {
            Some(arguments) => places(&self.call, &self.message.value, arguments),
            None => Vec::new(),
        }
    }

    /// What the edit of a rejection makes of it; `None` if it has none, and why if it makes no call.
    pub(super) fn changed(&self, taken: &Taken, settings: &Settings) -> Option<Result<Self, String>> {
        let edit = taken.decision.words.edit.as_ref()?;
        let value = match edit.apply(&self.message.value, &self.edits(settings)) {
            Ok(value) => value,
            Err(error) => return Some(Err(error.to_string())),
        };
        let Ok(Kind::Call { call, .. }) =
            settings.host.read(&value, &settings.caller).map(|event| event.kind)
        else {
            return Some(Err("it is no call that can be read".to_owned()));
        };
        let of = Rejection { request_id: taken.request_id.clone(), decision: taken.decision.clone() };
        let (message, call) = (Cow::Owned(Message::of(value)), Cow::Owned(call));
        Some(Ok(Self { message, call, of: Some(of), changes: self.changes + 1 }))
    }

    /// The arguments that the host has to take in the place of its own.
    pub(super) fn input(&self, settings: &Settings) -> Option<Value> {
        self.of.as_ref()?;
        self.message.value.pointer((settings.host.messages.edits)(&self.message.value)?).cloned()
    }

    /// What the agent is told of the change that made it.
    pub(super) fn note(&self) -> Option<String> {
        let Rejection { decision, .. } = self.of.as_ref()?;
        let texts = decision.words.edit.iter().flat_map(|edit| edit.0.values());
        let text: String = texts.map(|text| visible(text)).collect::<Vec<_>>().join("\n");
        let cut: String = text.chars().take(MAX_NOTED).collect();
        let rest = if cut.len() < text.len() { " …" } else { "" };
        Some(format!(
            "{} changed the call before approving it. What runs instead: {cut}{rest}",
            decision.approver
        ))
    }
}
