//! Hooks on a machine whose administrator has laid something down: a folder of the test is `/etc`, as root sees it.

use std::path::PathBuf;

use super::{keeper, *};

/// A folder in the place of `/etc`, with this policy.
fn etc(world: &World, policy: &str) -> PathBuf {
    let etc = world.folder.path().join("etc");
    // Clients read the certificates of authorities there.
    for folder in ["countersign", "ssl"] {
        fs::create_dir_all(etc.join(folder)).unwrap();
    }
    fs::write(etc.join("countersign/policy.toml"), policy).unwrap();
    etc
}

/// A program on a machine with this policy, started by its root.
fn under(world: &World, policy: &str, program: &str) -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--die-with-parent", "--unshare-user", "--uid", "0", "--gid", "0", "--bind", "/", "/"]);
    command.arg("--bind").arg(etc(world, policy)).args([
        "/etc",
        "--ro-bind",
        "/etc/ssl",
        "/etc/ssl",
        program,
    ]);
    command
}

pub(super) fn countersign(world: &World, policy: &str) -> Command {
    let mut command = under(world, policy, env!("CARGO_BIN_EXE_countersign"));
    command.env("COUNTERSIGN_HOME", world.home());
    command
}

fn hook_under(world: &World, policy: &str, arguments: &[&str], message: &Value) -> Child {
    let mut command = countersign(world, policy);
    command.arg("hook").args(arguments).arg("--home").arg(world.home());
    started(world, command, message)
}

/// What a hook says about a command.
fn says(world: &World, policy: &str) -> Output {
    hook_under(world, policy, &["claude"], &claude(world, "touch x")).wait_with_output().unwrap()
}

/// The verdict of a worker in relay mode whose host is attended, about what the host would ask.
fn relayed(world: &World, policy: &str) -> Child {
    let arguments = ["codex", "--mode", "relay", "--worker", "--attended", "--host-timeout", "20"];
    hook_under(world, policy, &arguments, &asks(world, "codex"))
}

fn verdict(child: Child) -> Value {
    serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap()
}

fn user_allows_touch(world: &World) {
    fs::create_dir_all(world.folder.path().join(".git")).unwrap();
    let rules = "[[rule]]\nverdict = \"allow\"\ncommand = \"touch *\"\n";
    fs::write(world.home().join("rules.toml"), rules).unwrap();
}

const DENIES: &str = "[[rule]]\nverdict = \"deny\"\ncommand = \"touch **\"\n";

#[tokio::test]
async fn what_users_allow_a_policy_denies_with_a_keeper_and_without() {
    let world = World::start().await;
    user_allows_touch(&world);
    assert_eq!(decision(&says(&world, "")).0, "allow");
    let output = says(&world, DENIES);
    let by_policy = "the policy of this machine: `touch x` is denied (/etc/countersign/policy.toml:1)";
    assert_eq!(decision(&output), ("deny".to_owned(), by_policy.to_owned()));
    let program = under(&world, DENIES, env!("CARGO_BIN_EXE_countersign"));
    let _keeper = keeper::Keeper::start_as(&world, program).await;
    let output = keeper::asks(&world, "touch x").wait_with_output().unwrap();
    assert_eq!(decision(&output), ("deny".to_owned(), by_policy.to_owned()));
}

#[tokio::test]
async fn a_policy_that_cannot_be_used_denies_everything() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::start().await;
    user_allows_touch(&world);
    for (policy, reason) in [
        ("colour = 1", "policy.toml:1: unknown field `colour`"),
        ("minimum_version = \"999.0.0\"", "needs countersign 999.0.0"),
        ("x", "policy.toml:1"),
    ] {
        assert_denied(&says(&world, policy), reason);
        let found = verdict(relayed(&world, policy));
        assert!(found["verdict"] == "deny" && found["reason"].to_string().contains("policy.toml"), "{found}");
    }
    let file = etc(&world, "").join("countersign/policy.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_denied(&says(&world, ""), "chmod go-w /etc/countersign/policy.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    // Under a policy, rules that can't be used are no way back to the host's own prompt.
    fs::write(world.home().join("rules.toml"), "x").unwrap();
    assert_eq!(verdict(relayed(&world, ""))["verdict"], "deny");
    let without = ["codex", "--mode", "relay", "--worker", "--attended", "--host-timeout", "20"];
    assert_eq!(verdict(hook(&world, &without, &asks(&world, "codex")))["verdict"], "noOpinion");
}

#[tokio::test]
async fn root_elsewhere_is_not_believed() {
    let world = World::start().await;
    user_allows_touch(&world);
    let mut command = Command::new("bwrap");
    command.args(["--unshare-user", "--uid", "1000", "--gid", "1000", "--bind", "/", "/", "--bind"]);
    command.arg(etc(&world, "")).args([
        "/etc",
        env!("CARGO_BIN_EXE_countersign"),
        "hook",
        "claude",
        "--home",
    ]);
    command.arg(world.home());
    let output = started(&world, command, &claude(&world, "touch x")).wait_with_output().unwrap();
    assert_denied(&output, "belongs to the user 1000; let root run `chown 0 /etc/countersign`");
    // Whoever is not in the namespace seems to be nobody. Only root can give a folder away.
    if std::os::unix::fs::chown(etc(&world, "").join("countersign"), Some(4_242), None).is_ok() {
        assert_denied(
            &says(&world, ""),
            "can't be seen in a namespace of users; install hooks with `--keeper`",
        );
    }
}

#[tokio::test]
async fn a_policy_makes_gates_of_relays() {
    let world = World::start().await;
    assert_eq!(verdict(relayed(&world, ""))["verdict"], "noOpinion", "the host's own prompt");
    let child = relayed(&world, "mode = \"gate\"");
    world.decide_all(1, approve).await;
    assert_eq!(verdict(child)["verdict"], "allow");
}

#[tokio::test]
async fn a_policy_says_who_is_asked_and_where() {
    let world = World::start().await;
    for (policy, reason) in [
        ("gateway = \"https://other.example\"", "asks with the gateway https://other.example"),
        ("tenant = \"other\"", "asks with the tenant other"),
        ("ask = [\"kim\"]", "kim"),
    ] {
        let (verdict, said) = decision(&says(&world, policy));
        assert!(verdict == "deny" && said.contains(reason), "{said}");
        let mut exec = countersign(&world, policy);
        let output = exec.args(["exec", "--", "true"]).output().unwrap();
        assert!(
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(reason),
            "{output:?}"
        );
        let mut ask = countersign(&world, policy);
        let output = ask.args(["ask", "--checkpoint", "done"]).output().unwrap();
        assert!(
            !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(reason),
            "{output:?}"
        );
    }
    nobody_is_asked(&world).await;
    let policy = "ask = [\"ada\"]\ntenant = \"acme\"";
    let child = hook_under(&world, policy, &["claude"], &claude(&world, "touch x"));
    world.decide_all(1, approve).await;
    assert_eq!(decision(&child.wait_with_output().unwrap()).0, "allow");
}

#[tokio::test]
async fn the_doctor_says_whether_a_policy_is_in_force() {
    let world = World::start().await;
    let said = |policy: &str, list: &str| {
        let output = countersign(&world, policy).args(["--json", "doctor"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of_policy = |entry: &&Value| entry["subject"] == "policy";
        report[list].as_array().unwrap().iter().filter(of_policy).count()
    };
    assert_eq!([said(DENIES, "passed"), said(DENIES, "findings")], [1, 0]);
    assert_eq!([said("x", "passed"), said("x", "findings")], [0, 1]);
}

#[tokio::test]
async fn a_policy_is_shown_and_tried() {
    let world = World::start().await;
    user_allows_touch(&world);
    let run = |policy: &str, arguments: &[&str]| {
        let mut command = countersign(&world, policy);
        let output = command.args(arguments).current_dir(world.folder.path()).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let policy = format!("mode = \"gate\"\nask = [\"ada\"]\nunlisted = \"ask\"\n{DENIES}");
    let (_, shown) = run(&policy, &["policy", "show"]);
    for words in ["every hook is a gate", "only ada may be asked", "no other rule can allow", "policy.toml:4"]
    {
        assert!(shown.contains(words), "{shown}");
    }
    let (_, shown) = run(&policy, &["policy", "show", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["policy"]["mode"], &shown["policy"]["ask"][0]), (&json!("gate"), &json!("ada")));
    let (_, tried) = run(&policy, &["policy", "test", "--", "touch", "x"]);
    assert!(tried.contains("deny: ") && tried.contains("the policy of this machine says deny"), "{tried}");
    let (_, tried) = run(&policy, &["policy", "test", "--json", "--", "make"]);
    assert_eq!(serde_json::from_str::<Value>(&tried).unwrap()["policy"]["verdict"], "ask");
    let (_, tried) = run("", &["policy", "test", "--", "touch", "x"]);
    assert!(tried.contains("allow: ") && tried.contains("leaves it to other rules"), "{tried}");
    assert!(!run("x", &["policy", "show"]).0, "it can't be used");
}
