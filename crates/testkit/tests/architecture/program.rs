//! A program or library as its files: which modules it has, and which file imports which.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    slice,
};

use crate::names::{Declaration, Import, Names, Segments};

struct Module {
    file: PathBuf,
    names: Names,
}

pub(crate) struct Program {
    /// By path; that of the root is empty.
    modules: BTreeMap<Segments, Module>,
}

impl Program {
    /// Reads a root, such as `lib.rs`, and all modules that it declares.
    pub(crate) fn read(root: &Path) -> Self {
        let mut program = Self { modules: BTreeMap::new() };
        program.read_module(Vec::new(), root.to_owned(), root.parent().unwrap());
        program
    }

    /// `folder` is where the modules are that it declares.
    fn read_module(&mut self, path: Segments, file: PathBuf, folder: &Path) {
        let names = Names::of(&fs::read_to_string(&file).unwrap());
        for Declaration { name, file: declared } in &names.modules {
            let child: Segments = [path.as_slice(), slice::from_ref(name)].concat();
            let own_folder = folder.join(name);
            match declared {
                Some(declared) => {
                    let declared = file.parent().unwrap().join(declared);
                    self.read_module(child, declared.clone(), declared.parent().unwrap());
                }
                None if own_folder.join("mod.rs").exists() => {
                    self.read_module(child, own_folder.join("mod.rs"), &own_folder);
                }
                None => self.read_module(child, folder.join(name).with_extension("rs"), &own_folder),
            }
        }
        self.modules.insert(path, Module { file, names });
    }

    /// Which modules each module imports from. The root's is empty, as a path.
    pub(crate) fn imports(&self) -> BTreeMap<&Segments, BTreeSet<Segments>> {
        self.modules.keys().map(|path| (path, self.imported_by(path))).collect()
    }

    fn imported_by(&self, own: &Segments) -> BTreeSet<Segments> {
        let Names { imports, paths, .. } = &self.modules[own].names;
        let imported = imports.iter().filter_map(|import| {
            let path = self.absolute(own, &import.path)?;
            // To import a module is nothing yet; what is named through it counts. All of a module is all at once.
            self.definer(&path).or_else(|| import.name.is_none().then_some(path))
        });
        let named = paths.iter().filter_map(|path| {
            let through = imports.iter().find(|import| import.name.as_ref() == path.first());
            let path = match through.filter(|_| !self.is_module(own, &path[..1])) {
                Some(import) => [self.absolute(own, &import.path)?.as_slice(), &path[1..]].concat(),
                None => self.absolute(own, path)?,
            };
            self.definer(&path)
        });
        imported.chain(named).filter(|target| target != own).collect()
    }

    fn is_module(&self, own: &[String], path: &[String]) -> bool {
        self.modules.contains_key(&[own, path].concat())
    }

    /// A path from the root; `None` for one of another crate.
    fn absolute(&self, own: &[String], path: &[String]) -> Option<Segments> {
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
        let is_ours = rest.len() < path.len() || self.is_module(own, &path[..1]);
        is_ours.then(|| [base.as_slice(), rest].concat())
    }

    /// The module that defines what a path from the root names; `None` if that is a module itself.
    fn definer(&self, path: &[String]) -> Option<Segments> {
        let known = (0..=path.len()).rev().find(|length| self.modules.contains_key(&path[..*length]))?;
        let (own, rest) = path.split_at(known);
        let (name, rest) = rest.split_first()?;
        let is_meant = |import: &&Import| import.is_exported && import.name.as_ref() == Some(name);
        let reexport = self.modules[own].names.imports.iter().find(is_meant);
        if let Some(target) = reexport.and_then(|import| self.absolute(own, &import.path)) {
            return self.definer(&[target.as_slice(), rest].concat());
        }
        let exports = |(_, module): &(&Segments, &Module)| module.names.exported_macros.contains(name);
        let of_macro = self.modules.iter().find(|module| own.is_empty() && exports(module));
        Some(of_macro.map_or_else(|| own.to_vec(), |(path, _)| path.clone()))
    }

    /// Files that import each other, directly or over others: each circle as who imports whom within it.
    pub(crate) fn circles(&self) -> BTreeSet<Vec<(&Path, &Path)>> {
        let imports = self.imports();
        let reachable: BTreeMap<&Segments, BTreeSet<&Segments>> =
            imports.keys().map(|from| (*from, reachable(&imports, from))).collect();
        let circle_of = |one: &Segments| {
            let is_in = |other: &Segments| reachable[one].contains(other) && reachable[other].contains(one);
            let arrows = imports.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (*from, to)));
            let within = arrows.filter(|(from, to)| is_in(from) && is_in(to));
            within.map(|(from, to)| (self.file(from), self.file(to))).collect::<Vec<_>>()
        };
        imports.keys().map(|path| circle_of(path)).filter(|circle| !circle.is_empty()).collect()
    }

    fn file(&self, path: &Segments) -> &Path {
        &self.modules[path].file
    }
}

fn reachable<'a>(
    imports: &'a BTreeMap<&Segments, BTreeSet<Segments>>,
    from: &Segments,
) -> BTreeSet<&'a Segments> {
    let mut seen = BTreeSet::new();
    let mut queue: Vec<&Segments> = imports[from].iter().collect();
    while let Some(next) = queue.pop() {
        if seen.insert(next) {
            queue.extend(&imports[next]);
        }
    }
    seen
}
