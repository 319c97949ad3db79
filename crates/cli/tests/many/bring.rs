//! A phone is connected with `countersign pair` while a command or a hook waits: it answers that too, and what waits goes on.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use countersign_client::{
    approver::Approver,
    clock::{Clock as _, SystemClock},
    keys::DeviceKeys,
    profile::{Pins, Profile},
    reply::{Choice, SentDecision, Words},
    request::OpenedRequest,
};
use countersign_wire::decision::{DecisionOutcome, Scope};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::again::{ended, tool};
use crate::support::World;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// Another device of the same person.
struct Phone {
    ada: Approver,
    pins: Pins,
}

impl Phone {
    /// Connects it: `countersign pair` in a terminal, where a person says yes. Returns what the terminal showed too.
    async fn connect(world: &World) -> (Self, String) {
        let program = env!("CARGO_BIN_EXE_countersign");
        let mut terminal = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", &format!("{program} pair"), "/dev/null"])
            .env("COUNTERSIGN_HOME", world.home())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keys = terminal.stdin.take().unwrap();
        keys.write_all(b"yes\n").unwrap();
        let mut screen = BufReader::new(terminal.stdout.take().unwrap());
        let mut shown = String::new();
        let link = loop {
            let start = shown.len();
            assert!(screen.read_line(&mut shown).unwrap() > 0, "no link: {shown}");
            if let Some(link) = shown[start..].trim().split(' ').find(|word| word.contains("/pair#")) {
                break link.parse().unwrap();
            }
        };
        let (keys_of_phone, clock) = (DeviceKeys::generate().unwrap(), Arc::new(SystemClock));
        let Approver { http, id, .. } = &world.ada;
        let ada = Approver { http: http.clone(), id: id.clone(), keys: keys_of_phone, clock };
        let there = ada.pair_by_link(&link).await.unwrap();
        let mut pins = Pins::default();
        pins.insert(there.pin).unwrap();
        let shown = tokio::task::spawn_blocking(move || {
            while screen.read_line(&mut shown).unwrap() > 0 {}
            assert!(terminal.wait().unwrap().success(), "{shown}");
            drop(keys);
            shown
        });
        (Self { ada, pins }, shown.await.unwrap())
    }

    /// What it can open and answer.
    async fn inbox(&self) -> Vec<OpenedRequest> {
        let items = self.ada.inbox(&self.pins).await.unwrap();
        items.into_iter().filter_map(|item| item.opened.ok()).collect()
    }

    /// Approves the only request that it can open, as soon as there is one.
    async fn approves(&self) -> SentDecision {
        let until = Instant::now() + PATIENCE;
        loop {
            if let [request] = &self.inbox().await[..] {
                return self.ada.decide(request, &approval()).await.unwrap();
            }
            assert!(Instant::now() < until, "nothing is brought");
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn approval() -> Choice {
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let (outcome, words) = (DecisionOutcome::Approve, Words::default());
    Choice { outcome, scope: Scope::Once, valid_until, words }
}

/// What waits on the device that was there before.
async fn waiting(world: &World, count: usize) -> Vec<OpenedRequest> {
    world.waiting(count).await;
    let items = world.ada.inbox(&world.adas).await.unwrap();
    items.into_iter().map(|item| item.opened.unwrap()).collect()
}

fn appends(world: &World) -> Child {
    tool(world, &world.home(), &["exec", "--", "sh", "-c", "echo once >> runs"])
}

fn runs(world: &World) -> String {
    fs::read_to_string(world.folder.path().join("runs")).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_waits_is_approved_on_a_phone_that_is_connected_meanwhile() {
    let world = World::start().await;
    let exec = appends(&world);
    let old = waiting(&world, 1).await.remove(0);
    let (phone, shown) = Phone::connect(&world).await;
    assert!(shown.contains("✓ paired with ada"), "{shown}");
    assert!(shown.contains("Brought 1 waiting request to it."), "{shown}");
    let [new] = &waiting(&world, 1).await[..] else { panic!("it is listed once where it was before") };
    assert_eq!((new.supersedes.as_ref(), new.expires_at), (Some(&old.request_id), old.expires_at));
    let late = world.ada.decide(&old, &approval()).await;
    assert!(late.is_err(), "the old one is taken back");
    sleep(Duration::from_secs(2)).await;
    assert_eq!(runs(&world), "", "nobody has approved it");
    let sent = phone.approves().await;
    assert_eq!(sent.request_id, new.request_id);
    let (code, said, _) = ended(exec).await;
    assert_eq!((code, runs(&world).as_str()), (Some(0), "once\n"), "{said}");
    assert!(said.contains("asked   ada (2 devices), also on a new device"), "{said}");
    // The phone learns what became of it.
    let until = Instant::now() + PATIENCE;
    while phone.ada.receipt(&sent, 1, &phone.pins).await.unwrap().is_none() {
        assert!(Instant::now() < until, "no receipt arrives");
        sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_was_given_before_counts_and_nothing_is_brought() {
    let world = World::start().await;
    let detached = ["ask", "--detach", "--", "ls"];
    let (_, _, id) = ended(tool(&world, &world.home(), &detached)).await;
    let old = waiting(&world, 1).await.remove(0);
    world.ada.decide(&old, &approval()).await.unwrap();
    let (phone, shown) = Phone::connect(&world).await;
    assert!(!shown.contains("rought"), "{shown}");
    assert!(phone.inbox().await.is_empty());
    let (code, said, _) = ended(tool(&world, &world.home(), &["wait", id.trim()])).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_detached_is_brought_and_picked_up_by_its_first_id() {
    let world = World::start().await;
    for command in ["ls", "pwd"] {
        ended(tool(&world, &world.home(), &["ask", "--detach", "--", command])).await;
    }
    let old = waiting(&world, 2).await;
    let (phone, shown) = Phone::connect(&world).await;
    assert!(shown.contains("Brought 2 waiting requests to it."), "{shown}");
    assert_eq!(phone.inbox().await.len(), 2);
    for request in phone.inbox().await {
        phone.ada.decide(&request, &approval()).await.unwrap();
    }
    for request in &old {
        let (code, said, _) =
            ended(tool(&world, &world.home(), &["wait", request.request_id.as_str()])).await;
        assert_eq!(code, Some(0), "{said}");
    }
}

/// What could not be brought when the device was connected is brought later, and only to a device that still counts.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_is_brought_by_devices_update_and_not_to_a_revoked_device() {
    let world = World::start().await;
    let profile = world.home().join("profiles/agent");
    let file = profile.join("pins.json");
    let before = fs::read(&file).unwrap();
    let (phone, _) = Phone::connect(&world).await;
    let (lost, _) = Phone::connect(&world).await;
    // As if both had been connected while the gateway was away.
    let after = fs::read(&file).unwrap();
    fs::write(&file, before).unwrap();
    let exec = appends(&world);
    waiting(&world, 1).await;
    fs::write(&file, after).unwrap();
    let revoked = lost.ada.keys.fingerprint();
    let profile = Profile::open(&profile).unwrap();
    profile.update_pins(|pins| pins.revoke(revoked, SystemClock.now())).unwrap();
    let (code, said, _) = ended(tool(&world, &world.home(), &["devices", "update"])).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Brought 1 waiting request to the devices that were connected since."), "{said}");
    assert!(lost.inbox().await.is_empty(), "it is not sealed to a revoked device");
    phone.approves().await;
    let (code, said, _) = ended(exec).await;
    assert_eq!((code, runs(&world).as_str()), (Some(0), "once\n"), "{said}");
}

/// The message of Claude Code before a command.
fn hook(world: &World, command: &str) -> Child {
    let message = json!({
        "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": world.folder.path(), "tool_name": "Bash",
        "tool_input": { "command": command }, "tool_use_id": "toolu_1",
    });
    let mut child = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["hook", "claude", "--host-timeout", "60", "--home"])
        .arg(world.home())
        .current_dir(world.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(message.to_string().as_bytes()).unwrap();
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_waits_goes_on_with_what_the_new_phone_answers() {
    let world = World::start().await;
    let child = hook(&world, "touch x");
    waiting(&world, 1).await;
    let (phone, shown) = Phone::connect(&world).await;
    assert!(shown.contains("Brought 1 waiting request to it."), "{shown}");
    phone.approves().await;
    let (code, said, verdict) = ended(child).await;
    let verdict: Value = serde_json::from_str(&verdict).unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(verdict["hookSpecificOutput"]["permissionDecision"], "allow", "{said}");
    assert_eq!(code, Some(0), "{said}");
    assert!(world.ada.inbox(&world.adas).await.unwrap().is_empty(), "nothing is left over");
}

/// Ctrl-C reaches the request that has taken the place of the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_is_interrupted_takes_back_what_was_brought() {
    let world = World::start().await;
    let exec = appends(&world);
    waiting(&world, 1).await;
    let (phone, _) = Phone::connect(&world).await;
    assert_eq!(phone.inbox().await.len(), 1);
    let status = Command::new("kill").args(["-INT", &exec.id().to_string()]).status().unwrap();
    assert!(status.success());
    let (code, said, _) = ended(exec).await;
    assert_eq!((code, runs(&world).as_str()), (Some(130), ""), "{said}");
    assert!(phone.inbox().await.is_empty() && world.ada.inbox(&world.adas).await.unwrap().is_empty());
}
