//! The use cases of a gateway, run on every store: single cases, random commands against a model, and races.

mod audit;
mod credentials;
mod exchanges;
mod hot_path;
mod inboxes;
mod invitations;
pub mod model;
mod notifications;
mod paired;
mod pairing;
mod pairing_fixtures;
mod pairs;
mod presence;
mod prompts;
pub mod races;
mod retention;
mod sessions;
mod turns;
mod vouchers;
pub mod world;

use crate::store_suite::Case;

/// Every case on a gateway, by subject.
pub const SUBJECTS: &[(&str, &[Case])] = &[
    ("exchanges", exchanges::CASES),
    ("hot_path", hot_path::CASES),
    ("inboxes", inboxes::CASES),
    ("pairing", pairing::CASES),
    ("notifications", notifications::CASES),
    ("paired", paired::CASES),
    ("pairs", pairs::CASES),
    ("turns", turns::CASES),
    ("vouchers", vouchers::CASES),
    ("prompts", prompts::CASES),
    ("sessions", sessions::CASES),
    ("presence", presence::CASES),
    ("credentials", credentials::CASES),
    ("invitations", invitations::CASES),
    ("audit", audit::CASES),
    ("retention", retention::CASES),
    ("races", races::CASES),
    ("model", model::CASES),
];
