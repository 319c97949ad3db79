//! What an agent wants to do, whatever its host calls it, and the verdict.
//!
//! | to find | look in |
//! |---|---|
//! | one call of a tool; what a host says through a hook | [`call`], [`event`] |
//! | what people review of it | [`payload`], [`diff`], [`answers`] |
//! | a message of a host; all of it behind what people review | [`message`], [`whole`] |
//! | what a host is answered | [`verdict`] |

pub mod call;

pub mod event;

pub mod answers;
pub mod diff;
pub mod message;
pub mod payload;
pub mod places;

pub mod whole;

pub mod verdict;
