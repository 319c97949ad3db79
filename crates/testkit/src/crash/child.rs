//! The process that is killed: this test program once more, writing until it is dead.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt as _,
    process::{Command, Stdio},
};

use super::Acked;

/// Where a child is to write, in the words of its store.
const WHERE: &str = "COUNTERSIGN_CRASH_CHILD";
/// The first id that it gives.
const FROM: &str = "COUNTERSIGN_CRASH_FROM";
const SIGKILL: i32 = 9;

/// What a child is asked to do.
#[derive(Debug)]
pub struct Child {
    /// The database, in the words of its store.
    pub database: OsString,
    /// The first id to give.
    pub from: u64,
}

/// What to do if this process is a child: every test that kills asks this first.
pub fn child() -> Option<Child> {
    let database = env::var_os(WHERE)?;
    let from = env::var(FROM).expect("a child is told its first id").parse().expect("a number");
    Some(Child { database, from })
}

/// Runs this program again as a child of the test named `test`, kills it with `kill -9` after `enough`
/// acknowledgements, and returns all that it gave before it was dead.
pub fn acknowledged_until_killed(
    test: &str,
    database: impl AsRef<OsStr>,
    from: u64,
    enough: usize,
) -> Vec<Acked> {
    let mut child = Command::new(env::current_exe().expect("the test is a program"))
        .args(["--exact", test, "--nocapture"])
        .env(WHERE, database)
        .env(FROM, from.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut output = BufReader::new(child.stdout.take().expect("its output is piped"));
    let mut acked = Vec::new();
    while acked.len() < enough {
        match next_line(&mut output) {
            Some(line) => acked.extend(parse(&line)),
            None => panic!("the child has ended by itself: {:?}", child.wait()),
        }
    }
    child.kill().expect("the child can be killed");
    // What it printed before it was dead counts.
    while let Some(line) = next_line(&mut output) {
        acked.extend(parse(&line));
    }
    let status = child.wait().expect("it is our child");
    assert_eq!(status.signal(), Some(SIGKILL), "the child has ended by itself: {status}");
    acked
}

/// A whole line: half a line at the end is no acknowledgement.
fn next_line(output: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    output.read_line(&mut line).expect("a line of text");
    line.ends_with('\n').then_some(line)
}

/// None where the test harness says something.
fn parse(line: &str) -> Option<Acked> {
    let mut numbers = line.strip_prefix("acked ")?.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(id)), Some(Ok(number))) => Some(Acked { id, number }),
        _ => panic!("not an acknowledgement: {line:?}"),
    }
}
