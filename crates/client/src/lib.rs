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
//! | | what the lock of an approver's device has signed | [`lock`] |
//! | | a decision that was recorded as used, and for what | [`taken`], [`effect_hash`] |
//! | | what an approval covers beyond its request, and for how long | [`grant`] |
//! | `gateway` | calls to a gateway; trading an invitation for an API key | [`http`], [`join`] |
//! | `ends` | the two ends; what an enforcer is called | [`enforcer`], [`approver`], [`names`] |
//! | | vouching for others; how far a request has come; who can be reached | [`vouching`], [`progress`], [`presence`] |
//! | | what an approver says to an enforcer without being asked | [`prompt`] |
//! | `reports` | what a session is doing, what became of a decision | [`session`], [`receipt`] |
//! | | what a person has answered on any of their devices | [`history`] |
//! | | a finished exchange that others can verify | [`bundle`] |
//! | `acting` | by a grant or by asking, at most once for each use, with a receipt | [`authorize`], [`finish`] |
//! | | by a grant that was given while a request waits; asking once more for what has expired | [`waiting`], [`again`] |
//! | | bringing what waits to a device that was connected later | [`bring`] |
//! | `channel` | what the gateway pushes, live | [`channel`] |
//!
//! # Ask before acting
//!
//! An enforcer asks everybody it is paired with, and waits. What it gets back has passed every check, or it is an error: then it does
//! nothing. `examples/two_ends.rs` has both ends and their pairing; `docs/sdk.md` says what to keep in mind.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//!
//! use countersign_client::{
//!     audience::Audience,
//!     clock::SystemClock,
//!     enforcer::Enforcer,
//!     http::Http,
//!     journal::MemoryJournal,
//!     keys::DeviceKeys,
//!     payload::{Command, Invocation, Payload},
//!     profile::{Credential, GatewayUrl, Pins},
//!     request::Draft,
//! };
//! use countersign_wire::decision::DecisionOutcome;
//!
//! /// Whether `git push` may run, once. The keys and pins are those of a pairing.
//! async fn may_push(api_key: String, keys: DeviceKeys, pins: &Pins) -> Result<bool, Box<dyn std::error::Error>> {
//!     let credential = Credential::new(api_key.into())?;
//!     let enforcer = Enforcer {
//!         http: Http::new(GatewayUrl::new("https://gateway.example.org")?, Some(&credential))?,
//!         id: "build-7".parse()?,
//!         keys,
//!         clock: Arc::new(SystemClock),
//!         // A program that acts uses a `FileJournal`: it must not act twice after a restart.
//!         journal: Arc::new(MemoryJournal::default()),
//!     };
//!     let argv = ["git", "push", "origin", "main"].map(str::to_owned).to_vec();
//!     let payload = Payload::Command(Command::new(Invocation::Argv(argv), "."));
//!     let draft = Draft {
//!         artifact_type: payload.artifact_type(),
//!         payload: payload.to_json()?,
//!         repo_name: "acme/widgets".to_owned(),
//!         valid_for: Duration::from_mins(5),
//!         session: None,
//!         actions: Vec::new(),
//!         edits: Vec::new(),
//!         to: Audience::everybody(),
//!     };
//!     let decision = enforcer.ask(&draft, pins).await?;
//!     Ok(decision.outcome == DecisionOutcome::Approve)
//! }
//! ```

#![warn(missing_docs)]

mod checks;
pub mod clock;
mod json;
mod platform;
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
pub use exchange::{audience, edit, effect_hash, grant, reply, request, seal, taken};
pub use gateway::{http, join, trouble};
pub use identity::{keys, lock, pairing, profile};
pub use reports::{bundle, history, receipt, session};
