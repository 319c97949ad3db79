//! What differs by operating system is in folders named `platform`.

use std::path::{Path, PathBuf};

/// What asks for a system.
const ASKING: &[&str] = &["unix", "windows", "target_os", "target_family"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true if path.ends_with("platform") || path.ends_with("target") => {}
            true => sources(&path, found),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The conditions of a text that ask which system it is, over however many lines they go.
fn asks(text: &str) -> Vec<String> {
    let conditions = ["cfg(", "cfg!(", "cfg_attr("].into_iter().flat_map(|start| text.split(start).skip(1));
    let mut found = Vec::new();
    for rest in conditions {
        let mut depth = 1_i32;
        let end = rest.find(|letter| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        });
        let condition = &rest[..end.unwrap_or(rest.len())];
        let mut words = condition.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        if words.any(|word| ASKING.contains(&word)) {
            found.push(condition.to_owned());
        }
    }
    found
}

#[test]
fn only_platform_folders_ask_which_system_it_is() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    assert!(files.len() > 500, "{} files", files.len());
    let of = |path: &PathBuf| {
        let found = asks(&std::fs::read_to_string(path).unwrap());
        (!found.is_empty()).then(|| format!("{}: {}", path.display(), found.join("; ")))
    };
    let wrong: Vec<String> =
        files.iter().filter(|path| !path.ends_with("architecture/platforms.rs")).filter_map(of).collect();
    assert!(wrong.is_empty(), "move this into a folder named platform:\n{}", wrong.join("\n"));
}

#[test]
fn a_condition_is_seen_however_it_is_written() {
    for text in [
        "#[cfg(unix)]",
        "#[cfg(not(windows))]",
        "#[cfg(any(test, target_os = \"macos\"))]",
        "if cfg!(windows) {}",
        "#[cfg_attr(\n    unix,\n    path = \"x.rs\"\n)]",
    ] {
        assert_eq!(asks(text).len(), 1, "{text}");
    }
    for text in ["#[cfg(test)] use std::os::unix::fs::X;", "#[cfg(feature = \"otel\")] fn unix() {}", "unix"]
    {
        assert!(asks(text).is_empty(), "{text}");
    }
}
