//! How nodes recognise each other.

/// Names one attachment of a node to the doorbell: random, so that no key is ever used twice.
pub type Session = [u8; 16];

/// What a node asks another to repeat, which proves that it runs now.
pub type Challenge = [u8; 16];
