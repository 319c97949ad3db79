//! `away` and `here`: where the person is whom an agent's host would ask.

use clap::Args;
use countersign_agents::{
    hook::desk::{Desk, Presence},
    tool::{
        exit::{Exit, Failure},
        home::Home,
        output::{object, say},
    },
};
use serde_json::json;

use super::options::Options;

/// You are leaving your desk: agents ask on your phone right away.
///
/// A locked screen says nothing to agents: run this before you go.
#[derive(Debug, Args)]
pub(super) struct Away;

/// You are back at your desk: agents ask there first again.
#[derive(Debug, Args)]
pub(super) struct Here;

impl Away {
    pub(super) fn run(options: &Options) -> Result<(), Failure> {
        set(Presence::Away, options)
    }
}

impl Here {
    pub(super) fn run(options: &Options) -> Result<(), Failure> {
        set(Presence::Here, options)
    }
}

fn set(presence: Presence, options: &Options) -> Result<(), Failure> {
    let desk = Desk::new(Home::of_user()?.hooks_folder());
    desk.set_presence(presence)
        .map_err(|error| Failure::new(Exit::Failed, format!("it can't be kept: {error}")))?;
    let (word, sentence) = match presence {
        Presence::Away => ("away", "✓ away: what agents ask goes to your phone at once"),
        Presence::Here => ("here", "✓ here: what agents ask appears at the desk first"),
    };
    if options.json {
        return object(&json!({ "presence": word }));
    }
    say(sentence);
    Ok(())
}
