//! What a client can ask for, one file each, as methods of [`crate::Gateway`].

pub mod acknowledge;
pub mod cancel;
pub mod channels;
pub mod close_channels;
pub mod credentials;
pub mod decide;
pub mod hide;
pub mod inbox;
pub mod invitations;
pub mod join;
pub mod notifications;
pub mod notify;
pub mod own_records;
pub mod pairing;
pub mod pairs;
pub mod parties;
pub mod policies;
pub mod presence;
pub mod prompt;
pub mod refresh;
pub mod rotate;
pub mod secret_checks;
pub mod session;
pub mod status;
pub mod submit;
pub mod tenants;
pub mod tickets;
pub mod vouchers;
pub mod wait;
pub mod withdraw;

mod idempotency;
