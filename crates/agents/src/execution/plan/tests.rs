//! What was approved runs, or nothing does.

use std::{env, fs, os::unix::fs::PermissionsExt as _};

use countersign_wire::hash::Sha256Hex;

use super::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(|word| word.replace('␣', " ")).collect()
}

fn mac(name: &str, value: &[u8]) -> Sha256Hex {
    Sha256Hex::digest(&[name.as_bytes(), b"\0", value].concat())
}

fn variables() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

fn examine(command: &str, folder: &Path, with: &[&str]) -> Result<Plan, PlanError> {
    let with: Vec<PathBuf> = with.iter().map(PathBuf::from).collect();
    Plan::examine(
        &words(command),
        folder,
        &Wanted {
            variables: &variables(),
            env: &[],
            with: &with,
            mac: &mac,
            last: &LastEnvironment::default(),
        },
    )
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn no_input() -> Stdin {
    Stdin::Bytes { held: Held::of(&mut io::empty(), &mut |_| ()).unwrap().0, reads: Reads::Nothing }
}

async fn run(prepared: Prepared) -> Result<String, StartError> {
    let (mut command, _held) = prepared.into_command(no_input())?;
    let output = command.output().await.unwrap();
    Ok(String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

/// The ways in which somebody replaces a file.
const WAYS: [fn(&Path, &str) -> io::Result<()>; 3] = [
    |path, text| fs::write(path, text),
    |path, text| {
        fs::write(path.with_extension("evil"), text)?;
        fs::set_permissions(path.with_extension("evil"), fs::Permissions::from_mode(0o755))?;
        fs::rename(path.with_extension("evil"), path)
    },
    |path, text| {
        fs::write(path.with_extension("evil"), text)?;
        fs::set_permissions(path.with_extension("evil"), fs::Permissions::from_mode(0o755))?;
        fs::remove_file(path)?;
        std::os::unix::fs::symlink(path.with_extension("evil"), path)
    },
];

/// Commands of every form, with what is good and evil in their language; the script is `run.sh` or `run.py` or `run.js`.
const SHELL: &[&str] = &[
    "./run.sh",
    "./run.sh a b",
    "sh run.sh",
    "sh ./run.sh",
    "sh -e run.sh",
    "sh -eu ./run.sh x",
    "bash run.sh",
    "bash ./run.sh",
    "bash -e run.sh",
    "bash -eux ./run.sh",
    "dash run.sh",
    "dash -e ./run.sh",
    "env A=1 sh run.sh",
    "env A=1 B=2 bash ./run.sh",
    "timeout 10 ./run.sh",
    "timeout 10 sh run.sh",
    "timeout 1m bash -e run.sh",
    "nice -n 1 sh run.sh",
    "nice -n 1 ./run.sh",
    "nohup sh run.sh",
    "setsid sh run.sh",
    "env A=1 timeout 10 nice -n 1 sh -e run.sh",
    "sh -c sh␣run.sh",
    "sh -c ./run.sh",
    "bash -c sh␣-e␣./run.sh",
    "bash -p run.sh",
    "env -u X sh run.sh",
    "timeout -s KILL 9 sh run.sh",
    "nice sh run.sh",
    "sh -o errexit run.sh",
    "sh -c sh␣$PWD/run.sh␣./run.sh",
];
const PYTHON: &[&str] = &[
    "python3 run.py",
    "python3 ./run.py a",
    "python3 -u run.py",
    "python3 -B -I run.py",
    "python3 -uB run.py",
    "env A=1 python3 run.py",
    "timeout 9 python3 -s run.py",
    "python3 -W ignore run.py",
    "python3 -X utf8 run.py",
];
const NODE: &[&str] = &["node run.js", "node ./run.js a", "node --no-warnings run.js", "env A=1 node run.js"];

fn every_command() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static str)> {
    let shell = SHELL.iter().map(|it| (*it, "run.sh", "#!/bin/sh\necho good\n", "#!/bin/sh\necho evil\n"));
    let python = PYTHON.iter().map(|it| (*it, "run.py", "print('good')\n", "print('evil')\n"));
    let node = NODE.iter().map(|it| (*it, "run.js", "console.log('good')\n", "console.log('evil')\n"));
    shell.chain(python).chain(node)
}

#[tokio::test]
async fn a_script_that_was_swapped_never_runs() {
    let mut count = 0;
    for (command, name, good, evil) in every_command() {
        for (way, tamper) in WAYS.iter().enumerate() {
            for with in [&[][..], &["."]] {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join(name);
                script(&path, good);
                fs::write(folder.path().join("ignore"), "# nothing\n").unwrap();
                if name == "run.js" && with.is_empty() {
                    let error = examine(command, folder.path(), with).unwrap_err();
                    assert!(matches!(error, PlanError::Neighbours(_)), "node can't run it from memory");
                    continue;
                }
                let plan = examine(command, folder.path(), with).unwrap();
                // Nothing is changed: it runs.
                let prepared = plan.prepare().unwrap();
                if way == 0 {
                    let said = run(prepared).await.unwrap();
                    assert!(said.contains("good"), "{command}: {said}");
                }
                // Swapped after the comparison: what was held runs, or nothing does.
                let prepared = plan.prepare().unwrap();
                tamper(&path, evil).unwrap();
                match run(prepared).await {
                    Ok(said) => assert!(said.contains("good") && !said.contains("evil"), "{command}: {said}"),
                    Err(StartError::Changed(differences)) => assert!(!differences.is_empty()),
                    Err(StartError::System(error)) => panic!("{command}: {error}"),
                }
                // Swapped before it: refused.
                let differences = plan.prepare().unwrap_err();
                assert!(differences.iter().any(|it| it.what.ends_with(name)), "{command}: {differences:?}");
                count += 1;
            }
        }
    }
    assert!(count > 200, "{count}");
}

#[tokio::test]
async fn a_script_with_neighbours_is_refused_before_anybody_is_asked_or_runs_in_place() {
    for (command, name, text, neighbour, content) in [
        ("sh run.sh", "run.sh", ". \"$(dirname \"$0\")/lib.sh\"\n", "lib.sh", "echo neighbour\n"),
        ("bash -e run.sh", "run.sh", "source \"${BASH_SOURCE%/*}/lib.sh\"\n", "lib.sh", "echo neighbour\n"),
        ("./run.sh", "run.sh", "#!/bin/sh\n. \"${0%/*}/lib.sh\"\n", "lib.sh", "echo neighbour\n"),
        ("python3 run.py", "run.py", "import helper\n", "helper.py", "print('neighbour')\n"),
        ("node run.js", "run.js", "require('./lib.js')\n", "lib.js", "console.log('neighbour')\n"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        script(&folder.path().join(name), text);
        fs::write(folder.path().join(neighbour), content).unwrap();
        let error = examine(command, folder.path(), &[]).unwrap_err();
        assert!(matches!(error, PlanError::Neighbours(_)), "{command}");
        let folder_name = folder.path().display().to_string();
        assert!(error.failure().next.contains(&format!("--with {folder_name}")), "{command}");
        let plan = examine(command, folder.path(), &["."]).unwrap();
        // Python leaves what it has compiled beside the neighbour, which is a new file: only the first run is the same.
        let prepared = plan.prepare().unwrap();
        fs::write(folder.path().join(neighbour), "evil").unwrap();
        assert!(matches!(run(prepared).await, Err(StartError::Changed(_))), "{command}");
        assert!(!plan.prepare().unwrap_err().is_empty(), "{command}");
        fs::write(folder.path().join(neighbour), content).unwrap();
        assert_eq!(run(plan.prepare().unwrap()).await.unwrap(), "neighbour\n", "{command}");
    }
}

#[tokio::test]
async fn a_program_runs_under_its_own_name_with_its_arguments_and_no_other_environment() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let plan = examine("printf %s-%s a b", &real, &[]).unwrap();
    assert_eq!(run(plan.prepare().unwrap()).await.unwrap(), "a-b");
    let plan = examine("sh -c pwd", &real, &[]).unwrap();
    assert_eq!(run(plan.prepare().unwrap()).await.unwrap().trim(), real.to_str().unwrap());
    let plan = examine("env", &real, &[]).unwrap();
    let names: Vec<String> = run(plan.prepare().unwrap())
        .await
        .unwrap()
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
        .collect();
    assert!(names.contains(&"PATH".to_owned()) && names.contains(&"PWD".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    let wanted = ["CARGO_PKG_NAME".to_owned()];
    let plan = Plan::examine(
        &words("env"),
        &real,
        &Wanted {
            variables: &variables(),
            env: &wanted,
            with: &[],
            mac: &mac,
            last: &LastEnvironment::default(),
        },
    )
    .unwrap();
    assert!(run(plan.prepare().unwrap()).await.unwrap().contains("CARGO_PKG_NAME=countersign"));
}

#[test]
fn the_whole_call_is_in_the_payload() {
    let folder = tempfile::tempdir().unwrap();
    script(&folder.path().join("run.sh"), "#!/bin/sh\necho good\n");
    fs::write(folder.path().join("data.csv"), "1\n").unwrap();
    let plan = examine("./run.sh data.csv", folder.path(), &[]).unwrap();
    let payload = plan.payload(Reads::Terminal, &RunAs::this_process());
    payload.to_json().unwrap();
    let call = payload.call().unwrap();
    assert_eq!((call.kind.as_str(), call.moment.as_str(), call.tool.as_str()), ("exec", "run", "./run.sh"));
    assert_eq!(call.message["stdin"], "terminal");
    assert_eq!(call.message["user"]["uid"], rustix::process::getuid().as_raw());
    let roles: Vec<&str> = call.files.iter().map(|file| file.role.as_str()).collect();
    assert_eq!(roles, ["script", "operand", "interpreter"]);
    assert!(call.environment.iter().any(|variable| variable.name == "PATH"));
    assert!(payload.not_shown().is_empty(), "{:?}", payload.not_shown());
    assert_eq!(payload.state(), Some(State::Opaque));
    fs::write(folder.path().join("data.csv"), "2\n").unwrap();
    assert!(plan.prepare().unwrap_err()[0].what.ends_with("data.csv"));
}

#[test]
fn a_commit_in_between_is_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &str| {
        let ran = std::process::Command::new("git")
            .current_dir(folder.path())
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(arguments.split(' '))
            .output();
        assert!(ran.unwrap().status.success(), "{arguments}");
    };
    git("init -q");
    git("commit -q --allow-empty -m one");
    let plan = examine("true", folder.path(), &[]).unwrap();
    plan.prepare().unwrap();
    git("commit -q --allow-empty -m two");
    let differences = plan.prepare().unwrap_err();
    assert!(differences[0].what.contains("commit"), "{differences:?}");
}

#[test]
fn a_program_that_is_not_there_is_said() {
    let error = examine("no-such-program", Path::new("/"), &[]).unwrap_err();
    assert_eq!(error.to_string(), "there is no program no-such-program");
}

/// `ldd` is a script of the system that says its own name; so are `npm` and many others.
#[tokio::test]
async fn an_installed_program_that_is_a_script_runs_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let plan = examine("ldd --version", folder.path(), &[]).unwrap();
    assert_eq!(plan.files[0].role, BoundRole::Script);
    assert!(run(plan.prepare().unwrap()).await.unwrap().starts_with("ldd "));
}
