//! What a command does, derived from the command itself.
//!
//! | to find | look in |
//! |---|---|
//! | the repository around a folder; Git's own files | [`repository`], [`git`] |
//! | where a path leads | [`real_path`](mod@real_path) |
//! | effects of commands and files | [`effects`] |
//! | how much of a command is certain, and which files it names | [`grammar`] |
//! | files at the time of asking; names of programs | [`file`](mod@file), [`names`] |
//! | variables that change what a program does | [`environment`] |
//! | a text for a shell, as people review it | [`shell`] |

mod sql;

pub mod effects;
mod facts;
pub mod file;
pub mod git;
pub mod names;
pub mod real_path;

pub mod grammar;

pub mod repository;

pub mod environment;

pub mod shell;
