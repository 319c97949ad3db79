//! Built in: the folders of profiles and rules, and the files in which hooks are set up, are not for agents.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::{glob::wildcard, site::Target};

/// Folders of hosts, and which of their entries decide about hooks. `*` alone is the whole folder.
const HOST_FOLDERS: &[(&str, &[&str])] = &[
    (".countersign", &["*"]),
    (".claude", &["settings*.json", "plugins", "hooks"]),
    (".codex", &["*"]),
    (".gemini", &["settings.json", "policies", "hooks", "extensions", ".env"]),
    (".opencode", &["*"]),
    (".config/opencode", &["*"]),
    (".copilot", &["*"]),
    (".github/hooks", &["*"]),
];

/// Files that decide about hooks wherever they are.
const HOST_FILES: &[&str] =
    &["opencode.json", "opencode.jsonc", "managed-settings.json", "managed-hooks.json"];

/// Where administrators set up hooks for everybody.
const MANAGED_FOLDERS: &[&str] = &[
    "/etc/claude-code",
    "/etc/codex",
    "/etc/gemini-cli",
    "/etc/opencode",
    "/etc/copilot",
    "/etc/github-copilot",
    "/Library/Application Support/ClaudeCode",
];

/// Variables that move a folder of a host.
const HOST_VARIABLES: &[&str] =
    &["CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_CONFIG_DIR", "OPENCODE_CONFIG", "COPILOT_HOME"];

/// The variable that moves OpenCode's folder together with those of other programs.
const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";

/// Variables that move a folder of a host with what is beside it, and the name of the host.
const PARENT_VARIABLES: &[(&str, &str)] = &[(XDG_CONFIG_HOME, "opencode"), ("GEMINI_CLI_HOME", "gemini")];

/// Our own folder by its usual names, for texts in which a variable may stand before it.
const OWN_NAMES: &[&str] = &[
    "share/countersign",
    "countersign/profiles",
    "countersign/rules.toml",
    "support/countersign",
    "countersign_home",
];

/// What agents must not touch on this machine.
#[derive(Debug, Clone)]
pub(super) struct Protected {
    /// The folder of the tool, which is not read either.
    own: Vec<PathBuf>,
    /// Other folders and files.
    others: Vec<PathBuf>,
    /// This program, which agents may run and not replace.
    program: Vec<PathBuf>,
}

impl Protected {
    /// `own` is the folder with profiles and rules.
    pub(super) fn new(own: &Path) -> Self {
        Self::by(own, |name| env::var_os(name))
    }

    fn by(own: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let others = MANAGED_FOLDERS.iter().map(PathBuf::from);
        let others = others.chain(HOST_VARIABLES.iter().filter_map(|name| named(name)));
        let others = others.chain(named(XDG_CONFIG_HOME).map(|folder| folder.join("opencode")));
        let with_real = |path: PathBuf| {
            let real = fs::canonicalize(&path).ok().filter(|real| *real != path);
            [Some(path), real].into_iter().flatten()
        };
        let profile_file = named(crate::home::PROFILE_FILE_VARIABLE);
        Self {
            own: [Some(own.to_owned()), profile_file].into_iter().flatten().flat_map(with_real).collect(),
            others: others.flat_map(with_real).collect(),
            program: env::current_exe().ok().into_iter().flat_map(with_real).collect(),
        }
    }

    /// Why a file must not be written; `None` if it may.
    pub(super) fn against_writing(&self, target: &Target) -> Option<String> {
        let program = target.paths().find(|path| self.program.iter().any(|program| program == path));
        let of_program = program.map(|path| reason(&path.to_string_lossy()));
        of_program.or_else(|| target.paths().find_map(|path| self.against_path(path, false)))
    }

    /// Why a file must not be read; `None` if it may.
    pub(super) fn against_reading(&self, target: &Target) -> Option<String> {
        let is_own = |path: &Path| self.own.iter().any(|folder| path.starts_with(folder));
        target.paths().find(|path| is_own(path)).map(|path| reason(&path.to_string_lossy()))
    }

    /// Why a shell must not be given this file or folder. Folders that have protected files in them count too.
    pub(super) fn against_naming(&self, target: &Target) -> Option<String> {
        target.paths().find_map(|path| self.against_path(path, true))
    }

    fn against_path(&self, path: &Path, folders: bool) -> Option<String> {
        let text = path.to_string_lossy();
        match self.own.iter().chain(&self.others).any(|folder| path.starts_with(folder)) {
            true => Some(reason(&text)),
            false => settings_in(&text, folders).map(|found| reason(&found)),
        }
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
        words.into_iter().find_map(|word| settings_in(word, true)).map(|found| reason(&found))
    }
}

/// The variable in a text, in lower case, that names or moves a folder of a host.
fn variable_in(text: &str) -> Option<&'static str> {
    let is_used = |name: &str| {
        let forms = [format!("${name}"), format!("${{{name}"), format!("{name}=")];
        forms.iter().any(|form| text.contains(form))
    };
    let parents = PARENT_VARIABLES.iter().filter(|(_, host)| text.contains(host)).map(|(name, _)| name);
    HOST_VARIABLES.iter().chain(parents).find(|name| is_used(&name.to_lowercase())).copied()
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

/// The settings of a host in a path. `folders`: whether the folder alone counts.
fn settings_in(path: &str, folders: bool) -> Option<String> {
    let lower = path.to_lowercase();
    let names: Vec<&str> = lower.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if let Some(file) = names.last().filter(|name| HOST_FILES.contains(name)) {
        return Some((*file).to_owned());
    }
    for (folder, entries) in HOST_FOLDERS {
        let folder_names: Vec<&str> = folder.split('/').collect();
        for start in 0..names.len() {
            let Some(rest) = names[start..].strip_prefix(folder_names.as_slice()) else { continue };
            let can_match = |name: &str| {
                let is_pattern = name.contains(['*', '?', '[', '{', '$']);
                is_pattern || entries.iter().any(|entry| wildcard(entry, name))
            };
            if rest.first().map_or(folders || entries == &["*"], |name| can_match(name)) {
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
