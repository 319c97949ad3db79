//! Where a repository keeps its files, and what is checked out.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::config::{self, Setting};
use crate::tool::files;

/// The largest configuration that is read.
pub const MAX_CONFIG: u64 = 64 << 10;

/// The largest file that has one line.
const MAX_LINE: u64 = 4 << 10;

/// The largest list of packed references that is read.
const MAX_PACKED: u64 = 16 << 20;

/// How many references may name one another.
const MAX_DEPTH: usize = 5;

/// References that each linked work tree has for itself.
const OF_WORK_TREE: &[&str] = &["refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// The folders of a repository, which differ in a linked work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitFolder {
    /// What belongs to this work tree: `HEAD`, the index.
    pub own: PathBuf,
    /// What all work trees share: configuration, hooks, references.
    pub common: PathBuf,
}

/// What `HEAD` or another reference names.
enum Head {
    Reference(String),
    Commit(String),
}

impl GitFolder {
    /// The folders of the repository with this root.
    pub fn of(root: &Path) -> Option<Self> {
        let git = root.join(".git");
        let own = match files::is_dir(&git) {
            true => git,
            false => root.join(line_in(&git)?.strip_prefix("gitdir: ")?),
        };
        let named = own.join("commondir");
        let common = match files::symlink_metadata(&named) {
            Ok(_) => own.join(line_in(&named)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => own.clone(),
            Err(_) => return None,
        };
        Some(Self { own, common })
    }

    /// The address of a remote repository, as the shared configuration itself says it.
    pub fn remote(&self, name: &str) -> Option<String> {
        let text = files::read_text(&self.common.join("config"), MAX_CONFIG).ok()?;
        let settings = config::parse(&text).ok()?;
        let url = settings.into_iter().find(|setting: &Setting| setting.is("remote", Some(name), "url"))?;
        url.value.filter(|url| !url.is_empty())
    }

    /// The commit that is checked out; absent before the first.
    pub fn revision(&self) -> Option<String> {
        let mut name = match read_head(&self.own.join("HEAD"))? {
            Head::Commit(commit) => return Some(commit),
            Head::Reference(name) => name,
        };
        for _ in 0..MAX_DEPTH {
            let is_own = OF_WORK_TREE.iter().any(|prefix| name.starts_with(prefix));
            let folder = if is_own { &self.own } else { &self.common };
            let file = folder.join(&name);
            match files::is_file(&file) {
                true => match read_head(&file)? {
                    Head::Commit(commit) => return Some(commit),
                    Head::Reference(next) => name = next,
                },
                false => return self.packed(&name),
            }
        }
        None
    }

    /// The branch that is checked out; absent where a commit is.
    pub fn branch(&self) -> Option<String> {
        match read_head(&self.own.join("HEAD"))? {
            Head::Reference(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
            Head::Commit(_) => None,
        }
    }

    fn packed(&self, name: &str) -> Option<String> {
        let text = files::read_text(&self.common.join("packed-refs"), MAX_PACKED).ok()?;
        let mut found = text.lines().filter_map(|line| line.split_once(' '));
        found.find(|(_, of)| *of == name).map(|(commit, _)| commit.to_owned()).filter(|it| is_commit(it))
    }
}

/// The one line of a small file. With blanks around it programs could disagree about what it says.
fn line_in(file: &Path) -> Option<String> {
    let text = files::read_text(file, MAX_LINE).ok()?;
    let line = text.trim_end_matches(['\n', '\r']);
    (!line.is_empty() && line.trim() == line && !line.contains(char::is_control)).then(|| line.to_owned())
}

fn read_head(file: &Path) -> Option<Head> {
    let line = line_in(file)?;
    match line.strip_prefix("ref:") {
        Some(name) => is_reference(name.trim_start()).then(|| Head::Reference(name.trim_start().to_owned())),
        None => is_commit(&line).then_some(Head::Commit(line)),
    }
}

/// Whether a text is the hash of a commit, SHA-1 or SHA-256.
fn is_commit(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    matches!(text.len(), 40 | 64) && text.bytes().all(is_hex)
}

/// Whether a text is a reference that is a file in the folder. That of a repository with tables instead of files is not.
fn is_reference(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && part.strip_suffix(".lock").is_none();
    name.starts_with("refs/") && !name.contains("..") && !name.contains('\\') && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use std::fs;

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(".git").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn what_is_checked_out_is_what_git_says() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("main");
        let git = |at: &Path, words: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(at).args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
            let output = command.args(words).output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        fs::create_dir(&root).unwrap();
        git(&root, &["init", "-q", "-b", "main"]);
        let of = |root: &Path| GitFolder::of(root).unwrap();
        assert_eq!((of(&root).revision(), of(&root).branch().as_deref()), (None, Some("main")));
        git(&root, &["remote", "add", "origin", "git@example.org:acme/widgets.git"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "one"]);
        let linked = folder.path().join("linked");
        git(&root, &["worktree", "add", "-q", "-b", "topic/x", linked.to_str().unwrap()]);
        git(&linked, &["commit", "-q", "--allow-empty", "-m", "two"]);
        let check = |root: &Path, branch: Option<&str>| {
            assert_eq!(of(root).revision(), Some(git(root, &["rev-parse", "HEAD"])));
            assert_eq!(of(root).branch().as_deref(), branch);
            assert_eq!(of(root).remote("origin").as_deref(), Some("git@example.org:acme/widgets.git"));
            assert_eq!(of(root).remote("other"), None);
        };
        check(&root, Some("main"));
        check(&linked, Some("topic/x"));
        git(&root, &["pack-refs", "--all"]);
        check(&root, Some("main"));
        check(&linked, Some("topic/x"));
        git(&root, &["symbolic-ref", "refs/heads/same", "refs/heads/topic/x"]);
        git(&root, &["symbolic-ref", "HEAD", "refs/heads/same"]);
        check(&root, Some("same"));
        git(&root, &["checkout", "-q", "--detach"]);
        check(&root, None);
    }

    #[test]
    fn what_is_not_as_expected_is_absent() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(GitFolder::of(root), None);
        write(root, "secret", COMMIT);
        let of = || GitFolder::of(root).unwrap();
        for head in [
            "",
            "ref: refs/heads/.invalid",
            "ref: ../secret",
            "ref: refs/../secret",
            "ref: refs/heads//x",
            "ref: /etc/passwd",
            "0123",
            &COMMIT.to_uppercase(),
            &format!("{COMMIT}\n{COMMIT}"),
        ] {
            write(root, "HEAD", head);
            assert_eq!((of().revision(), of().branch()), (None, None), "{head}");
        }
        write(root, "HEAD", "ref: refs/heads/a");
        write(root, "refs/heads/a", "ref: refs/heads/a");
        assert_eq!(of().revision(), None, "a circle");
        write(root, "refs/heads/a", COMMIT);
        assert_eq!(of().revision().as_deref(), Some(COMMIT));
        for (file, text) in [("commondir", ""), ("commondir", " x"), ("commondir", "x\ny")] {
            write(root, file, text);
            assert_eq!(GitFolder::of(root), None, "{file} {text:?}");
        }
        write(root, "commondir", "../other\n");
        assert_eq!(of().common, root.join(".git/../other"));
        fs::remove_file(root.join(".git/commondir")).unwrap();
        for config in ["[remote \"origin\"] url = x", "[include]\npath = x", "[remote \"origin\"]\nurl ="] {
            write(root, "config", config);
            assert_eq!(of().remote("origin"), None, "{config}");
        }
    }
}
