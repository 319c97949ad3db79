//! What is derived from commands, and what is not guessed.

use super::*;

fn derived(command: &str) -> Option<String> {
    let argv: Vec<String> = command.split(' ').map(|word| word.replace('␣', " ")).collect();
    let place = Place { cwd: Path::new("/srv/repo/src"), repository: Some(Path::new("/srv/repo")) };
    let text = |effect: &Effect| match &effect.detail {
        Some(detail) => format!("{}({detail})", effect.kind.as_str()),
        None => effect.kind.as_str().to_owned(),
    };
    Some(of(&argv, &place)?.iter().map(text).collect::<Vec<_>>().join(" "))
}

// CONTRIBUTING: add a program, step 3
#[test]
fn effects_come_from_the_words_of_the_command() {
    for (command, expected) in [
        ("ls -la", ""),
        ("git status", ""),
        ("git push origin main", "network publishes(origin main)"),
        ("git push --force origin main", "network publishes(origin main) rewritesHistory(origin main)"),
        ("git push origin +main", "network publishes(origin +main) rewritesHistory(origin +main)"),
        ("git push origin :old", "deletes(origin :old) network publishes(origin :old)"),
        ("git reset --hard HEAD~1", "overwrites(HEAD~1)"),
        ("rm -rf build", "deletes(build)"),
        ("rm -rf ../../other", "deletes(../../other) leavesRepository(../../other)"),
        ("rm ../README.md", "deletes(../README.md)"),
        ("cat /etc/hosts", "leavesRepository(/etc/hosts)"),
        ("cat .env", "touchesSecrets(.env)"),
        ("curl https://example.org/x", "network(example.org)"),
        ("curl -d @data https://user@example.org:8/x", "network(example.org) publishes(example.org)"),
        ("sudo rm x", "deletes(x) escalatesPrivileges(sudo)"),
        ("cargo test --all", ""),
        ("cargo publish", "network publishes(publish)"),
        ("npm install left-pad", "network(install)"),
        ("kubectl delete pod x", "deletes(delete pod x) network"),
        ("sed -i s/a/b/ file", "overwrites"),
        ("sed -n 1,80p file", ""),
        ("sort -o out in", "overwrites(-o out in)"),
        ("uniq in out", "overwrites(in out)"),
        ("git diff --output=x", "overwrites(diff --output=x)"),
        ("find . -fprint x", "overwrites(. -fprint x)"),
        ("terraform apply -destroy", "deletes(apply -destroy) network publishes(apply -destroy)"),
        ("aws ec2 terminate-instances --ids i", "deletes(ec2 terminate-instances --ids i) network"),
        ("psql -c DROP␣TABLE␣orders", "deletes(table orders)"),
        ("chmod -R 777 /srv", "leavesRepository(/srv)"),
        ("chmod +x run.sh", ""),
        ("kubectl get pods", "network"),
        ("aws ec2 describe-instances", "network"),
        ("git submodule update", "network(update)"),
        ("sh -c cd␣..␣&&␣rm␣x␣>␣log", "deletes(x)"),
        ("sh -c cat␣x␣|␣ssh␣host.example", "network(host.example) publishes(host.example)"),
    ] {
        assert_eq!(derived(command).as_deref(), Some(expected), "{command}");
    }
}

#[test]
fn only_what_is_there_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let place = Place { cwd: folder.path(), repository: Some(folder.path()) };
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["old", "main"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let effects = |command: &str| {
        let argv: Vec<String> = command.split(' ').map(str::to_owned).collect();
        of(&argv, &place).unwrap().len()
    };
    for (command, is_overwritten) in [
        ("cp a new", false),
        ("cp a old", true),
        ("cp a sub", true),
        ("cp a b new", true),
        ("cp -t sub a new", true),
        ("cp --backup a new", true),
        ("mv a new", false),
        ("mv a old", true),
        ("tee new", false),
        ("tee new old", true),
        ("git checkout topic", false),
        ("git checkout main", true),
        ("git checkout -b topic", false),
        ("git checkout -B topic", true),
        ("git checkout -- old", true),
        ("git stash push", false),
        ("git stash drop", true),
        ("git apply --check a.diff", false),
        ("git apply a.diff", true),
    ] {
        assert_eq!(effects(command) > 0, is_overwritten, "{command}");
    }
    for (text, is_overwritten) in [("ls > new", false), ("ls > old", true), ("ls > /dev/null", false)] {
        assert_eq!(!of_shell(text, &place).unwrap().is_empty(), is_overwritten, "{text}");
    }
    let saves = |command: &str| effects(command) > 1;
    assert!(!saves("curl -o /dev/null https://example.org") && saves("curl -o x https://example.org"));
    assert!(saves("curl -o /dev/null -O https://example.org"));
}

#[test]
fn what_is_not_known_is_not_guessed() {
    for command in [
        "./deploy.sh",
        "make",
        "python x.py",
        "git -c alias.x=y x",
        "find . -exec rm {} +",
        "sh -c rm␣$X",
        "sh script.sh",
        "sudo make",
        "cargo run",
        "sed 1e␣rm␣x file",
        "sed s/a/b/e file",
        "sed s/a/b/w␣out file",
        "sed -e 1p file",
        "sed -f script file",
        "sort --compress-program=x in",
        "rg --pre x y",
        "git grep -Ox y",
        "git fetch --upload-pack=x origin",
        "git submodule foreach rm",
        "gh api x",
        "kubectl annotate x",
    ] {
        assert_eq!(derived(command), None, "{command}");
    }
}

#[test]
fn names_of_secrets_are_recognised() {
    assert!(names_a_secret("GITHUB_TOKEN") && names_a_secret("db_password") && !names_a_secret("CI"));
}

#[test]
fn files_that_hold_secrets_are_known_by_their_names() {
    for path in [
        ".env",
        "a/.envrc",
        ".env.local",
        "prod.env",
        "x/id_rsa",
        "secrets.yml",
        "a/secrets/x",
        ".git/config",
    ] {
        assert!(is_secret_path(path), "{path}");
    }
    for path in ["environment.rs", "src/credentials.rs", "secrets.rs", "keys.md", "monkey", ".gitignore"] {
        assert!(!is_secret_path(path), "{path}");
    }
}
