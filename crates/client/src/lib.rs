//! The two ends of Countersign, for enforcers and approvers that do not trust the gateway between them.
//!
//! From the keys of a device to what is done with an approval. Each folder imports only from those above it.
//!
//! | folder | to find | look in |
//! |---|---|---|
//! | `identity` | private keys, fingerprints | [`keys`] |
//! | | what pairing compares, proves and signs | [`pairing`] |
//! | | who one is, kept in a folder: credential, keys, pins | [`profile`] |
//! | `content` | what artifacts say, and how it is shown | [`payload`] |
//! | | the part of the shell language that is understood; patterns of commands | [`shell`], [`pattern`] |
//! | `journal` | which decisions were used | [`journal`] |
//! | `exchange` | encryption from one end to the other | [`seal`] |
//! | | a request, built or opened; a decision, signed or verified | [`request`], [`reply`] |
//! | | a decision that was recorded as used, and for what | [`taken`], [`effect_hash`] |
//! | | what an approval covers beyond its request, and for how long | [`grant`] |
//! | `gateway` | calls to a gateway; trading an invitation for an API key | [`http`], [`join`] |
//! | `ends` | the two ends; what an enforcer is called | [`enforcer`], [`approver`], [`names`] |
//! | | vouching for others; how far a request has come; who can be reached | [`vouching`], [`progress`], [`presence`] |
//! | | what an approver says to an enforcer without being asked | [`prompt`] |
//! | `reports` | what a session is doing, what became of a decision | [`session`], [`receipt`] |
//! | | a finished exchange that others can verify | [`bundle`] |
//! | `acting` | by a grant or by asking, at most once for each use, with a receipt | [`authorize`], [`finish`] |
//! | | by a grant that was given while a request waits; asking once more for what has expired | [`waiting`], [`again`] |
//! | | bringing what waits to a device that was connected later | [`bring`] |
//! | `channel` | what the gateway pushes, live | [`channel`] |

#![warn(missing_docs)]

mod checks;
pub mod clock;
mod json;
mod random;

mod identity;

mod content;
pub mod journal;

mod exchange;
mod gateway;

mod ends;

mod reports;

mod acting;

pub mod channel;

pub use acting::{again, authorize, bring, finish, waiting};
pub use content::{pattern, payload, shell};
pub use ends::{approver, enforcer, names, presence, progress, prompt, vouching};
pub use exchange::{audience, effect_hash, grant, reply, request, seal, taken};
pub use gateway::{http, join, trouble};
pub use identity::{keys, pairing, profile};
pub use reports::{bundle, receipt, session};
