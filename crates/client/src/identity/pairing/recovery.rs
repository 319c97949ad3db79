//! The recovery code: the seed of keys that are vouched for when a person joins, and that vouch once for a new device.

use std::{fmt, str::FromStr};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use crate::{
    identity::keys::DeviceKeys,
    random::{self, NoRandomness},
};

/// Crockford's alphabet: no letter looks like a digit or another letter.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// 128 random bits and a checksum, shown once as seven groups of four characters. Whoever has it can vouch for a device,
/// once.
pub struct RecoveryCode(Zeroizing<[u8; 16]>);

/// The text is not a recovery code: a character is missing or wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a recovery code: check every character")]
pub struct NotARecoveryCode;

impl RecoveryCode {
    /// A new code, to be shown once.
    pub fn generate() -> Result<Self, NoRandomness> {
        random::secret().map(Self)
    }

    /// The keys behind the code, always the same.
    pub fn keys(&self) -> Option<DeviceKeys> {
        let mut secret = Zeroizing::new([0; DeviceKeys::SECRET_BYTES]);
        for (half, purpose) in secret.chunks_exact_mut(32).zip(["signing", "agreement"]) {
            let mut mac = Hmac::<Sha256>::new_from_slice(self.0.as_slice()).ok()?;
            mac.update(b"countersign recovery v1 ");
            mac.update(purpose.as_bytes());
            half.copy_from_slice(&mac.finalize().into_bytes());
        }
        DeviceKeys::from_secret(&secret)
    }

    /// 128 bits and 12 bits of checksum: 28 characters of five bits.
    fn number(&self) -> Zeroizing<[u8; 18]> {
        let mut bytes = Zeroizing::new([0; 18]);
        bytes[..16].copy_from_slice(self.0.as_slice());
        let checksum = Sha256::digest(self.0.as_slice());
        bytes[16] = checksum[0];
        bytes[17] = checksum[1] & 0xf0;
        bytes
    }
}

impl fmt::Display for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        for position in 0..28 {
            if position > 0 && position % 4 == 0 {
                f.write_str("-")?;
            }
            let (byte, bit) = (position * 5 / 8, position * 5 % 8);
            let pair = u16::from(number[byte]) << 8 | number.get(byte + 1).copied().map_or(0, u16::from);
            let digit = usize::from(pair >> (11 - bit) & 31);
            write!(f, "{}", char::from(ALPHABET[digit]))?;
        }
        Ok(())
    }
}

impl FromStr for RecoveryCode {
    type Err = NotARecoveryCode;

    /// Any case, with or without dashes, spaces and line breaks; `O` is read as 0, `I` and `L` as 1.
    fn from_str(text: &str) -> Result<Self, NotARecoveryCode> {
        let mut number = Zeroizing::new([0_u8; 18]);
        let mut bits = 0;
        for character in text.chars().filter(|it| *it != '-' && !it.is_ascii_whitespace()) {
            let character = match character.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            };
            let digit = ALPHABET.iter().position(|letter| char::from(*letter) == character);
            let digit = digit.and_then(|digit| u16::try_from(digit).ok()).ok_or(NotARecoveryCode)?;
            if bits >= 140 {
                return Err(NotARecoveryCode);
            }
            let (byte, bit) = (bits / 8, bits % 8);
            let [high, low] = (digit << (11 - bit)).to_be_bytes();
            number[byte] |= high;
            if let Some(next) = number.get_mut(byte + 1) {
                *next |= low;
            }
            bits += 5;
        }
        let mut seed = Zeroizing::new([0; 16]);
        seed.copy_from_slice(&number[..16]);
        let code = Self(seed);
        if bits == 140 && *code.number() == *number { Ok(code) } else { Err(NotARecoveryCode) }
    }
}

impl fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecoveryCode(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_as_people_write_it() {
        for _ in 0..200 {
            let code = RecoveryCode::generate().unwrap();
            let text = code.to_string();
            assert_eq!(text.split('-').map(str::len).collect::<Vec<_>>(), [4; 7], "{text}");
            let typed = text.to_lowercase().replace('-', " ").replace('0', "o").replace('1', "l") + "\r\n";
            let read: RecoveryCode = typed.parse().unwrap();
            assert_eq!(read.keys().unwrap().fingerprint(), code.keys().unwrap().fingerprint());
        }
    }

    #[test]
    fn a_wrong_character_is_noticed() {
        let text = RecoveryCode(Zeroizing::new([3; 16])).to_string();
        let mut noticed = 0;
        for position in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            if changed[position] == b'-' {
                continue;
            }
            changed[position] = if changed[position] == b'7' { b'8' } else { b'7' };
            noticed += usize::from(String::from_utf8(changed).unwrap().parse::<RecoveryCode>().is_err());
        }
        assert!(noticed >= 27, "{noticed} of 28");
        for other in ["", "0000", &format!("{text}0"), &text[..text.len() - 1]] {
            assert!(other.parse::<RecoveryCode>().is_err(), "{other}");
        }
    }
}
