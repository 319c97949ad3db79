//! Shapes as text. Everything that comes from a history is escaped.

use std::fmt::Write as _;

/// A text that can stand in an element or an attribute.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // What XML does not allow.
            control if control.is_control() && !matches!(control, '\n' | '\t') => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A picture in the making. Coordinates are pixels.
pub(super) struct Picture {
    shapes: String,
    width: u64,
    height: u64,
}

impl Picture {
    pub(super) fn new(width: u64, height: u64) -> Self {
        Self { shapes: String::new(), width, height }
    }

    /// A filled box with a text that a pointer shows.
    pub(super) fn bar(&mut self, class: &str, at: (u64, u64), size: (u64, u64), title: &str) {
        let ((x, y), (width, height), title) = (at, size, escaped(title));
        let _ = writeln!(
            self.shapes,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>"#
        );
    }

    pub(super) fn dot(&mut self, class: &str, at: (u64, u64), title: &str) {
        let ((x, y), title) = (at, escaped(title));
        let _ = writeln!(
            self.shapes,
            r#"<circle class="{class}" cx="{x}" cy="{y}" r="4"><title>{title}</title></circle>"#
        );
    }

    pub(super) fn line(&mut self, class: &str, from: (u64, u64), to: (u64, u64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(self.shapes, r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#);
    }

    pub(super) fn text(&mut self, class: &str, at: (u64, u64), text: &str) {
        let ((x, y), text) = (at, escaped(text));
        let _ = writeln!(self.shapes, r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#);
    }

    pub(super) fn finish(self) -> String {
        let Self { shapes, width, height } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n{shapes}</svg>\n"
        )
    }
}

/// Where times are on a picture.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) left: u64,
    pub(super) width: u64,
}

impl Scale {
    /// The pixel of a time; times outside are at the edge.
    pub(super) fn x(&self, at: u64) -> u64 {
        let at = at.clamp(self.from, self.to);
        self.left + (at - self.from) * self.width / (self.to - self.from).max(1)
    }
}

/// A time in seconds with milliseconds.
pub(super) fn seconds(at: u64) -> String {
    format!("{}.{:03} s", at / 1_000_000, at / 1_000 % 1_000)
}
