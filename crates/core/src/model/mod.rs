//! What is stored, one file for each type, with its record kind and its pure rules beside it.

// CONTRIBUTING: add a record kind, step 2
pub mod channels;
pub mod credential;
pub mod derived_key;
pub mod exchange;
pub mod idempotency;
pub mod invitation;
pub mod message;
pub mod notification;
pub mod own_record;
pub mod pairing;
pub mod pairs;
pub mod policy;
pub mod presence;
pub mod prompt;
pub mod secret_checks;
pub mod session;
pub mod tenant;
pub mod ticket;
pub mod turns;
pub mod viewer;
