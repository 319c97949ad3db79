//! A panic gives the terminal back, and what it says can be read; an answer that did not arrive says why.

use std::{env, fs, process::Command};

use super::*;
use crate::tui::fixture::{harmless, request};

#[test]
fn an_answer_that_came_too_late_says_when_it_expired() {
    let outcome = |error| match not_accepted(&request("r0", &harmless()), &error) {
        Event::NotAccepted { why, end, .. } => (why, end),
        other => panic!("{other:?}"),
    };
    let late = ("too late, it expired at 12:10:00".to_owned(), Some(End::Expired));
    assert_eq!(outcome(DecideError::TooLate), late);
    assert_eq!(outcome(DecideError::AnsweredBefore).1, Some(End::Answered));
    assert_eq!(outcome(DecideError::TakenBack).1, Some(End::Withdrawn));
}

/// What the child of the test does.
const CHILD: &str = "COUNTERSIGN_TEST_PANIC";

#[test]
#[ignore = "the other test starts it in a terminal of its own"]
fn child() {
    let Ok(place) = env::var(CHILD) else { return };
    let screen = Screen::open().unwrap();
    assert_ne!(place, "here", "broken {place}");
    let other = thread::spawn(move || panic!("broken {place}"));
    other.join().unwrap_err();
    assert!(HAS_PANICKED.load(Ordering::SeqCst), "the loop learns of it, and ends");
    // The screen is not given back by the end of the thread that has it.
    std::mem::forget(screen);
    std::process::exit(7);
}

#[test]
fn a_panic_in_any_thread_gives_the_terminal_back_before_it_says_why() {
    for place in ["here", "elsewhere"] {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        let child = format!(
            "stty -a > {}; '{}' --exact tui::run::tests::child --ignored --nocapture; stty -a > {}",
            before.display(),
            env::current_exe().unwrap().display(),
            after.display()
        );
        let output = Command::new("script")
            .args(["--quiet", "--command", &child, "/dev/null"])
            .env(CHILD, place)
            .env("RUST_BACKTRACE", "0")
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let position =
            |part: &str| text.find(part).unwrap_or_else(|| panic!("{place}: no {part:?} in {text:?}"));
        let (enter, leave) = (position("\u{1b}[?1049h"), position("\u{1b}[?1049l"));
        let (paste_off, words) = (position("\u{1b}[?2004l"), position(&format!("broken {place}")));
        assert!(enter < leave && leave < words, "{place}: nobody could read why: {text:?}");
        assert!(paste_off < words, "{place}: {text:?}");
        let read = |path| fs::read_to_string(path).unwrap();
        assert!(read(&before).contains(" icanon"), "it was an ordinary terminal before");
        assert_eq!(read(&before), read(&after), "{place}: the terminal is not as it was");
    }
}
