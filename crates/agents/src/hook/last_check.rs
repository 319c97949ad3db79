//! The last result of `countersign doctor`, which travels in the presence of this machine: so a removed hook shows to a team.

use std::{fs, path::Path};

use serde_json::{Map, Value};

/// The member of `capabilities` that has the result.
pub const MEMBER: &str = "org.countersign.doctor";

/// The file in the folder of the hooks that keeps it.
const FILE: &str = "doctor.json";

/// Keeps a result, so that hooks repeat it whenever they are connected.
pub fn keep(folder: &Path, result: &Value) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(FILE), result.to_string())
}

/// What a machine says of itself, with the last result if there is one.
pub fn capabilities(folder: &Path) -> Map<String, Value> {
    let text = fs::read_to_string(folder.join(FILE)).unwrap_or_default();
    match serde_json::from_str(&text) {
        Ok(result) => Map::from_iter([(MEMBER.to_owned(), result)]),
        Err(_) => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_is_repeated_and_nonsense_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("hooks");
        assert!(capabilities(&inner).is_empty());
        keep(&inner, &json!({ "problems": 0 })).unwrap();
        assert_eq!(capabilities(&inner)[MEMBER]["problems"], 0);
        fs::write(inner.join(FILE), "nonsense").unwrap();
        assert!(capabilities(&inner).is_empty());
    }
}
