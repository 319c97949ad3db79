//! Pushed messages: delivered, not again, in order.

use super::*;

#[test]
fn a_decision_that_is_never_delivered_breaks() {
    let wait = || Call::Wait { request: "r".into(), acknowledges: true };
    let story = || approved().ok("t/e", (2.5, 2.6), wait(), Answer { decision: text("yes"), ..answer(200) });
    let end = |state| story().quiet(3.0).final_read((40.0, 40.1), decided(state, "yes"));
    end(ExchangeState::Delivered).passes();
    end(ExchangeState::Decided).breaks(Invariant::Delivered);
}

#[test]
fn what_comes_again_after_its_acknowledgement_breaks() {
    let ack = || Call::Ack { reader: "t/e".into(), request: "r".into(), message: "m".into() };
    let pushed = |story: Story, at| story.push("t/e", at, 91, message("decision.deliver", "m", "yes"));
    let acked = || pushed(approved(), 2.2).ok("t/e", (2.3, 2.4), ack(), answer(200));
    pushed(acked(), 12.3).passes();
    pushed(acked(), 12.5).breaks(Invariant::NotPushedAgain);
    // A node was stopped for a while.
    pushed(acked().fault(5.0, 9.0), 16.3).passes();
    pushed(acked().fault(5.0, 9.0), 16.5).breaks(Invariant::NotPushedAgain);
    let unknown = pushed(approved(), 2.2).unknown("t/e", (2.3, 7.0), ack());
    pushed(unknown, 60.0).passes();
}

#[test]
fn a_message_with_two_contents_breaks() {
    let pushed = |body| {
        let first = submitted().push("t/a", 1.5, 90, message("approval.request", "m", "body"));
        first.push("t/a", 11.5, 90, message("approval.request", "m", body))
    };
    pushed("body").passes();
    pushed("other").breaks(Invariant::ReplayEqual);
}

fn numbered(number: u32, approver: Option<&str>) -> Call {
    let (request, approver) = (Some(format!("r{number}")), approver.map(str::to_owned));
    Call::Submit { request, enforcer: "t/e".into(), approver, body: None, lifetime_ms: 60_000 }
}

fn request(number: u32) -> Message {
    let (id, request) = (format!("m{number}"), format!("r{number}"));
    Message { id, request, ..message("approval.request", "", "") }
}

/// Two submissions, the second one after the first one was answered, to own or shared mailboxes.
fn two(first: Option<&str>, second: Option<&str>) -> Story {
    let story = Story::default().ok("t/e", (1.0, 1.1), numbered(1, first), answer(202));
    story.ok("t/e", (2.0, 2.1), numbered(2, second), answer(202))
}

#[test]
fn messages_out_of_order_are_caught() {
    let own = Some("t/a");
    let swapped = |story: Story, connection| {
        story.push("t/a", 3.0, 90, request(2)).push("t/a", 3.1, connection, request(1))
    };
    two(own, own).push("t/a", 3.0, 90, request(1)).push("t/a", 3.1, 90, request(2)).passes();
    swapped(two(own, own), 90).breaks(Invariant::MailboxOrder);
    // Another connection, another mailbox.
    swapped(two(own, own), 91).passes();
    swapped(two(own, None), 90).passes();
    // Redelivery of what came in order.
    let again = two(own, own).push("t/a", 2.5, 90, request(1)).push("t/a", 3.0, 90, request(2));
    again.push("t/a", 12.5, 90, request(1)).passes();
}

#[test]
fn a_failover_lets_a_connection_start_from_the_beginning_once() {
    let own = Some("t/a");
    let third = || two(own, own).ok("t/e", (2.2, 2.3), numbered(3, own), answer(202));
    let restarted = |kind: &str| {
        let mut story = third();
        story.event(2.4, What::FaultBegins { fault: 99, kind: kind.into(), target: "database".into() });
        story.event(2.5, What::FaultEnds { fault: 99 });
        // The first one was skipped, because the client had it from an earlier connection.
        let story = story.push("t/a", 3.0, 90, request(2)).push("t/a", 3.1, 90, request(1));
        story.push("t/a", 3.2, 90, request(3))
    };
    restarted("failover").passes();
    restarted("cut node-database").breaks(Invariant::MailboxOrder);
    restarted("failover").push("t/a", 3.3, 90, request(2)).breaks(Invariant::MailboxOrder);
}

#[test]
fn concurrent_submissions_may_come_in_any_order() {
    let own = Some("t/a");
    let story = Story::default().ok("t/e", (1.0, 2.1), numbered(1, own), answer(202));
    let story = story.ok("t/e", (2.0, 2.2), numbered(2, own), answer(202));
    story.push("t/a", 3.0, 90, request(2)).push("t/a", 3.1, 90, request(1)).passes();
}

#[test]
fn an_inbox_that_lacks_repeats_or_reorders_items_breaks() {
    let walk = |times, items: &[u32]| {
        let messages = items.iter().map(|number| request(*number)).collect();
        let call = Call::Inbox { approver: "t/a".into() };
        two(Some("t/a"), None).ok("t/a", times, call, Answer { messages, ..answer(200) })
    };
    walk((3.0, 3.1), &[1, 2]).passes();
    walk((3.0, 3.1), &[2, 1]).breaks(Invariant::MailboxOrder);
    walk((3.0, 3.1), &[1, 2, 1]).breaks(Invariant::MailboxOrder);
    walk((3.0, 3.1), &[2]).breaks(Invariant::MailboxOrder);
    // Near its expiry it may be gone.
    walk((61.0, 61.1), &[]).passes();
}
