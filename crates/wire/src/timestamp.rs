//! Points in time in the format of RFC 3339.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{Rule, written::written_as_string};

/// A point in time to the microsecond, from the year 0 to the year 9999.
///
/// Finer fractions are truncated, so that an expiry is never later than it was written and every store keeps the
/// same value. The text is in UTC with as few digits as possible.
///
/// ```
/// use countersign_wire::timestamp::Timestamp;
///
/// let expires_at: Timestamp = "2026-02-21T13:10:00.5+01:00".parse()?;
/// assert_eq!(expires_at.to_string(), "2026-02-21T12:10:00.5Z");
/// # Ok::<(), countersign_wire::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    unix_micros: i64,
}

impl Timestamp {
    /// The earliest representable time, 0000-01-01T00:00:00Z.
    pub const MIN: Self = Self { unix_micros: -62_167_219_200_000_000 };
    /// The latest representable time, 9999-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self { unix_micros: 253_402_300_799_999_999 };

    /// From microseconds since 1970-01-01T00:00:00Z, clamped to the range from [`Timestamp::MIN`] to
    /// [`Timestamp::MAX`], without an error.
    pub fn from_unix_micros(unix_micros: i64) -> Self {
        Self { unix_micros: unix_micros.clamp(Self::MIN.unix_micros, Self::MAX.unix_micros) }
    }

    /// Microseconds since 1970-01-01T00:00:00Z; negative before that.
    pub fn unix_micros(self) -> i64 {
        self.unix_micros
    }

    /// The time `duration` later, at most [`Timestamp::MAX`].
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_unix_micros(self.unix_micros.saturating_add(micros))
    }

    /// The time `duration` earlier, at least [`Timestamp::MIN`].
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        Self::from_unix_micros(self.unix_micros.saturating_sub(micros))
    }
}

impl Timestamp {
    /// How much later this is than `earlier`; zero if it is not later.
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.unix_micros.saturating_sub(earlier.unix_micros);
        Duration::from_micros(u64::try_from(micros).unwrap_or_default())
    }
}

impl FromStr for Timestamp {
    type Err = Rule;

    fn from_str(text: &str) -> Result<Self, Rule> {
        const RULE: Rule = Rule("is not an RFC 3339 date and time");
        // The parser accepts any character between date and time.
        if !matches!(text.as_bytes().get(10), Some(b'T' | b't')) {
            return Err(RULE);
        }
        let parsed = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| RULE)?;
        let unix_micros = parsed.unix_timestamp_nanos().div_euclid(1_000);
        let in_range = i128::from(Self::MIN.unix_micros)..=i128::from(Self::MAX.unix_micros);
        match i64::try_from(unix_micros) {
            Ok(unix_micros) if in_range.contains(&i128::from(unix_micros)) => Ok(Self { unix_micros }),
            _ => Err(Rule("is outside the years 0 to 9999")),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.unix_micros) * 1_000)
            .map_err(|_| fmt::Error)?
            .format(&Rfc3339)
            .map_err(|_| fmt::Error)?;
        f.write_str(&written)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.collect_str(self)
    }
}

written_as_string!(Timestamp);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3339_forms_are_accepted_and_written_in_utc() {
        for (text, written) in [
            ("2026-02-21T12:00:00Z", "2026-02-21T12:00:00Z"),
            ("2026-02-21t12:00:00z", "2026-02-21T12:00:00Z"),
            ("2026-02-21T12:00:00+00:00", "2026-02-21T12:00:00Z"),
            ("2026-02-21T12:00:00-00:00", "2026-02-21T12:00:00Z"),
            ("2026-02-21T00:30:00+01:00", "2026-02-20T23:30:00Z"),
            ("2026-02-21T12:00:00.120Z", "2026-02-21T12:00:00.12Z"),
            ("2026-02-21T12:00:00.123456789123Z", "2026-02-21T12:00:00.123456Z"),
            ("1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"),
            ("2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"),
            ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999999Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z"),
        ] {
            let parsed: Timestamp = text.parse().unwrap_or_else(|rule| panic!("{text}: {rule}"));
            assert_eq!(parsed.to_string(), written, "{text}");
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "2026-02-21",
            "2026-02-21T12:00Z",
            "2026-02-21T12:00:00",
            "2026-02-21 12:00:00Z",
            "2026-02-21_12:00:00Z",
            "20260221T120000Z",
            "2026-02-21T12:00:00+01",
            "2026-02-21T12:00:00+0100",
            "2026-02-21T12:00:00+25:00",
            "2026-02-21T12:00:00,5Z",
            "2026-02-21T12:00:00.Z",
            "2026-02-21T24:00:00Z",
            "2026-02-21T12:60:00Z",
            "2026-02-21T12:00:61Z",
            "2026-02-21T12:00:60Z",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-02-21T12:00:00Z ",
            " 2026-02-21T12:00:00Z",
            "2026-02-21T12:00:00Z[Europe/Berlin]",
            "+2026-02-21T12:00:00Z",
            "-0001-02-21T12:00:00Z",
            "10000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "0000-01-01T00:00:00+01:00",
            "２026-02-21T12:00:00Z",
            "now",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        assert_eq!(Timestamp::MAX.plus(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::from_unix_micros(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::from_unix_micros(0).plus(Duration::from_millis(2)).unix_micros(), 2_000);
    }

    #[test]
    fn bounds_are_what_they_say() {
        assert_eq!(Timestamp::MIN.to_string(), "0000-01-01T00:00:00Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-31T23:59:59.999999Z");
    }
}
