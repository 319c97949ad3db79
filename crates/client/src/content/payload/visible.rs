//! Text from others as it can be shown: nothing in it is invisible, moves other text, or looks like what it is not.
//!
//! A character that could mislead is written as its code point, such as `⟨U+202E⟩`. The brackets of that notation are
//! themselves written so, and no two texts look the same because of it.

/// What a text is, which decides what in it could mislead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Sentences: dashes and quotation marks of typography are at home.
    Prose,
    /// Commands and paths: what looks like ASCII punctuation and is not, is marked.
    Code,
}

/// Prose on one line: every control character, line breaks included, every invisible or direction-changing one, unusual
/// blanks, and letters that imitate those of the word around them become visible.
pub fn visible(text: &str) -> String {
    shown(text, Kind::Prose)
}

/// A command or a path on one line: as [`visible`], and also what imitates ASCII punctuation, such as `∕` or `；`.
pub fn visible_code(text: &str) -> String {
    shown(text, Kind::Code)
}

/// The lines of a text of several lines, each as [`visible_code`] shows it. Line breaks are LF; a CR before one is
/// shown.
pub fn visible_lines(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split('\n').map(visible_code)
}

/// Prose that its sender says is visible already: as [`visible`], and code points that are written as such stay so.
pub fn visible_still(text: &str) -> String {
    let [open, close] = ['⟨', '⟩'].map(notation);
    let written = visible(text);
    let mut parts = written.split(&open);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(&close).filter(|(code, _)| is_code_point(code)) {
            Some((code, rest)) => shown.extend(["⟨", code, "⟩", rest]),
            None => shown.extend([&open, part]),
        }
    }
    shown
}

/// Whether a text is a code point as the notation has it, such as `U+202E`.
fn is_code_point(text: &str) -> bool {
    let is_digit = |char: char| char.is_ascii_digit() || ('A'..='F').contains(&char);
    text.strip_prefix("U+").is_some_and(|code| (4..=6).contains(&code.len()) && code.chars().all(is_digit))
}

fn shown(text: &str, kind: Kind) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut marks = 0;
    for word in words(text) {
        let is_mixed = word.chars().any(|char| char.is_ascii_alphabetic());
        for char in word.chars() {
            // Marks are drawn over what is before them; a pile of them covers the lines around.
            marks = if is_combining(char) { marks + 1 } else { 0 };
            let misleads = is_hidden(char)
                || is_notation(char)
                || (is_combining(char) && (shown.is_empty() || marks > MAX_MARKS))
                || (is_mixed && imitates_a_letter(char))
                || (kind == Kind::Code && imitates_punctuation(char));
            match misleads {
                true => shown.push_str(&notation(char)),
                false => shown.push(char),
            }
        }
    }
    shown
}

fn notation(char: char) -> String {
    format!("⟨U+{:04X}⟩", u32::from(char))
}

/// Marks on one letter, as Vietnamese needs them.
const MAX_MARKS: usize = 2;

/// The text in runs of letters and digits, and of everything else.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let of_word = |char: char| char.is_alphanumeric() || is_hidden(char) || is_combining(char);
        let first = of_word(rest.chars().next()?);
        let end = rest.find(|char| of_word(char) != first).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

fn is_notation(char: char) -> bool {
    matches!(char, '⟨' | '⟩')
}

/// Control and format characters, separators other than the space, private and unassigned code points, and letters that
/// are drawn as nothing.
fn is_hidden(char: char) -> bool {
    if char.is_ascii() {
        return char.is_ascii_control();
    }
    is_blank(char) || !is_printable(char)
}

/// What Rust's `Debug` escapes for being invisible, by the Unicode tables of the standard library. The letter before it
/// is for marks, which are escaped at the beginning of a text only.
fn is_printable(char: char) -> bool {
    let mut buffer = [b'a', 0, 0, 0, 0];
    let end = 1 + char.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..end]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(char)
}

/// Assigned letters, marks and symbols that are drawn as nothing: fillers, variation selectors, the blank of braille.
fn is_blank(char: char) -> bool {
    matches!(
        char,
        '\u{034f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Marks that are drawn over any letter.
fn is_combining(char: char) -> bool {
    matches!(
        char,
        '\u{0300}'..='\u{036f}'
            | '\u{0483}'..='\u{0489}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Letters and digits of other alphabets, which have no place in a word with ASCII letters: Greek, Cyrillic, Armenian,
/// Cherokee, Lisu, and the ones of mathematics, enclosures and full width.
fn imitates_a_letter(char: char) -> bool {
    matches!(
        char,
        '\u{0251}'
            | '\u{0261}'
            | '\u{026a}'
            | '\u{0131}'
            | '\u{017f}'
            | '\u{01c0}'
            | '\u{0370}'..='\u{03ff}'
            | '\u{0400}'..='\u{052f}'
            | '\u{0531}'..='\u{058f}'
            | '\u{13a0}'..='\u{13ff}'
            | '\u{1c80}'..='\u{1c8f}'
            | '\u{1d00}'..='\u{1dbf}'
            | '\u{1f00}'..='\u{1fff}'
            | '\u{2070}'..='\u{209c}'
            | '\u{2100}'..='\u{218b}'
            | '\u{2460}'..='\u{24ff}'
            | '\u{2c80}'..='\u{2cff}'
            | '\u{2de0}'..='\u{2dff}'
            | '\u{a4d0}'..='\u{a4ff}'
            | '\u{a640}'..='\u{a69f}'
            | '\u{ab30}'..='\u{abbf}'
            | '\u{ff10}'..='\u{ff19}'
            | '\u{ff21}'..='\u{ff3a}'
            | '\u{ff41}'..='\u{ff5a}'
            | '\u{10280}'..='\u{1031f}'
            | '\u{10400}'..='\u{1044f}'
            | '\u{118a0}'..='\u{118ff}'
            | '\u{1d400}'..='\u{1d7ff}'
            | '\u{1f100}'..='\u{1f1ff}'
            | '\u{1fbf0}'..='\u{1fbf9}'
    )
}

/// What looks like a character that shells and paths give a meaning to.
fn imitates_punctuation(char: char) -> bool {
    matches!(
        char,
        '\u{00ad}'
            | '\u{00b4}'
            | '\u{02b9}'..='\u{02df}'
            | '\u{0374}'..='\u{0375}'
            | '\u{037e}'
            | '\u{0387}'
            | '\u{0589}'
            | '\u{05c3}'
            | '\u{05f3}'..='\u{05f4}'
            | '\u{060c}'
            | '\u{066a}'..='\u{066d}'
            | '\u{06d4}'
            | '\u{1427}'
            | '\u{1735}'
            | '\u{2010}'..='\u{201f}'
            | '\u{2022}'..='\u{2027}'
            | '\u{2032}'..='\u{203a}'
            | '\u{203c}'
            | '\u{2041}'
            | '\u{2043}'..='\u{204f}'
            | '\u{2052}'..='\u{2053}'
            | '\u{207a}'..='\u{207e}'
            | '\u{208a}'..='\u{208e}'
            | '\u{2212}'
            | '\u{2215}'..='\u{2217}'
            | '\u{2219}'
            | '\u{2223}'
            | '\u{2236}'
            | '\u{223c}'
            | '\u{22c5}'..='\u{22c6}'
            | '\u{2400}'..='\u{2426}'
            | '\u{2500}'
            | '\u{2502}'
            | '\u{2571}'..='\u{2573}'
            | '\u{2758}'
            | '\u{275b}'..='\u{275e}'
            | '\u{2768}'..='\u{2775}'
            | '\u{2795}'..='\u{2796}'
            | '\u{27cb}'
            | '\u{27cd}'
            | '\u{29f5}'..='\u{29f9}'
            | '\u{2e3a}'..='\u{2e3b}'
            | '\u{3002}'
            | '\u{3008}'..='\u{300b}'
            | '\u{3014}'..='\u{3015}'
            | '\u{30fb}'
            | '\u{a4f8}'..='\u{a4ff}'
            | '\u{a789}'..='\u{a78c}'
            | '\u{fe10}'..='\u{fe19}'
            | '\u{fe30}'..='\u{fe6b}'
            | '\u{ff01}'..='\u{ff0f}'
            | '\u{ff1a}'..='\u{ff20}'
            | '\u{ff3b}'..='\u{ff40}'
            | '\u{ff5b}'..='\u{ff65}'
            | '\u{ffe3}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lists of the Unicode standard, apart from those that the code uses.
    fn is_dangerous(char: char) -> bool {
        let is_default_ignorable = matches!(
            u32::from(char),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
                | 0x202a..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfff8
                | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
        );
        let is_other_format = matches!(
            u32::from(char),
            0x600..=0x605 | 0x6dd | 0x70f | 0x890..=0x891 | 0x8e2 | 0xfff9..=0xfffb | 0x110bd | 0x110cd
                | 0x13430..=0x1343f
        );
        let is_private = matches!(u32::from(char), 0xe000..=0xf8ff | 0xf_0000..=0x10_ffff);
        char.is_control()
            || char.is_whitespace() && char != ' '
            || is_default_ignorable
            || is_other_format
            || is_private
    }

    #[test]
    fn what_is_visible_already_stays_as_it_is() {
        for text in ["ls", "a\u{202e}b", "a\nb", "⟨x⟩", "p\u{430}ypal"] {
            assert_eq!(visible_still(&visible(text)), visible(text), "{text}");
        }
        assert_eq!(visible_still("a\u{202e}b ⟨U+000A⟩"), "a⟨U+202E⟩b ⟨U+000A⟩");
        for text in ["⟨U+12⟩", "⟨U+1234567⟩", "⟨U+00ag⟩", "⟨U+000A", "⟨⟨U+000A⟩"] {
            assert_ne!(visible_still(text), text);
        }
    }

    #[test]
    fn every_invisible_or_direction_changing_character_is_shown() {
        let mut found = 0;
        for char in ('\0'..=char::MAX).filter(|char| is_dangerous(*char)) {
            found += 1;
            for text in [format!("a{char}b"), format!("{char}"), format!(" {char}\u{301}")] {
                assert!(visible(&text).contains(&notation(char)), "{:04x}", u32::from(char));
                assert!(!visible_code(&text).contains(char), "{:04x}", u32::from(char));
            }
        }
        assert!(found > 100_000, "{found}");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "git push --force origin main",
            "naïve café, Straße, Łódź, Việt Nam",
            "cafe\u{301}",
            "Проверка связи",
            "Ελληνικά",
            "漢字かな交じり文",
            "한국어",
            "हिन्दी",
            "עברית",
            "العربية",
            "price: 5 € 🎉",
        ] {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("“so” – it’s…"), "“so” – it’s…", "typography is at home in prose");
    }

    #[test]
    fn what_imitates_something_else_is_shown() {
        assert_eq!(visible("pаypal"), "p⟨U+0430⟩ypal", "a Cyrillic letter in a Latin word");
        assert_eq!(visible("a ﬁle"), "a ﬁle");
        assert_eq!(visible_code("rm -rf ／"), "rm -rf ⟨U+FF0F⟩");
        assert_eq!(visible_code("ls；rm"), "ls⟨U+FF1B⟩rm");
        assert_eq!(visible_code("git push ‐f"), "git push ⟨U+2010⟩f");
        assert_eq!(visible("⟨U+202E⟩"), "⟨U+27E8⟩U+202E⟨U+27E9⟩", "the notation itself");
        assert_eq!(visible("a\u{301}\u{301}\u{301}\u{301}"), "a\u{301}\u{301}⟨U+0301⟩⟨U+0301⟩");
        assert_eq!(visible("\u{338}x"), "⟨U+0338⟩x");
        assert_eq!(visible("one\ntwo\r\x1b[2J"), "one⟨U+000A⟩two⟨U+000D⟩⟨U+001B⟩[2J");
        assert_eq!(visible_lines("a\r\nb\n").collect::<Vec<_>>(), ["a⟨U+000D⟩", "b", ""]);
    }

    proptest! {
        #[test]
        fn nothing_that_could_mislead_survives(text in ".*", chars in proptest::collection::vec(any::<char>(), 0..40)) {
            let text: String = text.chars().chain(chars).collect();
            for shown in [visible(&text), visible_code(&text)] {
                prop_assert!(!shown.chars().any(is_dangerous), "{shown:?}");
            }
        }

        #[test]
        fn two_texts_never_look_the_same(one in "[a⟨⟩U+0-9\u{202e}\u{200b} ]{0,12}", two in "[a⟨⟩U+0-9\u{202e}\u{200b} ]{0,12}") {
            prop_assert_eq!(visible(&one) == visible(&two), one == two);
        }
    }
}
