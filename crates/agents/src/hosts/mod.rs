//! The programs that host a coding agent, each in a folder of its own. What was seen of each is in docs/agents/.
//!
//! | to find | look in |
//! |---|---|
//! | what a host has to say about itself | [`spec`] |
//! | parts of messages that several hosts have | [`input`], [`apply_patch`], [`output`] |
//! | each host | [`claude`], [`codex`], [`gemini`], [`opencode`], [`copilot`] |
//! | recorded sessions | [`transcript`] |

pub mod apply_patch;
pub mod input;
pub mod output;

pub mod spec;

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod gemini;
pub mod opencode;

pub mod transcript;

#[cfg(test)]
mod tests;

use clap::{ValueEnum, builder::PossibleValue};

pub use self::spec::{Host, HostSpec};

// CONTRIBUTING: add an agent host, step 1
/// Every host, in the order in which they are listed.
pub const ALL: [Host; 5] = [claude::HOST, codex::HOST, gemini::HOST, opencode::HOST, copilot::HOST];

impl ValueEnum for Host {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()).help(self.about))
    }
}
