//! Random JSON documents in every spelling that JSON allows, reproducible by their seed.

/// A small generator (`SplitMix64`), so that documents do not depend on the version of a library.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
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

/// An object with unusual names, numbers, strings and spacing.
pub(crate) fn object(random: &mut SeededRandom) -> String {
    let mut text = String::new();
    write_object(random, 0, &mut text);
    text
}

fn write_value(random: &mut SeededRandom, depth: u32, text: &mut String) {
    let kinds = if depth < 4 { 8 } else { 6 };
    match random.below(kinds) {
        0 => text.push_str(random.pick(&["null", "true", "false"])),
        1..=3 => text.push_str(&number(random)),
        4 | 5 => {
            let characters = characters(random);
            write_string(random, &characters, text);
        }
        6 => write_list(random, ['[', ']'], text, |random, _, text| write_value(random, depth + 1, text)),
        _ => write_object(random, depth + 1, text),
    }
}

fn write_object(random: &mut SeededRandom, depth: u32, text: &mut String) {
    let mut used: Vec<String> = Vec::new();
    write_list(random, ['{', '}'], text, |random, index, text| {
        let mut name = characters(random);
        if used.contains(&name) {
            name.push_str(&index.to_string());
            name.push('\u{1f600}');
        }
        write_string(random, &name, text);
        used.push(name);
        write_space(random, text);
        text.push(':');
        write_space(random, text);
        write_value(random, depth + 1, text);
    });
}

fn write_list(
    random: &mut SeededRandom,
    [open, close]: [char; 2],
    text: &mut String,
    mut write_item: impl FnMut(&mut SeededRandom, u64, &mut String),
) {
    text.push(open);
    write_space(random, text);
    for index in 0..random.below(5) {
        if index > 0 {
            text.push(',');
            write_space(random, text);
        }
        write_item(random, index, text);
        write_space(random, text);
    }
    text.push(close);
}

fn write_space(random: &mut SeededRandom, text: &mut String) {
    text.push_str(random.pick(&["", "", "", "", " ", "\t", "  ", "\r"]));
}

/// Doubles of every magnitude in several spellings, and integers up to the largest safe one.
fn number(random: &mut SeededRandom) -> String {
    if random.below(2) == 0 {
        let shift = 11 + random.below(53);
        let integer = i64::try_from(random.next() >> shift).unwrap_or_default();
        return if random.below(2) == 0 { format!("-{integer}") } else { integer.to_string() };
    }
    let double = loop {
        let bits = match random.below(3) {
            0 => random.next(),
            // Around one, where people's numbers are, and around the switches of notation.
            1 => (random.next() >> 12) | ((1023 + random.below(75)) << 52),
            _ => (random.next() >> 12 & !0xffff_ffff) | ((1000 + random.below(50)) << 52),
        };
        let double = f64::from_bits(bits);
        if double.is_finite() {
            break double;
        }
    };
    match random.below(4) {
        0 => format!("{double:e}"),
        1 => format!("{double:E}").replace('E', "E+").replace("+-", "-"),
        2 => format!("{double:.17e}"),
        // Written out in full; a fraction keeps it from being an integer literal.
        _ if double.fract() == 0.0 => format!("{double}.0"),
        _ => double.to_string(),
    }
}

fn characters(random: &mut SeededRandom) -> String {
    let length = random.below(7);
    (0..length).map(|_| character(random)).collect()
}

fn character(random: &mut SeededRandom) -> char {
    let range = match random.below(9) {
        0..=3 => 0x20..0x7f,
        4 => 0x00..0x20,
        5 => 0x7f..0x250,
        6 => 0x2000..0xd800,
        // Above the surrogates: sorted by UTF-16 these come after all astral characters.
        7 => 0xe000..0x1_0000,
        _ => 0x1_0000..0x11_0000,
    };
    let span = u64::from(range.end - range.start);
    let offset = u32::try_from(random.below(span)).unwrap_or_default();
    char::from_u32(range.start + offset).unwrap_or('?')
}

fn write_string(random: &mut SeededRandom, characters: &str, text: &mut String) {
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
        match (short, random.below(4)) {
            (Some(short), 0..=1) => text.push_str(short),
            (_, 2) => write_hex_escape(random, character, text),
            _ if must_escape => write_hex_escape(random, character, text),
            _ => text.push(character),
        }
    }
    text.push('"');
}

fn write_hex_escape(random: &mut SeededRandom, character: char, text: &mut String) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        let escape = if random.below(2) == 0 { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") };
        text.push_str(&escape);
    }
}
