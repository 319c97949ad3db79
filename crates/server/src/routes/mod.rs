//! One file for each resource. A handler extracts, calls and wraps.

pub(crate) mod acks;
pub(crate) mod artifacts;
pub(crate) mod decisions;
pub(crate) mod exchanges;
pub(crate) mod generic;
pub(crate) mod inbox;
pub(crate) mod invitations;
pub(crate) mod join;
pub(crate) mod meta;
pub(crate) mod notifications;
pub(crate) mod pairing;
pub(crate) mod pairs;
pub(crate) mod platform;
pub(crate) mod presence;
pub(crate) mod progress;
pub(crate) mod prompts;
pub(crate) mod rotate;
pub(crate) mod sessions;
pub(crate) mod streams;
pub(crate) mod tenants;
