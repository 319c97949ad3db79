//! Canonical form: RFC 8785 (JCS).
//!
//! Members sorted by UTF-16 code units, numbers as ECMAScript writes them, no white space, no Unicode
//! normalisation, `null` members kept. An integer literal outside ±(2^53−1) is rejected: RFC 8785
//! rounds it to a double, so two texts that some parsers distinguish would have the same hash.

use serde_json::Value;

use crate::{Error, RawObject, strict};

/// The canonical form of an untrusted text.
///
/// ```
/// let canonical = countersign_wire::canonical::form(br#"{ "b": 1.50, "a": null }"#)?;
/// assert_eq!(canonical, br#"{"a":null,"b":1.5}"#);
/// # Ok::<(), countersign_wire::Error>(())
/// ```
pub fn form(text: &[u8]) -> Result<Vec<u8>, Error> {
    let value = strict::check(text)?;
    write(&read(value.get())?)
}

/// The canonical form of `object` without its member `name`: what hashes and signatures cover.
pub fn form_without(object: RawObject<'_>, name: &str) -> Result<Vec<u8>, Error> {
    let mut value = read(object.as_str())?;
    if let Value::Object(members) = &mut value {
        members.remove(name);
    }
    write(&value)
}

/// Rejects an object with an integer that parsers could round differently.
pub fn refuse_unsafe_integers(object: RawObject<'_>) -> Result<(), Error> {
    if has_unsafe_integer(object.as_str()) { Err(Error::UnsafeInteger) } else { Ok(()) }
}

fn read(strict_text: &str) -> Result<Value, Error> {
    if has_unsafe_integer(strict_text) {
        return Err(Error::UnsafeInteger);
    }
    let mut reader = serde_json::Deserializer::from_str(strict_text);
    // Strict texts are at most 128 levels deep, one more than the parser's own limit.
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader).map_err(|error| strict::syntax_fault(&error).into())
}

fn write(value: &Value) -> Result<Vec<u8>, Error> {
    serde_json_canonicalizer::to_vec(value).map_err(|error| strict::syntax_fault(&error).into())
}

/// Checks every number of a strict text that is written as an integer.
fn has_unsafe_integer(strict_text: &str) -> bool {
    const LARGEST_SAFE: u64 = (1 << 53) - 1;
    let bytes = strict_text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = after_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let length = bytes[at..].iter().take_while(|byte| is_of_number(**byte)).count();
                let number = &strict_text[at..at + length];
                let is_integer = !number.contains(['.', 'e', 'E']);
                // Digits that overflow 64 bits do not parse, and are not safe either.
                let magnitude = number.trim_start_matches('-').parse::<u64>();
                let is_safe = magnitude.is_ok_and(|magnitude| magnitude <= LARGEST_SAFE);
                if is_integer && !is_safe {
                    return true;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    false
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// The index after the string that opens at `at`.
fn after_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}
