//! Git's own files, read without Git: a repository's settings can make Git run programs, and a hook must not run them.
//!
//! What is not exactly as expected counts as absent.
//!
//! | to find | look in |
//! |---|---|
//! | settings | [`config`] |
//! | where a repository's files are, and what is checked out | [`folder`] |
//! | which files Git follows | [`index`] |

pub mod config;
pub mod folder;
pub mod index;
