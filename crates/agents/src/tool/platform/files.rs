//! Files as a caller elsewhere sees them, through `tool::files`.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::super::files::{
    Folder, Root, canonicalize, exists, hidden, metadata, of_this_process, open, read, read_dir, read_link,
    read_text, symlink_metadata,
};

/// A folder with another one in it that is the root of a caller.
struct Sandbox {
    outside: tempfile::TempDir,
}

impl Sandbox {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir_all(outside.path().join("root/project/inner")).unwrap();
        fs::write(outside.path().join("secret"), "outside").unwrap();
        let sandbox = Self { outside };
        fs::write(sandbox.at("project/file"), "inside").unwrap();
        sandbox
    }

    fn at(&self, path: &str) -> PathBuf {
        self.outside.path().join("root").join(path)
    }

    fn see<T>(&self, look: impl FnOnce() -> T) -> T {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(self.at(""), flags, Mode::empty()).unwrap();
        Root::new(root).unwrap().shows(look)
    }
}

fn path(path: &str) -> &Path {
    Path::new(path)
}

#[test]
fn files_are_the_callers_and_links_stay_below_its_root() {
    let sandbox = Sandbox::new();
    symlink("/project/file", sandbox.at("absolute")).unwrap();
    symlink("../../../../project/file", sandbox.at("project/climbing")).unwrap();
    symlink(sandbox.outside.path().join("secret"), sandbox.at("leaving")).unwrap();
    sandbox.see(|| {
        for name in ["/project/file", "/absolute", "/project/climbing", "/project/inner/../file"] {
            assert_eq!(read_text(path(name), 10).unwrap(), "inside", "{name}");
            assert_eq!(canonicalize(path(name)).unwrap().file_name().unwrap(), "file", "{name}");
        }
        assert_eq!(read_link(path("/absolute")).unwrap(), path("/project/file"));
        assert!(symlink_metadata(path("/absolute")).unwrap().is_symlink());
        for name in ["/leaving", "/../secret", "/etc/passwd", "project/file"] {
            assert!(!exists(path(name)) && open(path(name)).is_err() && canonicalize(path(name)).is_err());
        }
        let mut found: Vec<(OsString, bool)> = read_dir(path("/project"))
            .unwrap()
            .map(|entry| entry.map(|it| (it.name, it.is_dir)).unwrap())
            .collect();
        found.sort();
        assert_eq!(found, [("climbing".into(), false), ("file".into(), false), ("inner".into(), true)]);
    });
    assert!(sandbox.see(|| of_this_process(|| exists(sandbox.outside.path()))));
    assert!(!exists(path("/project/file")), "without a caller these are the files of this process");
}

#[test]
fn nothing_is_waited_for_and_sizes_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let named = |name: &str| folder.path().join(name);
    fs::write(named("file"), "12345").unwrap();
    mknodat(CWD, named("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let look = || {
        assert_eq!(read_text(&named("file"), 5).unwrap(), "12345");
        assert!(read(&named("file"), 4).is_err());
        assert!(read(&named("pipe"), 5).is_err() && read(folder.path(), 5).is_err());
        fs::write(named("bytes"), [0xff]).unwrap();
        assert!(read(&named("bytes"), 5).is_ok() && read_text(&named("bytes"), 5).is_err());
    };
    look();
    Root::new(Root::of_this_process().unwrap()).unwrap().shows(look);
}

#[test]
fn what_the_system_makes_up_for_its_reader_is_not_the_callers() {
    let own = format!("/proc/{}/environ", std::process::id());
    assert!(exists(path("/proc/self/environ")));
    Root::new(Root::of_this_process().unwrap()).unwrap().shows(|| {
        for name in ["/proc/self/environ", own.as_str(), "/proc/self/root/etc/passwd", "/proc/self/cwd"] {
            assert!(!exists(path(name)) && open(path(name)).is_err(), "{name}");
        }
        assert_eq!(canonicalize(path("/usr/../usr/bin")).unwrap(), path("/usr/bin"));
        let (here, there) = (fs::metadata("/usr/bin").unwrap(), metadata(path("/usr/bin")).unwrap());
        assert_eq!((here.dev(), here.ino()), (there.dev(), there.ino()));
    });
}

#[tokio::test]
async fn each_task_sees_its_own() {
    let sandbox = Sandbox::new();
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let root = Root::new(rustix::fs::open(sandbox.at(""), flags, Mode::empty()).unwrap()).unwrap();
    let seen = root.seen_by(async {
        tokio::task::yield_now().await;
        exists(path("/project/file"))
    });
    let (inside, outside) = tokio::join!(seen, async { exists(path("/project/file")) });
    assert!(inside && !outside);
    assert!(Root::new(rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()).unwrap()).is_err());
}

/// What a process of another account sees of a folder in a home that is closed to it.
#[test]
fn another_account_looks_into_a_closed_home_through_the_folder_alone() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let world = tempfile::tempdir().unwrap();
    fs::set_permissions(world.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let home = fs::canonicalize(world.path()).unwrap().join("home");
    let project = home.join("projects/project");
    fs::create_dir_all(project.join("src")).unwrap();
    fs::write(project.join("file"), "inside").unwrap();
    fs::write(project.join("secret"), "inside").unwrap();
    fs::write(home.join("outside"), "outside").unwrap();
    fs::write(project.join("own"), "ours").unwrap();
    for name in ["file", "secret"] {
        std::os::unix::fs::chown(project.join(name), Some(61_001), None).unwrap();
    }
    fs::set_permissions(project.join("secret"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink(home.join("outside"), project.join("leaving")).unwrap();
    symlink("../../../outside", project.join("src/climbing")).unwrap();
    symlink("../file", project.join("src/near")).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    let open = |path: &Path| rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let seen_from = |folder: &Path, claimed: &Path| {
        let folder = Folder { open: open(folder), path: claimed.to_owned() };
        Root::of_caller(open(path("/")), Some(folder), true).unwrap()
    };
    let (root, src) = (seen_from(&project, &project), seen_from(&project.join("src"), &project.join("src")));
    let moved = seen_from(&project, &home.join("elsewhere"));
    let seen = std::thread::spawn(move || {
        // For this thread alone.
        nix::unistd::setfsuid(nix::unistd::Uid::from_raw(61_003));
        let denied = |path: &Path| metadata(path).unwrap_err().kind() == io::ErrorKind::PermissionDenied;
        for root in [root, src] {
            root.shows(|| {
                assert_eq!(read_text(&project.join("file"), 10).unwrap(), "inside");
                assert_eq!(read_text(&project.join("src/near"), 10).unwrap(), "inside");
                assert_eq!(canonicalize(&project.join("src/near")).unwrap(), project.join("file"));
                assert_eq!(
                    metadata(&project.join("no")).unwrap_err().kind(),
                    io::ErrorKind::NotFound,
                    "what is not there is known"
                );
                assert!(symlink_metadata(&home.join("projects")).is_ok() && hidden().is_none());
                assert!(denied(&home.join("outside")) && denied(&project.join("leaving")));
                assert!(denied(&project.join("src/climbing")));
                assert_eq!(hidden(), Some(home.clone()), "the folder that is closed");
                assert!(read(&project.join("secret"), 10).is_err());
                assert!(read(&project.join("own"), 10).is_err(), "it belongs to the account of this process");
            });
        }
        moved.shows(|| {
            assert!(denied(&project.join("file")), "it is not where it is said to be");
        });
    });
    seen.join().unwrap();
}
