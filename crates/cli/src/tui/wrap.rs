//! Lines as rows of a screen: wrapped, never cut.

use std::ops::Range;

use unicode_width::UnicodeWidthChar as _;

/// The rows of a text that is wrapped at a width, as ranges of bytes. An empty text has one empty row.
///
/// A character that is wider than the width has a row of its own. Marks stay with the letter before them.
pub fn rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let (mut rows, mut start, mut used) = (Vec::new(), 0, 0);
    for (index, char) in text.char_indices() {
        let wide = char.width().unwrap_or(0);
        if wide > 0 && used + wide > width && index > start {
            rows.push(start..index);
            (start, used) = (index, 0);
        }
        used += wide;
    }
    rows.push(start..text.len());
    rows
}

/// The rows of our own sentences, which break after a blank where there is one. Nothing is left out either.
pub fn sentence_rows(text: &str, width: usize) -> Vec<Range<usize>> {
    let (mut result, mut start) = (Vec::new(), 0);
    while start < text.len() {
        let first = rows(&text[start..], width).into_iter().next().unwrap_or_default();
        let mut end = start + first.end;
        if end < text.len()
            && let Some(blank) = text[start..end].rfind(' ')
        {
            end = start + blank + 1;
        }
        result.push(start..end);
        start = end;
    }
    if result.is_empty() {
        result.push(0..0);
    }
    result
}

/// How many columns a text takes.
pub fn columns(text: &str) -> usize {
    text.chars().map(|char| char.width().unwrap_or(0)).sum()
}

/// The beginning of a text that fits into a width, with `…` in place of the rest. Only for lists that lead to the whole
/// text.
pub fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let first = rows(text, width.saturating_sub(1)).into_iter().next().unwrap_or_default();
    match width {
        0 => String::new(),
        1 => "…".to_owned(),
        _ => format!("{}…", &text[first]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<&str> {
        rows(text, width).into_iter().map(|row| &text[row]).collect()
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_too_wide() {
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("abcdef", 3), ["abc", "def"]);
        assert_eq!(wrapped("abcdefg", 3), ["abc", "def", "g"]);
        assert_eq!(wrapped("漢字かな", 5), ["漢字", "かな"]);
        assert_eq!(wrapped("漢字", 1), ["漢", "字"], "wider than the screen: a row of its own");
        assert_eq!(wrapped("abe\u{301}f", 3), ["abe\u{301}", "f"]);
        for width in 1..20 {
            let text = "a long 漢字 line with ⟨U+202E⟩ and cafe\u{301}";
            assert_eq!(wrapped(text, width).concat(), text);
            assert!(wrapped(text, width).iter().all(|row| columns(row) <= width.max(2)));
        }
    }

    #[test]
    fn sentences_break_between_words() {
        let rows = |text, width| {
            let rows = sentence_rows(text, width);
            rows.into_iter().map(|row| text[row].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(rows("one two three", 8), ["one two ", "three"]);
        assert_eq!(rows("", 8), [""]);
        assert_eq!(rows("unbreakable", 4), ["unbr", "eaka", "ble"]);
        assert_eq!(rows("a bb ccc dddd", 4).concat(), "a bb ccc dddd");
    }

    #[test]
    fn what_is_shortened_says_so() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("漢字かな", 4), "漢…");
        assert_eq!(shortened("abc", 1), "…");
        assert_eq!(shortened("abc", 0), "");
    }
}
