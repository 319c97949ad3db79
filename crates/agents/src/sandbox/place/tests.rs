use super::*;
use crate::hosts::{claude, copilot, gemini};

/// A person's machine in a folder.
struct Machine {
    folder: tempfile::TempDir,
    user: PathBuf,
    ours: PathBuf,
    project: PathBuf,
    program: PathBuf,
    programs: [PathBuf; 2],
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("home/ada");
        let ours = user.join(".local/share/countersign");
        let project = user.join("project");
        let package = user.join(".npm/lib/node_modules");
        for made in [project.join(".git"), project.join("src"), ours.join("call"), package.join("claude")] {
            fs::create_dir_all(made).unwrap();
        }
        let bin = folder.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let programs = ["countersign", "countersign-hook"].map(|name| bin.join(name));
        let program = package.join("claude/claude");
        programs.iter().chain([&program]).for_each(|file| fs::write(file, "").unwrap());
        Self { folder, user, ours, project, program, programs }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            program: &self.program,
            host: claude::HOST,
            keeper: KeeperPlace::User,
            folder: &self.project,
            user: &self.user,
            ours: &self.ours,
            programs: &self.programs,
            writes: &[],
            has_network: true,
            passed: &[],
            environment: &[],
            settings: &[],
        }
    }
}

fn writable(place: &Place, user: &Path) -> Vec<String> {
    let name = |path: &Path| path.strip_prefix(user).unwrap().display().to_string();
    place.writable().into_iter().map(name).collect()
}

fn sentence(place: Result<Place, Failure>) -> String {
    place.unwrap_err().what
}

#[test]
fn it_has_the_project_and_the_hosts_own_files_and_nothing_else_of_the_home() {
    let machine = Machine::new();
    let place = Place::of(&machine.wanted()).unwrap();
    assert_eq!(writable(&place, &machine.user), [".claude", ".claude.json", "project"]);
    let empty = place.parts.iter().position(|part| *part == Part::Empty(machine.user.clone())).unwrap();
    let first = place.parts.iter().position(|part| at(part).starts_with(&machine.user)).unwrap();
    assert_eq!(first, empty, "what is in the home is put there after it was made empty");
    let of_ours: Vec<&Part> = place
        .parts
        .iter()
        .filter(|part| matches!(part, Part::Read(from, _) if from.starts_with(&machine.ours)))
        .collect();
    let call = Part::Read(machine.ours.join("call"), Path::new(HOME).join("call"));
    assert_eq!(of_ours, [&call]);
    assert_eq!(place.parts.last(), Some(&Part::Close(PathBuf::from("/run"))));
}

#[test]
fn of_the_machines_keeper_it_has_the_socket_alone() {
    let machine = Machine::new();
    let place = Place::of(&Wanted { keeper: KeeperPlace::System, ..machine.wanted() }).unwrap();
    let is_ours = |part: &&Part| matches!(part, Part::Read(from, _) if from.starts_with(&machine.ours));
    assert_eq!(place.parts.iter().find(is_ours), None);
    assert!(
        place.parts.contains(&Part::Read("/run/countersign-keeper".into(), "/run/countersign-keeper".into()))
    );
    let line = hook_line(claude::HOST, KeeperPlace::System).words().join(" ");
    assert!(line.contains("--keeper system") && !line.contains("--home"), "{line}");
}

#[test]
fn it_can_be_made_narrower_and_only_within_the_project() {
    let machine = Machine::new();
    let writes = [PathBuf::from("src")];
    let place = Place::of(&Wanted { writes: &writes, ..machine.wanted() }).unwrap();
    assert_eq!(writable(&place, &machine.user), [".claude", ".claude.json", "project/src"]);
    for outside in ["..", "/usr", "missing"] {
        let writes = [PathBuf::from(outside)];
        assert!(Place::of(&Wanted { writes: &writes, ..machine.wanted() }).is_err(), "{outside}");
    }
}

#[test]
fn what_would_open_it_is_refused() {
    let machine = Machine::new();
    let said = sentence(Place::of(&Wanted { folder: &machine.user, ..machine.wanted() }));
    assert!(said.contains("whole home"), "{said}");
    let in_project = [machine.project.join("countersign"), machine.project.join("countersign-hook")];
    for file in &in_project {
        fs::write(file, "").unwrap();
    }
    let said = sentence(Place::of(&Wanted { programs: &in_project, ..machine.wanted() }));
    assert!(said.contains("could write to"), "{said}");
    let path = |folder: &Path| vec![("PATH".into(), folder.as_os_str().to_owned())];
    fs::create_dir(machine.ours.join("profiles")).unwrap();
    let environment = path(&machine.ours.join("profiles"));
    let said = sentence(Place::of(&Wanted { environment: &environment, ..machine.wanted() }));
    assert!(said.contains("keys"), "{said}");
    // A folder of programs that has the home in it is left out.
    let environment = path(machine.folder.path());
    Place::of(&Wanted { environment: &environment, ..machine.wanted() }).unwrap();
    let ours = machine.project.join("countersign-home");
    fs::create_dir_all(ours.join("call")).unwrap();
    let said = sentence(Place::of(&Wanted { ours: &ours, ..machine.wanted() }));
    assert!(said.contains("could write to"), "{said}");
    for host in [gemini::HOST, copilot::HOST] {
        assert!(sentence(Place::of(&Wanted { host, ..machine.wanted() })).contains("can't be run"));
    }
}

#[test]
fn variables_are_passed_by_name_and_some_never() {
    let machine = Machine::new();
    let environment =
        ["ANTHROPIC_API_KEY", "LC_ALL", "LD_PRELOAD", "MY_KEY", "PATH"].map(|name| (name.into(), "x".into()));
    let passed = ["MY_KEY".to_owned()];
    let names = |place: &Place| -> Vec<String> {
        place.variables.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect()
    };
    let place = Place::of(&Wanted { environment: &environment, ..machine.wanted() }).unwrap();
    assert_eq!(names(&place), ["ANTHROPIC_API_KEY", "LC_ALL", "PATH"]);
    assert_eq!(place.dropped, ["LD_PRELOAD", "MY_KEY"]);
    let place =
        Place::of(&Wanted { environment: &environment, passed: &passed, ..machine.wanted() }).unwrap();
    assert_eq!(names(&place), ["ANTHROPIC_API_KEY", "LC_ALL", "MY_KEY", "PATH"]);
    for name in
        ["LD_PRELOAD", "COUNTERSIGN_HOME", "CLAUDE_CONFIG_DIR", "OPENCODE_PURE", "SSH_AUTH_SOCK", "ENV"]
    {
        let passed = [name.to_owned()];
        let said = sentence(Place::of(&Wanted { passed: &passed, ..machine.wanted() }));
        assert!(said.starts_with(name), "{said}");
    }
}

/// Makes the project a work tree of a repository, as Git does.
fn make_work_tree(machine: &Machine, repository: &Path) {
    let own = repository.join("worktrees/project");
    for made in [own.clone(), repository.join("objects"), repository.join("refs")] {
        fs::create_dir_all(made).unwrap();
    }
    fs::write(repository.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(own.join("commondir"), "../..").unwrap();
    fs::write(own.join("gitdir"), format!("{}\n", machine.project.join(".git").display())).unwrap();
    fs::remove_dir_all(machine.project.join(".git")).unwrap();
    fs::write(machine.project.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
}

#[test]
fn a_work_tree_of_git_has_its_repository_with_it() {
    let machine = Machine::new();
    make_work_tree(&machine, &machine.user.join("main/.git"));
    let place = Place::of(&machine.wanted()).unwrap();
    assert_eq!(writable(&place, &machine.user), [".claude", ".claude.json", "project", "main/.git"]);
    let of_host = machine.wanted().host.contained().unwrap();
    assert_eq!(place.writable_besides(&machine.user, of_host).len(), 2, "people are told of both");
}

/// An agent could have written all that is in its project.
#[test]
fn a_project_does_not_say_by_itself_what_else_is_in_the_sandbox() {
    let machine = Machine::new();
    let (secrets, git) = (machine.user.join(".ssh"), machine.project.join(".git"));
    fs::create_dir_all(machine.project.join("x")).unwrap();
    fs::create_dir_all(&secrets).unwrap();
    fs::remove_dir_all(&git).unwrap();
    let only_the_project = [".claude", ".claude.json", "project"];
    for (gitdir, commondir) in [("x".to_owned(), Some(&secrets)), (secrets.display().to_string(), None)] {
        fs::write(&git, format!("gitdir: {gitdir}\n")).unwrap();
        if let Some(commondir) = commondir {
            fs::write(machine.project.join("x/commondir"), commondir.display().to_string()).unwrap();
        }
        let place = Place::of(&machine.wanted()).unwrap();
        assert_eq!(writable(&place, &machine.user), only_the_project);
        assert!(!place.parts.iter().any(|part| at(part).starts_with(&secrets)));
    }
    // A repository that belongs to another work tree.
    fs::remove_file(&git).unwrap();
    fs::create_dir(&git).unwrap();
    let repository = machine.user.join("main/.git");
    make_work_tree(&machine, &repository);
    let elsewhere = machine.user.join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    fs::write(repository.join("worktrees/project/gitdir"), elsewhere.display().to_string()).unwrap();
    assert_eq!(writable(&Place::of(&machine.wanted()).unwrap(), &machine.user), only_the_project);
}

#[test]
fn nothing_of_ours_can_be_written_to() {
    let machine = Machine::new();
    let project = machine.ours.join("call");
    let said = sentence(Place::of(&Wanted { folder: &project, ..machine.wanted() }));
    assert!(said.contains("could write to"), "{said}");
    let link = machine.user.join("bin");
    std::os::unix::fs::symlink(machine.user.join("project"), &link).unwrap();
    let environment = [("PATH".into(), link.clone().into_os_string())];
    let place = Place::of(&Wanted { environment: &environment, ..machine.wanted() }).unwrap();
    assert!(!place.parts.iter().any(|part| at(part) == link), "a link may lead anywhere");
}

#[test]
fn settings_lie_where_nothing_can_be_put_in_their_place() {
    let machine = Machine::new();
    let file = PathBuf::from("/etc/claude-code/managed-settings.json");
    let settings = [(file.clone(), "{}".to_owned())];
    let place = Place::of(&Wanted { settings: &settings, ..machine.wanted() }).unwrap();
    let position = |wanted: &Part| place.parts.iter().position(|part| part == wanted).unwrap();
    let etc = PathBuf::from("/etc");
    let text = position(&Part::Text(file, "{}".to_owned()));
    assert!(position(&Part::Empty(etc.clone())) < text && text < position(&Part::Close(etc)));
    assert!(
        !place.parts.iter().any(|part| at(part) == Path::new("/etc/shadow")),
        "what others can't read is not in it"
    );
    assert!(place.parts.iter().any(|part| at(part) == Path::new("/etc/passwd")));
}
