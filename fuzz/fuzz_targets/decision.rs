//! A decision verifies only if its canonical form is exactly the one that was signed.

#![no_main]

use std::sync::LazyLock;

use countersign_wire::{decision::Decision, keys::SigningKey, parse};
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_seed(&[7; 32]));
static OTHER_KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::from_seed(&[8; 32]));

fuzz_target!(|data: &[u8]| {
    // The first two bytes choose what to change in the signed text, the rest is a decision.
    let Some((change, text)) = data.split_first_chunk::<2>() else { return };
    let Ok(decision) = parse::<Decision<'_>>(text) else { return };
    // Nothing in the inputs is signed with this key.
    assert!(decision.verify(&OTHER_KEY.verifying_key()).is_err());

    let signed = decision.clone().into_view().sign(&KEY).expect("signable");
    let written = serde_json::to_vec(&signed).unwrap();
    let arrived = parse::<Decision<'_>>(&written).expect("what we write we can read");
    arrived.verify(&KEY.verifying_key()).expect("what we sign we can verify");

    let mut changed = written.clone();
    let place = usize::from(u16::from_le_bytes(*change)) % changed.len();
    changed[place] ^= 1 << (change[0] % 7);
    if let Ok(other) = parse::<Decision<'_>>(&changed)
        && other.verify(&KEY.verifying_key()).is_ok()
    {
        assert_eq!(other.signed_bytes().unwrap(), arrived.signed_bytes().unwrap());
        assert_eq!(other.signature, arrived.signature);
    }
});
