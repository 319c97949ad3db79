//! Canonical form: RFC 8785 (JCS).
//!
//! Members sorted by UTF-16 code units, numbers as ECMAScript writes them, no white space, no Unicode
//! normalisation, `null` members kept. Written straight from the text, without a tree: a tree of a few megabytes of
//! tiny members takes a hundred times their size.
//!
//! Where a hash is recomputed or a signature verified, a number whose value is outside ±(2^53−1) is rejected, however it
//! is spelled: RFC 8785 rounds it to a double, so two texts that some parsers distinguish would have the same hash. And
//! so canonical text can always be sent again: it has no number that is rejected.

use crate::{Error, RawObject, strict};

/// The canonical form of an untrusted text, whatever its numbers are: RFC 8785 and no more. For recognising equal
/// objects; what others hash is [`form_without`].
///
/// ```
/// let canonical = countersign_wire::canonical::form(br#"{ "b": 1.50, "a": null }"#)?;
/// assert_eq!(canonical, br#"{"a":null,"b":1.5}"#);
/// # Ok::<(), countersign_wire::Error>(())
/// ```
pub fn form(text: &[u8]) -> Result<Vec<u8>, Error> {
    write(strict::check(text)?.get(), &[], Numbers::Any)
}

/// The canonical form of `object` without its member `name`: what hashes and signatures cover. Rejects numbers outside
/// ±(2^53−1).
pub fn form_without(object: RawObject<'_>, name: &str) -> Result<Vec<u8>, Error> {
    form_without_paths(object, &[&[name]])
}

/// As [`form_without`], without several members: each is named by the members on the way to it. An object whose last member
/// is left out stays, empty.
///
/// ```
/// # use countersign_wire::{RawObject, canonical::form_without_paths};
/// let object = RawObject::parse(br#"{ "b": { "c": 1 }, "a": 2, "d": 3 }"#)?;
/// assert_eq!(form_without_paths(object, &[&["b", "c"], &["a"]])?, br#"{"b":{},"d":3}"#);
/// # Ok::<(), countersign_wire::Error>(())
/// ```
pub fn form_without_paths(object: RawObject<'_>, paths: &[&[&str]]) -> Result<Vec<u8>, Error> {
    write(object.as_str(), paths, Numbers::Safe)
}

/// Which numbers are accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Those within ±(2^53−1).
    Safe,
    Any,
}

fn write(strict_text: &str, without: &[&[&str]], numbers: Numbers) -> Result<Vec<u8>, Error> {
    let mut writer = Writer {
        text: strict_text,
        at: 0,
        numbers,
        out: Vec::with_capacity(strict_text.len()),
        members: Vec::new(),
        sorted: Vec::new(),
    };
    writer.value(without)?;
    Ok(writer.out)
}

/// A member that has been written: where it and its name are in the output.
#[derive(Clone, Copy)]
struct Member {
    start: usize,
    name_end: usize,
    end: usize,
}

/// Reads a text that is known to be strict JSON from left to right, and writes its canonical form. Members of an object
/// are written as they come, and put in order when the object ends.
struct Writer<'t> {
    text: &'t str,
    at: usize,
    numbers: Numbers,
    out: Vec<u8>,
    /// The members of all objects that are open, the innermost last.
    members: Vec<Member>,
    /// Room for putting members in order.
    sorted: Vec<u8>,
}

impl Writer<'_> {
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while matches!(bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or_default()
    }

    /// One value; of an object, without the members at these paths.
    fn value(&mut self, without: &[&[&str]]) -> Result<(), Error> {
        match self.peek() {
            b'{' => self.object(without),
            b'[' => self.array(),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let length = self.text.as_bytes()[self.at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphabetic())
                    .count();
                self.copy(length.max(1));
                Ok(())
            }
        }
    }

    fn copy(&mut self, length: usize) {
        let end = (self.at + length).min(self.text.len());
        self.out.extend_from_slice(&self.text.as_bytes()[self.at..end]);
        self.at = end;
    }

    fn array(&mut self) -> Result<(), Error> {
        self.at += 1;
        self.out.push(b'[');
        loop {
            match self.peek() {
                b']' => {
                    self.copy(1);
                    return Ok(());
                }
                b',' => self.copy(1),
                // The text is strict JSON; this only keeps a mistake of ours from looping.
                0 => return Err(strict::unfinished().into()),
                _ => self.value(&[])?,
            }
        }
    }

    fn object(&mut self, without: &[&[&str]]) -> Result<(), Error> {
        self.at += 1;
        self.out.push(b'{');
        let (first, from) = (self.members.len(), self.out.len());
        loop {
            match self.peek() {
                b'}' => break,
                b',' => self.at += 1,
                0 => return Err(strict::unfinished().into()),
                _ => {
                    let start = self.out.len();
                    self.string()?;
                    let name_end = self.out.len();
                    let name = &self.out[start..name_end];
                    let is_left_out =
                        without.iter().any(|path| matches!(path, [last] if is_name(name, last)));
                    let inside = without.iter().filter_map(|path| match path {
                        [first, rest @ ..] if !rest.is_empty() && is_name(name, first) => Some(rest),
                        _ => None,
                    });
                    // There are none nearly always, which allocates nothing.
                    let inside: Vec<&[&str]> = inside.collect();
                    self.peek();
                    self.at += 1;
                    self.out.push(b':');
                    self.value(&inside)?;
                    match is_left_out {
                        true => self.out.truncate(start),
                        false => self.members.push(Member { start, name_end, end: self.out.len() }),
                    }
                }
            }
        }
        self.at += 1;
        self.put_in_order(first, from);
        self.out.push(b'}');
        Ok(())
    }

    /// Orders the members that were written from `from` on, and separates them.
    fn put_in_order(&mut self, first: usize, from: usize) {
        let Self { out, members, sorted, .. } = self;
        let own = &mut members[first..];
        let name = |member: &Member| &out[member.start..member.name_end];
        if !own.is_sorted_by(|a, b| compare_names(name(a), name(b)).is_lt()) {
            own.sort_unstable_by(|a, b| compare_names(name(a), name(b)));
        }
        sorted.clear();
        for (index, member) in own.iter().enumerate() {
            if index > 0 {
                sorted.push(b',');
            }
            sorted.extend_from_slice(&out[member.start..member.end]);
        }
        out.truncate(from);
        out.extend_from_slice(sorted);
        members.truncate(first);
    }

    fn string(&mut self) -> Result<(), Error> {
        let bytes = self.text.as_bytes();
        let (start, mut end, mut escaped) = (self.at, self.at + 1, false);
        while end < bytes.len() && bytes[end] != b'"' {
            escaped |= bytes[end] == b'\\';
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let literal = self.text.get(start..=end).ok_or_else(strict::unfinished)?;
        if escaped {
            let decoded: String =
                serde_json::from_str(literal).map_err(|error| strict::syntax_fault(&error))?;
            serde_json::to_writer(&mut self.out, &decoded).map_err(|error| strict::syntax_fault(&error))?;
        } else {
            // Without escapes a string has no control characters, and is canonical.
            self.out.extend_from_slice(literal.as_bytes());
        }
        self.at = end + 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), Error> {
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|byte| is_of_number(**byte)).count();
        let literal = &self.text[self.at..self.at + length];
        let digits = literal.strip_prefix('-').unwrap_or(literal);
        // Up to 15 digits are an exact integer and canonical as they are written, except -0.
        if length <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit()) && literal != "-0" {
            self.copy(length);
            return Ok(());
        }
        if self.numbers == Numbers::Safe && !is_safe(digits) {
            return Err(Error::UnsafeInteger);
        }
        let value: f64 = literal.parse().map_err(|_| strict::unfinished())?;
        self.out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
        self.at += length;
        Ok(())
    }
}

/// Whether the value of an unsigned literal is at most 2^53−1. By its digits and not as a double, which would round
/// 9007199254740991.4 to a safe number.
fn is_safe(literal: &str) -> bool {
    const LIMIT: &str = "9007199254740991";
    let (mantissa, exponent) = literal.split_once(['e', 'E']).unwrap_or((literal, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, fraction].concat();
    let leading_zeros = digits.bytes().take_while(|digit| *digit == b'0').count();
    let significant = &digits[leading_zeros..];
    if significant.is_empty() {
        return true;
    }
    // An exponent that is no i64 is far above or far below everything.
    let Ok(exponent) = exponent.trim_start_matches('+').parse::<i64>() else {
        return exponent.starts_with('-');
    };
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let leading_zeros = i64::try_from(leading_zeros).unwrap_or(i64::MAX);
    let integer_digits = length(whole).saturating_sub(leading_zeros).saturating_add(exponent);
    match integer_digits.cmp(&length(LIMIT)) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => {
            let integer = &significant[..significant.len().min(LIMIT.len())];
            let rest = &significant[integer.len()..];
            let padded = format!("{integer:0<16}");
            padded.as_str() < LIMIT || padded == LIMIT && rest.bytes().all(|digit| digit == b'0')
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// Whether a canonical string literal is this name.
fn is_name(literal: &[u8], name: &str) -> bool {
    literal.len() == name.len() + 2 && &literal[1..literal.len() - 1] == name.as_bytes()
}

/// Compares two canonical string literals by the UTF-16 code units of what they say.
fn compare_names(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let is_plain = |literal: &[u8]| literal.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
    if is_plain(a) && is_plain(b) {
        // Without the closing quote, which would sort after a space and an exclamation mark.
        return a[..a.len() - 1].cmp(&b[..b.len() - 1]);
    }
    utf16_units(a).cmp(utf16_units(b))
}

/// The UTF-16 code units of what a canonical string literal says, decoded as they are read: sorting asks often, and
/// nothing is allocated for it.
fn utf16_units(literal: &[u8]) -> impl Iterator<Item = u16> {
    let text = std::str::from_utf8(&literal[1..literal.len() - 1]).unwrap_or_default();
    let mut units = text.encode_utf16();
    std::iter::from_fn(move || {
        let unit = units.next()?;
        if unit != u16::from(b'\\') {
            return Some(unit);
        }
        // Canonical text escapes only the quote, the backslash and control characters.
        let escape = units.next()?;
        match u8::try_from(escape) {
            Ok(b'b') => Some(0x08),
            Ok(b't') => Some(0x09),
            Ok(b'n') => Some(0x0a),
            Ok(b'f') => Some(0x0c),
            Ok(b'r') => Some(0x0d),
            Ok(b'u') => (0..4).try_fold(0, |value, _| {
                let digit = char::from_u32(u32::from(units.next()?))?.to_digit(16)?;
                Some(value << 4 | u16::try_from(digit).ok()?)
            }),
            _ => Some(escape),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_of_the_safe_range_is_rejected_however_it_is_spelled() {
        for unsafe_number in [
            "9007199254740992",
            "9007199254740993",
            "-9007199254740993",
            "9007199254740993.0",
            "9007199254740991.4",
            "9.0071992547409914e15",
            "90071992547409920e-1",
            "1e20",
            "1E+20",
            "0.1e21",
            "100000000000000000000",
            "1e16",
        ] {
            let text = format!("{{\"n\":[{unsafe_number}]}}");
            let object = RawObject::parse(text.as_bytes()).unwrap();
            assert_eq!(form_without(object, "hash"), Err(Error::UnsafeInteger), "{unsafe_number}");
            assert!(form(text.as_bytes()).is_ok(), "{unsafe_number}");
        }
        for (safe, canonical) in [
            ("9007199254740991", "9007199254740991"),
            ("-9007199254740991.000", "-9007199254740991"),
            ("90071992547409910e-1", "9007199254740991"),
            ("9.007199254740991e15", "9007199254740991"),
            ("0e99999999999999999999", "0"),
            ("1e-99999999999999999999", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1e15", "1000000000000000"),
            ("0.000001", "0.000001"),
            ("1e-7", "1e-7"),
            ("4.50", "4.5"),
        ] {
            let text = format!("{{\"n\":{safe},\"hash\":0}}");
            let object = RawObject::parse(text.as_bytes()).unwrap();
            let written = String::from_utf8(form_without(object, "hash").unwrap()).unwrap();
            assert_eq!(written, format!("{{\"n\":{canonical}}}"), "{safe}");
        }
    }

    #[test]
    fn members_are_ordered_by_utf16_at_every_level() {
        let text =
            r#"{"\u20ac":1,"a":{"z":[],"a\"":2,"a!":3,"a":4},"\ud83d\ude00":5,"\ufb33":6,"1":{},"\r":7}"#;
        let canonical = "{\"\\r\":7,\"1\":{},\"a\":{\"a\":4,\"a!\":3,\"a\\\"\":2,\"z\":[]},\"€\":1,\"😀\":5,\"\u{fb33}\":6}";
        assert_eq!(String::from_utf8(form(text.as_bytes()).unwrap()).unwrap(), canonical);
    }

    #[test]
    fn names_are_compared_by_what_they_say() {
        let units: Vec<u32> = (0..0x60).chain([0x7f, 0xe9, 0x20ac, 0xd7ff, 0xfb33, 0x1_f600]).collect();
        let names: Vec<String> = units
            .iter()
            .filter_map(|unit| char::from_u32(*unit))
            .flat_map(|letter| [letter.to_string(), format!("a{letter}z"), format!("a{letter}")])
            .collect();
        for a in &names {
            for b in &names {
                let literal = |name| serde_json::to_vec(name).unwrap();
                let expected = a.encode_utf16().cmp(b.encode_utf16());
                assert_eq!(compare_names(&literal(a), &literal(b)), expected, "{a:?} {b:?}");
            }
        }
    }
}
