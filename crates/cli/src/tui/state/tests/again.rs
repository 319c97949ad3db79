//! What has expired, and is asked for again.

use std::time::Duration;

use countersign_client::request::OpenedRequest;

use super::*;
use crate::tui::{
    fixture::{Desk, arrived, force_push, harmless, noon, request},
    item::Again,
};

/// The same as a request, asked again by this machine.
fn again(id: &str, supersedes: &str, enforcer: &str) -> InboxItem {
    let opened = OpenedRequest {
        supersedes: Some(supersedes.parse().unwrap()),
        enforcer: enforcer.parse().unwrap(),
        expires_at: noon().plus(Duration::from_mins(30)),
        ..request(id, &harmless())
    };
    InboxItem { request_id: id.parse().unwrap(), opened: Ok(opened) }
}

fn expired() -> Desk {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    desk.wait(600_000);
    assert!(desk.bar().contains("expired; it can no longer be answered"), "{}", desk.bar());
    desk
}

#[test]
fn what_has_expired_is_asked_for_again_by_one_key() {
    let mut desk = expired();
    assert!(desk.bar().contains("A asks for it again"), "{}", desk.bar());
    let actions = desk.slowly("A");
    assert!(matches!(&actions[..], [Action::AskAgain(id)] if id.as_str() == "r0"), "{actions:?}");
    assert!(desk.bar().contains("Asking for it again …"), "{}", desk.bar());
    assert!(desk.slowly("A").is_empty(), "it is on its way");
    desk.handle(Event::Wanted("r0".parse().unwrap()));
    assert!(desk.bar().contains("Asked for again 12:10"), "{}", desk.bar());
    assert!(desk.bar().contains("if the machine still waits"), "{}", desk.bar());
    assert!(matches!(&desk.slowly("A")[..], [Action::AskAgain(_)]), "the machine may have been away");
    desk.handle(Event::NotWanted("r0".parse().unwrap(), "The gateway can't be reached.".to_owned()));
    assert!(desk.bar().contains("not asked for again: The gateway can't be reached."), "{}", desk.bar());
}

#[test]
fn only_what_has_expired_is_asked_for_again() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    assert!(desk.slowly("A").is_empty());
    assert!(desk.bar().contains("it has not expired"), "{}", desk.bar());
    for state in [ExchangeState::Decided, ExchangeState::Withdrawn, ExchangeState::Cancelled] {
        let mut desk = Desk::new(80, 24, &[harmless()]);
        desk.handle(Event::Status("r0".parse().unwrap(), state));
        assert!(!desk.bar().contains("A asks") && desk.slowly("A").is_empty(), "{state:?}");
    }
    let mut desk = opened(harmless());
    desk.slowly("ay");
    desk.handle(Event::Accepted("r0".parse().unwrap()));
    desk.wait(600_000);
    assert!(desk.slowly("A").is_empty(), "what was answered has an answer");
}

#[test]
fn a_late_answer_says_so_and_offers_to_ask_again() {
    let mut desk = opened(harmless());
    assert!(decided(&desk.slowly("ay")).is_some());
    let why = "too late, it expired at 12:10:00".to_owned();
    desk.handle(Event::NotAccepted { id: "r0".parse().unwrap(), why, end: Some(End::Expired) });
    let bar = desk.bar();
    assert!(bar.contains("not accepted by the gateway: too late, it expired at 12:10:00"), "{bar}");
    assert!(bar.contains("A asks for it again"), "{bar}");
    assert!(matches!(&desk.slowly("A")[..], [Action::AskAgain(_)]));
}

#[test]
fn the_old_card_says_what_took_its_place_if_its_own_machine_says_so() {
    for (enforcer, is_replaced) in [("robot", true), ("another", false)] {
        let mut desk = expired();
        desk.slowly("A");
        desk.handle(Event::Inbox(vec![again("0123456789ab", "r0", enforcer)]));
        let old = &desk.state.items[0];
        let replaced = Again::Replaced("0123456789ab".parse().unwrap());
        assert_eq!(old.again == Some(replaced), is_replaced, "{enforcer}: {:?}", old.again);
        if is_replaced {
            assert_eq!(old.status(noon()), "expired, replaced by 01234567");
            desk.handle(Event::Wanted("r0".parse().unwrap()));
            assert!(desk.bar().contains("request 01234567 is in the list"), "it stays: {}", desk.bar());
            assert!(desk.slowly("A").is_empty(), "it was asked again already");
        }
    }
}

#[test]
fn the_gateways_word_that_a_request_has_ended_closes_it_at_once_and_opens_nothing() {
    for (state, words) in [
        (ExchangeState::Decided, "answered elsewhere"),
        (ExchangeState::Withdrawn, "taken back"),
        (ExchangeState::Expired, "expired"),
    ] {
        let mut desk = opened(harmless());
        desk.slowly("a");
        assert!(desk.handle(Event::Status("r0".parse().unwrap(), state)).is_empty());
        assert_eq!(desk.state.mode, Mode::Browse, "the question is gone");
        assert!(desk.bar().contains(words), "{}", desk.bar());
        // Whatever comes later, it stays closed.
        desk.handle(Event::Status("r0".parse().unwrap(), ExchangeState::PendingApproval));
        desk.handle(Event::Inbox(vec![arrived("r0", &harmless())]));
        assert!(decided(&desk.slowly("ayr")).is_none());
    }
    let mut desk = Desk::new(80, 24, &[force_push()]);
    desk.handle(Event::Status("unknown".parse().unwrap(), ExchangeState::Decided));
    desk.handle(Event::Status("r0".parse().unwrap(), ExchangeState::PendingApproval));
    assert!(desk.state.items.len() == 1 && desk.state.items[0].end.is_none());
}
