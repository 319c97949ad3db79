//! Somebody leaves while their request is on its way: the gateway has it, and people see it, before its answer arrives.

use std::{
    io::{self, Read as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{
    desk::{relayed, set_presence, verdict},
    propose::{ended, start},
    *,
};

/// A way to the gateway on which the answer to a submission is held back, until it is let go.
struct SlowWay {
    /// Set as soon as answers to submissions pass.
    gate: Arc<OnceLock<()>>,
}

impl SlowWay {
    /// From now on the agent of this world takes it.
    fn of(world: &World) -> Self {
        let path = world.home().join("profiles/agent/profile.json");
        let mut profile: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let gateway = profile["gateway"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        profile["gateway"] = format!("http://{}", listener.local_addr().unwrap()).into();
        fs::write(&path, profile.to_string()).unwrap();
        let gate = Arc::new(OnceLock::new());
        let gated = Arc::clone(&gate);
        thread::spawn(move || {
            for client in listener.incoming() {
                connect(client.unwrap(), gateway, &gated);
            }
        });
        Self { gate }
    }

    fn open(&self) {
        self.gate.set(()).unwrap();
    }
}

fn connect(client: TcpStream, gateway: SocketAddr, gate: &Arc<OnceLock<()>>) {
    let server = TcpStream::connect(gateway).unwrap();
    let is_submission = Arc::new(AtomicBool::new(false));
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    let seen = Arc::clone(&is_submission);
    thread::spawn(move || {
        pass(from, to, |bytes| {
            if bytes.starts_with(b"POST /v1/artifacts") {
                seen.store(true, Ordering::SeqCst);
            }
        })
    });
    let gate = Arc::clone(gate);
    thread::spawn(move || {
        pass(server, client, |_| {
            if is_submission.load(Ordering::SeqCst) {
                gate.wait();
            }
        })
    });
}

fn pass(mut from: TcpStream, mut to: TcpStream, before: impl Fn(&[u8])) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        match from.read(&mut bytes)? {
            0 => return to.shutdown(std::net::Shutdown::Write),
            read => {
                before(&bytes[..read]);
                to.write_all(&bytes[..read])?;
            }
        }
    }
}

#[tokio::test]
async fn a_command_that_is_interrupted_while_its_request_arrives_takes_it_back() {
    let world = World::start().await;
    let way = SlowWay::of(&world);
    let child = start(&world, &["exec", "--", "touch", "ran"]);
    world.waiting(1).await;
    signal(i32::try_from(child.id()).unwrap(), "INT");
    sleep(Duration::from_millis(300)).await;
    way.open();
    let (code, _, said) = ended(child);
    assert!(code == 130 && said.to_lowercase().contains("taken back; nothing was run"), "{code} {said}");
    nobody_is_asked(&world).await;
    assert!(!world.folder.path().join("ran").exists());
}

#[tokio::test]
async fn a_command_that_is_interrupted_and_never_hears_says_that_people_may_see_it() {
    let world = World::start().await;
    let _way = SlowWay::of(&world);
    let child = start(&world, &["exec", "--", "touch", "ran"]);
    world.waiting(1).await;
    signal(i32::try_from(child.id()).unwrap(), "INT");
    let (code, _, said) = ended(child);
    assert!(code == 130 && said.contains("if it has the request, people see it"), "{code} {said}");
    assert!(!world.folder.path().join("ran").exists());
}

#[tokio::test]
async fn an_answer_at_the_desk_takes_back_what_is_on_its_way() {
    let world = World::start().await;
    let way = SlowWay::of(&world);
    set_presence(&world, "away");
    let child = relayed(&world, "claude", &asks(&world, "claude"));
    world.waiting(1).await;
    let mut used = claude(&world, "touch x");
    used["hook_event_name"] = "PostToolUse".into();
    let used_there = hook(&world, &["claude"], &used);
    sleep(Duration::from_millis(600)).await;
    way.open();
    assert!(used_there.wait_with_output().unwrap().status.success());
    assert_eq!(verdict(child)["verdict"], "noOpinion");
    nobody_is_asked(&world).await;
}
