//! What is passed, what is bound, and that nothing else counts.

use super::{hook::of_hook, *};

fn mac(name: &str, value: &[u8]) -> Sha256Hex {
    Sha256Hex::digest(&[name.as_bytes(), b"\0", value].concat())
}

fn list(variables: &[(&str, &str)]) -> Variables {
    variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect()
}

fn of(variables: &[(&str, &str)], asked: &[&str]) -> Environment {
    let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
    of_exec(&list(variables), &asked, Path::new("/srv"), None, &mac)
}

fn names(environment: &Environment) -> Vec<&str> {
    environment.passed.iter().map(|(name, _)| name.to_str().unwrap()).collect()
}

#[test]
fn a_command_gets_what_is_ordinary_and_what_was_asked_for() {
    let all = [
        ("HOME", "/home/ada"),
        ("LC_ALL", "C"),
        ("LD_PRELOAD", "./evil.so"),
        ("BASH_FUNC_date%%", "() { evil; }"),
        ("GIT_CONFIG_GLOBAL", "/tmp/x"),
        ("SSH_AUTH_SOCK", "/tmp/agent.1"),
        ("CARGO_HOME", "/x"),
        ("TOKEN", "secret"),
        ("PWD", "/elsewhere"),
        ("SHLVL", "3"),
    ];
    let environment = of(&all, &[]);
    assert_eq!(names(&environment), ["HOME", "LC_ALL", "SSH_AUTH_SOCK", "PWD"]);
    assert_eq!(environment.passed.last().unwrap().1, "/srv");
    assert_eq!(environment.dropped[0], "CARGO_HOME");
    assert!(environment.effects.is_empty() && environment.shown.is_empty());
    let note = environment.note().unwrap();
    assert!(note.contains("CARGO_HOME, ") && note.contains("--env NAME"), "{note}");
    let other_agent = of(&[("HOME", "/home/ada"), ("LC_ALL", "C"), ("SSH_AUTH_SOCK", "/tmp/agent.2")], &[]);
    assert_eq!(other_agent.bound, environment.bound, "only whether it is set counts");
    assert_ne!(of(&all[..2], &[]).bound, environment.bound);
}

#[test]
fn what_loads_code_comes_first_and_is_an_effect_and_secrets_are_macs() {
    let all =
        [("LD_PRELOAD", "./a.so"), ("API_TOKEN", "abc"), ("CI", "1"), ("HTTPS_PROXY", "http://u:p@host:1")];
    let environment = of(&all, &["CI", "API_TOKEN", "LD_PRELOAD", "HTTPS_PROXY", "MISSING"]);
    let shown: Vec<(&str, Option<&str>)> =
        environment.shown.iter().map(|it| (it.name.as_str(), it.value.as_deref())).collect();
    assert_eq!(
        shown,
        [("LD_PRELOAD", Some("./a.so")), ("API_TOKEN", None), ("CI", Some("1")), ("HTTPS_PROXY", None)]
    );
    assert_eq!(environment.effects, [Effect::on(EffectKind::LoadsCode, "LD_PRELOAD=./a.so")]);
    let content = |name: &str| environment.bound.iter().find(|it| it.name == name).unwrap().content.clone();
    assert_eq!(content("API_TOKEN"), VariableContent::Mac(mac("API_TOKEN", b"abc")));
    assert!(matches!(content("HTTPS_PROXY"), VariableContent::Mac(_)));
    assert_eq!(environment.passed.len(), 5, "the value itself is passed");
}

#[test]
fn programs_are_found_in_folders_that_the_repository_can_not_fill() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("repo");
    let good = folder.path().join("bin");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::create_dir_all(&good).unwrap();
    std::os::unix::fs::symlink(root.join("bin"), folder.path().join("link")).unwrap();
    let path = format!(
        "{good}:.:bin::/no/such/folder:{root}/bin:{link}",
        good = good.display(),
        root = root.display(),
        link = folder.path().join("link").display(),
    );
    let found = search_path(OsStr::new(&path), Some(&root));
    assert_eq!(found.to_str().unwrap(), good.to_str().unwrap());
}

#[test]
fn a_thousand_environments_that_differ_in_what_counts_are_all_different() {
    let base = [("HOME", "/home/ada"), ("LANG", "C"), ("NAME_0", "x"), ("TERM", "xterm")];
    let (mut of_commands, mut of_hooks) =
        (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for number in 0..1_000 {
        let mut all = list(&base);
        let value = format!("value {number}");
        match number % 4 {
            0 => all[0].1 = value.into(),
            1 => all[1].1 = value.into(),
            2 => all.push((format!("LC_{number}").into(), "x".into())),
            _ => all.push(("TZ".into(), value.into())),
        }
        let environment = of_exec(&all, &[], Path::new("/srv"), None, &mac);
        of_commands.insert(format!("{:?}", environment.bound));
        let mut all = list(&base);
        match number % 3 {
            0 => all[2].1 = format!("{number}").into(),
            1 => all.push((format!("NAME_{number}").into(), "x".into())),
            _ => all.push(("LD_PRELOAD".into(), format!("{number}").into())),
        }
        of_hooks.insert(format!("{:?}", of_hook(&all, Path::new("/"), &mac).environment));
    }
    assert_eq!((of_commands.len(), of_hooks.len()), (1_000, 1_000));
}

#[test]
fn a_thousand_environments_of_hooks_that_differ_in_what_changes_are_equal() {
    let changing = [
        "SHLVL",
        "_",
        "PWD",
        "OLDPWD",
        "WINDOWID",
        "TMUX",
        "TMUX_PANE",
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "SSH_TTY",
        "GPG_TTY",
        "DBUS_SESSION_BUS_ADDRESS",
        "CLAUDE_PID",
        "CLAUDE_CODE_SESSION_ID",
        "CLAUDE_CODE_MESSAGING_SOCKET",
        "CLAUDE_EFFORT",
        "AI_AGENT",
        "GEMINI_SESSION_ID",
        "GEMINI_PLANS_DIR",
    ];
    let base = list(&[("HOME", "/nowhere"), ("SECRET_SAUCE", "x")]);
    let expected = of_hook(&base, Path::new("/"), &mac);
    assert!(
        matches!(expected.environment[1].content, VariableContent::Mac(_)),
        "a value that could be a secret"
    );
    for number in 0..1_000 {
        let mut all = base.clone();
        all.push((changing[number % changing.len()].into(), format!("{number}").into()));
        assert_eq!(of_hook(&all, Path::new("/"), &mac), expected);
    }
}

#[test]
fn start_up_files_are_bound_whether_they_are_there_or_not() {
    let home = tempfile::tempdir().unwrap();
    let variables = [("HOME", home.path().to_str().unwrap()), ("BASH_ENV", "env.sh")];
    let before = of_hook(&list(&variables), home.path(), &mac);
    assert_eq!(before.files.len(), 7);
    assert!(before.files.iter().all(|file| file.digest.is_none()));
    assert_eq!(before.effects, [Effect::on(EffectKind::LoadsCode, "BASH_ENV=env.sh")]);
    for name in [".bashrc", ".zshenv", "env.sh"] {
        std::fs::write(home.path().join(name), "alias ls=rm\n").unwrap();
        let after = of_hook(&list(&variables), home.path(), &mac);
        assert_ne!(after.files, before.files, "{name}");
        std::fs::remove_file(home.path().join(name)).unwrap();
    }
}
