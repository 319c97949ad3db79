//! The full-screen interface of `inbox` (docs/terminal-inbox.md).
//!
//! | to find | look in |
//! |---|---|
//! | what lines are; wrapping; finding a text | [`kind`], [`wrap`], [`search`] |
//! | a request as lines | [`diff`], [`document`] |
//! | reading it: cursor, folds, search, what was shown | [`pager`] |
//! | what can be approved for how long; keys that come too early | [`scope`], [`guard`] |
//! | requests and what became of them | [`item`] |
//! | all of it together, without input or output | [`state`] |
//! | where things are on the screen, and how they look | [`layout`], [`view`] |
//! | the terminal, the network and the clock | [`run`] |

pub mod diff;
pub mod document;
pub mod guard;
pub mod item;
pub mod kind;
pub mod layout;
pub mod pager;
pub mod run;
pub mod scope;
pub mod search;
pub mod state;
pub mod view;
pub mod wrap;

#[cfg(test)]
mod fixture;
