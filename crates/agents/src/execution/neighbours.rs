//! Whether a script needs the files beside it. From sealed memory it would not find them.

use std::path::Path;

use crate::tool::files;

/// Words by which a script asks where it is, or loads what is beside it.
const SIGNS: &[&str] = &[
    "$0",
    "${0",
    "BASH_SOURCE",
    "dirname",
    "${(%)",
    "__file__",
    "__FILE__",
    "__dir__",
    "__dirname",
    "__filename",
    "argv[0]",
    "argv[1]",
    "sys.path",
    "import.meta",
    "require_relative",
    "require(",
    "FindBin",
    "use lib",
    "$PROGRAM_NAME",
    "from .",
    "importlib",
    "pkgutil",
    "__import__",
    "'./",
    "\"./",
    "'../",
    "\"../",
    "dofile",
    "package.path",
    "commandArgs",
];

/// How the names of scripts of node end.
const NODE_ENDS: &[&str] = &["js", "mjs", "cjs", "ts", "mts", "cts"];

/// Whether the text of a script has a sign that it needs files beside it. A text that is not known may.
pub(super) fn are_needed(path: &Path, run_by: Option<&str>, text: Option<&str>) -> bool {
    let Some(text) = text else { return true };
    // It follows links to its script, and memory has no path.
    let is_of_node = path.extension().is_some_and(|end| NODE_ENDS.iter().any(|it| end == *it));
    if is_of_node || run_by.is_some_and(|line| line.contains("node") || line.contains("bun")) {
        return true;
    }
    let is_shell_path = |line: &str| line.starts_with("source ") || line.starts_with(". ");
    SIGNS.iter().any(|sign| text.contains(sign))
        || text
            .split(['\n', ';'])
            .map(str::trim_start)
            .any(|line| is_shell_path(line) || imports_neighbour(path, line))
}

/// `import a, b` and `from a import b`, if there is such a file or folder beside the script.
fn imports_neighbour(path: &Path, line: &str) -> bool {
    let Some(rest) = line.strip_prefix("import ").or_else(|| line.strip_prefix("from ")) else {
        return false;
    };
    let Some(folder) = path.parent() else { return true };
    // Modules of JavaScript are found by the place of the script.
    if line.contains(['\'', '"']) {
        return true;
    }
    let names =
        rest.split(',').filter_map(|part| part.split([' ', '.', ';', '\t']).find(|name| !name.is_empty()));
    let is_beside = |name: &str| {
        files::exists(&folder.join(name))
            || ["py", "so", "pyc"].iter().any(|end| files::exists(&folder.join(name).with_extension(end)))
    };
    names.into_iter().any(is_beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("helper.py"), "").unwrap();
        let path = folder.path().join("script");
        for (text, expected) in [
            ("echo hello\n", false),
            ("import os, sys\nprint(os.name)\n", false),
            ("console.log(1)\n", false),
            ("import helper\n", true),
            ("import os, helper\n", true),
            ("  from helper import x\n", true),
            ("import os; import helper\n", true),
            ("cd \"$(dirname \"$0\")\"\n", true),
            (". lib.sh\n", true),
            ("source lib.sh\n", true),
            ("const a = require('a')\n", true),
            ("import a from 'a'\n", true),
            ("open(__file__)\n", true),
        ] {
            assert_eq!(are_needed(&path, None, Some(text)), expected, "{text}");
        }
        assert!(are_needed(&path, None, None), "a text that is not known");
        assert!(are_needed(&path.with_extension("js"), None, Some("")), "node follows links");
        assert!(are_needed(&path, Some("/usr/bin/env node"), Some("")), "node follows links");
    }
}
