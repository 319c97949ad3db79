//! The socket over which a hook asks a keeper: one question, one verdict.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | what travels | [`frames`] |
//! | the root and the folder of the caller beside it | [`root`] |
//! | where the socket is, and who is at its other end | [`place`] |
//! | asking, with a deadline | [`client`] |

pub mod frames;
pub mod place;
pub mod root;

pub mod client;
