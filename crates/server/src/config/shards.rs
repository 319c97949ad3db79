//! The databases of a store that is spread over several.

use std::{collections::HashSet, path::PathBuf};

use anyhow::bail;
use serde::Deserialize;

/// One database of a store of several. The rest of how to reach it is in `[store]`, the same for all.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardConfig {
    /// What operators call it. The database keeps it.
    pub name: String,
    /// A libpq connection string.
    pub url: String,
    /// A file with the password, where `url` has none.
    #[serde(default)]
    pub password_file: Option<PathBuf>,
}

/// As many as have a number.
const MAX_SHARDS: usize = 1_000;

/// Whether these shards can be used together; none are fine.
pub(super) fn check(shards: &[ShardConfig]) -> anyhow::Result<()> {
    if shards.is_empty() {
        return Ok(());
    }
    if !(2..=MAX_SHARDS).contains(&shards.len()) {
        bail!("list 2 to {MAX_SHARDS} shards, or set store.url in place of a single [[shard]]");
    }
    let (mut names, mut urls) = (HashSet::new(), HashSet::new());
    for shard in shards {
        let name = &shard.name;
        let is_plain = |character: char| {
            character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-'
        };
        if name.is_empty() || name.len() > 63 || !name.chars().all(is_plain) {
            bail!("shard.name = \"{name}\" must have 1 to 63 lower-case letters, digits and hyphens");
        }
        if !names.insert(name) {
            bail!("two shards are called {name}; give each a name of its own");
        }
        if !urls.insert(&shard.url) {
            bail!("shard {name} has the url of another shard; each needs a database of its own");
        }
    }
    Ok(())
}
