//! Whether Git, asked only to read, runs no program that the repository names: its own configuration can name a file system
//! monitor, filters, external diffs and more.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::site::Site;

/// A larger configuration is not read.
const MAX_BYTES: u64 = 64 * 1024;

/// Settings that name no program, by section; `*` stands for every setting of a section.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
            "quotepath",
            "longpaths",
        ],
    ),
    ("remote", &["url", "fetch", "pushurl", "push", "tagopt", "gh-resolved", "prune"]),
    ("branch", &["remote", "merge", "rebase", "pushremote", "description", "vscode-merge-base"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote"]),
    ("color", &["*"]),
    ("gc", &["auto", "autodetach"]),
    ("advice", &["*"]),
    ("fetch", &["prune"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("commit", &["verbose"]),
];

/// Says why Git may run something when it is called in a folder of the repository.
pub(super) fn runs_nothing(site: &Site, folder: &Path) -> Result<(), String> {
    let Some(root) = site.root() else { return Err("it does not run inside of a repository".to_owned()) };
    // A folder that looks like a bare repository is one, with a configuration of its own.
    if folder.ancestors().take_while(|above| above.starts_with(root)).any(|above| above.join("HEAD").exists())
    {
        return Err("a folder with a file HEAD may be another repository to Git".to_owned());
    }
    let unreadable = || "the configuration of the repository can't be read".to_owned();
    let common = common_folder(root).ok_or_else(unreadable)?;
    if common.join("modules").exists() {
        return Err("the repository has submodules, whose configurations are not examined".to_owned());
    }
    let path = common.join("config");
    let length = fs::metadata(&path).map_err(|_| unreadable())?.len();
    let text = fs::read_to_string(&path).ok().filter(|_| length <= MAX_BYTES).ok_or_else(unreadable)?;
    match setting_that_is_not_harmless(&text) {
        None => Ok(()),
        Some(setting) => Err(format!(
            "the repository's Git configuration has `{setting}`, which may run a program or show a password"
        )),
    }
}

/// The folder with the configuration: `.git`, or what a linked work tree names in its place.
fn common_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let named = fs::read_to_string(&git).ok()?;
    let folder = root.join(named.strip_prefix("gitdir:")?.trim());
    let common = fs::read_to_string(folder.join("commondir")).ok()?;
    Some(folder.join(common.trim()))
}

/// The first setting that is not in the list above, as `section.name`.
fn setting_that_is_not_harmless(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            // A setting on the line of its section is rare.
            let Some(header) = header.strip_suffix(']') else { return Some(line.to_owned()) };
            let name = header.split([' ', '\t', '"', '.']).next().unwrap_or_default();
            section = name.to_lowercase();
            continue;
        }
        let name = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_lowercase();
        let known = HARMLESS.iter().find(|(known, _)| *known == section);
        let is_harmless = known.is_some_and(|(_, names)| names.contains(&name.as_str()) || names == &["*"])
            && !has_password(line);
        // A line that goes on could hide the next one.
        if !is_harmless || line.ends_with('\\') {
            return Some(format!("{section}.{name}"));
        }
    }
    None
}

/// Whether an address in a setting has a password or token before its host.
fn has_password(line: &str) -> bool {
    let authority = line.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    authority.is_some_and(|authority| authority.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

    #[test]
    fn only_settings_that_run_nothing_pass() {
        assert_eq!(setting_that_is_not_harmless(USUAL), None);
        for (line, setting) in [
            ("[core]\n\tfsmonitor = ./evil", "core.fsmonitor"),
            ("[core]\nFSMonitor=./evil", "core.fsmonitor"),
            ("[core]\n\tpager = evil", "core.pager"),
            ("[core]\n\thooksPath = x", "core.hookspath"),
            ("[core] fsmonitor = evil", "[core] fsmonitor = evil"),
            ("[diff]\n\texternal = evil", "diff.external"),
            ("[diff \"x\"]\n\ttextconv = evil", "diff.textconv"),
            ("[filter \"x\"]\n\tclean = evil", "filter.clean"),
            ("[include]\n\tpath = ../x", "include.path"),
            ("[includeIf \"gitdir:x\"]\n\tpath = ../x", "includeif.path"),
            ("[alias]\n\tx = !evil", "alias.x"),
            ("[log]\n\tshowSignature = true", "log.showsignature"),
            ("[extensions]\n\tworktreeConfig = true", "extensions.worktreeconfig"),
            ("[remote \"o\"]\n\tpromisor = true", "remote.promisor"),
            ("[user]\n\tname = x\\\n[core]\n", "user.name"),
            ("[remote \"o\"]\n\turl = https://me:token@example.org/x", "remote.url"),
        ] {
            assert_eq!(
                setting_that_is_not_harmless(&format!("{USUAL}{line}")).as_deref(),
                Some(setting),
                "{line}"
            );
        }
    }

    #[test]
    fn other_repositories_and_what_cannot_be_read_do_not_pass() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("bare/objects")).unwrap();
        let check = |place: &str| runs_nothing(&Site::of(root), &root.join(place));
        assert!(check("").unwrap_err().contains("can't be read"));
        fs::write(root.join(".git/config"), USUAL).unwrap();
        check("").unwrap();
        check("src").unwrap();
        fs::write(root.join("bare/HEAD"), "ref: refs/heads/main").unwrap();
        assert!(check("bare").unwrap_err().contains("HEAD") && check("bare/objects").is_err());
        fs::create_dir(root.join(".git/modules")).unwrap();
        assert!(check("").unwrap_err().contains("submodules"));
        fs::remove_dir(root.join(".git/modules")).unwrap();
        // A linked work tree has its configuration elsewhere.
        let linked = folder.path().join("linked");
        fs::create_dir_all(root.join(".git/worktrees/linked")).unwrap();
        fs::write(root.join(".git/worktrees/linked/commondir"), "../..\n").unwrap();
        fs::create_dir(&linked).unwrap();
        fs::write(linked.join(".git"), "gitdir: ../.git/worktrees/linked\n").unwrap();
        runs_nothing(&Site::of(&linked), &linked).unwrap();
        fs::write(root.join(".git/config"), "[core]\nfsmonitor = x").unwrap();
        assert!(runs_nothing(&Site::of(&linked), &linked).unwrap_err().contains("fsmonitor"));
    }
}
