//! Each rule of answering, with a clock that the test moves.

mod again;
mod meanwhile;
mod scopes;

use countersign_client::{
    audience::Verify,
    payload::{CommandFile, FileRole, Payload},
    reply::Choice,
    request::OpenedRequest,
};
use countersign_wire::decision::{DecisionOutcome, Scope};

use super::*;
use crate::tui::fixture::{Desk, arrived, force_push, harmless, noon, patch, request, scripts};

fn decided(actions: &[Action]) -> Option<&Choice> {
    actions.iter().find_map(|action| match action {
        Action::Decide(_, choice) => Some(&**choice),
        _ => None,
    })
}

fn opened(payload: Payload) -> Desk {
    let mut desk = Desk::new(80, 24, &[payload]);
    assert!(desk.slowly("\n").is_empty());
    assert!(desk.state.reading().is_some());
    desk
}

#[test]
fn a_then_y_approves_once_and_signs_what_was_shown() {
    let mut desk = opened(harmless());
    assert!(desk.slowly("a").is_empty());
    assert!(desk.bar().starts_with("Approve once? Runs a command · cargo test"), "{}", desk.bar());
    let actions = desk.slowly("y");
    let choice = decided(&actions).unwrap();
    assert_eq!((choice.outcome, choice.scope), (DecisionOutcome::Approve, Scope::Once));
    assert_eq!(choice.words.shown.as_deref(), Some("7 of 7 lines, terminal 80×24"));
    assert_eq!(choice.words.reason, None);
    assert!(decided(&desk.slowly("ayr")).is_none(), "it is answered once");
}

#[test]
fn nothing_but_y_approves_and_only_after_half_a_second() {
    for key in [Key::Enter, Key::Char('a'), Key::Char(' '), Key::Char('Y'), Key::Tab] {
        let mut desk = opened(harmless());
        desk.slowly("a");
        assert_eq!(desk.state.mode, Mode::Confirm);
        assert!(decided(&desk.key(key)).is_none(), "{key:?}");
        assert_eq!(desk.state.mode, Mode::Browse, "{key:?} goes back");
    }
    for (milliseconds, approves) in [(0, false), (499, false), (500, true)] {
        let mut desk = opened(harmless());
        desk.key(Key::Char('a'));
        desk.wait(milliseconds);
        assert_eq!(decided(&desk.key(Key::Char('y'))).is_some(), approves, "{milliseconds} ms");
    }
}

#[test]
fn a_held_key_never_approves() {
    let mut desk = opened(harmless());
    desk.key(Key::Char('a'));
    desk.wait(100);
    assert!(desk.key(Key::Char('y')).is_empty());
    desk.wait(660);
    for _ in 0..200 {
        assert!(decided(&desk.key(Key::Char('y'))).is_none());
        desk.wait(33);
    }
    assert_eq!(desk.state.mode, Mode::Confirm);
}

#[test]
fn a_new_screen_takes_no_keys_that_answer() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    desk.key(Key::Enter);
    desk.wait(400);
    assert!(desk.key(Key::Char('a')).is_empty());
    assert_eq!(desk.state.mode, Mode::Browse);
    let mut desk = Desk::new(80, 24, &[]);
    desk.handle(Event::Inbox(vec![arrived("first", &harmless())]));
    assert!(decided(&desk.key(Key::Char('r'))).is_none(), "the first one has just appeared under the finger");
    assert!(decided(&desk.slowly("r")).is_some());
}

#[test]
fn reject_is_one_action_from_the_list_and_from_the_review() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    let actions = desk.key(Key::Char('r'));
    let choice = decided(&actions).unwrap();
    assert_eq!(choice.outcome, DecisionOutcome::Reject);
    assert!(choice.words.shown.as_deref().unwrap().contains("not opened"));
    let mut desk = opened(force_push());
    assert!(decided(&desk.key(Key::Char('r'))).is_some(), "also what is dangerous");
}

#[test]
fn words_of_a_rejection_reach_the_agent() {
    let mut desk = opened(harmless());
    desk.slowly("Rnot on");
    desk.handle(Event::Paste(" a\nFriday\u{1b}".to_owned()));
    let actions = desk.slowly("\n");
    let choice = decided(&actions).unwrap();
    assert_eq!(choice.outcome, DecisionOutcome::Reject);
    assert_eq!(choice.words.reason.as_deref(), Some("not on a Friday"));
    let mut desk = opened(harmless());
    desk.slowly("Rno");
    assert!(decided(&desk.key(Key::Escape)).is_none());
    assert_eq!(desk.state.mode, Mode::Browse);
}

#[test]
fn a_paste_is_never_an_answer() {
    let mut desk = opened(force_push());
    for _ in 0..3 {
        assert!(desk.handle(Event::Paste("ay".to_owned())).is_empty());
        desk.wait(2_000);
    }
    desk.slowly("a");
    desk.handle(Event::Paste("main".to_owned()));
    assert_eq!(desk.state.mode, Mode::Target(String::new()), "a target is typed by hand");
}

#[test]
fn the_list_can_not_approve() {
    let mut desk = Desk::new(200, 60, &[harmless()]);
    assert!(decided(&desk.slowly("ay")).is_none());
    assert!(desk.slowly("a").is_empty() && desk.bar().contains("Open it with Enter first"), "{}", desk.bar());
}

#[test]
fn what_is_dangerous_needs_its_target_typed_and_then_y() {
    let mut desk = opened(force_push());
    desk.slowly("a");
    assert!(desk.bar().contains("Type main to go on"), "{}", desk.bar());
    assert!(decided(&desk.slowly("\n")).is_none());
    assert!(decided(&desk.slowly("master\n")).is_none());
    assert!(desk.bar().contains("Type main"), "{}", desk.bar());
    assert!(decided(&desk.slowly("main\n")).is_none(), "Enter does not approve");
    assert_eq!(desk.state.mode, Mode::Confirm);
    assert!(decided(&desk.slowly("y")).is_some());
}

/// A terminal has no lock of a device, and the machine would refuse an approval without one.
#[test]
fn what_needs_the_lock_of_a_device_can_only_be_rejected() {
    let mut desk = Desk::new(200, 24, &[]);
    let opened = OpenedRequest { verify: Verify::Person, ..request("r0", &harmless()) };
    let item = InboxItem { request_id: "r0".parse().unwrap(), opened: Ok(opened) };
    desk.handle(Event::Inbox(vec![item]));
    desk.slowly("\n");
    assert!(decided(&desk.slowly("ay")).is_none());
    assert!(desk.bar().contains("This needs a device lock, and a terminal has none."), "{}", desk.bar());
    assert_eq!(decided(&desk.slowly("r")).unwrap().outcome, DecisionOutcome::Reject);
}

/// Two scripts that nobody has examined, too long to be unfolded at first.
fn long_scripts() -> Payload {
    let mut payload = scripts();
    let Payload::Command(command) = &mut payload else { unreachable!("a command") };
    for file in &mut command.files {
        *file = CommandFile::with_content(file.path.clone(), FileRole::Script, "make\n".repeat(80));
    }
    payload
}

#[test]
fn what_was_not_examined_needs_all_read() {
    let mut desk = opened(long_scripts());
    desk.slowly("a");
    assert_eq!(desk.state.mode, Mode::Browse);
    assert!(desk.bar().contains("2 of 2 files are not"), "{}", desk.bar());
    desk.slowly("f");
    desk.key(Key::Tab);
    desk.slowly("a");
    assert!(desk.bar().contains("1 of 2 files are not"), "{}", desk.bar());
    desk.slowly("f");
    desk.key(Key::Tab);
    desk.slowly("a");
    assert_eq!(desk.state.mode, Mode::Browse, "unfolded is not read");
    assert!(desk.bar().contains("read to the end first"), "{}", desk.bar());
    desk.slowly(&format!("g{}", " ".repeat(20)));
    assert!(decided(&desk.slowly("ay")).is_none(), "a letter is not enough");
    desk.key(Key::Escape);
    desk.slowly("anot examined");
    desk.key(Key::Enter);
    let actions = desk.slowly("y");
    let shown = decided(&actions).unwrap().words.shown.clone().unwrap();
    assert!(shown.starts_with("2 of 2 files, "), "{shown}");
}

#[test]
fn a_small_terminal_answers_nothing() {
    let mut desk = opened(harmless());
    desk.handle(Event::Resize(30, 8));
    assert!(decided(&desk.slowly("ayr")).is_none(), "nobody sees what it would be about");
    desk.handle(Event::Resize(80, 24));
    desk.slowly("a");
    desk.handle(Event::Resize(39, 10));
    assert!(decided(&desk.slowly("y")).is_none(), "the question can't be seen");
    desk.handle(Event::Resize(40, 10));
    assert!(decided(&desk.slowly("ay")).is_some(), "{}", desk.bar());
}

#[test]
fn what_is_behind_the_help_is_not_shown() {
    let mut desk = Desk::new(80, 24, &[patch(&[150])]);
    desk.slowly("\n");
    let before = desk.state.shown().unwrap().lines;
    desk.slowly("?");
    desk.handle(Event::Resize(80, 200));
    assert_eq!(desk.state.shown().unwrap().lines, before);
    desk.slowly("?");
    assert_eq!(desk.state.mode, Mode::Browse);
    let shown = desk.state.shown().unwrap();
    assert_eq!((shown.lines, shown.of_lines), (161, 161));
}

#[test]
fn search_finds_also_what_is_folded() {
    let mut desk = opened(patch(&[300, 3]));
    desk.slowly("/VALUE_299\n");
    assert!(desk.bar().contains("was not found"), "capitals count if there are some: {}", desk.bar());
    desk.slowly("/value_2\n");
    let current = |desk: &Desk| {
        let (_, pager) = desk.state.reading().unwrap();
        pager.rows().iter().find(|row| row.is_current).unwrap().text.clone()
    };
    assert!(current(&desk).starts_with("+let value_2 "), "{}", current(&desk));
    desk.slowly("nN");
    assert!(current(&desk).starts_with("+let value_2 "), "{}", current(&desk));
    desk.slowly("N");
    assert!(current(&desk).contains("// file 1"), "around the beginning: {}", current(&desk));
}

#[test]
fn a_larger_list_is_filled() {
    let mut desk = Desk::new(80, 24, &std::array::from_fn::<_, 12, _>(|_| harmless()));
    desk.slowly("G\n");
    assert!(desk.state.list_top > 0);
    desk.key(Key::Escape);
    let rows = usize::from((desk.state.areas().list.height - 1) / ITEM_ROWS);
    assert_eq!(desk.state.list_top, 12 - rows);
    desk.handle(Event::Resize(200, 60));
    assert_eq!(desk.state.list_top, 0);
}

#[test]
fn settled_requests_are_forgotten_in_time() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    for round in 0..30 {
        let items = (0..20).map(|index| arrived(&format!("n{round}-{index}"), &harmless()));
        desk.handle(Event::Inbox(items.collect()));
    }
    assert!(desk.state.items.len() <= MAX_SETTLED + 21, "{}", desk.state.items.len());
    assert_eq!(desk.state.selected().unwrap().id.as_str(), "r0", "the selected one stays");
    desk.slowly("c");
    assert_eq!(desk.state.items.len(), 20);
    assert!(desk.state.selected().is_some());
}

#[test]
fn what_can_not_be_opened_is_listed_and_not_answered() {
    let opened = Err(countersign_client::request::OpenError::NotSealed);
    let mut desk = Desk::new(80, 24, &[]);
    desk.handle(Event::Inbox(vec![InboxItem { request_id: "x".parse().unwrap(), opened }]));
    assert!(desk.state.items[0].headline.contains("not sealed"));
    assert!(decided(&desk.slowly("\nayr")).is_none());
    assert_eq!(desk.state.now.wall, noon().plus(desk.at));
}
