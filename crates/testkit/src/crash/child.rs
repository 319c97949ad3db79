//! The process that is killed: this test program, run again as a child that writes until it is killed.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
};

use super::report::Acked;

/// Environment variable: the database that a child writes to, as its store names it (a path or a URL).
const DATABASE: &str = "COUNTERSIGN_CRASH_CHILD";
/// Environment variable: the first id that a child uses.
const FROM: &str = "COUNTERSIGN_CRASH_FROM";
const SIGKILL: i32 = 9;

/// The task of a child process.
#[derive(Debug)]
pub struct ChildTask {
    /// The database as its store names it: a path or a URL.
    pub database: OsString,
    /// The first id to use; the child counts up from here.
    pub from: u64,
}

/// The task of this process if it is a child, else `None`. Every crash test calls this first.
pub fn child_task() -> Option<ChildTask> {
    let database = env::var_os(DATABASE)?;
    let from = env::var(FROM).expect("a child gets its first id").parse().expect("a number");
    Some(ChildTask { database, from })
}

/// Runs this program again as a child of the test named `test`, kills it with `SIGKILL` after `min_acks`
/// acknowledgements, and returns all that it printed before it died.
pub fn run_child_and_kill(test: &str, database: impl AsRef<OsStr>, from: u64, min_acks: usize) -> Vec<Acked> {
    let mut child = Command::new(env::current_exe().expect("the test is a program"))
        .args(["--exact", test, "--nocapture"])
        .env(DATABASE, database)
        .env(FROM, from.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut acked = Vec::new();
    while acked.len() < min_acks {
        match next_line(&mut output) {
            Some(line) => acked.extend(parse(&line)),
            None => panic!("the child has ended by itself: {:?}", child.wait()),
        }
    }
    child.kill().expect("the child can be killed");
    // Acknowledgements that it printed before the kill count as well.
    while let Some(line) = next_line(&mut output) {
        acked.extend(parse(&line));
    }
    let status = child.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(SIGKILL), "the child has ended by itself: {status}");
    acked
}

/// The next complete line; an incomplete one at the end is no acknowledgement.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line of text");
    line.ends_with('\n').then_some(line)
}

/// `None` for output of the test harness.
fn parse(line: &str) -> Option<Acked> {
    let mut numbers = line.strip_prefix("acked ")?.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Ok(id)), Some(Ok(number)), Some(Ok(version))) => Some(Acked { id, number, version }),
        _ => panic!("not an acknowledgement: {line:?}"),
    }
}
