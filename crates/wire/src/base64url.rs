//! base64url without padding, canonical trailing bits only: one text per byte string.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Encodes without padding.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes a text of exactly `N` bytes.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode_all(text)?.try_into().ok()
}

/// Decodes a text of any length.
pub fn decode_all(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_per_byte_string() {
        assert_eq!(decode::<1>("_w"), Some([0xff]));
        for other in ["_w==", "_x", "/w", "_w\n", " _w", "_", "", "_wA"] {
            assert_eq!(decode::<1>(other), None, "{other:?}");
        }
    }
}
