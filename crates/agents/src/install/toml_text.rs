//! Tables at the end of a TOML file that others write too: added, changed and removed line by line, so that every other
//! byte stays.

use toml::{Table, Value};

use super::json_scan::Problem;

/// A table that is ours, as its header and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `[hooks.state."…"]`, without a line break.
    pub header: String,
    /// `key = value`, each without a line break.
    pub lines: Vec<String>,
}

impl Section {
    fn render(&self, newline: &str) -> String {
        let lines = [&self.header].into_iter().chain(&self.lines);
        lines.flat_map(|line| [line.as_str(), newline]).collect()
    }
}

/// The text as a table, or the line that is not TOML.
pub fn parse(text: &str) -> Result<Table, Problem> {
    text.parse::<Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        Problem { line, what: error.message().to_owned() }
    })
}

/// A text in the quotes of a basic string.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text with these sections in it: changed where they are, else added at the end.
pub fn put(text: &str, sections: &[Section]) -> Result<String, Problem> {
    parse(text)?;
    let mut text = text.to_owned();
    for section in sections {
        text = match find(&text, &section.header) {
            Some((start, end)) => {
                format!("{}{}{}", &text[..start], section.render(newline(&text)), &text[end..])
            }
            None => append(&text, section),
        };
    }
    parse(&text)?;
    Ok(text)
}

/// The text without the sections of these headers.
pub fn take(text: &str, headers: &[String]) -> Result<String, Problem> {
    parse(text)?;
    let mut text = text.to_owned();
    for header in headers.iter().rev() {
        if let Some((start, end)) = find(&text, header) {
            let before = without_separator(&text[..start], end == text.len());
            text = format!("{before}{}", &text[end..]);
        }
    }
    parse(&text)?;
    Ok(text)
}

/// The text with these lines between two marks: where they are already, else at the end.
pub fn put_block(text: &str, marks: [&str; 2], lines: &str) -> Result<String, Problem> {
    parse(text)?;
    let block = Section {
        header: marks[0].to_owned(),
        lines: lines.lines().chain([marks[1]]).map(str::to_owned).collect(),
    };
    let text = match find_block(text, marks)? {
        Some((start, end)) => {
            format!("{}{}{}", &text[..start], block.render(newline(text)), &text[end..])
        }
        None => append(text, &block),
    };
    parse(&text)?;
    Ok(text)
}

/// The text without the lines between two marks, and without the marks.
pub fn take_block(text: &str, marks: [&str; 2]) -> Result<String, Problem> {
    parse(text)?;
    let Some((start, end)) = find_block(text, marks)? else { return Ok(text.to_owned()) };
    let text = format!("{}{}", without_separator(&text[..start], end == text.len()), &text[end..]);
    parse(&text)?;
    Ok(text)
}

/// Where the marked lines are, marks included.
pub fn find_block(text: &str, marks: [&str; 2]) -> Result<Option<(usize, usize)>, Problem> {
    let (mut at, mut start) = (0, None);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let end = at + line.len();
        match start {
            None if line.trim_end() == marks[0] => start = Some((at, number + 1)),
            Some((start, _)) if line.trim_end() == marks[1] => return Ok(Some((start, end))),
            _ => {}
        }
        at = end;
    }
    match start {
        None => Ok(None),
        Some((_, line)) => Err(Problem { line, what: format!("`{}` has no end", marks[0]) }),
    }
}

/// After a blank line; a file without a line break at its end gets none, by which that is known later.
fn append(text: &str, section: &Section) -> String {
    let newline = newline(text);
    let separator = if text.is_empty() { "" } else { newline };
    format!("{text}{separator}{}", section.render(newline))
}

/// What is before a section, without what separates the two.
fn without_separator(before: &str, is_last: bool) -> &str {
    let strip = |text| str::strip_suffix(text, "\r\n").or_else(|| text.strip_suffix('\n'));
    match strip(before) {
        Some(line) if line.is_empty() || line.ends_with('\n') || is_last => line,
        _ => before,
    }
}

/// Where a section begins and where its last line ends. Comments and whatever follows them are not part of it.
fn find(text: &str, header: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut found = None;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match found {
            None if line.trim_end() == header => found = Some((at, end)),
            None => {}
            Some((start, _)) if is_pair(line) => found = Some((start, end)),
            Some(_) => break,
        }
        at = end;
    }
    found
}

fn is_pair(line: &str) -> bool {
    let line = line.trim();
    !line.starts_with(['[', '#']) && line.parse::<Table>().is_ok_and(|pair| !pair.is_empty())
}

fn newline(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections() -> Vec<Section> {
        ["a", "b"]
            .map(|name| Section {
                header: format!("[hooks.state.\"{name}\"]"),
                lines: vec![format!("trusted_hash = \"{name}1\"")],
            })
            .into()
    }

    fn headers() -> Vec<String> {
        sections().into_iter().map(|section| section.header).collect()
    }

    #[test]
    fn every_file_is_back_to_the_byte() {
        for text in [
            "",
            "\n",
            "model = \"x\"\n",
            "model = \"x\"",
            "model = \"x\"\n\n\n",
            "model = \"x\"\r\n\r\n[features]\r\nhooks = true\r\n",
            "# only a comment",
            "[hooks.state.\"other\"]\ntrusted_hash = \"z\"\n",
            "x = \"\"\"\n[a]\n\"\"\"",
        ] {
            let with = put(text, &sections()).unwrap();
            assert_eq!(parse(&with).unwrap()["hooks"]["state"]["b"]["trusted_hash"].as_str(), Some("b1"));
            assert_eq!(put(&with, &sections()).unwrap(), with, "twice is once");
            assert_eq!(take(&with, &headers()).unwrap(), text);
        }
    }

    #[test]
    fn marked_lines_are_back_to_the_byte_and_need_both_marks() {
        let marks = ["# ours: begin", "# ours: end"];
        for text in ["", "a = 1", "a = 1\n", "a = 1\r\n", "[[hooks.Stop]]\nmatcher = \"x\"\n\n"] {
            let with = put_block(text, marks, "[[hooks.Stop]]\nmatcher = \"y\"\n").unwrap();
            assert_eq!(put_block(&with, marks, "[[hooks.Stop]]\nmatcher = \"y\"\n").unwrap(), with);
            let other = put_block(&with, marks, "[[hooks.Stop]]\nmatcher = \"z\"\n").unwrap();
            assert!(other.contains("\"z\"") && !other.contains("\"y\""));
            assert_eq!(take_block(&other, marks).unwrap(), text);
        }
        assert_eq!(take_block("a = 1\n# ours: begin\nb = 2\n", marks).unwrap_err().line, 2);
    }

    #[test]
    fn what_others_wrote_meanwhile_stays() {
        let with = put("a = 1\n", &sections()).unwrap();
        let edited = format!("# mine\n{with}\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n");
        let after = take(&edited, &headers()).unwrap();
        assert_eq!(after, "# mine\na = 1\n\n[projects.\"/x\"]\ntrust_level = \"trusted\"\n");
        let with = put("a = 1", &sections()).unwrap();
        assert_eq!(take(&format!("{with}# end\n"), &headers()).unwrap(), "a = 1\n# end\n");
    }

    #[test]
    fn what_is_not_toml_or_has_the_table_in_another_form_is_refused_with_its_line() {
        assert_eq!(put("a = 1\nb = \n", &sections()).unwrap_err().line, 2);
        put("hooks = { state = { x = { enabled = false } } }\n", &sections()).unwrap_err();
    }
}
