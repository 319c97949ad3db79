//! JSON to be written, on one line or on many.

use std::fmt;

use serde_json::Value;

/// What to write, with its members in the order in which people read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    Text(String),
    Number(u64),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// On one line, with this after each comma and colon.
    pub fn inline(&self, space: &str) -> String {
        let join = |parts: Vec<String>| parts.join(&format!(",{space}"));
        match self {
            Self::Text(text) => quoted(text),
            Self::Number(number) => number.to_string(),
            Self::List(items) => format!("[{}]", join(items.iter().map(|item| item.inline(space)).collect())),
            Self::Object(members) => {
                let member =
                    |(key, value): &(&str, Self)| format!("{}:{space}{}", quoted(key), value.inline(space));
                format!("{{{}}}", join(members.iter().map(member).collect()))
            }
        }
    }

    /// With a line for each member; a list of plain values stays on one line.
    pub fn lines(&self, indent: &str, unit: &str, newline: &str) -> String {
        let inner = format!("{indent}{unit}");
        let (open, close, parts): (_, _, Vec<String>) = match self {
            Self::Object(members) => {
                let member = |(key, value): &(&str, Self)| {
                    format!("{}: {}", quoted(key), value.lines(&inner, unit, newline))
                };
                ('{', '}', members.iter().map(member).collect())
            }
            Self::List(items) if items.iter().any(|item| matches!(item, Self::List(_) | Self::Object(_))) => {
                ('[', ']', items.iter().map(|item| item.lines(&inner, unit, newline)).collect())
            }
            plain => return plain.inline(" "),
        };
        let parts = parts.join(&format!(",{newline}{inner}"));
        format!("{open}{newline}{inner}{parts}{newline}{indent}{close}")
    }

    /// The same as a value that can be compared.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(&self.inline("")).unwrap_or_default()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines("", "  ", "\n"))
    }
}

/// A text as JSON writes it.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
