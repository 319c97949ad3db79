//! One exchange, without I/O: sealed, asked, decided, verified, and what the decision covers.

pub(crate) use crate::identity::lock;

pub mod seal;

pub mod audience;
pub mod edit;
pub mod request;

pub mod effect_hash;
pub mod reply;

pub mod taken;

#[cfg(test)]
pub(crate) mod fixture;

pub mod grant;
