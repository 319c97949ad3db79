//! Who one is, and whose keys one trusts.

pub mod keys;
pub mod lock;

pub mod pairing;
pub mod profile;
