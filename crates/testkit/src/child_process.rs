//! Servers as children of the tests: they end with the process that started them, whatever happens to it.

use std::{
    process::{Child, Command},
    sync::{OnceLock, mpsc},
    thread,
};

struct SpawnRequest {
    command: Command,
    started: mpsc::Sender<std::io::Result<Child>>,
}

/// The kernel sends the signal of `setpriv --pdeathsig` when the *thread* that started the child ends, not its
/// process. Threads of tests and runtimes end before their server should; this thread ends with the process.
pub fn spawn_from_permanent_thread(command: Command) -> Child {
    static REQUESTS: OnceLock<mpsc::Sender<SpawnRequest>> = OnceLock::new();
    let requests = REQUESTS.get_or_init(|| {
        let (requests, received) = mpsc::channel::<SpawnRequest>();
        thread::spawn(move || {
            for mut request in received {
                request.started.send(request.command.spawn()).ok();
            }
        });
        requests
    });
    let (started, child) = mpsc::channel();
    requests.send(SpawnRequest { command, started }).expect("the thread never ends");
    child.recv().expect("the thread answers").expect("setpriv is there")
}

/// Runs a command to its end and returns its standard output.
pub fn output(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A loopback port that is free now. Another process may take it before a server binds it.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("the address of a listener").port()
}
