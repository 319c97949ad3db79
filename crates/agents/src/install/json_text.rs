//! JSON as the text that it is: where each value is, and edits that leave every other byte alone.
//!
//! What [`Document::append`] writes, [`Document::remove`] takes back to the byte. A container that was empty before is
//! recognised later by its closing bracket, which stays on the line of its last value.

use std::ops::Range;

use serde_json::Value;

use super::{
    json_scan::{Kind, Node, Problem, line_of, mask_comments, scan},
    json_value::{Json, quoted},
};

/// A step on the way from the root to a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// A valid text and its values.
#[derive(Debug, Clone)]
pub struct Document {
    text: String,
    /// The text with blanks in place of comments.
    masked: String,
    has_comments: bool,
    root: Node,
}

/// How a new value is set beside the others of its container.
enum Layout {
    /// On a line of its own, which begins with these blanks.
    Lines(String),
    Inline,
}

impl Document {
    /// Reads a text whose root is an object without any duplicate key. Comments only where the host allows them.
    pub fn parse(text: &str, has_comments: bool) -> Result<Self, Problem> {
        let masked = if has_comments { mask_comments(text)? } else { text.to_owned() };
        serde_json::from_str::<Value>(&masked).map_err(|error| Problem {
            line: error.line().max(1),
            what: error.to_string().split(" at line ").next().unwrap_or("it is not JSON").to_owned(),
        })?;
        let root = scan(&masked)?;
        match root.kind {
            Kind::Object(_) => Ok(Self { text: text.to_owned(), masked, has_comments, root }),
            _ => {
                Err(Problem { line: line_of(text, root.span.start), what: "it is not an object".to_owned() })
            }
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn line(&self, node: &Node) -> usize {
        line_of(&self.text, node.span.start)
    }

    /// The value at a path from the root.
    pub fn get(&self, path: &[Step]) -> Option<&Node> {
        path.iter().try_fold(&self.root, |node, step| match (step, &node.kind) {
            (Step::Key(key), Kind::Object(members)) => {
                members.iter().find(|member| member.key == *key).map(|member| &member.value)
            }
            (Step::Index(index), Kind::Array(items)) => items.get(*index),
            _ => None,
        })
    }

    /// What a part of the text says.
    pub fn value(&self, node: &Node) -> Value {
        serde_json::from_str(&self.masked[node.span.clone()]).unwrap_or_default()
    }

    /// Adds a value at the end of the object or array at `path`: `key` is for an object.
    pub fn append(&self, path: &[Step], key: Option<&str>, value: &Json) -> Result<Self, Problem> {
        let Some(container) = self.get(path) else { return Ok(self.clone()) };
        let children = children(container);
        let close = container.span.end - 1;
        let layout = self.layout(container);
        let Some(last) = children.last() else {
            let (before, after) = match &layout {
                Layout::Lines(indent) if path.is_empty() => {
                    (format!("{}{indent}", self.newline()), self.newline().to_owned())
                }
                Layout::Lines(indent) => (format!("{}{indent}", self.newline()), String::new()),
                Layout::Inline => (" ".to_owned(), String::new()),
            };
            let new = before + &self.render_child(key, value, &layout) + &after;
            return self.edited(&[(close..close, &new)]);
        };
        // A comment behind the last value stays with that value.
        let commented = last.end + self.text[last.end..close].trim_end().len();
        let layout = match layout {
            Layout::Inline if commented > last.end => {
                Layout::Lines(self.line_indent(last.start) + &self.unit())
            }
            other => other,
        };
        let separator = match &layout {
            Layout::Lines(indent) => format!("{}{indent}", self.newline()),
            Layout::Inline => self.space().to_owned(),
        };
        let new = separator + &self.render_child(key, value, &layout);
        self.edited(&[(last.end..last.end, ","), (commented..commented, &new)])
    }

    /// Replaces a value by another, where it is.
    pub fn replace(&self, path: &[Step], value: &Json) -> Result<Self, Problem> {
        let (Some(node), Some((_, parent))) = (self.get(path), path.split_last()) else {
            return Ok(self.clone());
        };
        let layout = self.get(parent).map_or(Layout::Inline, |container| self.layout(container));
        let new = self.render_child(None, value, &layout);
        self.edited(&[(node.span.clone(), &new)])
    }

    /// Removes the value at `path`, and the containers around it that were made for it.
    pub fn remove(&self, path: &[Step]) -> Result<Self, Problem> {
        let Some((step, parent)) = path.split_last() else { return Ok(self.clone()) };
        let Some(container) = self.get(parent) else { return Ok(self.clone()) };
        let index = match (step, &container.kind) {
            (Step::Index(index), Kind::Array(_)) => Some(*index),
            (Step::Key(key), Kind::Object(members)) => members.iter().position(|member| member.key == *key),
            _ => None,
        };
        let spans = children(container);
        let Some((index, child)) = index.and_then(|index| Some((index, spans.get(index)?.clone()))) else {
            return Ok(self.clone());
        };
        let (open, close) = (container.span.start + 1, container.span.end - 1);
        if spans.len() == 1 {
            let (lead, trail) = (&self.text[open..child.start], &self.text[child.end..close]);
            let was_empty_before = !lead.is_empty() && !trail.contains('\n');
            if !parent.is_empty() && !was_empty_before && is_blank(lead) && is_blank(trail) {
                return self.remove(parent);
            }
            let end = child.end + trail_to_remove(trail);
            return self.edited(&[(self.separator_before(child.start)..end, "")]);
        }
        let start = self.separator_before(child.start);
        if index + 1 == spans.len() {
            let comma = self.comma_after(spans[index - 1].end);
            return self.edited(&[(comma..comma + 1, ""), (start.max(comma + 1)..child.end, "")]);
        }
        let after = self.comma_after(child.end) + 1;
        if index == 0 && !self.text[start..child.start].contains('\n') {
            let blanks = self.text[after..].len() - self.text[after..].trim_start_matches([' ', '\t']).len();
            return self.edited(&[(child.start..after + blanks, "")]);
        }
        self.edited(&[(start..after, "")])
    }

    /// The text with parts replaced, given in order, read again.
    fn edited(&self, edits: &[(Range<usize>, &str)]) -> Result<Self, Problem> {
        let mut text = self.text.clone();
        for (span, new) in edits.iter().rev() {
            text.replace_range(span.clone(), new);
        }
        Self::parse(&text, self.has_comments)
    }

    fn render_child(&self, key: Option<&str>, value: &Json, layout: &Layout) -> String {
        let value = match layout {
            Layout::Lines(indent) => value.lines(indent, &self.unit(), self.newline()),
            Layout::Inline => value.inline(self.space()),
        };
        match key {
            Some(key) => format!("{}:{}{value}", quoted(key), self.space()),
            None => value,
        }
    }

    fn layout(&self, container: &Node) -> Layout {
        match children(container).first() {
            Some(first) => match self.text[container.span.start..first.start].contains('\n') {
                true => Layout::Lines(self.line_indent(first.start)),
                false => Layout::Inline,
            },
            None if self.is_one_line() && !self.text[container.span.clone()].contains('\n') => Layout::Inline,
            None => Layout::Lines(self.line_indent(container.span.start) + &self.unit()),
        }
    }

    /// Whether the members of the root follow each other on one line.
    fn is_one_line(&self) -> bool {
        children(&self.root)
            .first()
            .is_some_and(|first| !self.text[self.root.span.start..first.start].contains('\n'))
    }

    /// One level of indentation, as the members of the root have it.
    fn unit(&self) -> String {
        match children(&self.root).first() {
            Some(first) if !self.is_one_line() => self.line_indent(first.start),
            _ => "  ".to_owned(),
        }
    }

    fn newline(&self) -> &'static str {
        match self.text.split_once('\n') {
            Some((first, _)) if first.ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    /// What follows a colon or a comma on a line.
    fn space(&self) -> &'static str {
        let Kind::Object(members) = &self.root.kind else { return " " };
        match members.first() {
            Some(first) if self.masked[first.span.start..first.value.span.start].ends_with(':') => "",
            _ => " ",
        }
    }

    /// The blanks with which the line of a position begins.
    fn line_indent(&self, at: usize) -> String {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..at].chars().take_while(|next| matches!(next, ' ' | '\t')).collect()
    }

    /// Where the blanks begin that separate a value from what is before it, its line break included.
    fn separator_before(&self, at: usize) -> usize {
        let before = self.text[..at].trim_end_matches([' ', '\t']);
        match before.strip_suffix('\n') {
            Some(before) => before.strip_suffix('\r').unwrap_or(before).len(),
            None => before.len().max(at.saturating_sub(1)).min(at),
        }
    }

    fn comma_after(&self, at: usize) -> usize {
        self.masked[at..].find(',').map_or(at, |offset| at + offset)
    }
}

/// How much of the blanks behind an only value belongs to it: its line break and the indentation of the bracket.
fn trail_to_remove(trail: &str) -> usize {
    let rest = trail.strip_prefix("\r\n").or_else(|| trail.strip_prefix('\n'));
    rest.map_or(0, |rest| trail.len() - rest.trim_start_matches([' ', '\t']).len())
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn children(container: &Node) -> Vec<Range<usize>> {
    match &container.kind {
        Kind::Object(members) => members.iter().map(|member| member.span.clone()).collect(),
        Kind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
        Kind::Scalar => Vec::new(),
    }
}
