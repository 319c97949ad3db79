//! Puts the hook into the settings of the programs that host an agent, takes it out again, and says what is there.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | edits of JSON that keep every other byte | [`json_text`], [`json_scan`], [`json_value`] |
//! | the same for TOML | [`toml_text`] |
//! | reading, backing up and replacing a file | [`settings_file`] |
//! | the program that a host runs, and whether its path stays | [`program`], [`lasting`] |
//! | our entries in a host's file | [`hook_entries`], [`json_host`], [`own_file`] |
//! | which files decide | [`deciding_files`] |
//! | where files are; what would change | [`places`], [`plan`], [`difference`] |
//! | what is installed, and what is wrong with it | [`inspect`], [`inspection`], [`switches`], [`variables`] |

pub mod difference;
pub mod json_value;
pub mod lasting;
pub mod places;
pub mod program;

pub mod deciding_files;
pub mod json_scan;

pub mod json_text;
pub mod settings_file;
pub mod toml_text;

pub mod hook_entries;
pub mod own_file;
pub mod plan;

pub mod json_host;

pub mod inspection;

pub mod switches;

pub mod variables;

pub mod inspect;
