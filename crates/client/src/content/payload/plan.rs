//! The payload of `plan.review` and `task.review`: what an agent intends, in words.

use countersign_wire::{Error, Members};
use serde::Serialize;

use super::{
    context::Context,
    effect::Effect,
    part::{text, texts},
    visible::visible,
};

/// A plan or a task before it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// All of it, in Markdown.
    pub text: String,
    /// The steps, each in one sentence, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What it will do; absent if the enforcer has not examined it, empty if it has found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Vec<Effect>>,
    /// The call behind it, and who asks.
    #[serde(flatten)]
    pub context: Context,
}

impl Plan {
    /// A plan without steps.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), steps: Vec::new(), effects: None, context: Context::default() }
    }

    /// The first heading, else the first step, else the first line with text.
    pub(super) fn headline(&self) -> String {
        let heading = self.text.lines().find_map(heading);
        let first_step = self.steps.first().map(String::as_str);
        let first_line = self.text.lines().map(str::trim).find(|line| !line.is_empty());
        visible(heading.or(first_step).or(first_line).unwrap_or_default())
    }

    /// Takes the members after the marker.
    pub(super) fn from_members(members: &mut Members<'_>, context: Context) -> Result<Self, Error> {
        Ok(Self {
            text: text(members, "text")?,
            steps: texts(members, "steps")?,
            effects: members.optional("effects")?,
            context,
        })
    }
}

/// The text of a Markdown heading that begins with number signs.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let text = text.strip_prefix(' ')?.trim().trim_end_matches('#').trim_end();
    ((1..=6).contains(&level) && !text.is_empty()).then_some(text)
}
