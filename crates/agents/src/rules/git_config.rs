//! Whether Git, asked only to read, runs no program: settings, hooks and attributes can name a file system monitor, filters,
//! external diffs and more.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    git_settings::{self, Owner},
    site::Site,
};
use crate::{
    examine::git::{
        config::{self, Setting},
        folder::{GitFolder, MAX_CONFIG},
        index,
    },
    tool::files,
};

/// Where Git looks for the settings of the machine, by how it was built.
const SYSTEM: &[&str] = &["/etc", "/usr/local/etc", "/opt/homebrew/etc"];

/// A larger index is not read.
const MAX_INDEX: u64 = 32 << 20;

/// A repository with more files and folders is not searched for attributes: a hook must be quick.
const MAX_ENTRIES: usize = 20_000;

/// Hooks that no command runs that only reads.
const HARMLESS_HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "pre-push",
    "sendemail-validate",
];

/// The files of Git that are not the repository's: the user's and the machine's.
#[derive(Debug, Clone, Default)]
pub(super) struct UserFiles {
    settings: Vec<PathBuf>,
    attributes: Vec<PathBuf>,
    /// Why it can't be said where they are.
    unknown: Option<&'static str>,
}

impl UserFiles {
    /// By the user's folder and `XDG_CONFIG_HOME`.
    pub(super) fn of(home: Option<&Path>, config: Option<&Path>) -> Self {
        let Some(home) = home else {
            let unknown = Some("it is not known where your own Git configuration is: HOME is not set");
            return Self { unknown, ..Self::default() };
        };
        let config = config.filter(|path| !path.as_os_str().is_empty());
        let unknown =
            config.filter(|path| !path.is_absolute()).map(|_| "XDG_CONFIG_HOME is not an absolute path");
        let config = config.map_or_else(|| home.join(".config"), Path::to_owned).join("git");
        let of_system = |name: &'static str| SYSTEM.iter().map(move |folder| Path::new(folder).join(name));
        Self {
            settings: of_system("gitconfig")
                .chain([config.join("config"), home.join(".gitconfig")])
                .collect(),
            attributes: of_system("gitattributes").chain([config.join("attributes")]).collect(),
            unknown,
        }
    }

    /// Without the machine's, which is not part of a test.
    #[cfg(test)]
    pub(super) fn of_home(home: &Path) -> Self {
        let mut files = Self::of(Some(home), None);
        files.settings.retain(|file| file.starts_with(home));
        files.attributes.retain(|file| file.starts_with(home));
        files
    }
}

/// Says why Git may run something when it is called in a folder of the repository.
pub(super) fn runs_nothing(user: &UserFiles, site: &Site, folder: &Path) -> Result<(), String> {
    let Some(root) = site.root() else { return Err("it does not run inside of a repository".to_owned()) };
    // A folder that looks like a bare repository is one, with a configuration of its own.
    if folder
        .ancestors()
        .take_while(|above| above.starts_with(root))
        .any(|above| files::exists(&above.join("HEAD")))
    {
        return Err("a folder with a file HEAD may be another repository to Git".to_owned());
    }
    let git = GitFolder::of(root).filter(|git| files::is_dir(&root.join(".git")) || git.own != git.common);
    let git = git.ok_or_else(|| "the configuration of the repository can't be found".to_owned())?;
    let of_repository = settings(&git.common.join("config"))?.ok_or_else(|| {
        format!(
            "{} is missing, without which Git may mean another repository",
            git.common.join("config").display()
        )
    })?;
    check(&of_repository, Owner::Repository, "the repository's Git configuration")?;
    let of_work_tree = settings(&git.own.join("config.worktree"))?.unwrap_or_default();
    check(&of_work_tree, Owner::Repository, "the Git configuration of the work tree")?;
    hooks(&git.common.join("hooks"))?;
    let index = read(&git.own.join("index"), MAX_INDEX)?.unwrap_or_default();
    let followed = match index.is_empty() {
        true => Vec::new(),
        false => index::entries(&index).ok_or("Git's index is of a format that is not examined")?,
    };
    let has_modules = files::exists(&git.common.join("modules")) || files::exists(&root.join(".gitmodules"));
    if has_modules || followed.iter().any(|entry| entry.is_repository) {
        return Err("the repository has submodules, whose configurations are not examined".to_owned());
    }
    if of_user(user)? {
        let attributes = [git.common.join("info/attributes")];
        attributes.iter().chain(&user.attributes).try_for_each(|file| names_no_filter(file))?;
        filters(root, &followed)?;
    }
    Ok(())
}

/// Checks what is not the repository's, and says whether it has filters that attributes could choose.
fn of_user(user: &UserFiles) -> Result<bool, String> {
    if let Some(why) = user.unknown {
        return Err(why.to_owned());
    }
    let (mut has_filters, mut has_attributes) = (false, false);
    for file in &user.settings {
        let mut found = settings(file)?.unwrap_or_default();
        let all = found.len();
        found.retain(|setting| !git_settings::is_lfs_filter(setting));
        has_filters |= found.len() < all;
        has_attributes |= found.iter().any(|setting| setting.is("core", None, "attributesfile"));
        check(&found, Owner::User, &file.display().to_string())?;
    }
    match has_filters && has_attributes {
        true => Err("your Git configuration has both filters and `core.attributesFile`".to_owned()),
        false => Ok(has_filters),
    }
}

fn check(settings: &[Setting], owner: Owner, name: &str) -> Result<(), String> {
    match settings.iter().find(|setting| !git_settings::is_harmless(setting, owner)) {
        None => Ok(()),
        Some(setting) => {
            let key = setting.key();
            Err(format!("{name} has `{key}`, which may run a program or show a password"))
        }
    }
}

/// The settings in a file; `None` if there is none.
fn settings(file: &Path) -> Result<Option<Vec<Setting>>, String> {
    let Some(bytes) = read(file, MAX_CONFIG)? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| format!("{} is not UTF-8 text", file.display()))?;
    match config::parse(&text) {
        Ok(settings) => Ok(Some(settings)),
        Err(malformed) => Err(format!("{} is not understood: {malformed}", file.display())),
    }
}

fn read(file: &Path, max: u64) -> Result<Option<Vec<u8>>, String> {
    match files::read(file, max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(format!("{} can't be read: {error}", file.display())),
    }
}

/// Git runs some hooks when it refreshes its index, which `git status` does.
fn hooks(folder: &Path) -> Result<(), String> {
    let entries = match files::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{} can't be read: {error}", folder.display())),
    };
    for entry in entries {
        let name = entry.map_err(|error| format!("{} can't be read: {error}", folder.display()))?.name;
        let name = name.to_string_lossy();
        let hook = name.split('.').next().unwrap_or_default();
        if !name.ends_with(".sample") && !HARMLESS_HOOKS.contains(&hook) {
            return Err(format!("the repository has the hook `{name}`, which Git may run"));
        }
    }
    Ok(())
}

/// Whether no attributes in the work tree, or in the index where the work tree has none, choose a filter.
fn filters(root: &Path, followed: &[index::Entry<'_>]) -> Result<(), String> {
    use std::os::unix::ffi::OsStrExt as _;
    for entry in followed {
        let path = Path::new(std::ffi::OsStr::from_bytes(entry.path));
        let is_attributes = path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".gitattributes"));
        if is_attributes && !files::is_file(&root.join(path)) {
            return Err(format!("{} is only in Git's index, and may choose a filter", path.display()));
        }
    }
    let (mut folders, mut count) = (vec![root.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        let unreadable = |error| format!("{} can't be searched for attributes: {error}", folder.display());
        for entry in files::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            count += 1;
            if count > MAX_ENTRIES {
                return Err(
                    "the repository is too large to be searched for attributes with filters".to_owned()
                );
            }
            let name = entry.name;
            if name.eq_ignore_ascii_case(".gitattributes") {
                names_no_filter(&entry.path)?;
            } else if name != ".git" && entry.is_dir {
                folders.push(entry.path);
            }
        }
    }
    Ok(())
}

fn names_no_filter(file: &Path) -> Result<(), String> {
    let text = read(file, MAX_CONFIG)?.unwrap_or_default();
    match String::from_utf8_lossy(&text).contains("filter") {
        true => Err(format!("{} chooses a filter, which Git runs", file.display())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
