//! What machines say of themselves, and `countersign fleet`, which lists it.

use std::{
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use countersign_client::{
    channel::{Capabilities, EnforcerEvent, Settings},
    clock::SystemClock,
    enforcer::Enforcer,
    http::Http,
    journal::MemoryJournal,
    keys::DeviceKeys,
    names::Names,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Pins, Profile},
};
use countersign_wire::hash::Sha256Hex;
use tempfile::TempDir;

use super::*;

/// `countersign fleet` of whoever has this home: what it lists, and how it ends.
fn fleet(world: &World, home: &str, arguments: &[&str]) -> (Value, i32) {
    let output = shown(world, home, &[&["--json"][..], arguments].concat());
    let value = serde_json::from_slice(&output.stdout);
    (value.unwrap_or_else(|_| panic!("{output:?}")), output.status.code().unwrap())
}

fn shown(world: &World, home: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("fleet").args(arguments).env("COUNTERSIGN_HOME", world.folder.path().join(home));
    command.stdin(Stdio::null()).output().unwrap()
}

/// The tool on the machine of the agent, under a policy.
fn on_machine(world: &World, policy: &str, arguments: &[&str]) {
    let mut command = policy::countersign(world, policy);
    command.args(arguments).env("HOME", world.folder.path()).current_dir(world.folder.path());
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() || output.status.code() == Some(87), "{output:?}");
}

/// What `fleet` lists of the machine, when it is as it is wanted: presence is recorded with a delay.
async fn listed(world: &World, home: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let (found, _) = fleet(world, home, &[]);
        let machine = found["machines"].as_array().unwrap().iter().find(|it| it["enforcer"] == "robot");
        if let Some(machine) = machine.filter(|machine| is_wanted(machine)) {
            return machine.clone();
        }
        assert!(Instant::now() < until, "{found}");
        sleep(Duration::from_millis(100)).await;
    }
}

const POLICY: &str = "mode = \"gate\"\n";

#[tokio::test]
async fn a_machine_says_its_policy_its_hooks_and_what_the_doctor_found() {
    let world = World::start().await;
    on_machine(&world, POLICY, &["install", "claude", "--yes", "--mode", "gate"]);
    on_machine(&world, POLICY, &["doctor", "--no-start"]);
    let id = Sha256Hex::digest(POLICY.as_bytes()).to_string();
    let machine = listed(&world, "desk", |machine| machine["says"] == "report").await;
    let said = &machine["machine"];
    assert_eq!(said["tool"], env!("CARGO_PKG_VERSION"));
    assert_eq!(said["policy"], json!({ "state": "inForce", "id": id[..12], "mode": "gate" }));
    assert_eq!(said["hooks"]["hosts"], json!([{ "host": "claude", "mode": "gate", "armed": true }]));
    assert!(said["doctor"]["at"].is_string(), "{machine}");
    let (of_enforcer, _) = fleet(&world, "home", &[]);
    assert_eq!(of_enforcer["machines"][0]["machine"], *said, "any role may read it");
    // What is wanted is in force: nothing is listed. The whole digest will do.
    for wanted in [&id[..12], id.as_str()] {
        let (found, code) = fleet(&world, "desk", &["--policy", wanted]);
        assert_eq!((found["machines"].as_array().unwrap().len(), code), (0, 0), "{found}");
    }
    let (found, code) = fleet(&world, "desk", &["--policy", "0123456789ab"]);
    assert_eq!((&found["machines"][0]["findings"][0], code), (&json!("otherPolicy"), 87));
    // Whoever connects next says that it has changed, and keeps what the doctor has found.
    on_machine(&world, "colour = 1", &["listen", "--once"]);
    let machine = listed(&world, "desk", |machine| machine["machine"]["policy"]["state"] == "unusable").await;
    assert_eq!(machine["machine"]["doctor"], said["doctor"]);
    let (found, code) = fleet(&world, "desk", &["--policy", &id]);
    assert_eq!((&found["machines"][0]["findings"][1], code), (&json!("unusablePolicy"), 87));
    let output = shown(&world, "desk", &["--problems"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.contains("robot") && table.contains("unusable ✗") && table.contains("claude gate"),
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("countersign doctor"));
    on_machine(&world, "", &["uninstall", "claude", "--yes"]);
    on_machine(&world, "", &["listen", "--once"]);
    let machine = listed(&world, "desk", |machine| machine["machine"]["hooks"]["hosts"] == json!([])).await;
    assert_eq!(machine["machine"]["policy"]["state"], "inForce", "an empty one");
}

#[tokio::test]
async fn whatever_a_machine_says_is_listed_and_shows_nothing_else() {
    let world = World::start().await;
    let before = listed(&world, "desk", |_| true).await;
    assert_eq!((&before["says"], &before["findings"]), (&json!("nothing"), &json!([])));
    let good = json!({ "version": 1, "tool": "0.1.0", "policy": { "state": "none" } });
    let with = |name: &str, value: Value| {
        let mut said = good.clone();
        said[name] = value;
        said
    };
    let host =
        |word: &str| json!({ "at": "2026-11-19T00:00:00Z", "hosts": [{ "host": word, "armed": true }] });
    let hostile = [
        json!("x"),
        json!([{}]),
        with("version", json!(2)),
        with("tool", json!("\u{1b}[2J")),
        with("tool", json!("x".repeat(700))),
        with("policy", json!({ "state": "inForce", "id": "0123456789ab\n" })),
        with("hooks", host("a b\u{202e}")),
        with("doctor", json!({ "at": "2026-11-19T00:00:00Z", "problems": -1 })),
        with("doctor", json!({ "at": "yesterday", "problems": 0 })),
    ];
    let robot = robot(&world);
    let cases = hostile.into_iter().chain([with("later", json!({ "a.b": [] }))]);
    for (number, said) in cases.enumerate() {
        let says = if said["later"].is_object() { "report" } else { "notUnderstood" };
        let name = format!("case {number} ");
        let member = ("org.countersign.machine".to_owned(), said.clone());
        let capabilities = Capabilities::new(move || [member.clone()].into_iter().collect());
        let names = Names::new(&format!("{name}\u{1b}[31m\u{202e}"), "");
        let mut listener = robot.listen(Vec::new(), Settings { capabilities, names, ..Settings::default() });
        while !matches!(listener.next(&Pins::default()).await.unwrap(), EnforcerEvent::Connected { .. }) {}
        let is_this = |machine: &Value| machine["label"].as_str().unwrap_or_default().starts_with(&name);
        let machine = listed(&world, "desk", is_this).await;
        assert_eq!(machine["says"], says, "{said}");
        let (findings, code) = match says {
            "report" => (json!([]), 0),
            _ => (json!(["notUnderstood"]), 87),
        };
        assert_eq!(machine["findings"], findings, "{said}");
        let output = shown(&world, "desk", &[]);
        assert_eq!(output.status.code(), Some(code));
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        }
    }
}

/// The agent's machine, as another program would be it.
fn robot(world: &World) -> Enforcer {
    let profile = Profile::open(&world.home().join("profiles/agent")).unwrap();
    let http = Http::new(profile.facts().gateway.clone(), Some(profile.credential())).unwrap();
    Enforcer {
        http,
        id: "robot".parse().unwrap(),
        keys: profile.unlock(None).unwrap(),
        clock: Arc::new(SystemClock),
        journal: Arc::new(MemoryJournal::default()),
    }
}

/// A home whose gateway answers every call with what this writes.
fn served(answer: impl Fn(&mut TcpStream) -> io::Result<()> + Send + 'static) -> TempDir {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4_096]);
            let _ = answer(&mut stream);
        }
    });
    let home = tempfile::tempdir().unwrap();
    let facts = Facts {
        party: Party::Enforcer("robot".parse().unwrap()),
        tenant: "acme".parse().unwrap(),
        gateway: GatewayUrl::new(&url).unwrap(),
        label: "a machine".parse().unwrap(),
    };
    fs::create_dir(home.path().join("profiles")).unwrap();
    let credential = Credential::new("csk_acme_x_y".to_owned().into()).unwrap();
    let keys = DeviceKeys::generate().unwrap();
    Profile::create(&home.path().join("profiles/agent"), facts, &credential, &keys, &FileKeys).unwrap();
    home
}

fn of_gateway(home: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.arg("fleet").args(arguments).env("COUNTERSIGN_HOME", home.path());
    command.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_thousand_of_the_largest_records_are_listed_and_a_list_without_end_is_not() {
    let record = |number: usize| {
        json!({
            "enforcerDeviceId": format!("{number:0>256}"), "status": "offline", "transport": "poll",
            "lastSeenAt": "2026-11-19T00:00:00Z", "enforcerLabel": "字".repeat(128),
            "workspaceName": "字".repeat(128),
            "capabilities": { "org.countersign.machine": {
                "version": 1, "tool": "0.1.0", "policy": { "state": "none" }, "more": "x".repeat(900) } },
        })
    };
    let list = Value::from((0..1_000).map(record).collect::<Vec<_>>()).to_string();
    let home = served(move |stream| {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}", list.len())
    });
    let output = of_gateway(&home, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.lines().count(), 1 + 2 * 1_000, "a heading, and the two names of each");
    assert!(table.lines().all(|line| line.chars().count() <= 80));
    let endless = served(|stream| {
        write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n[")?;
        loop {
            stream.write_all(&b"{\"enforcerDeviceId\":\"x\"},".repeat(1_000))?;
        }
    });
    let began = Instant::now();
    let output = of_gateway(&endless, &[]);
    assert_eq!(output.status.code(), Some(83), "{output:?}");
    assert!(began.elapsed() < Duration::from_secs(20) && output.stdout.is_empty());
}
