//! How long an approval lasts, and what it covers.

use countersign_client::payload::Payload;
use countersign_wire::decision::{DecisionOutcome, Scope};

use super::*;
use crate::tui::fixture::{Desk, command, force_push, harmless, patch, request, scripts};

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
        desk.bar().contains("Approve for this session? Runs a command · cargo test Until session agent-7"),
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
            "Approve for 1 hour, only this pattern? Runs a command · cargo test For 1 hour, every `cargo test **` in"
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
        (force_push(), "What is dangerous or was not examined always asks"),
        (scripts(), "What is dangerous or was not examined always asks"),
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
    assert!(
        matches!(&desk.state.mode, Mode::Scope(offers) if *offers == [Offer::Once]),
        "nobody knows what it runs"
    );
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
        desk.bar().starts_with("Approve once, 1 of 2 files unopened, 308 of 320 lines not shown?"),
        "{}",
        desk.bar()
    );
    let actions = desk.slowly("y");
    let shown = decided(&actions).unwrap().words.shown.clone().unwrap();
    assert_eq!(shown, "1 of 2 files, 12 of 320 lines, terminal 80×24");
}
