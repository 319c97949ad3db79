//! A random source for tests that need no seed.

use std::hash::{BuildHasher as _, RandomState};

use countersign_core::random::RandomSource;

/// Different bytes each time, in each process.
#[derive(Debug, Clone, Copy, Default)]
pub struct TestRandom;

impl RandomSource for TestRandom {
    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            // The standard library makes each of these with another key.
            let bytes = RandomState::new().hash_one(0).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
