//! What a file names: modules, imports, and every other path. Tests inside the file do not count.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Item, ItemUse, UseTree, Visibility};

/// The segments of a path, as it is written or from the root of its crate.
pub(crate) type Segments = Vec<String>;

/// What a `use` brings in.
pub(crate) struct Import {
    pub(crate) path: Segments,
    /// What it is called here; `None` for all of a module.
    pub(crate) name: Option<String>,
    /// Whether others can import it from here.
    pub(crate) is_exported: bool,
}

/// A module in a file of its own.
pub(crate) struct Declaration {
    pub(crate) name: String,
    /// The file, if `#[path = "…"]` says it.
    pub(crate) file: Option<String>,
}

#[derive(Default)]
pub(crate) struct Names {
    pub(crate) modules: Vec<Declaration>,
    pub(crate) imports: Vec<Import>,
    /// Paths of two segments or more outside of `use`, inside of macros too.
    pub(crate) paths: Vec<Segments>,
    /// Macros that `#[macro_export]` puts at the root of the crate.
    pub(crate) exported_macros: Vec<String>,
}

impl Names {
    pub(crate) fn of(text: &str) -> Self {
        let mut names = Self::default();
        for item in syn::parse_file(text).unwrap().items {
            names.read(item);
        }
        names
    }

    fn read(&mut self, item: Item) {
        let tokens = item.to_token_stream();
        match item {
            Item::Mod(module) if module.content.is_none() => {
                let file = module.attrs.iter().find(|attribute| attribute.path().is_ident("path"));
                let file = file.map(|attribute| {
                    let value = attribute.meta.require_name_value().unwrap().value.to_token_stream();
                    syn::parse2::<syn::LitStr>(value).unwrap().value()
                });
                self.modules.push(Declaration { name: module.ident.to_string(), file });
            }
            _ if is_test_only(tokens.clone()) => {}
            Item::Mod(module) => panic!("{} is read only in a file of its own", module.ident),
            Item::Use(used) => self.import(&used),
            other => {
                if let Item::Macro(defined) = &other
                    && defined.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export"))
                {
                    self.exported_macros.extend(defined.ident.as_ref().map(ToString::to_string));
                }
                self.read_paths(tokens);
            }
        }
    }

    fn import(&mut self, used: &ItemUse) {
        let is_exported = !matches!(used.vis, Visibility::Inherited);
        for (path, name) in flatten(&used.tree, Vec::new()) {
            assert!(name.is_some() || !is_exported, "a re-export of all of {path:?} hides who defines what");
            self.imports.push(Import { path, name, is_exported });
        }
    }

    fn read_paths(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        let mut is_continued = false;
        while let [token, after @ ..] = rest {
            rest = after;
            match token {
                TokenTree::Group(group) => self.read_paths(group.stream()),
                TokenTree::Ident(keyword) if keyword == "use" => {
                    let end = rest.iter().position(is_semicolon).map_or(rest.len(), |at| at + 1);
                    let used = std::iter::once(token).chain(&rest[..end]).cloned().collect();
                    if let Ok(used) = syn::parse2::<ItemUse>(used) {
                        self.import(&used);
                        rest = &rest[end..];
                    }
                }
                TokenTree::Ident(first) => {
                    let mut path = vec![first.to_string()];
                    while let [
                        TokenTree::Punct(one),
                        TokenTree::Punct(two),
                        TokenTree::Ident(next),
                        after @ ..,
                    ] = rest
                        && (one.as_char(), two.as_char()) == (':', ':')
                    {
                        path.push(next.to_string());
                        rest = after;
                    }
                    // After `::` it is the end of a path of another crate or of a type.
                    if path.len() > 1 && !is_continued {
                        self.paths.push(path);
                    }
                }
                _ => {}
            }
            is_continued = matches!(token, TokenTree::Punct(one) if one.as_char() == ':' && one.spacing() == Spacing::Joint);
            if is_continued {
                rest = &rest[1..];
            }
        }
    }
}

fn is_semicolon(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';')
}

/// Whether an item begins with `#[cfg(test)]`, among other attributes.
fn is_test_only(item: TokenStream) -> bool {
    let mut tokens = item.into_iter();
    while let (Some(TokenTree::Punct(hash)), Some(TokenTree::Group(attribute))) =
        (tokens.next(), tokens.next())
        && hash.as_char() == '#'
    {
        let text = attribute.stream().to_string().replace(' ', "");
        if text.starts_with("cfg(") && text.contains("test") && !text.contains("not(test") {
            return true;
        }
    }
    false
}

/// Every path of a `use` tree, with the name that it brings in.
fn flatten(tree: &UseTree, mut prefix: Segments) -> Vec<(Segments, Option<String>)> {
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix)
        }
        UseTree::Name(name) if name.ident == "self" => {
            let last = prefix.last().cloned();
            vec![(prefix, last)]
        }
        UseTree::Name(name) => {
            prefix.push(name.ident.to_string());
            vec![(prefix, Some(name.ident.to_string()))]
        }
        UseTree::Rename(renamed) => {
            if renamed.ident != "self" {
                prefix.push(renamed.ident.to_string());
            }
            vec![(prefix, Some(renamed.rename.to_string()))]
        }
        UseTree::Glob(_) => vec![(prefix, None)],
        UseTree::Group(group) => group.items.iter().flat_map(|tree| flatten(tree, prefix.clone())).collect(),
    }
}
