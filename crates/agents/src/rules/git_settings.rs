//! Settings of Git with which commands that only read run no program of somebody else's choice.

use crate::examine::git::config::Setting;

/// Settings by section; `*` stands for every setting of a section.
type Table = &'static [(&'static str, &'static [&'static str])];

/// Whose a configuration is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// In the repository, where whoever wrote the repository may have set it.
    Repository,
    /// The user's or the machine's.
    User,
}

/// What is harmless wherever it stands: it names no program.
const EVERYWHERE: Table = &[
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
    ("lfs", &["repositoryformatversion", "locksverify", "access"]),
];

/// What is harmless besides in a configuration of the user. Four groups: what concerns only commands that write or use the
/// network (editors, credentials, SSH, merges); aliases, because no alias replaces a command of Git itself; the user's own pager
/// and the program that checks signatures, which the user has chosen and the repository can't change; and how things look.
const OF_USER: Table = &[
    (
        "core",
        &[
            "editor",
            "pager",
            "excludesfile",
            "attributesfile",
            "whitespace",
            "abbrev",
            "sshcommand",
            "askpass",
            "commentchar",
            "commentstring",
            "preloadindex",
            "untrackedcache",
            "fscache",
            "checkstat",
            "trustctime",
            "compression",
            "bigfilethreshold",
            "sharedrepository",
        ],
    ),
    ("alias", &["*"]),
    ("am", &["*"]),
    ("apply", &["*"]),
    ("author", &["*"]),
    ("blame", &["*"]),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("browser", &["*"]),
    ("checkout", &["*"]),
    ("clean", &["*"]),
    ("clone", &["*"]),
    ("column", &["*"]),
    ("commit", &["*"]),
    ("committer", &["*"]),
    ("credential", &["*"]),
    ("delta", &["*"]),
    (
        "diff",
        &[
            "algorithm",
            "binary",
            "colormoved",
            "colormovedws",
            "context",
            "guitool",
            "indentheuristic",
            "interhunkcontext",
            "mnemonicprefix",
            "noprefix",
            "renamelimit",
            "renames",
            "statgraphwidth",
            "tool",
            "wordregex",
            "wserrorhighlight",
            "xfuncname",
        ],
    ),
    ("difftool", &["*"]),
    ("feature", &["*"]),
    ("fetch", &["*"]),
    ("format", &["*"]),
    ("gc", &["*"]),
    ("github", &["*"]),
    ("gpg", &["*"]),
    ("grep", &["*"]),
    ("gui", &["*"]),
    ("help", &["*"]),
    ("http", &["*"]),
    ("hub", &["*"]),
    ("init", &["*"]),
    ("interactive", &["*"]),
    ("log", &["abbrevcommit", "date", "decorate", "excludedecoration", "follow", "graphcolors", "mailmap"]),
    ("mailmap", &["*"]),
    ("maintenance", &["*"]),
    ("man", &["*"]),
    ("merge", &["*"]),
    ("mergetool", &["*"]),
    ("notes", &["*"]),
    ("pack", &["*"]),
    ("pager", &["*"]),
    ("pretty", &["*"]),
    ("protocol", &["*"]),
    ("pull", &["*"]),
    ("push", &["*"]),
    ("rebase", &["*"]),
    ("rerere", &["*"]),
    ("safe", &["*"]),
    ("sendemail", &["*"]),
    ("sequence", &["*"]),
    ("ssh", &["*"]),
    ("stash", &["*"]),
    ("status", &["*"]),
    ("tag", &["*"]),
    ("transfer", &["*"]),
    ("url", &["*"]),
    ("user", &["*"]),
    ("versionsort", &["*"]),
    ("web", &["*"]),
];

/// Sections whose addresses Git shows.
const SHOWN: &[&str] = &["remote", "url", "branch"];

/// Whether a setting can't make a command that only reads run a program, or show a password.
pub(super) fn is_harmless(setting: &Setting, owner: Owner) -> bool {
    let lists = |table: Table| {
        let names = |names: &[&str]| names == ["*"] || names.contains(&setting.name.as_str());
        table.iter().any(|(section, listed)| *section == setting.section && names(listed))
    };
    let is_listed = lists(EVERYWHERE) || (owner == Owner::User && (lists(OF_USER) || is_off(setting)));
    is_listed && !shows_password(setting)
}

/// A switch that is off runs nothing.
fn is_off(setting: &Setting) -> bool {
    let is_switch = setting.is("core", None, "fsmonitor") || setting.is("log", None, "showsignature");
    let value = setting.value.as_deref().unwrap_or_default().to_ascii_lowercase();
    is_switch && matches!(value.as_str(), "false" | "no" | "off" | "0")
}

/// Whether it is the filter of Git LFS as `git lfs install` writes it.
pub(super) fn is_lfs_filter(setting: &Setting) -> bool {
    let value = setting.value.as_deref().unwrap_or_default();
    let expected: &[&str] = match setting.name.as_str() {
        "clean" => &["git-lfs clean -- %f"],
        "smudge" => &["git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"],
        "process" => &["git-lfs filter-process", "git-lfs filter-process --skip"],
        "required" => &["true", "false"],
        _ => &[],
    };
    setting.section == "filter" && setting.subsection.as_deref() == Some("lfs") && expected.contains(&value)
}

/// Whether an address that Git shows has a password or token before its host.
fn shows_password(setting: &Setting) -> bool {
    let has_password = |text: &str| {
        let authority = text.split_once("://").and_then(|(_, rest)| rest.split('/').next());
        authority.is_some_and(|authority| authority.contains('@'))
    };
    let texts = [setting.subsection.as_deref(), setting.value.as_deref()];
    SHOWN.contains(&setting.section.as_str()) && texts.into_iter().flatten().any(has_password)
}
