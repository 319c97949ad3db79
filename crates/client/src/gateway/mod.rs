//! Calls to a gateway, and the first of them: trading an invitation for an API key.

pub mod trouble;

pub mod http;

pub(crate) mod answers;
pub(crate) mod exchange;

pub mod join;
