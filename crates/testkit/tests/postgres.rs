//! The private PostgreSQL servers that the other crates' tests rely on.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    time::Duration,
};

use countersign_testkit::postgres::Postgres;
use tokio::time::{sleep, timeout};

/// The first message of libpq to every server; one without TLS responds with [`NO_SSL`].
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const NO_SSL: u8 = b'N';

fn answers(port: u16) -> bool {
    let Ok(mut connection) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return false };
    let mut answer = [0];
    connection.write_all(&SSL_REQUEST).is_ok()
        && connection.read_exact(&mut answer).is_ok()
        && answer == [NO_SSL]
}

fn runs(pid: u32) -> bool {
    // A zombie process has an empty command line.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command_line| !command_line.is_empty())
}

#[test]
fn a_started_server_answers_and_says_where_it_is() {
    let postgres = Postgres::start();
    assert!(runs(postgres.pid()));
    assert!(answers(postgres.port()));
    let url = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", postgres.port());
    assert_eq!(postgres.url(), url);
}

#[test]
fn a_dropped_server_is_gone_and_so_is_its_port() {
    let postgres = Postgres::start();
    let (pid, port) = (postgres.pid(), postgres.port());
    drop(postgres);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
    assert!(!answers(port));
}

#[test]
fn two_servers_are_independent() {
    let (one, other) = (Postgres::start(), Postgres::start());
    assert_ne!(one.port(), other.port());
    drop(one);
    assert!(answers(other.port()));
}

#[test]
fn a_stopped_server_starts_again_on_its_port() {
    let mut postgres = Postgres::start();
    let (pid, port) = (postgres.pid(), postgres.port());
    postgres.stop();
    assert!(!runs(pid));
    assert!(!answers(port));
    postgres.start_again();
    assert_eq!(postgres.port(), port);
    assert!(answers(port));
}

#[test]
fn a_killed_server_starts_again_on_its_port() {
    let mut postgres = Postgres::start();
    for _ in 0..3 {
        let pid = postgres.pid();
        postgres.kill();
        assert!(!runs(pid));
        postgres.start_again();
        assert!(answers(postgres.port()));
    }
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let postgres = std::thread::spawn(Postgres::start).join().unwrap();
    assert!(answers(postgres.port()));
}

/// Environment variable, set in the process that the test kills.
const TO_BE_KILLED: &str = "COUNTERSIGN_TO_BE_KILLED";

#[tokio::test]
async fn a_killed_test_process_leaves_no_server_behind() {
    if env::var_os(TO_BE_KILLED).is_some() {
        let postgres = Postgres::start();
        println!("server {}", postgres.pid());
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    // The killed process can't remove the server's folder, so it is in one of ours, which any user may enter.
    let everybody = fs::Permissions::from_mode(0o755);
    let folder = tempfile::Builder::new().permissions(everybody).tempdir().unwrap();
    let mut test = Command::new(env::current_exe().unwrap())
        .env("TMPDIR", folder.path())
        .env(TO_BE_KILLED, "yes")
        .args(["--exact", "--nocapture", "a_killed_test_process_leaves_no_server_behind"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(test.stdout.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("server ")).unwrap();
    let pid: u32 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(runs(pid));

    test.kill().unwrap();
    test.wait().unwrap();

    let ended = async {
        while runs(pid) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), ended).await.expect("the server ends with the test");
    folder.close().unwrap();
}
