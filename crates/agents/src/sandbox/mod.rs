//! A place for an agent that is built from nothing: its project, its host's own files, and the way to the keeper. Whatever is not
//! listed is not there (docs/sandbox.md).
//!
//! | to find | look in |
//! |---|---|
//! | what is in it | [`place`]; by its name in every one, `lists.rs` |
//! | how it is built, by bubblewrap | [`bubblewrap`] |
//! | the calls of the system that nobody may make in it | [`filter`] |
//! | what is tried from inside before anything is started | [`inside`] |

mod lists;

pub mod filter;
pub mod inside;
pub mod place;

pub mod bubblewrap;
