//! Modules in one direction, in every crate: the root declares its modules in groups, separated by blank lines; a module
//! imports from its own group and from those above. And no two files import each other, directly or in a circle; tests
//! and examples of several files neither.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::program::Program;

/// The folder of every crate.
fn crates() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let crates = entries(folder).into_iter().filter(|path| path.join("Cargo.toml").exists());
    let crates: Vec<PathBuf> = crates.collect();
    assert!(crates.iter().any(|path| path.ends_with("testkit")), "{crates:?}");
    crates
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).map_or(Vec::new(), |entries| entries.map(|entry| entry.unwrap().path()).collect())
}

/// The files that a crate's library and program begin with.
fn roots(of: &Path) -> Vec<PathBuf> {
    let roots: Vec<PathBuf> =
        ["src/lib.rs", "src/main.rs"].iter().map(|root| of.join(root)).filter(|root| root.exists()).collect();
    assert!(!roots.is_empty(), "{} has neither src/lib.rs nor src/main.rs", of.display());
    roots
}

/// The files that its integration tests and examples begin with.
fn further_roots(of: &Path) -> Vec<PathBuf> {
    let entries = ["tests", "examples"].iter().flat_map(|folder| entries(&of.join(folder)));
    let roots = entries.map(|entry| if entry.is_dir() { entry.join("main.rs") } else { entry });
    roots
        .filter(|root| root.extension().is_some_and(|extension| extension == "rs") && root.exists())
        .collect()
}

/// The groups in which a root declares its modules, from the first.
fn layers(root: &Path) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(root).unwrap();
    let mut layers = BTreeMap::new();
    for (layer, group) in text.split("\n\n").enumerate() {
        for line in group.lines() {
            let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
            if let Some(module) = line.strip_prefix("mod ").and_then(|line| line.strip_suffix(';')) {
                layers.insert(module.to_owned(), layer);
            }
        }
    }
    layers
}

/// What imports from a layer below its own.
fn upward(root: &Path) -> Vec<String> {
    let layers = layers(root);
    let layer = |path: &[String]| path.first().map(|name| layers[name]);
    let program = Program::read(root);
    let mut upward = Vec::new();
    for (from, targets) in program.imports() {
        for to in &targets {
            if layer(from) < layer(to) && !from.is_empty() {
                upward.push(format!("{} imports {}", from.join("::"), to.join("::")));
            }
        }
    }
    upward
}

#[test]
fn modules_import_only_from_their_own_layer_and_those_above() {
    for root in crates().iter().flat_map(|of| roots(of)) {
        let upward = upward(&root);
        assert!(upward.is_empty(), "{} declares it below: {upward:#?}", root.display());
    }
}

/// The circles of a program, one text each, with files as seen from `folder`.
fn circles(root: &Path, folder: &Path) -> Vec<String> {
    let name = |file: &Path| file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let program = Program::read(root);
    let circles = program.circles().into_iter().map(|circle| {
        let arrows = circle.into_iter().map(|(from, to)| format!("{} imports {}", name(from), name(to)));
        arrows.collect::<Vec<_>>().join("\n")
    });
    circles.collect()
}

#[test]
fn no_two_files_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for of in crates() {
        for root in [roots(&of), further_roots(&of)].concat() {
            found.extend(circles(&root, of.parent().unwrap()));
        }
    }
    assert!(found.is_empty(), "{} circles:\n{}", found.len(), found.join("\n\n"));
}

/// A crate of these files, and what is found in it: circles, and imports from below.
fn found_in(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let root = folder.path().join("lib.rs");
    (circles(&root, folder.path()), upward(&root))
}

/// The circles in a crate of `a`, which has `b` and re-exports what it defines, and of `c`.
fn circles_of(a: &str, b: &str, c: &str) -> Vec<String> {
    let a = format!("mod b; pub(crate) use b::B; {a}");
    found_in(&[("lib.rs", "mod a;\nmod c;"), ("a/mod.rs", &a), ("a/b.rs", b), ("c.rs", c)]).0
}

const USES_C: &str = "use crate::c::C; pub struct B;";

#[test]
fn a_circle_is_seen_however_its_files_are_named() {
    let closes = |c| circles_of("", USES_C, c) == ["a/b.rs imports c.rs\nc.rs imports a/b.rs"];
    assert!(closes("use crate::a::B;"), "through a re-export");
    assert!(closes("struct C { b: crate::a::B }"), "by its path");
    assert!(closes("fn f() { m!(crate::a::B) }"), "inside of a macro");
    assert!(closes("fn f() { use super::a::{B, b::D}; }"), "in a function");
    assert!(closes("use crate::a; fn f() -> a::B {}"), "through its module");
    assert!(closes("use crate::a::b::*;"), "with all of its module");
    let in_folder = ["a/mod.rs imports a/b.rs\na/b.rs imports a/mod.rs"];
    assert_eq!(circles_of("struct A; fn f() { b::f() }", "use super::A;", ""), in_folder, "from above");
    assert_eq!(circles_of("struct A;", "use super::A; pub struct B;", ""), in_folder, "by a re-export");
}

#[test]
fn what_is_no_circle_is_not_reported() {
    let is_fine = |c| circles_of("", USES_C, c).is_empty();
    assert!(is_fine("#[cfg(test)] mod tests { use crate::a::B; }"), "only in tests");
    assert!(is_fine("#[cfg(test)] fn f(_: crate::a::B) {}"), "only for tests");
    assert!(is_fine("use other::a::B; fn f() -> ::a::B {}"), "of another crate");
    assert!(circles_of("pub(crate) use crate::c::C;", "use super::C;", "").is_empty(), "defined elsewhere");
}

#[test]
fn the_root_and_exported_macros_are_no_exceptions() {
    let of_root = [("lib.rs", "mod a;\nstruct Root; fn f() { a::f() }"), ("a.rs", "use crate::Root;")];
    assert_eq!(found_in(&of_root).0, ["lib.rs imports a.rs\na.rs imports lib.rs"]);
    let defines = "#[macro_export] macro_rules! m { () => {} }";
    let of_macro = [("lib.rs", "mod a;\nmod b;\npub use b::B;"), ("a.rs", defines), ("b.rs", "crate::m!();")];
    assert_eq!(found_in(&of_macro).0, Vec::<String>::new());
}

#[test]
fn an_import_from_a_layer_below_is_seen() {
    let files = |lib| found_in(&[("lib.rs", lib), ("a.rs", "use crate::b::B;"), ("b.rs", "")]).1;
    assert_eq!(files("mod a;\n\npub mod b;\n"), ["a imports b"]);
    assert!(files("mod a;\npub mod b;\n").is_empty() && files("pub mod b;\n\nmod a;\n").is_empty());
}
