//! How long a key or an invitation is valid, as people type it.

use std::time::Duration;

/// How long something is valid: a whole number and its unit, at least a second and at most a hundred years.
pub(super) fn life(text: &str) -> Result<Duration, String> {
    let rule = || "must be a whole number of s, m, h or d, from 1s to 36500d".to_owned();
    let (count, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(rule)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(rule()),
    };
    if !count.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(rule());
    }
    let life =
        count.parse::<u64>().ok().and_then(|count| count.checked_mul(seconds)).map(Duration::from_secs);
    life.filter(|life| (Duration::from_secs(1)..=Duration::from_hours(36_500 * 24)).contains(life))
        .ok_or_else(rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_a_number_and_a_unit() {
        for (text, seconds) in [("1s", 1), ("90m", 5_400), ("12h", 43_200), ("7d", 604_800)] {
            assert_eq!(life(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "d", "7", "0d", "-1d", "+1d", "1.5h", "1 d", "36501d", "99999999999999999999d", "1ä", "7D"]
        {
            life(text).unwrap_err();
        }
    }
}
