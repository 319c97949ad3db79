//! Looks whether everything is as it should be, and says what to do where it is not.
//!
//! | to find | look in |
//! |---|---|
//! | what was looked at, and what came out | [`report`] |
//! | profiles, their gateways, keys and clocks | [`profiles`] |
//! | the hosts in which the hook is installed | [`hosts`], [`versions`] |

pub mod report;
pub mod versions;

pub mod hosts;
pub mod profiles;
