//! Looks whether everything is as it should be, and says what to do where it is not.
//!
//! | to find | look in |
//! |---|---|
//! | what was looked at, and what came out | [`report`] |
//! | profiles, their gateways, keys and clocks | [`profiles`] |
//! | the hosts in which the hook is installed | [`hosts`], [`versions`] |
//! | a host that is made to try something harmless | [`canary`], [`model`] |
//! | what an agent can do about its own gate | [`attack`] |
//! | the page that a gateway serves | [`page`] |
//! | what a team sees of the result | [`news`] |

pub mod report;
pub mod versions;

pub mod model;

pub mod canary;
pub mod hosts;
pub mod page;
pub mod profiles;

pub mod attack;
pub mod news;
