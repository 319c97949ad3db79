//! Random JSON documents in every spelling that JSON allows, the same for the same seed.

/// A small generator (SplitMix64): documents must not depend on a library's idea of randomness.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap_or_default()]
    }
}

/// An object, with strange names, strange numbers, strange strings and strange spacing.
pub(crate) fn object(chance: &mut Chance) -> String {
    let mut text = String::new();
    write_object(chance, 0, &mut text);
    text
}

fn write_value(chance: &mut Chance, depth: u32, text: &mut String) {
    let kinds = if depth < 4 { 8 } else { 6 };
    match chance.below(kinds) {
        0 => text.push_str(chance.pick(&["null", "true", "false"])),
        1..=3 => text.push_str(&number(chance)),
        4 | 5 => {
            let characters = characters(chance);
            write_string(chance, &characters, text);
        }
        6 => write_list(chance, ['[', ']'], text, |chance, _, text| write_value(chance, depth + 1, text)),
        _ => write_object(chance, depth + 1, text),
    }
}

fn write_object(chance: &mut Chance, depth: u32, text: &mut String) {
    let mut used: Vec<String> = Vec::new();
    write_list(chance, ['{', '}'], text, |chance, index, text| {
        let mut name = characters(chance);
        if used.contains(&name) {
            name.push_str(&index.to_string());
            name.push('\u{1f600}');
        }
        write_string(chance, &name, text);
        used.push(name);
        write_space(chance, text);
        text.push(':');
        write_space(chance, text);
        write_value(chance, depth + 1, text);
    });
}

fn write_list(
    chance: &mut Chance,
    [open, close]: [char; 2],
    text: &mut String,
    mut write_item: impl FnMut(&mut Chance, u64, &mut String),
) {
    text.push(open);
    write_space(chance, text);
    for index in 0..chance.below(5) {
        if index > 0 {
            text.push(',');
            write_space(chance, text);
        }
        write_item(chance, index, text);
        write_space(chance, text);
    }
    text.push(close);
}

fn write_space(chance: &mut Chance, text: &mut String) {
    text.push_str(chance.pick(&["", "", "", "", " ", "\t", "  ", "\r"]));
}

/// Doubles of every magnitude in several spellings, and integers up to the largest safe one.
fn number(chance: &mut Chance) -> String {
    if chance.below(2) == 0 {
        let shift = 11 + chance.below(53);
        let integer = i64::try_from(chance.next() >> shift).unwrap_or_default();
        return if chance.below(2) == 0 { format!("-{integer}") } else { integer.to_string() };
    }
    let double = loop {
        let bits = match chance.below(3) {
            0 => chance.next(),
            // Around one, where people's numbers are, and around the switches of notation.
            1 => (chance.next() >> 12) | ((1023 + chance.below(75)) << 52),
            _ => (chance.next() >> 12 & !0xffff_ffff) | ((1000 + chance.below(50)) << 52),
        };
        let double = f64::from_bits(bits);
        if double.is_finite() {
            break double;
        }
    };
    match chance.below(4) {
        0 => format!("{double:e}"),
        1 => format!("{double:E}").replace('E', "E+").replace("+-", "-"),
        2 => format!("{double:.17e}"),
        // Written out in full; a fraction keeps it from being an integer literal.
        _ if double.fract() == 0.0 => format!("{double}.0"),
        _ => double.to_string(),
    }
}

fn characters(chance: &mut Chance) -> String {
    let length = chance.below(7);
    (0..length).map(|_| character(chance)).collect()
}

fn character(chance: &mut Chance) -> char {
    let range = match chance.below(9) {
        0..=3 => 0x20..0x7f,
        4 => 0x00..0x20,
        5 => 0x7f..0x250,
        6 => 0x2000..0xd800,
        // Above the surrogates: sorted by UTF-16 these come after all astral characters.
        7 => 0xe000..0x1_0000,
        _ => 0x1_0000..0x11_0000,
    };
    let span = u64::from(range.end - range.start);
    let offset = u32::try_from(chance.below(span)).unwrap_or_default();
    char::from_u32(range.start + offset).unwrap_or('?')
}

fn write_string(chance: &mut Chance, characters: &str, text: &mut String) {
    text.push('"');
    for character in characters.chars() {
        let short = match character {
            '"' => Some("\\\""),
            '\\' => Some("\\\\"),
            '/' => Some("\\/"),
            '\u{8}' => Some("\\b"),
            '\u{c}' => Some("\\f"),
            '\n' => Some("\\n"),
            '\r' => Some("\\r"),
            '\t' => Some("\\t"),
            _ => None,
        };
        let must_escape = character < ' ' || character == '"' || character == '\\';
        match (short, chance.below(4)) {
            (Some(short), 0..=1) => text.push_str(short),
            (_, 2) => write_hex_escape(chance, character, text),
            _ if must_escape => write_hex_escape(chance, character, text),
            _ => text.push(character),
        }
    }
    text.push('"');
}

fn write_hex_escape(chance: &mut Chance, character: char, text: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        let escape = if chance.below(2) == 0 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
        text.push_str(&escape);
    }
}
