//! The operating system's randomness.

use countersign_core::random::RandomSource;

/// The operating system's randomness.
#[derive(Debug, Clone, Copy)]
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    fn fill(&self, buffer: &mut [u8]) {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's randomness")]
        let filled = getrandom::fill(buffer);
        if let Err(error) = filled {
            // Without randomness no id and no key can be made: stop rather than make weak ones.
            unreachable!("the operating system has no randomness: {error}");
        }
    }
}
