//! The extension `org.proto.requestedActions` (docs/protocol.md#bodies): the buttons that an enforcer requests.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    Error, FromMembers, Members, Rule,
    decision::DecisionOutcome,
    error::{MemberFault, Problem},
    limits::MAX_REQUESTED_ACTIONS,
    text::NonEmpty,
    vocabulary::vocabulary,
};

/// The key under an artifact's `extensions`.
pub const KEY: &str = "org.proto.requestedActions";

vocabulary! {
    /// How an approver displays a button.
    pub enum Style {
        /// The action that the enforcer expects.
        Primary = "primary",
        /// An ordinary action; the default.
        Secondary = "secondary",
        /// An action with consequences, to be displayed as a warning.
        Danger = "danger",
    }
}

/// A valid list: version 1, one to five actions with distinct ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RequestedActions {
    version: u8,
    actions: Vec<Action>,
}

/// One button and the decision that it submits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// Unique in its list, regardless of case; not empty.
    pub id: String,
    /// The text of the button; not empty.
    pub caption: String,
    /// How to display it; if absent, [`Style::Secondary`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub style: Option<Style>,
    /// The decision that pressing it submits.
    pub decision: DecisionOutcome,
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
        // Compared as a number: in JSON, 1 and 1.0 are the same integer.
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
