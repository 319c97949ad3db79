//! What happens while a request is read, and after it was answered.

use super::*;
use crate::tui::fixture::{Desk, arrived, command, force_push, harmless, noon, request, scripts};

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
fn the_inbox_says_when_the_gateway_is_away_and_when_it_is_back() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    assert!(!desk.bar().contains("gateway"), "{}", desk.bar());
    desk.handle(Event::Trouble("It does not answer.".to_owned()));
    desk.wait(60_000);
    desk.handle(Event::Trouble("It can't be reached.".to_owned()));
    let away = "No connection to the gateway since 12:00:02, trying again. It can't be reached.";
    assert!(desk.bar().contains(away), "{}", desk.bar());
    desk.slowly("j");
    assert!(desk.bar().contains(away), "it stays while it is true: {}", desk.bar());
    desk.handle(Event::Inbox(vec![arrived("r0", &harmless())]));
    assert!(!desk.bar().contains("No connection"), "{}", desk.bar());
    assert!(desk.bar().contains("The gateway is back since 12:01:05"), "{}", desk.bar());
    desk.slowly("j");
    assert!(!desk.bar().contains("is back"), "{}", desk.bar());
}

#[test]
fn what_was_answered_yesterday_has_its_date() {
    let mut desk = opened(harmless());
    desk.slowly("ay");
    desk.handle(Event::Accepted("r0".parse().unwrap()));
    assert!(desk.bar().contains("approval signed 12:00:0"), "{}", desk.bar());
    desk.wait(24 * 3_600_000);
    assert!(desk.bar().contains("approval signed 15 Nov, 12:00"), "{}", desk.bar());
    let status = desk.state.items[0].status(desk.state.now.wall);
    assert_eq!(status, "approved, accepted · 15 Nov, 12:00");
}

#[test]
fn another_content_under_the_same_id_can_not_be_answered() {
    let mut desk = opened(harmless());
    let mut other = request("r0", &command(&["rm", "-rf", "/"], None));
    other.artifact_hash = request("other", &harmless()).artifact_hash;
    let id = other.request_id.clone();
    desk.handle(Event::Inbox(vec![InboxItem { request_id: id, opened: Ok(other) }]));
    assert!(decided(&desk.slowly("ayr")).is_none());
    assert!(desk.bar().contains("changed the content"), "{}", desk.bar());
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
    assert!(
        desk.bar().contains("✓ accepted by the gateway 12:00:09 · waiting for the machine"),
        "{}",
        desk.bar()
    );
    assert!(desk.bar().contains("not confirmed yet by the machine"), "{}", desk.bar());
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
    assert!(!desk.bar().contains("not confirmed yet"), "{}", desk.bar());
    assert_eq!(desk.state.items[0].status(noon()), "approved, applied · 12:00:08");
    assert!(desk.handle(Event::Inbox(Vec::new())).is_empty(), "nothing more to ask");

    let mut desk = answered("ay");
    desk.handle(Event::Reported(id.clone(), report(false, "not applied: it had changed since you saw it")));
    assert!(desk.bar().contains("✗ not applied: it had changed"), "{}", desk.bar());
    assert_eq!(desk.state.items[0].status(noon()), "approved, not applied · 12:00:08");

    let mut desk = answered("r");
    desk.handle(Event::Reported(id.clone(), report(true, "stopped by the machine")));
    assert_eq!(desk.state.items[0].status(noon()), "rejected, stopped · 12:00:06");

    let mut desk = answered("ay");
    desk.handle(Event::Reported(id.clone(), Report::Unproven("the signature does not verify".to_owned())));
    assert!(
        desk.bar().contains("· waiting for the machine to pick it up"),
        "it proves nothing: {}",
        desk.bar()
    );
    assert!(desk.bar().contains("✗ don't trust what came as the machine's report"), "{}", desk.bar());
    assert_eq!(desk.state.items[0].status(noon()), "approved, a wrong report came · 12:00:08");
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
