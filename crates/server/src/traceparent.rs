//! `traceparent` of W3C Trace Context: which trace a request belongs to. Nothing of it is stored.

use std::fmt;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Version, trace id, span id, flags, and three hyphens.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

/// A span of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace_id: u128,
    pub(crate) span_id: u64,
    pub(crate) is_sampled: bool,
}

impl TraceParent {
    /// The one in the headers; `None` if there is none, or several, or it is malformed.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut all = headers.get_all(TRACEPARENT).iter();
        let only = all.next().filter(|_| all.next().is_none())?;
        Self::parse(only.to_str().ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (known, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = known.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let span_id = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = hex(parts.next()?, 2)?;
        // Later versions may have more after a further hyphen.
        let is_complete = rest.is_empty() || version > 0 && rest.starts_with('-');
        let is_valid = parts.next().is_none() && is_complete && version != 0xff;
        (is_valid && trace_id != 0 && span_id != 0).then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
        })
    }

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.to_string()).ok()
    }

    /// The trace's id as it is written.
    pub(crate) fn trace(&self) -> impl fmt::Display + use<> {
        let trace_id = self.trace_id;
        fmt::from_fn(move |f| write!(f, "{trace_id:032x}"))
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, span_id, is_sampled } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(*is_sampled))
    }
}

/// So many lower-case hex digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u128::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_written_is_what_was_read() {
        let parsed = TraceParent::parse(VALID).unwrap();
        assert!(parsed.is_sampled);
        assert_eq!(parsed.to_string(), VALID);
        assert_eq!(parsed.trace().to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let unsampled = VALID.replace("-01", "-00");
        assert_eq!(TraceParent::parse(&unsampled).unwrap().to_string(), unsampled);
        // A later version, and what it may add, is read as this one.
        assert_eq!(TraceParent::parse(&VALID.replacen("00", "cc", 1)), Some(parsed));
        assert_eq!(TraceParent::parse(&(VALID.replacen("00", "cc", 1) + "-more")), Some(parsed));
    }

    #[test]
    fn what_is_malformed_is_ignored() {
        for malformed in [
            "",
            "00",
            &VALID[1..],
            &VALID.to_uppercase(),
            &VALID.replacen("00", "ff", 1),
            &VALID.replacen("00", "0+", 1),
            &VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &VALID.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &VALID.replace("4bf9", "4bfx"),
            &VALID.replace('-', "_"),
            &(VALID.to_owned() + "-more"),
            &(VALID.to_owned() + "0"),
            &"é".repeat(28),
        ] {
            assert_eq!(TraceParent::parse(malformed), None, "{malformed}");
        }
        let mut headers = HeaderMap::new();
        headers.append(TRACEPARENT, HeaderValue::from_static(VALID));
        assert!(TraceParent::of(&headers).is_some());
        headers.append(TRACEPARENT, HeaderValue::from_static(VALID));
        assert_eq!(TraceParent::of(&headers), None, "two contradict each other");
    }
}
