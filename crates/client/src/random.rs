//! Randomness of the operating system: the only place that asks for it.

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

/// A random id: a UUID of version 4 (RFC 9562), with 122 random bits. One of version 7 would begin with the time, and
/// people who compare the beginnings of two ids would take them for one.
pub(crate) fn id() -> Result<String, NoRandomness> {
    Ok(uuid_v4(bytes()?))
}

fn uuid_v4(random: [u8; 16]) -> String {
    let (version, variant) = (0xf << 76, 0b11 << 62);
    let bits = u128::from_be_bytes(random) & !(version | variant) | 4 << 76 | 0b10 << 62;
    let hex = format!("{bits:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
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
    fn an_id_is_a_uuid_of_version_4_in_lower_case() {
        assert_eq!(uuid_v4([0; 16]), "00000000-0000-4000-8000-000000000000");
        assert_eq!(uuid_v4([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        let bytes: [u8; 16] = std::array::from_fn(|index| 0x10 + u8::try_from(index).unwrap());
        assert_eq!(uuid_v4(bytes), "10111213-1415-4617-9819-1a1b1c1d1e1f");
        assert_ne!(id().unwrap(), id().unwrap());
    }
}
