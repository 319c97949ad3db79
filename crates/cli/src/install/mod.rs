//! Puts the hook into the settings of the programs that host an agent, takes it out again, and says what is there.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | edits of JSON that keep every other byte | [`json_text`], [`json_scan`], [`json_value`] |
//! | the same for TOML | [`toml_text`] |
//! | reading, backing up and replacing a file | [`settings_file`] |
//! | the line that a host runs | [`hook_line`], [`program`] |
//! | our entries in a host's file | [`hook_entries`], [`json_host`], [`own_file`] |
//! | where files are; what would change | [`places`], [`plan`], [`difference`] |
//! | each host | [`claude`], [`codex`], [`gemini`], [`opencode`], [`copilot`] |
//! | what is installed, and what is wrong with it | [`inspect`], [`inspection`], [`switches`] |

pub mod difference;
pub mod json_value;
pub mod places;
pub mod program;

pub mod hook_line;
pub mod json_scan;

pub mod json_text;
pub mod settings_file;
pub mod toml_text;

pub mod hook_entries;
pub mod own_file;
pub mod plan;

pub mod json_host;

pub mod claude;
pub mod codex;
pub mod copilot;
pub mod gemini;
pub mod opencode;

pub mod inspection;

pub mod switches;

pub mod inspect;

use self::{
    places::Places,
    plan::{Plan, Wish},
};
use crate::{agent::host::Host, exit::Failure};

/// What has to change so that a host runs the hook. Nothing is changed yet.
pub fn install(places: &Places, wish: &Wish) -> Result<Plan, Failure> {
    match wish.line.host {
        Host::Claude => claude::install(places, wish),
        Host::Codex => codex::install(places, wish),
        Host::Gemini => gemini::install(places, wish),
        Host::Opencode => opencode::install(places, wish),
        Host::Copilot => copilot::install(places, wish),
    }
}

/// What has to change so that a host is as if the hook had never been there.
pub fn uninstall(places: &Places, host: Host, is_managed: bool) -> Result<Plan, Failure> {
    match host {
        Host::Claude => claude::uninstall(places, is_managed),
        Host::Codex => codex::uninstall(places, is_managed),
        Host::Gemini => gemini::uninstall(places),
        Host::Opencode => opencode::uninstall(places),
        Host::Copilot => copilot::uninstall(places, is_managed),
    }
}
