//! The extension `org.proto.requestedActions` (section 2.9): the buttons that an enforcer asks for.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, Rule,
    decision::Verdict,
    error::{MemberFault, Problem},
    limits::MAX_REQUESTED_ACTIONS,
    text::NonEmpty,
    vocabulary::vocabulary,
};

/// The key under an artifact's `extensions`.
pub const KEY: &str = "org.proto.requestedActions";

vocabulary! {
    /// How a button looks.
    pub enum Style {
        /// The expected one.
        Primary = "primary",
        /// The usual one.
        Secondary = "secondary",
        /// One to think about.
        Danger = "danger",
    }
}

/// One to five actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestedActions {
    version: u8,
    actions: Vec<Action>,
}

/// One button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// Unique in its list, whatever the case.
    pub id: String,
    /// What the button says.
    pub caption: String,
    /// How it looks; [`Style::Secondary`] where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// What pressing it decides.
    pub decision: Verdict,
}

impl RequestedActions {
    /// Checks the number of actions and that their ids differ.
    pub fn new(actions: Vec<Action>) -> Result<Self, Error> {
        if !(1..=MAX_REQUESTED_ACTIONS).contains(&actions.len()) {
            return Err(MemberFault::at("actions", Problem::Breaks(Rule("must be 1 to 5 items"))).into());
        }
        let ids: BTreeSet<String> = actions.iter().map(|action| action.id.to_lowercase()).collect();
        if ids.len() == actions.len() {
            Ok(Self { version: 1, actions })
        } else {
            Err(MemberFault::at("actions", Problem::Breaks(Rule("has the same id twice"))).into())
        }
    }

    /// The actions, in the order in which they are to be shown.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }
}

impl FromMembers<'_> for RequestedActions {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        // A number, not its spelling: to JSON, 1 and 1.0 are the same integer.
        if !matches!(members.required("version")?, 1.0) {
            return Err(MemberFault::at("version", Problem::Breaks(Rule("must be 1"))).into());
        }
        let actions = members.required("actions")?;
        members.close()?;
        Self::new(actions)
    }
}

impl FromMembers<'_> for Action {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        let action = Self {
            id: members.required::<NonEmpty>("id")?.0,
            caption: members.required::<NonEmpty>("caption")?.0,
            style: members.optional("style")?,
            decision: members.required("decision")?,
        };
        members.close()?;
        Ok(action)
    }
}
