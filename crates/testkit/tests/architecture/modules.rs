//! Modules in one direction. `lib.rs` declares its modules in groups, separated by blank lines; a module imports from
//! its own group and from those above, and no two files import each other, directly or in a circle.
//!
//! Both `use` declarations and paths such as `crate::store::Key` count; tests inside the files do not.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Item, UseTree};

/// The crates whose `lib.rs` is in layers: `client`, `core`, `server`, every store and every doorbell.
fn layered() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_layered = |name: &String| {
        ["cli", "client", "core", "server"].contains(&name.as_str())
            || ["store-", "doorbell-"].iter().any(|prefix| name.starts_with(prefix))
    };
    let mut layered: Vec<String> = names.filter(is_layered).collect();
    layered.sort();
    assert!(layered.len() >= 5, "{layered:?}");
    layered
}

/// The segments of a path within its crate; empty for the root.
type ModulePath = Vec<String>;

#[derive(Default)]
struct Module {
    /// Absolute paths that the file names, within the crate.
    names: Vec<ModulePath>,
    /// What the module re-exports, and from where.
    reexports: BTreeMap<String, ModulePath>,
}

struct Crate {
    modules: BTreeMap<ModulePath, Module>,
}

impl Crate {
    fn read(name: &str) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let mut modules = BTreeMap::new();
        for file in rust_files(&source) {
            let path = module_path(&source, &file);
            let text = fs::read_to_string(&file).unwrap();
            let parsed = syn::parse_file(&text).unwrap();
            let mut module = Module::default();
            collect(&parsed.items, &path, &mut module);
            modules.insert(path, module);
        }
        Self { modules }
    }

    /// The module that defines what `path` names.
    fn resolve(&self, path: &[String], depth: usize) -> ModulePath {
        let known = (0..=path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]));
        let (module, rest) = path.split_at(known.unwrap_or(0));
        match rest.first().and_then(|name| self.modules[module].reexports.get(name)) {
            Some(target) if depth < 10 => self.resolve(target, depth + 1),
            _ => module.to_vec(),
        }
    }

    /// Which files each file imports.
    fn imports(&self) -> BTreeMap<&ModulePath, BTreeSet<ModulePath>> {
        let of = |module: &Module, own: &ModulePath| -> BTreeSet<ModulePath> {
            module.names.iter().map(|path| self.resolve(path, 0)).filter(|target| target != own).collect()
        };
        // The root only declares and re-exports.
        let files = self.modules.iter().filter(|(path, _)| !is_root(path));
        files.map(|(path, module)| (path, of(module, path))).collect()
    }

    /// Files that import each other in a circle.
    fn circular(&self) -> Vec<String> {
        let imports = self.imports();
        let reachable = |from: &ModulePath| {
            let mut seen = BTreeSet::new();
            let mut queue: Vec<ModulePath> = imports[from].iter().cloned().collect();
            while let Some(next) = queue.pop() {
                if seen.insert(next.clone())
                    && let Some(targets) = imports.get(&next)
                {
                    queue.extend(targets.iter().cloned());
                }
            }
            seen
        };
        imports.keys().filter(|path| reachable(path).contains(**path)).map(|path| path.join("::")).collect()
    }
}

fn is_root(path: &[String]) -> bool {
    path.is_empty() || path == ["main"]
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// `src/store/mod.rs` and `src/store.rs` are `store`; `src/lib.rs` is the root.
fn module_path(source: &Path, file: &Path) -> ModulePath {
    let relative = file.strip_prefix(source).unwrap().with_extension("");
    let mut path: ModulePath = relative.iter().map(|segment| segment.to_str().unwrap().to_owned()).collect();
    // The root of a library is `lib.rs`; of a program without one it is `main.rs`.
    let root = if source.join("lib.rs").exists() { "lib" } else { "main" };
    if path.last().is_some_and(|last| last == "mod" || (path.len() == 1 && last == root)) {
        path.pop();
    }
    path
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.to_token_stream().to_string().contains("test")
    })
}

fn collect(items: &[Item], own: &ModulePath, module: &mut Module) {
    for item in items {
        match item {
            Item::Use(used) if !is_test_only(&used.attrs) => {
                let exported = !matches!(used.vis, syn::Visibility::Inherited);
                for (path, name) in flatten(&used.tree, Vec::new()) {
                    let path = absolute(&path, own);
                    module.names.push(path.clone());
                    if exported {
                        module.reexports.insert(name, path);
                    }
                }
            }
            // A file of its own, or a module of tests.
            Item::Mod(_) | Item::Use(_) => {}
            other => paths_in(other.to_token_stream(), own, &mut module.names),
        }
    }
}

/// Every path of a `use` tree, with the name that it brings in.
fn flatten(tree: &UseTree, mut prefix: Vec<String>) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix)
        }
        UseTree::Name(name) if name.ident == "self" => {
            let last = prefix.last().cloned().unwrap_or_default();
            vec![(prefix, last)]
        }
        UseTree::Name(name) => {
            prefix.push(name.ident.to_string());
            vec![(prefix, name.ident.to_string())]
        }
        UseTree::Rename(renamed) => {
            prefix.push(renamed.ident.to_string());
            vec![(prefix, renamed.rename.to_string())]
        }
        UseTree::Glob(_) => vec![(prefix, "*".to_owned())],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| flatten(tree, prefix.clone())).collect(),
    }
}

/// The path within the crate. Without a keyword it is a child module's or another crate's; the latter resolves to the
/// file itself.
fn absolute(path: &[String], own: &[String]) -> ModulePath {
    let mut base = own.to_vec();
    let mut rest = path;
    while let Some((keyword, after)) = rest.split_first() {
        match keyword.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    base.extend(rest.iter().cloned());
    base
}

/// Paths that begin with `crate` or `super`, wherever they stand, inside of macros too.
fn paths_in(tokens: TokenStream, own: &ModulePath, into: &mut Vec<ModulePath>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut index = 0;
    while index < tokens.len() {
        match &tokens[index] {
            TokenTree::Group(group) => paths_in(group.stream(), own, into),
            TokenTree::Ident(ident) if ident == "crate" || ident == "super" => {
                let mut path = vec![ident.to_string()];
                while let [TokenTree::Punct(first), TokenTree::Punct(second), TokenTree::Ident(next), ..] =
                    &tokens[index + 1..]
                    && first.as_char() == ':'
                    && second.as_char() == ':'
                {
                    path.push(next.to_string());
                    index += 3;
                }
                // `pub(crate)` is no path.
                if path.len() > 1 {
                    into.push(absolute(&path, own));
                }
            }
            _ => {}
        }
        index += 1;
    }
}

/// The groups in which `lib.rs` declares its modules, from the first.
fn layers(name: &str) -> BTreeMap<String, usize> {
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src/lib.rs");
    let text = fs::read_to_string(lib).unwrap();
    let mut layers = BTreeMap::new();
    for (layer, group) in text.split("\n\n").enumerate() {
        for line in group.lines() {
            let line = line.strip_prefix("pub ").unwrap_or(line);
            if let Some(module) = line.strip_prefix("mod ").and_then(|line| line.strip_suffix(';')) {
                layers.insert(module.to_owned(), layer);
            }
        }
    }
    layers
}

#[test]
fn modules_import_only_from_their_own_layer_and_those_above() {
    for name in &layered() {
        let layers = layers(name);
        let parsed = Crate::read(name);
        for (from, targets) in parsed.imports() {
            for to in targets.iter().filter(|target| !is_root(target)) {
                let arrow = format!("{name}: {} imports {}", from.join("::"), to.join("::"));
                let layer = |path: &ModulePath| {
                    *layers
                        .get(&path[0])
                        .unwrap_or_else(|| panic!("{name}: lib.rs does not declare {}", path[0]))
                };
                assert!(layer(to) <= layer(from), "{arrow}, which lib.rs declares below it");
            }
        }
    }
}

#[test]
fn no_two_files_of_a_crate_import_each_other_in_a_circle() {
    for name in layered().iter().map(String::as_str).chain(["wire"]) {
        let circular = Crate::read(name).circular();
        assert!(circular.is_empty(), "{name}: {} files in circles: {circular:?}", circular.len());
    }
}

/// The reader itself: it must see what it is there to find.
#[test]
fn a_circle_is_seen_through_use_declarations_macros_and_reexports() {
    let module = |text: &str, path: &[&str]| {
        let own: ModulePath = path.iter().map(ToString::to_string).collect();
        let mut module = Module::default();
        collect(&syn::parse_file(text).unwrap().items, &own, &mut module);
        (own, module)
    };
    let circular = |files: [(&str, &[&str]); 3]| {
        let mut modules: BTreeMap<ModulePath, Module> =
            files.into_iter().map(|(text, path)| module(text, path)).collect();
        modules.insert(Vec::new(), Module::default());
        Crate { modules }.circular()
    };
    let folder = ("mod b; pub(crate) use b::B;", ["a"].as_slice());
    assert_eq!(
        circular([folder, ("use crate::c::C;", &["a", "b"]), ("fn f() { m!(crate::a::B) }", &["c"])]),
        ["a::b", "c"],
        "through a re-export and inside a macro"
    );
    let in_tests = "#[cfg(test)] mod tests { use crate::a::B; }";
    assert!(circular([folder, ("use crate::c::C;", &["a", "b"]), (in_tests, &["c"])]).is_empty());
}
