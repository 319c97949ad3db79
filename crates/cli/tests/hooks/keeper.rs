//! Hooks that ask a keeper: each gets its own verdict, and whatever becomes of the keeper, no call is allowed without one.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read as _, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use countersign_agents::{
    call_socket::{frames::VERSION, place::CallSocket, root},
    tool::{files::Root, home::Home},
};
use countersign_client::{
    journal::{FileJournal, Journal as _, Kind},
    reply::Words,
    request::OpenedRequest,
};
use countersign_wire::decision::DecisionOutcome;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    approve, assert_denied, claude, decision, each_gets_its_own_verdict, nobody_is_asked, say, signal,
    started, support::World, the_permission_tool_answers,
};

/// How often the keeper is killed at random; more by hand.
const KILLS: u64 = 50;
/// It is killed so many milliseconds after the question at the latest: late enough that some answers come before.
const LATEST_KILL: u64 = 600;
/// How many connections never ask; 10,000 by hand, as far as the system allows.
const SLOW: usize = 2_000;

/// A number that somebody at a terminal may set.
pub(super) fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The keeper of a world.
pub(super) struct Keeper {
    process: Child,
    socket: CallSocket,
}

/// What a person has approved, and what a keeper has allowed.
#[derive(Debug, Default)]
pub(super) struct Used {
    approved: BTreeSet<String>,
    allowed: usize,
}

impl Used {
    pub(super) fn approve(&mut self, request: &OpenedRequest) {
        self.approved.insert(request.request_id.as_str().to_owned());
    }

    pub(super) fn allow(&mut self) {
        self.allowed += 1;
    }

    pub(super) fn allowed(&self) -> usize {
        self.allowed
    }

    /// The journal of the profile has a use of every decision that was allowed, of none that was not approved, and of none twice. It may
    /// have more: who was killed after the use was written allowed nothing.
    pub(super) fn check(&self, profile: &Path) {
        // A copy: only its owner reads a journal, and this one may be seen through another process.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("journal");
        fs::write(&copy, fs::read(profile.join("journal")).unwrap()).unwrap();
        fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let uses = FileJournal::new(copy).list(Kind::Use).unwrap();
        let decisions: BTreeSet<String> =
            uses.iter().map(|used| used.key.split('/').next().unwrap().to_owned()).collect();
        assert_eq!(decisions.len(), uses.len(), "a decision was used twice");
        assert!(decisions.is_subset(&self.approved), "something was used that nobody approved");
        assert!(decisions.len() >= self.allowed, "{} of {} are written down", decisions.len(), self.allowed);
    }
}

impl Keeper {
    pub(super) async fn start(world: &World) -> Self {
        Self::start_as(world, Command::new(env!("CARGO_BIN_EXE_countersign"))).await
    }

    /// With a command that runs the tool.
    pub(super) async fn start_as(world: &World, mut tool: Command) -> Self {
        let socket = CallSocket::of(&Home::at(&world.home()));
        let process =
            tool.args(["keeper", "serve", "--home"]).arg(world.home()).stderr(Stdio::null()).spawn().unwrap();
        let keeper = Self { process, socket };
        let until = Instant::now() + Duration::from_secs(20);
        while keeper.socket.connect(Duration::from_secs(1)).is_err() {
            assert!(Instant::now() < until, "the keeper does not start");
            sleep(Duration::from_millis(10)).await;
        }
        keeper
    }

    fn signal(&self, name: &str) {
        signal(i32::try_from(self.process.id()).unwrap(), name);
    }

    fn call(&self) -> UnixStream {
        let stream = self.socket.connect(Duration::from_secs(10)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn asks(world: &World, command: &str) -> Child {
    asks_within(world, command, "60")
}

fn asks_within(world: &World, command: &str, seconds: &str) -> Child {
    starts(world, &claude(world, command), seconds)
}

/// The line as hosts run it, for the keeper of a world.
fn line(world: &World, seconds: &str) -> Vec<String> {
    let home = world.home().display().to_string();
    let words =
        ["hook", "claude", "--home", &home, "--keeper", "user", "--mode", "gate", "--host-timeout", seconds];
    words.map(str::to_owned).into()
}

pub(super) fn starts(world: &World, message: &Value, seconds: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign-hook"));
    command.args(line(world, seconds));
    started(world, command, message)
}

/// A call that a rule allows.
fn allowed(world: &World) -> Child {
    fs::create_dir_all(world.folder.path().join(".git")).unwrap();
    fs::write(world.folder.path().join("read.txt"), "x").unwrap();
    let message = json!({
        "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": world.folder.path(), "tool_name": "Read",
        "tool_input": { "file_path": world.folder.path().join("read.txt") },
    });
    starts(world, &message, "60")
}

fn is_allowed(child: Child) -> bool {
    let output = child.wait_with_output().unwrap();
    decision(&output).0 == "allow"
}

#[tokio::test]
async fn a_person_decides_and_a_hook_needs_no_file_of_ours() {
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    let child = asks(&world, "touch x");
    world.decide_all(1, |_| say(DecisionOutcome::Approve, "but only once")).await;
    let output = child.wait_with_output().unwrap();
    let (verdict, reason) = decision(&output);
    assert!(verdict == "allow" && reason.contains("approved by ada"), "{reason}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("but only once"));
    let child = asks(&world, "touch x");
    world.decide_all(1, |_| say(DecisionOutcome::Reject, "not on a Friday")).await;
    let (verdict, reason) = decision(&child.wait_with_output().unwrap());
    assert!(verdict == "deny" && reason.contains("not on a Friday"), "{reason}");

    // The hook opens the folder of the socket, and nothing else that is ours.
    let traced = world.folder.path().join("trace");
    fs::write(world.folder.path().join("message"), claude(&world, "touch x").to_string()).unwrap();
    let child = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=file,process", "-o"])
        .arg(&traced)
        .arg(env!("CARGO_BIN_EXE_countersign-hook"))
        .args(line(&world, "60"))
        .stdin(fs::File::open(world.folder.path().join("message")).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    world.decide_all(1, approve).await;
    assert!(is_allowed(child));
    let trace = fs::read_to_string(traced).unwrap();
    let home = world.home().display().to_string();
    let touched: Vec<&str> = trace.lines().filter(|line| line.contains(&home)).skip(1).collect();
    assert!(touched.iter().all(|line| line.contains(&format!("{home}/call\""))), "{touched:#?}");
    assert!(!trace.contains("clone") && !trace.contains("fork"), "it starts something: {trace}");
    drop(keeper);
}

#[tokio::test]
async fn two_hundred_at_once_each_get_their_own_verdict() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    let mut children = Vec::new();
    for wave in 0..4 {
        children.extend(
            (wave * 50..(wave + 1) * 50)
                .map(|number| asks_within(&world, &format!("touch file-{number}"), "300")),
        );
        world.waiting(children.len()).await;
    }
    each_gets_its_own_verdict(&world, children).await;
}

#[tokio::test]
async fn the_permission_tool_asks_it_too() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    the_permission_tool_answers(&world).await;
}

#[tokio::test]
async fn without_a_keeper_and_with_one_that_dies_or_hangs_it_is_denied() {
    let world = World::start().await;
    assert_denied(&asks(&world, "touch x").wait_with_output().unwrap(), "countersign keeper start");
    // The whole tool says the same.
    let arguments = ["claude", "--keeper", "user"];
    let child = super::hook(&world, &arguments, &claude(&world, "touch x"));
    assert_denied(&child.wait_with_output().unwrap(), "countersign keeper start");
    for (name, time, reason) in [("KILL", "60", "without a verdict"), ("STOP", "6", "in time")] {
        let keeper = Keeper::start(&world).await;
        let child = asks_within(&world, "touch x", time);
        world.waiting(1).await;
        let began = Instant::now();
        keeper.signal(name);
        assert_denied(&child.wait_with_output().unwrap(), reason);
        assert!(began.elapsed() < Duration::from_secs(30), "{name} {:?}", began.elapsed());
        // It is not even accepted now.
        let output = asks_within(&world, "touch x", "3").wait_with_output().unwrap();
        assert_denied(&output, if name == "KILL" { "does not answer" } else { "in time" });
        if name == "KILL" {
            // The request is still there, and nobody acts on it. It is answered so that the next one is alone.
            world.decide_all(1, approve).await;
        }
    }
}

#[tokio::test]
async fn a_hook_that_is_gone_takes_its_question_back() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    for name in ["TERM", "KILL"] {
        let child = asks(&world, "touch x");
        world.waiting(1).await;
        signal(i32::try_from(child.id()).unwrap(), name);
        assert!(!child.wait_with_output().unwrap().status.success());
        nobody_is_asked(&world).await;
    }
}

#[tokio::test]
async fn what_the_keeper_does_not_understand_harms_nobody_else() {
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    let long = [&VERSION[..], &u32::MAX.to_be_bytes()].concat();
    let nonsense = [&VERSION[..], &5_u32.to_be_bytes(), b"{}{}{", &[0; 12]].concat();
    // The last one has no root beside it.
    let questions = [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], true),
        (b"CSK1\0\0\0\0", true),
        (&long, true),
        (&nonsense, true),
        (&nonsense, false),
    ];
    for (bytes, has_root) in questions {
        let mut stream = keeper.call();
        match has_root {
            true => say_with_root(&stream, bytes),
            false => stream.write_all(bytes).unwrap(),
        }
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        let verdict: Value = serde_json::from_slice(&said[4..]).unwrap();
        assert_eq!((&verdict["code"], &verdict["stdout"]), (&json!(2), &json!("")), "{verdict}");
    }
    let mut seed = 1_u64;
    for _ in 0..300 {
        let mut stream = keeper.call();
        let bytes: Vec<u8> =
            (0..64).map(|_| random(&mut seed).to_le_bytes()[0] >> (random(&mut seed) % 8)).collect();
        say_with_root(&stream, &VERSION);
        // It may have hung up already.
        drop(stream.write_all(&bytes));
    }
    assert!(is_allowed(allowed(&world)));
}

/// Everything that the keeper says to a question.
pub(super) fn said_to(keeper: &Keeper, question: &[u8]) -> String {
    let mut stream = keeper.call();
    say_with_root(&stream, question);
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    String::from_utf8_lossy(&said).into_owned()
}

/// Says what a hook could, with the root of this process beside it.
fn say_with_root(stream: &UnixStream, bytes: &[u8]) {
    let root = Root::of_this_process().unwrap();
    assert_eq!(root::send(stream, bytes, &[root.as_fd()]).unwrap(), bytes.len());
}

/// In a sandbox another file lies under the same path: that one is shown, and the keeper's own is not.
#[tokio::test]
async fn a_caller_in_a_sandbox_is_asked_about_its_own_files() {
    let world = World::start().await;
    let _keeper = Keeper::start(&world).await;
    let project = world.folder.path().join("project");
    let elsewhere = world.folder.path().join("elsewhere");
    for (folder, text) in [(&project, "outside\n"), (&elsewhere, "inside\n")] {
        fs::create_dir_all(folder.join(".git")).unwrap();
        fs::write(folder.join("file"), text).unwrap();
    }
    let edit = json!({
        "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": project, "tool_name": "Write",
        "tool_input": { "file_path": project.join("file"), "content": "new\n" },
    });
    for (is_sandboxed, shown) in [(false, "-outside"), (true, "-inside")] {
        let hook = env!("CARGO_BIN_EXE_countersign-hook");
        let mut command = Command::new(if is_sandboxed { "bwrap" } else { hook });
        if is_sandboxed {
            command.args(["--unshare-user", "--unshare-pid", "--bind", "/", "/", "--proc", "/proc"]);
            command.arg("--bind").args([&elsewhere, &project]).arg(hook);
        }
        command.args(line(&world, "60"));
        let child = started(&world, command, &edit);
        world
            .decide_all(1, |request| {
                assert!(request.payload.contains(shown), "{shown}: {}", request.payload);
                approve(request)
            })
            .await;
        assert!(is_allowed(child));
    }
}

/// Numbers that differ, the same ones in every run.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[tokio::test]
async fn connections_that_never_ask_keep_nobody_waiting() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    let count = usize::try_from(number("KEEPER_SLOW", 0)).unwrap().max(SLOW);
    let socket = keeper.socket.clone();
    let slow = std::thread::spawn(move || {
        let call = |_| {
            let mut stream = socket.connect(Duration::from_mins(1)).unwrap();
            drop(stream.write_all(b"CS"));
            stream
        };
        (0..count).map(call).collect::<Vec<_>>()
    });
    let began = Instant::now();
    let mut longest = Duration::ZERO;
    while !slow.is_finished() || began.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        assert!(is_allowed(allowed(&world)));
        longest = longest.max(asked.elapsed());
    }
    println!(
        "{count} connections that never ask, in {:?}; the longest call beside them: {longest:?}",
        began.elapsed()
    );
    assert!(longest < Duration::from_secs(20), "{longest:?}");
    drop(slow.join().unwrap());
}

#[tokio::test]
async fn killed_at_any_moment_it_allows_nothing_that_was_not_approved() {
    let world = World::start().await;
    let mut seed = number("KEEPER_SEED", 7);
    let (mut used, mut denied) = (Used::default(), 0);
    for round in 0..number("KEEPER_KILLS", KILLS) {
        let keeper = Keeper::start(&world).await;
        let child = asks_within(&world, &format!("touch file-{round}"), "20");
        let (is_approved, moment) = (!random(&mut seed).is_multiple_of(4), random(&mut seed) % LATEST_KILL);
        let answering = async {
            // Half of the time it dies before anybody has answered.
            let until = Instant::now() + Duration::from_secs(3);
            while Instant::now() < until {
                for item in world.ada.inbox(&world.adas).await.unwrap_or_default() {
                    let request = item.opened.unwrap();
                    let is_now = request.payload.contains(&format!("touch file-{round}"));
                    let outcome = match is_now && is_approved {
                        true => (DecisionOutcome::Approve, Words::default()),
                        false => say(DecisionOutcome::Reject, "no"),
                    };
                    // What a dead keeper has asked may expire meanwhile.
                    if world.decide(&request, outcome).await.is_ok() && is_now && is_approved {
                        used.approve(&request);
                    }
                    if is_now {
                        return;
                    }
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        let killing = async {
            sleep(Duration::from_millis(moment)).await;
            keeper.signal("KILL");
        };
        let ((), ()) = tokio::join!(
            async { drop(tokio::time::timeout(Duration::from_millis(LATEST_KILL + 200), answering).await) },
            killing
        );
        let output = child.wait_with_output().unwrap();
        match decision(&output).0.as_str() {
            "allow" => {
                assert!(is_approved, "round {round}: {output:?}");
                used.allow();
            }
            "deny" => denied += 1,
            other => panic!("round {round}: {other}"),
        }
    }
    println!("{} allowed, {denied} denied", used.allowed());
    used.check(&world.home().join("profiles/agent"));
    // Its journal is as good as new.
    let _keeper = Keeper::start(&world).await;
    let child = asks(&world, "touch last");
    world.decide_all(1, approve).await;
    assert!(is_allowed(child));
}

#[tokio::test]
async fn its_memory_is_its_own_and_its_files_are_the_users() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(keeper.socket.path()), 0o600);
    assert_eq!(mode(world.home().join("call")), 0o700);
    // A process that can't be dumped belongs to root in /proc, so others of the same user can't open its memory.
    let status = fs::metadata(format!("/proc/{}/mem", keeper.process.id())).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&status), 0);
    let again = Command::new(env!("CARGO_BIN_EXE_countersign"))
        .args(["keeper", "serve", "--home"])
        .arg(world.home())
        .output()
        .unwrap();
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("Another keeper runs here"), "{again:?}");
}
