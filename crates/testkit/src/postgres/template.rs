//! An initialised data folder, made once and copied for each server: `initdb` takes over a second, and
//! every test is a process of its own.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::programs::Programs;
use crate::child_process::output;

/// Fills a data folder for one server, and makes the user that the server runs as its owner.
///
/// It is a copy because that user can't enter a cache below `/root`.
pub(super) fn copy(programs: &Programs, folder: &Path) {
    let template = find_or_make(programs);
    // The dot makes `cp` set the owner and mode of the folder itself too.
    output(Command::new("cp").arg("-a").arg(template.join(".")).arg(folder));
}

fn find_or_make(programs: &Programs) -> PathBuf {
    let name = format!("postgres-template-{}", programs.version());
    let template = cache().join(&name);
    if template.is_dir() {
        return template;
    }
    fs::create_dir_all(cache()).expect("a folder for the cache");
    // The lock saves the other processes the work; the rename at the end makes sure that a killed process leaves
    // no incomplete template.
    let lock = File::create(cache().join(format!("{name}.lock"))).expect("a lock file");
    lock.lock().expect("the lock");
    if !template.is_dir() {
        make(programs, &template);
    }
    template
}

fn make(programs: &Programs, template: &Path) {
    let made = temporary_folder();
    programs.hand_over(made.path());
    let mut initdb = programs.command("initdb", made.path());
    initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    output(initdb.arg("--pgdata").arg(made.path()));

    let beside = tempfile::Builder::new()
        .prefix("postgres-template-in-the-making-")
        .tempdir_in(cache())
        .expect("a folder in the cache");
    output(Command::new("cp").arg("-a").arg(made.path().join(".")).arg(beside.path()));
    fs::rename(beside.keep(), template).expect("the template gets its name");
}

fn cache() -> PathBuf {
    env::var_os("COUNTERSIGN_CACHE").map_or_else(
        || PathBuf::from(env::var_os("HOME").expect("HOME is set")).join(".cache/countersign"),
        PathBuf::from,
    )
}

pub(super) fn temporary_folder() -> TempDir {
    tempfile::Builder::new().prefix("countersign-postgres-").tempdir().expect("a temporary folder")
}
