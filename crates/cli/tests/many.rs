//! Commands that wait at a real gateway: many at the same time, while it is killed, and until another's approval covers
//! them; and what is kept of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeMap,
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use countersign_client::{
    approver::Approver,
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, Enforcer},
    http::Http,
    join::join,
    journal::MemoryJournal,
    keys::DeviceKeys,
    pattern::Pattern,
    profile::{Facts, FileKeys, GatewayUrl, Party, Pins, Profile},
    reply::{Choice, Words},
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

/// A gateway process, an agent's profile in a home, and a person who answers.
struct World {
    folder: TempDir,
    gateway: Child,
    ada: Approver,
    adas: Pins,
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = self.gateway.kill();
        let _ = self.gateway.wait();
    }
}

fn gateway_binary() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_countersign")).with_file_name("countersign-gateway");
    assert!(binary.is_file(), "build it first: cargo build --bin countersign-gateway");
    binary
}

fn config(folder: &Path) -> PathBuf {
    folder.join("gateway.toml")
}

async fn serve(folder: &Path, url: &str) -> Child {
    let mut gateway = Command::new(gateway_binary())
        .args(["serve", "--config"])
        .arg(config(folder))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let http = Http::new(GatewayUrl::new(url).unwrap(), None).unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while http.check().await.is_err() {
        assert!(
            Instant::now() < until && gateway.try_wait().unwrap().is_none(),
            "the gateway does not start"
        );
        sleep(Duration::from_millis(50)).await;
    }
    gateway
}

fn invited(folder: &Path, role: &str, id: &str) -> String {
    let output = Command::new(gateway_binary())
        .args(["invite", "--json", "--tenant", "acme", "--role", role, "--id", id, "--config"])
        .arg(config(folder))
        .output()
        .unwrap();
    serde_json::from_slice::<Value>(&output.stdout).unwrap()["link"].as_str().unwrap().to_owned()
}

impl World {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{address}");
        let text = format!(
            "listen = \"{address}\"\ndata = \"{}\"\n[log]\nlevel = \"error\"\n",
            folder.path().join("data").display()
        );
        fs::write(config(folder.path()), text).unwrap();
        let gateway = serve(folder.path(), &url).await;
        let robot = join(&invited(folder.path(), "enforcer", "robot").parse().unwrap()).await.unwrap();
        let person = join(&invited(folder.path(), "approver", "ada").parse().unwrap()).await.unwrap();
        let facts = Facts {
            party: robot.party,
            tenant: "acme".parse().unwrap(),
            gateway: robot.gateway,
            label: "robot".parse().unwrap(),
        };
        let keys = DeviceKeys::generate().unwrap();
        fs::create_dir_all(folder.path().join("home/profiles")).unwrap();
        let path = folder.path().join("home/profiles/agent");
        let profile = Profile::create(&path, facts, &robot.credential, &keys, &FileKeys).unwrap();
        let http = |credential| Http::new(GatewayUrl::new(&url).unwrap(), Some(credential)).unwrap();
        let Party::Approver(id) = person.party else { unreachable!("an approver has joined") };
        let ada = Approver {
            http: http(&person.credential),
            id,
            keys: DeviceKeys::generate().unwrap(),
            clock: Arc::new(SystemClock),
        };
        let enforcer = Enforcer {
            http: http(&robot.credential),
            id: "robot".parse().unwrap(),
            keys,
            clock: Arc::new(SystemClock),
            journal: Arc::new(MemoryJournal::default()),
        };
        let started = enforcer.start_pairing("robot").await.unwrap();
        let there = ada.pair_by_link(&started.link).await.unwrap();
        let here = enforcer.finish_pairing(&started, Answered::Link).await.unwrap();
        profile.update_pins(|pins| pins.insert(here.pin)).unwrap();
        let mut adas = Pins::default();
        adas.insert(there.pin).unwrap();
        Self { folder, gateway, ada, adas }
    }

    /// `countersign exec` of a command that appends its number to a file and ends with it.
    fn exec(&self, number: u8) -> Child {
        let script = format!("echo {number} >> ran; exit {number}");
        self.run(&["exec", "--", "sh", "-c", &script])
    }

    fn run(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_countersign"))
            .args(arguments)
            .current_dir(self.folder.path())
            .env("COUNTERSIGN_HOME", self.folder.path().join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    async fn waiting(&self, count: usize) {
        let until = Instant::now() + Duration::from_mins(1);
        while self.ada.inbox(&self.adas).await.unwrap().len() < count {
            assert!(Instant::now() < until, "the requests do not arrive");
            sleep(Duration::from_millis(100)).await;
        }
    }

    /// Approves even numbers and rejects odd ones.
    async fn answer_all(&self, count: usize) {
        let mut answered = 0;
        let until = Instant::now() + Duration::from_mins(1);
        while answered < count {
            assert!(Instant::now() < until, "{answered} of {count} were answered");
            for item in self.ada.inbox(&self.adas).await.unwrap_or_default() {
                let request = item.opened.unwrap();
                let number: u8 = request
                    .payload
                    .split("exit ")
                    .nth(1)
                    .unwrap()
                    .split('"')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap();
                let outcome = match number % 2 {
                    0 => DecisionOutcome::Approve,
                    _ => DecisionOutcome::Reject,
                };
                let valid_until = SystemClock.now().plus(Duration::from_mins(5));
                let choice = Choice { outcome, scope: Scope::Once, valid_until, words: Words::default() };
                self.ada.decide(&request, &choice).await.unwrap();
                answered += 1;
            }
        }
    }

    /// Each ends with its own number or with 81, and only the approved ones have run, once.
    fn check(&self, children: BTreeMap<u8, Child>) {
        for (number, mut child) in children {
            let code = child.wait().unwrap().code().unwrap();
            assert_eq!(code, if number % 2 == 0 { i32::from(number) } else { 81 }, "number {number}");
        }
        let text = fs::read_to_string(self.folder.path().join("ran")).unwrap();
        let mut ran: Vec<u8> = text.lines().map(|line| line.parse().unwrap()).collect();
        ran.sort_unstable();
        let distinct: std::collections::BTreeSet<u8> = ran.iter().copied().collect();
        assert!(ran.iter().all(|number| number % 2 == 0) && distinct.len() == ran.len(), "{ran:?}");
    }
}

#[tokio::test]
async fn a_hundred_at_once_each_get_their_own_answer() {
    let world = World::start().await;
    // From 100 on, so that no number is one of the tool's own codes.
    let children: BTreeMap<u8, Child> = (132..232).map(|number| (number, world.exec(number))).collect();
    world.answer_all(100).await;
    world.check(children);
}

#[tokio::test]
async fn a_gateway_that_is_killed_while_twenty_wait_loses_none() {
    let mut world = World::start().await;
    let children: BTreeMap<u8, Child> = (132..152).map(|number| (number, world.exec(number))).collect();
    world.waiting(20).await;
    world.gateway.kill().unwrap();
    world.gateway.wait().unwrap();
    sleep(Duration::from_secs(1)).await;
    let url = world.ada.http.gateway().as_str().to_owned();
    world.gateway = serve(world.folder.path(), &url).await;
    world.answer_all(20).await;
    world.check(children);
}

#[tokio::test]
async fn a_grant_settles_what_waits_already() {
    let world = World::start().await;
    let path = |name: &str| world.folder.path().join(name);
    let mut covered = ["one", "two"].map(|name| world.run(&["exec", "--", "touch", name]));
    let mut asked = world.run(&["ask", "--", "touch", "three"]);
    let mut other = world.run(&["exec", "--", "mkdir", "four"]);
    world.waiting(4).await;
    let items = world.ada.inbox(&world.adas).await.unwrap();
    let requests: Vec<_> = items.into_iter().map(|item| item.opened.unwrap()).collect();
    let of = |name: &str| requests.iter().find(|request| request.payload.contains(name)).unwrap();
    let pattern = Some(Pattern::new(["touch", "*"]).unwrap());
    let valid_until = SystemClock.now().plus(Duration::from_hours(1));
    let words = Words { pattern, ..Words::default() };
    let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Timebox, valid_until, words };
    world.ada.decide(of("\"one\""), &choice).await.unwrap();
    for child in covered.iter_mut().chain([&mut asked]) {
        let until = Instant::now() + Duration::from_secs(30);
        while child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < until, "it still waits");
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    assert!(path("one").exists() && path("two").exists() && !path("three").exists(), "`ask` runs nothing");
    let left = world.ada.inbox(&world.adas).await.unwrap();
    assert_eq!(left.len(), 1, "what is covered asks nobody any more");
    assert!(other.try_wait().unwrap().is_none(), "what the pattern does not cover still waits");
    let valid_until = SystemClock.now().plus(Duration::from_mins(1));
    let words = Words::default();
    let reject = Choice { outcome: DecisionOutcome::Reject, scope: Scope::Once, valid_until, words };
    world.ada.decide(of("\"four\""), &reject).await.unwrap();
    assert_eq!(other.wait().unwrap().code(), Some(81));
    assert!(!path("four").exists());
}

/// A phone is stolen while a command waits; its owner revokes it at the machine, and then the thief approves.
#[tokio::test]
async fn a_device_that_is_revoked_while_a_command_waits_does_not_approve_it() {
    let world = World::start().await;
    let mut waits = world.run(&["exec", "--", "touch", "stolen"]);
    let mut covered = world.run(&["exec", "--", "touch", "covered"]);
    world.waiting(2).await;
    let items = world.ada.inbox(&world.adas).await.unwrap();
    let requests = items.into_iter().map(|item| item.opened.unwrap());
    let request = requests.into_iter().find(|request| request.payload.contains("\"stolen\"")).unwrap();
    let profile = Profile::open(&world.folder.path().join("home/profiles/agent")).unwrap();
    let device = world.ada.keys.fingerprint();
    profile.update_pins(|pins| pins.revoke(device, SystemClock.now())).unwrap();
    let words = Words { pattern: Some(Pattern::new(["touch", "*"]).unwrap()), ..Words::default() };
    let valid_until = SystemClock.now().plus(Duration::from_hours(1));
    let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Timebox, valid_until, words };
    world.ada.decide(&request, &choice).await.unwrap();
    assert_eq!(waits.wait().unwrap().code(), Some(83));
    assert_eq!(covered.wait().unwrap().code(), Some(83), "its grant covers nothing either");
    assert!(!world.folder.path().join("stolen").exists() && !world.folder.path().join("covered").exists());
}

#[tokio::test]
async fn a_finished_exchange_is_written_and_holds() {
    let world = World::start().await;
    let mut child = world.run(&["exec", "--", "touch", "one"]);
    world.waiting(1).await;
    let request = world.ada.inbox(&world.adas).await.unwrap().remove(0).opened.unwrap();
    let id = request.request_id.as_str();
    let code = |arguments: &[&str]| world.run(arguments).wait().unwrap().code();
    assert_eq!(code(&["show", id, "--export", "bundle.json"]), Some(86), "nobody has decided it yet");
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let words = Words::default();
    let choice = Choice { outcome: DecisionOutcome::Approve, scope: Scope::Once, valid_until, words };
    world.ada.decide(&request, &choice).await.unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(code(&["show", id, "--export", "bundle.json"]), Some(0));
    assert_eq!(code(&["verify", "bundle.json"]), Some(0));
    let path = world.folder.path().join("bundle.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("touch") && text.contains(id), "{text}");
    assert_eq!(code(&["show", id, "--export", "bundle.json"]), Some(86), "nothing is replaced");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::write(&path, text.replacen("touch", "mkdir", 1)).unwrap();
    assert_eq!(code(&["verify", "bundle.json"]), Some(86), "what was asked is not what was decided");
}
