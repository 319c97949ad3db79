//! Variables that settings carry into a hook, by the files that hosts list.

use std::{fs, path::Path};

use countersign_agents::{
    hosts::{claude, gemini},
    install::{
        places::Places,
        variables::{in_dot_env, in_settings},
    },
};

#[test]
fn variables_that_reach_a_hook_are_found_in_every_file() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::under(root.path());
    let project = root.path().join("project");
    let write = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let find = || {
        let files = &claude::HOST.files;
        let folder = (files.folder)(&places);
        in_settings(claude::HOST.names, files.deciding, &folder, &places, &project)
    };
    let files = [
        places.home.join(".claude/settings.json"),
        project.join(".claude/settings.json"),
        project.join(".claude/settings.local.json"),
    ];
    for file in &files {
        for name in [
            "LD_PRELOAD",
            "LD_X",
            "DYLD_INSERT_LIBRARIES",
            "COUNTERSIGN_HOME",
            "BASH_ENV",
            "ENV",
            "PATH",
            "NODE_OPTIONS",
        ] {
            write(file, &format!("{{\"env\": {{\"{name}\": \"./x\", \"EDITOR\": \"vi\"}}}}"));
            let found = find();
            assert_eq!(found.len(), 1, "{name}");
            assert!(found[0].what.contains(name) && found[0].what.contains(file.to_str().unwrap()));
        }
        write(file, "{\"env\": {\"EDITOR\": \"vi\", \"LD_PRELOAD\": \"\", \"OLD_PATH\": \"x\"}}");
        assert_eq!(find(), []);
    }
    let dot_env = project.join(".env");
    write(&dot_env, "# LD_PRELOAD=x\nKEY=1\nENVIRONMENT=x\n");
    assert_eq!(in_dot_env(gemini::HOST.names, &dot_env), None);
    write(&dot_env, "KEY=1\nexport LD_PRELOAD=./x\n");
    assert!(in_dot_env(gemini::HOST.names, &dot_env).unwrap().what.contains("LD_PRELOAD"));
}
