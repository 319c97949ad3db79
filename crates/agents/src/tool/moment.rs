//! Times as people read them.

use std::time::Duration;

use countersign_wire::timestamp::Timestamp;

/// The time of day, such as `12:01:03`, in UTC as all times of the tool are.
pub fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('T').map_or(text.clone(), |(_, time)| time.chars().take(8).collect())
}

/// When something happened: the time of day if that is today, else the date too, such as `14 Nov, 12:01`.
pub fn when(at: Timestamp, now: Timestamp) -> String {
    let (text, now) = (at.to_string(), now.to_string());
    match text.get(..10) == now.get(..10) {
        true => clock(at),
        false => date(at, text.get(..4) != now.get(..4)),
    }
}

/// A date and a time to the minute, such as `14 Nov 2026, 12:01`.
pub fn date_and_time(at: Timestamp) -> String {
    date(at, true)
}

fn date(at: Timestamp, with_year: bool) -> String {
    let text = at.to_string();
    let part = |range| text.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().ok().and_then(|month| MONTHS.get(month.checked_sub(1)?));
    let year = if with_year { format!(" {}", part(0..4)) } else { String::new() };
    format!("{} {}{year}, {}", part(8..10).trim_start_matches('0'), month.unwrap_or(&"?"), part(11..16))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A duration in its two largest units, such as `9:41` for minutes and seconds or `2 h 5 min`.
pub fn left(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

/// A duration in its largest unit that leaves no rest, such as `8 h`.
pub fn whole(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "days"), (3_600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size));
    let (size, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", seconds / size)
}

/// How long something is valid: a whole number and its unit, at least a second and at most thirty days.
pub fn duration(text: &str) -> Result<Duration, String> {
    let rule = || "must be a whole number of s, m, h or d, such as 10m, and at most 30d".to_owned();
    let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(rule)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(rule()),
    };
    let count: u32 = count.parse().map_err(|_| rule())?;
    let duration = Duration::from_secs(u64::from(count) * seconds);
    match (Duration::from_secs(1)..=Duration::from_hours(30 * 24)).contains(&duration) {
        true => Ok(duration),
        false => Err(rule()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(clock("2026-11-15T12:01:03.25Z".parse().unwrap()), "12:01:03");
        for (seconds, text) in [(0, "0:00"), (581, "9:41"), (7_500, "2 h 5 min"), (180_000, "2 d 2 h")] {
            assert_eq!(left(Duration::from_secs(seconds)), text);
        }
        for (seconds, text) in
            [(0, "0 s"), (90, "90 s"), (600, "10 min"), (28_800, "8 h"), (2_592_000, "30 days")]
        {
            assert_eq!(whole(Duration::from_secs(seconds)), text);
        }
        let now = "2026-11-15T00:01:00Z".parse().unwrap();
        for (at, text) in [
            ("2026-11-15T00:00:09Z", "00:00:09"),
            ("2026-11-14T23:59:00Z", "14 Nov, 23:59"),
            ("2026-01-02T08:05:00Z", "2 Jan, 08:05"),
            ("2025-12-31T23:59:59Z", "31 Dec 2025, 23:59"),
            ("2026-11-16T10:00:00Z", "16 Nov, 10:00"),
        ] {
            assert_eq!(when(at.parse().unwrap(), now), text);
        }
        assert_eq!(date_and_time("2026-11-15T12:01:03Z".parse().unwrap()), "15 Nov 2026, 12:01");
        assert_eq!(duration("10m"), Ok(Duration::from_mins(10)));
        for wrong in ["", "m", "10", "0s", "31d", "-1m", "1.5h", "1ä"] {
            duration(wrong).unwrap_err();
        }
    }
}
