//! Randomness of the operating system: the only place that asks for it.

use countersign_wire::base64url;
use zeroize::Zeroizing;

/// The operating system has no randomness to give. Nothing may go on without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system provides no randomness")]
pub struct NoRandomness;

#[expect(clippy::disallowed_methods, reason = "the only place")]
fn fill(bytes: &mut [u8]) -> Result<(), NoRandomness> {
    getrandom::fill(bytes).map_err(|_| NoRandomness)
}

/// Random bytes, for public values such as nonces.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// A random id of 128 bits. It does not begin with a hyphen: people give ids to commands, which would take it for an option.
pub(crate) fn id() -> Result<String, NoRandomness> {
    loop {
        let id = base64url::encode(&bytes::<16>()?);
        if !id.starts_with('-') {
            return Ok(id);
        }
    }
}

/// Random bytes that are wiped from memory when dropped.
pub(crate) fn secret<const N: usize>() -> Result<Zeroizing<[u8; N]>, NoRandomness> {
    let mut bytes = Zeroizing::new([0; N]);
    fill(bytes.as_mut_slice())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_looks_like_an_option() {
        assert!((0..2_000).all(|_| !id().unwrap().starts_with('-')));
    }
}
