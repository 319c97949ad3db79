//! Finding a text in a line.

use std::ops::Range;

/// Where a text occurs in another. Capital letters count only if the text that is looked for has some.
pub fn matches<'a>(text: &'a str, query: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let is_exact = query.chars().any(char::is_uppercase);
    let wanted: Vec<char> = query.chars().collect();
    let same = move |one: char, other: char| {
        one == other || (!is_exact && one.to_lowercase().eq(other.to_lowercase()))
    };
    let mut from = 0;
    std::iter::from_fn(move || {
        while let Some(first) = text[from..].chars().next() {
            let start = from;
            from += first.len_utf8();
            let mut rest = text[start..].char_indices();
            let end = wanted.iter().try_fold(start, |_, wanted| {
                let (offset, char) = rest.next()?;
                same(char, *wanted).then_some(start + offset + char.len_utf8())
            });
            if let Some(end) = end.filter(|end| *end > start) {
                from = end;
                return Some(start..end);
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_count_only_if_some_are_looked_for() {
        let found = |text: &str, query: &str| {
            let found: Vec<String> =
                matches(text, query).map(|found| format!("{}-{}", found.start, found.end)).collect();
            found.join(" ")
        };
        assert_eq!(found("aA a", "a"), "0-1 1-2 3-4");
        assert_eq!(found("aA a", "A"), "1-2");
        assert_eq!(found("Straße STRASSE", "straß"), "0-6");
        assert_eq!(found("aaa", "aa"), "0-2");
        assert_eq!(found("abc", "") + &found("", "a") + &found("ab", "abc"), "");
    }
}
