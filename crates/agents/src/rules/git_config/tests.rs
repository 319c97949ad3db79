use std::{fs, process::Command};

use super::*;

const USUAL: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

/// What people have in their own configuration.
const USERS: &str = "[user]\n\tname = Ada\n\temail = ada@example.org\n\tsigningkey = ABC\n[core]\n\teditor = vim\n\tpager = less -F\n\texcludesfile = ~/.ignore\n\tfsmonitor = false\n[alias]\n\tst = status\n\tx = !sh -c 'evil'\n[credential \"https://example.org\"]\n\thelper = store\n[commit]\n\tgpgsign = true\n[gpg]\n\tformat = ssh\n[push]\n\tdefault = simple\n[pull]\n\trebase = true\n[init]\n\tdefaultBranch = main\n[merge]\n\tconflictstyle = zdiff3\n[diff]\n\tcolorMoved = default\n[interactive]\n\tdiffFilter = delta\n[url \"git@example.org:\"]\n\tinsteadOf = https://example.org/\n";

const LFS: &str = "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n";

struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.root().join(".git/hooks")).unwrap();
        fs::create_dir_all(world.root().join("src")).unwrap();
        fs::create_dir_all(world.home()).unwrap();
        world.write("repo/.git/config", USUAL);
        world
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn check(&self) -> Result<(), String> {
        self.check_in("repo")
    }

    fn check_in(&self, folder: &str) -> Result<(), String> {
        let user = UserFiles::of_home(&self.home());
        let folder = self.folder.path().join(folder);
        runs_nothing(&user, &Site::of(&folder), &folder)
    }
}

#[test]
fn only_settings_of_the_repository_that_run_nothing_pass() {
    let world = World::new();
    world.check().unwrap();
    for (line, said) in [
        ("[core]\n\tfsmonitor = ./evil", "core.fsmonitor"),
        ("[core]\n\tfsmonitor = false", "core.fsmonitor"),
        ("[core]\nFSMonitor=./evil", "core.fsmonitor"),
        ("[CORE]\nfsmonitor", "core.fsmonitor"),
        ("[core]\r\n\tfsmonitor = x\r\n", "core.fsmonitor"),
        ("[core]\n\tpager = evil", "core.pager"),
        ("[core]\n\thooksPath = x", "core.hookspath"),
        ("[core \"x\"]\n\tpager = evil", "core.x.pager"),
        ("[core] fsmonitor = evil", "is not understood"),
        ("[core] fsmonitor = \"touch x\" ;]", "is not understood"),
        ("[diff]\n\texternal = evil", "diff.external"),
        ("[diff \"x\"]\n\ttextconv = evil", "diff.x.textconv"),
        ("[diff.x]\n\ttextconv = evil", "is not understood"),
        ("[filter \"x\"]\n\tclean = evil", "filter.x.clean"),
        (LFS, "filter.lfs.clean"),
        ("[include]\n\tpath = ../x", "include.path"),
        ("[includeIf \"gitdir:x\"]\n\tpath = ../x", "includeif.gitdir:x.path"),
        ("[alias]\n\tx = !evil", "alias.x"),
        ("[log]\n\tshowSignature = true", "log.showsignature"),
        ("[extensions]\n\tworktreeConfig = true", "extensions.worktreeconfig"),
        ("[remote \"o\"]\n\tpromisor = true", "remote.o.promisor"),
        ("[user]\n\tname = x\\\n\n[core]\n\tfsmonitor = x", "core.fsmonitor"),
        ("[user]\n\tname = \"x\n[core]\n\tfsmonitor = x\"", "is not understood"),
        ("[user]\n\tname = x # \\\n[core]\n\tfsmonitor = x", "core.fsmonitor"),
        ("[user]\n\tname = x\rfsmonitor = y", "is not understood"),
        ("[user]\n\tname = \0", "is not understood"),
        ("[remote \"o\"]\n\turl = https://me:token@example.org/x", "remote.o.url"),
    ] {
        world.write("repo/.git/config", &format!("{USUAL}{line}"));
        let why = world.check().unwrap_err();
        assert!(why.contains(said), "{line:?}: {why}");
        // A setting of one work tree counts as well.
        world.write("repo/.git/config", USUAL);
        world.write("repo/.git/config.worktree", line);
        world.check().unwrap_err();
        fs::remove_file(world.root().join(".git/config.worktree")).unwrap();
    }
    for text in [format!("\u{feff}{USUAL}"), format!("{USUAL}{}", "#".repeat(70_000))] {
        world.write("repo/.git/config", &text);
        world.check().unwrap_err();
    }
    // What the grammar lets through is what it says.
    world.write("repo/.git/config", &format!("{USUAL}[user]\n\tname = x\\\n[core]\n\temail = y\n"));
    world.check().unwrap();
}

#[test]
fn what_ordinary_people_have_set_for_themselves_passes_and_what_reading_runs_does_not() {
    let world = World::new();
    world.write("home/.gitconfig", USERS);
    world.check().unwrap();
    for (line, said) in [
        ("[diff]\n\texternal = difft", "diff.external"),
        ("[diff \"pdf\"]\n\ttextconv = pdftotext", "diff.pdf.textconv"),
        ("[diff \"x\"]\n\tcommand = evil", "diff.x.command"),
        ("[filter \"x\"]\n\tclean = evil", "filter.x.clean"),
        ("[filter \"lfs\"]\n\tclean = evil", "filter.lfs.clean"),
        ("[core]\n\tfsmonitor = true", "core.fsmonitor"),
        ("[core]\n\thooksPath = ~/hooks", "core.hookspath"),
        ("[log]\n\tshowSignature = true", "log.showsignature"),
        ("[log]\n\tdiffMerges = remerge", "log.diffmerges"),
        ("[hook \"x\"]\n\tcommand = evil", "hook.x.command"),
        ("[include]\n\tpath = x", "include.path"),
        ("[includeIf \"gitdir:~/\"]\n\tpath = x", "includeif.gitdir:~/.path"),
        ("[url \"https://me:token@example.org/\"]\n\tinsteadOf = x", "url.https"),
        ("[user] name = x", "is not understood"),
    ] {
        for file in ["home/.gitconfig", "home/.config/git/config"] {
            world.write("home/.gitconfig", USERS);
            world.write("home/.config/git/config", "");
            world.write(file, line);
            let why = world.check().unwrap_err();
            assert!(why.contains(said), "{file} {line:?}: {why}");
        }
    }
    let folder = world.root();
    let at = |home, config| runs_nothing(&UserFiles::of(home, config), &Site::of(&folder), &folder);
    assert!(at(None, None).unwrap_err().contains("HOME"));
    assert!(at(Some(Path::new("/nowhere")), Some(Path::new("x"))).unwrap_err().contains("XDG_CONFIG_HOME"));
}

#[test]
fn a_filter_of_the_user_passes_while_no_attributes_choose_one() {
    let world = World::new();
    world.write("home/.gitconfig", &format!("{USERS}{LFS}"));
    world.write("repo/.gitattributes", "* text=auto\n");
    world.check().unwrap();
    for file in [
        "repo/.gitattributes",
        "repo/src/deep/.gitattributes",
        "repo/.git/info/attributes",
        "home/.config/git/attributes",
    ] {
        world.write(file, "*.bin filter=lfs diff=lfs\n");
        assert!(world.check().unwrap_err().contains("chooses a filter"), "{file}");
        world.write(file, "");
        world.check().unwrap();
    }
    world.write("home/.gitconfig", &format!("{USERS}{LFS}[core]\n\tattributesFile = x\n"));
    assert!(world.check().unwrap_err().contains("attributesFile"));
    // Attributes that were removed are still read from the index.
    world.write("home/.gitconfig", LFS);
    let git = |words: &[&str]| {
        assert!(Command::new("git").arg("-C").arg(world.root()).args(words).status().unwrap().success());
    };
    git(&["init", "-q"]);
    for sample in fs::read_dir(world.root().join(".git/hooks")).unwrap() {
        assert!(sample.unwrap().file_name().to_string_lossy().ends_with(".sample"));
    }
    git(&["add", "."]);
    world.check().unwrap();
    fs::remove_file(world.root().join("src/deep/.gitattributes")).unwrap();
    assert!(world.check().unwrap_err().contains("only in Git's index"));
}

#[test]
fn hooks_that_reading_runs_do_not_pass() {
    let world = World::new();
    for name in ["pre-commit", "pre-push", "pre-commit.legacy", "post-index-change.sample"] {
        world.write(&format!("repo/.git/hooks/{name}"), "x");
        world.check().unwrap();
    }
    for name in ["post-index-change", "fsmonitor-watchman", "reference-transaction", "new-in-git"] {
        world.write(&format!("repo/.git/hooks/{name}"), "x");
        assert!(world.check().unwrap_err().contains(name));
        fs::remove_file(world.root().join(".git/hooks").join(name)).unwrap();
    }
}

#[test]
fn other_repositories_and_what_cannot_be_read_do_not_pass() {
    let world = World::new();
    let root = world.root();
    world.check_in("repo/src").unwrap();
    fs::remove_file(root.join(".git/config")).unwrap();
    assert!(world.check().unwrap_err().contains("missing"));
    world.write("repo/.git/config", USUAL);
    world.write("repo/bare/HEAD", "ref: refs/heads/main");
    assert!(world.check_in("repo/bare").unwrap_err().contains("HEAD"));
    assert!(world.check_in("repo/bare/objects").is_err());
    for file in ["repo/.gitmodules", "repo/.git/modules/x"] {
        world.write(file, "");
        assert!(world.check().unwrap_err().contains("submodules"), "{file}");
        let path = world.folder.path().join(file);
        fs::remove_file(path).unwrap();
        drop(fs::remove_dir(root.join(".git/modules")));
        world.check().unwrap();
    }
    world.write("repo/.git/index", "DIRC\0\0\0\x04");
    assert!(world.check().unwrap_err().contains("index"));
    fs::remove_file(root.join(".git/index")).unwrap();
    // A repository that is added to this one has a configuration of its own.
    let git = |words: &[&str]| {
        assert!(Command::new("git").arg("-C").arg(&root).args(words).status().unwrap().success());
    };
    git(&["init", "-q"]);
    git(&["update-index", "--add", "--cacheinfo", "160000,0123456789abcdef0123456789abcdef01234567,sub"]);
    assert!(world.check().unwrap_err().contains("submodules"));
}

#[test]
fn a_linked_work_tree_has_its_configuration_elsewhere() {
    let world = World::new();
    let other = "[core]\n\tfsmonitor = x\n";
    world.write("repo/.git/worktrees/linked/commondir", "../..\n");
    world.write("linked/.git", "gitdir: ../repo/.git/worktrees/linked\n");
    world.check_in("linked").unwrap();
    world.write("repo/.git/config", other);
    assert!(world.check_in("linked").unwrap_err().contains("fsmonitor"));
    // So does a repository that says so in its own folder.
    world.write("repo/.git/config", USUAL);
    world.write("elsewhere/config", other);
    world.write("repo/.git/commondir", "../../elsewhere\n");
    assert!(world.check().unwrap_err().contains("fsmonitor"));
    // A folder of Git without either is not examined.
    world.write("alone/config", USUAL);
    world.write("single/.git", "gitdir: ../alone\n");
    assert!(world.check_in("single").unwrap_err().contains("can't be found"));
}
