//! What is asked for: payloads and how they are shown, and which commands a pattern covers.

pub mod pattern;
pub mod payload;
pub mod shell;
