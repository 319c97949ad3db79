//! The names of programs.

use std::path::Path;

/// The last part of a path, which is how programs are known.
pub fn base_name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}
