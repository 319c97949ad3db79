//! What nodes say to each other, without its seal: whatever is accepted has exactly one form.

#![no_main]

use libfuzzer_sys::fuzz_target;

// The files themselves and not their crate, which would bring a client of NATS into every target.
#[path = "../../crates/doorbell-nats/src/format/mod.rs"]
#[expect(dead_code, unused_imports, unreachable_pub, reason = "only decoding and encoding are fuzzed")]
mod format;

use format::{NodeMessage, RingBatch};

fuzz_target!(|data: &[u8]| {
    let Some((which, message)) = data.split_first() else { return };
    if which % 2 == 0 {
        if let Ok(batch) = RingBatch::decode(message) {
            assert_eq!(batch.encode().expect("what was read can be written"), message);
        }
    } else if let Ok(to_node) = NodeMessage::decode(message) {
        assert_eq!(to_node.encode().expect("what was read can be written"), message);
    }
});
