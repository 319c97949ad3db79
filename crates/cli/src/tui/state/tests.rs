//! Each rule of answering, with a clock that the test moves.

use countersign_client::{payload::Payload, reply::Choice};
use countersign_wire::decision::{DecisionOutcome, Scope};

use super::*;
use crate::tui::fixture::{Desk, arrived, command, force_push, harmless, noon, patch, request, scripts};

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
    assert!(desk.bar().starts_with("Approve once? cargo test"), "{}", desk.bar());
    let actions = desk.slowly("y");
    let choice = decided(&actions).unwrap();
    assert_eq!((choice.outcome, choice.scope), (DecisionOutcome::Approve, Scope::Once));
    assert_eq!(choice.words.shown.as_deref(), Some("5 of 5 lines, terminal 80×24"));
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

#[test]
fn what_was_not_examined_needs_all_unfolded() {
    let mut desk = opened(scripts());
    desk.slowly("a");
    assert_eq!(desk.state.mode, Mode::Browse);
    assert!(desk.bar().contains("2 of 2 files are not"), "{}", desk.bar());
    desk.slowly("f");
    desk.key(Key::Tab);
    desk.slowly("a");
    assert!(desk.bar().contains("1 of 2 files are not"), "{}", desk.bar());
    desk.slowly("f");
    desk.key(Key::Tab);
    let actions = desk.slowly("ay");
    let shown = decided(&actions).unwrap().words.shown.clone().unwrap();
    assert!(shown.starts_with("2 of 2 files, "), "{shown}");
}

/// A request of a session, opened.
fn opened_in_session(payload: &Payload) -> Desk {
    let mut desk = Desk::new(80, 24, &[]);
    let mut request = request("r0", payload);
    request.session = Some("agent-7".to_owned());
    desk.handle(Event::Inbox(vec![InboxItem {
        request_id: request.request_id.clone(),
        opened: Ok(request),
    }]));
    desk.slowly("\n");
    desk
}

#[test]
fn a_scope_is_signed_as_its_sentence_says() {
    let mut desk = opened_in_session(&harmless());
    desk.slowly("s");
    let bar = desk.bar();
    assert!(bar.contains("1 once: Only this request"), "{bar}");
    assert!(
        bar.contains("2 for this session: Until session agent-7 ends, at most 8 hours, exactly this"),
        "{bar}"
    );
    assert!(bar.contains("3 for 1 hour, only this pattern: For 1 hour, every `cargo test` in"), "{bar}");
    assert!(decided(&desk.slowly("2")).is_none(), "choosing approves nothing");
    assert!(
        desk.bar().contains("An approval will be for this session. Until session agent-7"),
        "{}",
        desk.bar()
    );
    desk.slowly("a");
    assert!(
        desk.bar().contains("Approve for this session? cargo test Until session agent-7"),
        "{}",
        desk.bar()
    );
    let signed_at = desk.state.now.wall.plus(std::time::Duration::from_millis(1_500));
    let actions = desk.slowly("y");
    let choice = decided(&actions).unwrap();
    assert_eq!((choice.scope, &choice.words.pattern), (Scope::Session, &None));
    assert_eq!(choice.valid_until, signed_at.plus(std::time::Duration::from_hours(8)));

    let mut desk = opened(harmless());
    desk.slowly("s2");
    assert!(
        desk.bar().contains("Which commands may run for 1 hour without asking? cargo test▏"),
        "{}",
        desk.bar()
    );
    assert!(decided(&desk.slowly(" **\n")).is_none());
    desk.slowly("a");
    let bar = desk.bar();
    assert!(
        bar.contains(
            "Approve for 1 hour, only this pattern? cargo test For 1 hour, every `cargo test **` in"
        ),
        "{bar}"
    );
    let signed_at = desk.state.now.wall.plus(std::time::Duration::from_millis(1_500));
    let actions = desk.slowly("y");
    let choice = decided(&actions).unwrap();
    assert_eq!(choice.scope, Scope::Timebox);
    assert_eq!(choice.words.pattern.as_ref().unwrap().words(), ["cargo", "test", "**"]);
    assert_eq!(choice.valid_until, signed_at.plus(std::time::Duration::from_hours(1)));
}

#[test]
fn what_a_grant_would_not_cover_is_not_offered() {
    for (payload, why) in [
        (force_push(), "What is dangerous always asks"),
        (scripts(), "names no session and is no command"),
        (patch(&[3]), "names no session and is no command"),
        (command(&["sh", "-c", "a*b"], Some(Vec::new())), "names no session and is no command"),
    ] {
        let mut desk = opened(payload);
        desk.slowly("s");
        assert!(desk.bar().contains(why), "{}", desk.bar());
        desk.slowly("2");
        assert!(matches!(&desk.state.mode, Mode::Scope(offers) if *offers == [Offer::Once]));
    }
    let mut desk = opened_in_session(&force_push());
    desk.slowly("s");
    assert!(matches!(&desk.state.mode, Mode::Scope(offers) if *offers == [Offer::Once]), "also in a session");
    let mut desk = opened_in_session(&scripts());
    desk.slowly("s");
    assert!(matches!(&desk.state.mode, Mode::Scope(offers) if offers.len() == 2), "exactly this again");
}

#[test]
fn a_pattern_that_means_something_else_is_not_taken() {
    for (typed, why) in [
        ("s", "does not cover the command"),
        (" $HOME", "not plain words"),
        (" a*", "not plain words"),
        (" 'a*'", "a star stands for a whole argument"),
        (" *", "does not cover the command"),
    ] {
        let mut desk = opened(harmless());
        desk.slowly("s2");
        desk.slowly(&format!("{typed}\n"));
        assert!(desk.bar().contains(why), "{typed}: {}", desk.bar());
        assert!(matches!(desk.state.mode, Mode::Pattern(_)));
        desk.key(Key::Escape);
        let actions = desk.slowly("ay");
        assert_eq!(decided(&actions).unwrap().scope, Scope::Once, "{typed}");
    }
}

#[test]
fn a_scope_is_for_the_request_that_it_was_chosen_for() {
    let mut desk = Desk::new(80, 24, &[harmless(), command(&["make"], Some(Vec::new()))]);
    assert!(desk.slowly("s").is_empty() && desk.bar().contains("Open it with Enter first"), "{}", desk.bar());
    desk.slowly("\ns2\n");
    assert!(desk.bar().contains("An approval will be for 1 hour"), "{}", desk.bar());
    desk.key(Key::Escape);
    let actions = desk.slowly("j\nay");
    let choice = decided(&actions).unwrap();
    assert_eq!((choice.scope, &choice.words.pattern), (Scope::Once, &None));
    desk.key(Key::Escape);
    let actions = desk.slowly("k\ns2\nr");
    let choice = decided(&actions).unwrap();
    assert_eq!(
        (choice.outcome, choice.scope),
        (DecisionOutcome::Reject, Scope::Once),
        "a rejection has no scope"
    );
    assert_eq!(choice.words.pattern, None);
}

#[test]
fn the_question_says_what_was_not_unfolded() {
    let mut desk = opened(patch(&[300, 3]));
    desk.slowly("a");
    assert!(
        desk.bar().starts_with("Approve once, 1 of 2 files unopened, 310 of 318 lines not shown?"),
        "{}",
        desk.bar()
    );
    let actions = desk.slowly("y");
    let shown = decided(&actions).unwrap().words.shown.clone().unwrap();
    assert_eq!(shown, "1 of 2 files, 8 of 318 lines, terminal 80×24");
}

#[test]
fn arrivals_move_neither_selection_nor_scroll() {
    let mut desk = Desk::new(80, 24, &[harmless(), force_push(), scripts()]);
    desk.slowly("j");
    let before = (desk.state.selected_index(), desk.state.list_top);
    let known = [("r0", harmless()), ("r1", force_push()), ("r2", scripts())];
    // The gateway may list them in another order.
    let items = [arrived("a", &harmless()), arrived("0", &harmless())].into_iter();
    desk.handle(Event::Inbox(items.chain(known.iter().map(|(id, payload)| arrived(id, payload))).collect()));
    assert_eq!((desk.state.selected_index(), desk.state.list_top), before);
    assert_eq!(desk.state.items[1].id.as_str(), "r1");
    assert_eq!(desk.state.items.iter().filter(|item| item.is_new).count(), 2);
    assert!(desk.state.reading().is_none(), "nothing opens by itself");
}

#[test]
fn a_request_that_ends_meanwhile_can_not_be_answered() {
    for (state, words) in [
        (ExchangeState::Decided, "answered elsewhere"),
        (ExchangeState::Withdrawn, "taken back"),
        (ExchangeState::Expired, "expired"),
        (ExchangeState::Cancelled, "cancelled"),
    ] {
        let mut desk = opened(harmless());
        desk.slowly("a");
        let actions = desk.handle(Event::Inbox(Vec::new()));
        assert!(matches!(&actions[..], [Action::AskStatus(_)]), "the reason is asked for");
        assert_eq!(desk.state.mode, Mode::Browse, "the question is gone");
        desk.handle(Event::Status("r0".parse().unwrap(), state));
        assert!(desk.bar().contains(words), "{}", desk.bar());
        assert!(decided(&desk.slowly("yayr")).is_none());
        assert!(desk.state.reading().is_some(), "the view stays");
    }
}

#[test]
fn time_ends_a_request_even_if_the_gateway_says_nothing() {
    let mut desk = opened(harmless());
    desk.slowly("a");
    desk.wait(600_000);
    assert!(decided(&desk.slowly("yayr")).is_none());
    assert!(desk.bar().contains("expired"), "{}", desk.bar());
}

#[test]
fn another_content_under_the_same_id_can_not_be_answered() {
    let mut desk = opened(harmless());
    let mut other = request("r0", &command(&["rm", "-rf", "/"], None));
    other.artifact_hash = request("other", &harmless()).artifact_hash;
    let id = other.request_id.clone();
    desk.handle(Event::Inbox(vec![InboxItem { request_id: id, opened: Ok(other) }]));
    assert!(decided(&desk.slowly("ayr")).is_none());
    assert!(desk.bar().contains("another content"), "{}", desk.bar());
}

#[test]
fn a_sender_that_is_revoked_meanwhile_is_not_answered() {
    let mut desk = opened(harmless());
    let opened = Err(countersign_client::request::OpenError::UnknownSender("robot".to_owned()));
    desk.handle(Event::Inbox(vec![InboxItem { request_id: "r0".parse().unwrap(), opened }]));
    assert!(decided(&desk.slowly("ayr")).is_none());
    assert!(desk.bar().contains("not paired with this device"), "{}", desk.bar());
}

#[test]
fn after_the_answer_each_step_has_its_time() {
    let mut desk = opened(harmless());
    desk.slowly("ay");
    assert!(desk.bar().contains("✓ approval signed 12:00:08 · sending it"), "{}", desk.bar());
    let id: RequestId = "r0".parse().unwrap();
    desk.handle(Event::Accepted(id.clone()));
    assert!(desk.bar().contains("✓ accepted by the gateway 12:00:09 · not delivered yet"), "{}", desk.bar());
    assert!(desk.bar().contains("the machine has not reported yet"), "{}", desk.bar());
    let actions = desk.handle(Event::Inbox(Vec::new()));
    assert!(matches!(&actions[..], [Action::AskStatus(_)]), "delivery is asked for");
    desk.handle(Event::Status(id, ExchangeState::Delivered));
    assert!(desk.bar().contains("gateway's word, 12:00:09"), "{}", desk.bar());
    desk.key(Key::Escape);
    assert!(desk.bar().contains("approval signed"), "going back does not lose it: {}", desk.bar());
    assert!(desk.handle(Event::Inbox(Vec::new())).is_empty(), "nothing more to ask");
}

#[test]
fn what_the_machine_reports_is_the_last_step() {
    let id: RequestId = "r0".parse().unwrap();
    let report = |is_done, words: &str| Report::Signed {
        is_done,
        words: words.to_owned(),
        at: Some(noon().plus(std::time::Duration::from_mins(1))),
    };
    let answered = |keys: &str| {
        let mut desk = opened(harmless());
        desk.slowly(keys);
        desk.handle(Event::Accepted(id.clone()));
        desk
    };
    let mut desk = answered("ay");
    desk.handle(Event::Reported(id.clone(), report(true, "applied by the machine, exit status 0,")));
    assert!(
        desk.bar().contains(
            "✓ delivered to the machine 12:00:09 ✓ applied by the machine, exit status 0, 12:01:00"
        ),
        "its own signature says more than the gateway: {}",
        desk.bar()
    );
    assert!(!desk.bar().contains("has not reported"), "{}", desk.bar());
    assert_eq!(desk.state.items[0].status(noon()), "approved, applied");
    assert!(desk.handle(Event::Inbox(Vec::new())).is_empty(), "nothing more to ask");

    let mut desk = answered("ay");
    desk.handle(Event::Reported(id.clone(), report(false, "not applied: it had changed since you saw it")));
    assert!(desk.bar().contains("✗ not applied: it had changed"), "{}", desk.bar());
    assert_eq!(desk.state.items[0].status(noon()), "approved, not applied");

    let mut desk = answered("r");
    desk.handle(Event::Reported(id.clone(), report(true, "stopped by the machine")));
    assert_eq!(desk.state.items[0].status(noon()), "rejected, stopped");

    let mut desk = answered("ay");
    desk.handle(Event::Reported(id.clone(), Report::Unproven("the signature does not verify".to_owned())));
    assert!(desk.bar().contains("· not delivered yet"), "it proves nothing: {}", desk.bar());
    assert!(desk.bar().contains("✗ don't trust what came as the machine's report"), "{}", desk.bar());
    assert_eq!(desk.state.items[0].status(noon()), "approved, a wrong report came");
}

#[test]
fn an_answer_that_did_not_arrive_says_so_and_can_be_given_again() {
    let mut desk = opened(harmless());
    desk.slowly("ay");
    let id: RequestId = "r0".parse().unwrap();
    desk.handle(Event::NotAccepted { id: id.clone(), why: "no network.".to_owned(), end: None });
    assert!(desk.bar().contains("✗ not accepted by the gateway: no network."), "{}", desk.bar());
    assert!(decided(&desk.slowly("ay")).is_some());
    desk.handle(Event::NotAccepted { id, why: "too late.".to_owned(), end: Some(End::Answered) });
    assert!(decided(&desk.slowly("ayr")).is_none());
}

#[test]
fn leaving_while_an_answer_is_on_its_way_asks_once() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    desk.slowly("r");
    assert!(desk.slowly("q").is_empty());
    assert!(desk.bar().contains("on its way"), "{}", desk.bar());
    assert!(matches!(&desk.slowly("q")[..], [Action::Quit]));
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
    assert_eq!((shown.lines, shown.of_lines), (159, 159));
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
