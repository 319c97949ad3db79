//! Built in: the folders of profiles and rules, and the files in which hooks are set up, are not for agents. What else decides is
//! changed only if a person says so.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{glob::wildcard, site::Target};
use crate::{
    hosts::{self, spec::Moves},
    install::{
        deciding_files::{Base, DecidingFile, OF_EVERY_HOST, Place},
        places::Places,
    },
    platform::{MANAGED, is_at, managed_name},
    tool::{caller::Caller, files, home::Home},
};

/// Our own folder by its usual names, for texts in which a variable may stand before it.
const OWN_NAMES: &[&str] = &[
    "share/countersign",
    "countersign/profiles",
    "countersign/rules.toml",
    "support/countersign",
    "countersign_home",
];

/// This program, and those that are installed beside it.
fn programs() -> impl Iterator<Item = PathBuf> {
    let own = env::current_exe().ok();
    let beside =
        own.iter().flat_map(|own| ["countersign", "countersign-hook"].map(|name| own.with_file_name(name)));
    own.clone().into_iter().chain(beside.collect::<Vec<_>>())
}

/// Where the administrator's policy is.
const OF_ADMINISTRATOR: &str = "/etc/countersign";

/// What agents must not touch on this machine.
#[derive(Debug, Clone)]
pub(super) struct Protected {
    /// The folder of the tool, which is not read either.
    own: Vec<PathBuf>,
    /// Other folders and files.
    others: Vec<PathBuf>,
    /// Files that only a person lets them change.
    asked: Vec<PathBuf>,
    /// This program, which agents may run and not replace.
    program: Vec<PathBuf>,
}

impl Protected {
    /// Folders count by the variables of the caller and by the account: settings of a repository can change the former.
    pub(super) fn new(tool: &Home, caller: &Caller) -> Self {
        let mut all = Self::by(tool.folder(), |name| caller.variable(name).map(Into::into));
        let of_user =
            Self::by(tool.folder(), |name| (name == "HOME").then(|| tool.user().map(Into::into))?);
        all.own.extend(tool.profile_file().map(Path::to_owned).into_iter().flat_map(with_real));
        all.others.extend(of_user.others);
        all.asked.extend(of_user.asked);
        all
    }

    /// With this folder of the user and no other variable.
    #[cfg(test)]
    pub(super) fn of_home(own: &Path, home: &Path) -> Self {
        Self::by(own, |name| (name == "HOME").then(|| home.into()))
    }

    fn by(own: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let given = ["HOME", "XDG_CONFIG_HOME"].into_iter();
        let given = given.chain(hosts::ALL.iter().flat_map(|host| host.files.variables).map(|it| it.name));
        let places = Places::by(given.filter_map(|name| Some((name.into(), variable(name)?))));
        let (denied, asked): (Vec<_>, Vec<_>) =
            files(places.as_ref()).into_iter().partition(|(row, _)| row.kind().is_denied());
        let path = |(_, path): (&DecidingFile, PathBuf)| path;
        let moved =
            hosts::ALL.into_iter().flat_map(|host| host.files.variables).filter_map(
                |variable| match variable.moves {
                    Moves::Folder => named(variable.name),
                    Moves::Parent(folder) => Some(named(variable.name)?.join(folder?)),
                },
            );
        let others = denied.into_iter().map(path).chain(moved).chain([OF_ADMINISTRATOR.into()]);
        Self {
            own: with_real(own.to_owned()).collect(),
            others: others.flat_map(with_real).collect(),
            asked: asked.into_iter().map(path).flat_map(with_real).collect(),
            program: programs().flat_map(with_real).collect(),
        }
    }

    /// Why a file must not be written; `None` if it may.
    pub(super) fn against_writing(&self, target: &Target) -> Option<String> {
        let program = target.paths().find(|path| self.program.iter().any(|program| is_at(path, program)));
        let of_program = program.map(|path| reason(&path.to_string_lossy()));
        of_program.or_else(|| target.paths().find_map(|path| self.against_path(path, false)))
    }

    /// Why a file must not be read; `None` if it may.
    pub(super) fn against_reading(&self, target: &Target) -> Option<String> {
        let is_own = |path: &Path| self.own.iter().any(|folder| is_at(path, folder));
        target.paths().find(|path| is_own(path)).map(|path| reason(&path.to_string_lossy()))
    }

    /// Why a shell must not be given this file or folder. Folders that have protected files in them count too.
    pub(super) fn against_naming(&self, target: &Target) -> Option<String> {
        target.paths().find_map(|path| self.against_path(path, true))
    }

    fn against_path(&self, path: &Path, folders: bool) -> Option<String> {
        let text = path.to_string_lossy();
        match self.own.iter().chain(&self.others).any(|folder| is_at(path, folder)) {
            true => Some(reason(&text)),
            false => found_in(&text, folders, true).map(|found| reason(&found)),
        }
    }

    /// Why no rule allows changing this file, or giving it to a command; `None` if one may.
    pub(super) fn against_rules(&self, target: &Target) -> Option<String> {
        let is_asked = |path: &Path| self.asked.iter().any(|file| is_at(path, file));
        let found = target.paths().find_map(|path| match is_asked(path) {
            true => Some(path.display().to_string()),
            false => found_in(&path.to_string_lossy(), true, false),
        });
        found.map(|what| {
            format!("{what} decides what agents are told or what shells run, so a person is asked")
        })
    }

    /// Why a text must not be given to a shell, whatever is around the name.
    pub(super) fn against_text(&self, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        if let Some(name) = OWN_NAMES.iter().find(|name| lower.contains(*name)) {
            return Some(reason(name));
        }
        if let Some(name) = variable_in(&lower) {
            return Some(reason(name));
        }
        let paths = self.own.iter().chain(&self.others).map(|path| path.to_string_lossy().to_lowercase());
        if let Some(path) = paths.into_iter().find(|path| path.len() > 1 && names_path(&lower, path)) {
            return Some(reason(&path));
        }
        let is_path = |char: char| char.is_alphanumeric() || "._/~*?[]{}$-+@".contains(char);
        let words = text.split(|char| !is_path(char));
        // No name in the tables is shorter, and each has a dot.
        let words = words.filter(|word| word.len() >= ".codex".len() && word.contains('.'));
        words.into_iter().find_map(|word| found_in(word, true, true)).map(|found| reason(&found))
    }
}

/// A path, and where it leads if that is elsewhere.
fn with_real(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let real = files::canonicalize(&path).ok().filter(|real| *real != path);
    [Some(path), real].into_iter().flatten()
}

/// Every row of every table.
fn rows() -> impl Iterator<Item = &'static DecidingFile> {
    hosts::ALL.into_iter().flat_map(|host| host.files.deciding).chain(OF_EVERY_HOST)
}

/// The rows that are one file or folder of this machine, with its path.
fn files(places: Option<&Places>) -> Vec<(&'static DecidingFile, PathBuf)> {
    let of_host = |host: Option<hosts::Host>, row: &'static DecidingFile| {
        let path = match row {
            DecidingFile::Many(pattern) => match pattern.place {
                Place::ManagedFolder(folder) => Path::new(MANAGED).join(managed_name(folder)),
                Place::Absolute(folder) => PathBuf::from(folder),
                Place::Named(_) | Place::Anywhere => return None,
            },
            DecidingFile::One(file) => match file.base {
                Base::Managed(folder) => Path::new(MANAGED).join(managed_name(folder)).join(file.name),
                Base::Home => places?.home.join(file.name),
                Base::User => (host?.files.folder)(places?).join(file.name),
                Base::Project(_) => return None,
            },
        };
        Some((row, path))
    };
    let hosts = hosts::ALL.into_iter();
    let of_hosts =
        hosts.flat_map(|host| host.files.deciding.iter().filter_map(move |row| of_host(Some(host), row)));
    of_hosts.chain(OF_EVERY_HOST.iter().filter_map(|row| of_host(None, row))).collect()
}

/// The folder and the name of a row that is in every folder of a name.
fn named(row: &DecidingFile) -> Option<(&'static str, &'static str)> {
    match row {
        DecidingFile::One(file) => match file.base {
            Base::Project(folder) => Some((folder, file.name)),
            Base::User | Base::Home | Base::Managed(_) => None,
        },
        DecidingFile::Many(pattern) => match pattern.place {
            Place::Named(folder) => Some((folder, pattern.name)),
            Place::Anywhere | Place::ManagedFolder(_) | Place::Absolute(_) => None,
        },
    }
}

/// The name of a row that is in any folder.
fn anywhere(row: &DecidingFile) -> Option<&'static str> {
    match row {
        DecidingFile::Many(pattern) if pattern.place == Place::Anywhere => Some(pattern.name),
        _ => None,
    }
}

/// The variable in a text, in lower case, that names or moves a folder of a host.
fn variable_in(text: &str) -> Option<&'static str> {
    let is_used = |name: &str| {
        let name = name.to_lowercase();
        let forms = [format!("${name}"), format!("${{{name}"), format!("{name}=")];
        forms.iter().any(|form| text.contains(form))
    };
    let found = hosts::ALL.into_iter().find_map(|host| {
        let is_meant = |moves| moves == Moves::Folder || text.contains(host.word());
        host.files.variables.iter().find(|variable| is_meant(variable.moves) && is_used(variable.name))
    });
    found.map(|variable| variable.name)
}

/// Whether a path stands in a text, and not only as the beginning of a longer name.
fn names_path(text: &str, path: &str) -> bool {
    text.match_indices(path).any(|(start, _)| {
        let after = text[start + path.len()..].chars().next();
        !after.is_some_and(|char| char.is_alphanumeric() || matches!(char, '-' | '_' | '.'))
    })
}

fn reason(what: &str) -> String {
    format!("agents may not touch {what}: it decides what agents may do")
}

/// What decides in a path. `folders`: whether the folder alone counts. `denied`: of the kinds that are denied, or of the others.
fn found_in(path: &str, folders: bool, denied: bool) -> Option<String> {
    let lower = path.to_lowercase();
    let names: Vec<&str> = lower.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    let rows = || rows().filter(|row| row.kind().is_denied() == denied);
    if let Some(file) = names.last().filter(|name| rows().filter_map(anywhere).any(|it| it == **name)) {
        return Some((*file).to_owned());
    }
    // Every folder in the tables begins with a dot, and few paths have such a name.
    let starts: Vec<usize> = (0..names.len()).filter(|at| names[*at].starts_with('.')).collect();
    for (folder, pattern) in rows().filter(|_| !starts.is_empty()).filter_map(named) {
        let folder_names: Vec<&str> = folder.split('/').collect();
        for &start in &starts {
            let Some(rest) = names[start..].strip_prefix(folder_names.as_slice()) else { continue };
            let can_match = |name: &str| name.contains(['*', '?', '[', '{', '$']) || wildcard(pattern, name);
            if rest.first().map_or(folders || pattern == "*", |name| can_match(name)) {
                return Some(names[start..].join("/"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protected() -> Protected {
        Protected {
            own: vec!["/data/countersign".into()],
            others: vec!["/etc/claude-code".into()],
            asked: vec!["/home/ada/.bashrc".into()],
            program: vec!["/usr/bin/countersign".into()],
        }
    }

    fn target(path: &str) -> Target {
        Target { named: path.into(), real: Some(path.into()) }
    }

    #[test]
    fn files_that_decide_are_not_written() {
        for path in [
            "/data/countersign/rules.toml",
            "/data/countersign/profiles/agent/keys",
            "/srv/repo/.countersign/rules.toml",
            "/home/ada/.claude/settings.json",
            "/srv/repo/.claude/settings.local.json",
            "/srv/repo/.Claude/Settings.json",
            "/home/ada/.codex/config.toml",
            "/srv/repo/.codex/hooks.json",
            "/home/ada/.gemini/settings.json",
            "/home/ada/.gemini/policies/x.toml",
            "/home/ada/.config/opencode/opencode.json",
            "/home/ada/.config/opencode/plugins/x.js",
            "/srv/repo/.opencode/plugin/x.js",
            "/srv/repo/opencode.json",
            "/home/ada/.copilot/hooks/x.json",
            "/home/ada/.copilot/config.json",
            "/srv/repo/.github/copilot/settings.json",
            "/srv/repo/.github/copilot/settings.local.json",
            "/home/ada/.claude.json",
            "/srv/repo/.github/hooks/x.json",
            "/etc/claude-code/managed-settings.json",
        ] {
            assert!(protected().against_writing(&target(path)).is_some(), "{path}");
            assert!(protected().against_text(&format!("tee '{path}'")).is_some(), "{path}");
        }
        for path in [
            "/srv/repo/.claude/commands/x.md",
            "/srv/repo/.github/workflows/ci.yml",
            "/srv/repo/settings.json",
            "/srv/repo/src/countersign.rs",
            "/data/countersigned",
            "/home/ada/.gemini/GEMINI.md",
        ] {
            assert_eq!(protected().against_writing(&target(path)), None, "{path}");
            assert_eq!(protected().against_text(path), None, "{path}");
        }
        assert!(protected().against_writing(&target("/usr/bin/countersign")).is_some());
        assert_eq!(protected().against_naming(&target("/usr/bin/countersign")), None, "it may be run");
        let link =
            Target { named: "/srv/repo/x.json".into(), real: Some("/home/ada/.claude/settings.json".into()) };
        assert!(protected().against_writing(&link).is_some(), "a link");
    }

    #[test]
    fn every_row_of_the_table_is_protected() {
        let variable = |name: &str| (name == "HOME").then(|| "/home/ada".into());
        let protected = Protected::by(Path::new("/data/countersign"), variable);
        let places = Places::by([("HOME".into(), "/home/ada".into())]).unwrap();
        let mut paths: Vec<(DecidingFile, PathBuf)> =
            files(Some(&places)).into_iter().map(|(row, path)| (*row, path)).collect();
        for row in rows() {
            let in_folder = named(row).map(|(folder, name)| format!("{folder}/{}", name.replace('*', "x")));
            let path = in_folder.or_else(|| anywhere(row).map(str::to_owned));
            paths.extend(path.map(|path| (*row, Path::new("/srv/repo").join(path))));
        }
        for row in rows() {
            assert!(paths.iter().any(|(of, _)| of == row), "{row:?} has no path");
        }
        for (row, path) in paths {
            let target = Target { named: path.clone(), real: Some(path.clone()) };
            match row.kind().is_denied() {
                true => assert!(protected.against_writing(&target).is_some(), "{path:?}"),
                false => assert!(protected.against_rules(&target).is_some(), "{path:?}"),
            }
        }
    }

    #[test]
    fn what_only_people_let_agents_change_is_known_by_every_name() {
        for path in [
            "/home/ada/.bashrc",
            "/srv/repo/.claude/skills/x/SKILL.md",
            "/srv/repo/.claude/agents/x.md",
            "/srv/repo/.Claude/commands/x.md",
            "/srv/repo/.mcp.json",
            "/srv/repo/.gemini/commands/x.toml",
            "/srv/repo/.agents/skills/x",
        ] {
            assert_eq!(protected().against_writing(&target(path)), None, "{path}");
            assert!(protected().against_rules(&target(path)).is_some(), "{path}");
        }
        let link = Target { named: "/srv/repo/x".into(), real: Some("/home/ada/.bashrc".into()) };
        assert!(protected().against_rules(&link).is_some(), "a link");
        for path in ["/srv/repo/src/main.rs", "/srv/repo/.bashrc", "/srv/repo/commands/x.md"] {
            assert_eq!(protected().against_rules(&target(path)), None, "{path}");
        }
    }

    #[test]
    fn folders_that_variables_name_are_protected_by_path_and_by_variable() {
        let variables = |name: &str| {
            let value = match name {
                "CODEX_HOME" => "/srv/codex",
                "XDG_CONFIG_HOME" => "/srv/config",
                _ => return None,
            };
            Some(value.into())
        };
        let protected = Protected::by(Path::new("/data/countersign"), variables);
        for path in [
            "/srv/codex/hooks.json",
            "/srv/config/opencode/plugins/countersign.js",
            "/etc/github-copilot/policy.d/countersign.json",
        ] {
            assert!(protected.against_writing(&target(path)).is_some(), "{path}");
            assert!(protected.against_text(&format!("tee '{path}'")).is_some(), "{path}");
        }
        for text in [
            "rm $CODEX_HOME/hooks.json",
            "CLAUDE_CONFIG_DIR=/srv/empty claude",
            "GEMINI_CLI_HOME=/srv/empty gemini",
            "rm -r \"${XDG_CONFIG_HOME:-x}/opencode\"",
        ] {
            assert!(protected.against_text(text).is_some(), "{text}");
        }
        for text in ["tee /srv/config/other", "ls $XDG_CONFIG_HOME", "grep -rn CODEX_HOME src"] {
            assert_eq!(protected.against_text(text), None, "{text}");
        }
    }

    #[test]
    fn only_our_own_folder_is_not_read() {
        assert!(protected().against_reading(&target("/data/countersign/profiles/a/keys")).is_some());
        assert_eq!(protected().against_reading(&target("/home/ada/.claude/settings.json")), None);
    }

    #[test]
    fn a_text_that_names_them_is_found() {
        for text in [
            "rm -rf ~/.claude",
            "cd ~/.claude; echo x > settings.json",
            "cat > $HOME/.claude/sett*",
            "python -c \"open('.claude/settings.json','w')\"",
            "echo x > ~/.local/share/countersign/rules.toml",
            "rm -r $XDG_DATA_HOME/countersign/profiles",
            "COUNTERSIGN_HOME=/tmp/x countersign exec -- ls",
            "cp x .countersign/",
            "mv .codex/$X y",
        ] {
            assert!(protected().against_text(text).is_some(), "{text}");
        }
        for text in [
            "ls .github",
            "ls .claude/commands",
            "cat README.md",
            "git clone https://example.org/countersign",
        ] {
            assert_eq!(protected().against_text(text), None, "{text}");
        }
    }
}
