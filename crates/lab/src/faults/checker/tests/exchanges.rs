//! Single exchanges: kept, unchanged, one decision, the state table, replays, acts.

use super::{super::super::history::ExchangeState::*, *};

#[test]
fn an_exchange_that_goes_its_way_passes() {
    let ack = Call::Ack { reader: "t/e".into(), request: "r".into(), message: "m2".into() };
    approved()
        .push("t/a", 1.5, 90, message("approval.request", "m1", "body"))
        .status((1.6, 1.7), state(PendingApproval))
        .push("t/e", 2.2, 91, message("decision.deliver", "m2", "yes"))
        .status((2.3, 2.4), decided(Decided, "yes"))
        .ok("t/e", (2.5, 2.6), ack, answer(200))
        .quiet(3.0)
        .final_read((4.0, 4.1), decided(Delivered, "yes"))
        .passes();
}

#[test]
fn a_submission_that_is_gone_breaks() {
    let gone = |times| {
        submitted().fail(
            "t/e",
            times,
            Call::Status { request: "r".into() },
            refused(404, "PROTO_ERR_NOT_FOUND"),
        )
    };
    gone((1.2, 1.3)).breaks(Invariant::SubmissionKept);
    // It was asked for before the submission was answered.
    gone((1.05, 1.3)).passes();
}

#[test]
fn a_submission_that_nobody_reads_in_the_end_breaks() {
    submitted().quiet(3.0).breaks(Invariant::SubmissionKept);
    submitted().quiet(3.0).final_read((4.0, 4.1), state(PendingApproval)).passes();
}

#[test]
fn a_submission_that_is_changed_breaks() {
    let pushed = |body| submitted().push("t/a", 1.5, 90, message("approval.request", "m", body));
    pushed("body").passes();
    pushed("other").breaks(Invariant::SubmissionKept);
}

#[test]
fn a_decision_that_is_gone_or_changed_breaks() {
    approved().status((3.0, 3.1), decided(Decided, "yes")).passes();
    approved().status((3.0, 3.1), state(PendingApproval)).breaks(Invariant::DecisionKept);
    approved().status((3.0, 3.1), decided(Decided, "no")).breaks(Invariant::DecisionKept);
    // The status was read while the decision was on its way.
    approved().status((2.05, 3.1), state(PendingApproval)).passes();
}

#[test]
fn a_decision_that_nobody_has_sent_breaks() {
    submitted().status((3.0, 3.1), decided(Decided, "yes")).breaks(Invariant::DecisionKept);
    let refused =
        submitted().fail("t/a", (2.0, 2.1), decide("yes"), refused(403, "PROTO_ERR_SIGNATURE_INVALID"));
    refused.status((3.0, 3.1), decided(Decided, "yes")).breaks(Invariant::DecisionKept);
}

#[test]
fn two_decisions_are_caught() {
    let race = |outcome, answer| approved().op("t/a2", (2.0, 2.2), decide("no"), outcome, answer);
    race(Outcome::Fail, refused(409, "AlreadyDecidedConflict")).passes();
    race(Outcome::Ok, accepted("decided")).breaks(Invariant::OneDecision);
    // The one that is seen is not the one that was accepted.
    let unknown = race(Outcome::Unknown, Answer::default());
    unknown.push("t/e", 2.3, 91, message("decision.deliver", "m", "no")).breaks(Invariant::OneDecision);
}

#[test]
fn two_decisions_of_the_client_library_are_caught() {
    let by_library = || {
        let (request, approver) = ("r".into(), "t/a".into());
        Call::Decide { request, approver, decision: None, approves: true }
    };
    let one = || submitted().ok("t/a", (2.0, 2.1), by_library(), answer(200));
    one().status((3.0, 3.1), decided(Decided, "yes")).passes();
    one().ok("t/a", (2.0, 2.2), by_library(), answer(200)).breaks(Invariant::OneDecision);
    let other = one().unknown("t/a2", (2.0, 2.2), decide("no"));
    other.status((3.0, 3.1), decided(Decided, "no")).breaks(Invariant::OneDecision);
}

#[test]
fn steps_that_the_table_does_not_have_are_caught() {
    let withdraw = || Call::Withdraw { request: "r".into() };
    let withdrawn = || submitted().ok("t/e", (2.0, 2.1), withdraw(), state(Withdrawn));
    withdrawn().status((3.0, 3.1), state(Withdrawn)).passes();
    withdrawn().status((3.0, 3.1), state(PendingApproval)).breaks(Invariant::StateTable);
    submitted().status((3.0, 3.1), state(Withdrawn)).breaks(Invariant::StateTable);
    submitted().status((3.0, 3.1), state(Cancelled)).breaks(Invariant::StateTable);
    approved().ok("t/e", (2.5, 2.6), withdraw(), state(Withdrawn)).breaks(Invariant::StateTable);
    approved().fail("t/e", (2.5, 2.6), withdraw(), refused(409, "AlreadyDecidedConflict")).passes();
    approved().status((3.0, 3.1), decided(Delivered, "yes")).breaks(Invariant::StateTable);
}

#[test]
fn a_delivered_exchange_that_is_decided_again_breaks() {
    let wait = Call::Wait { request: "r".into(), acknowledges: true };
    let story = approved().ok("t/e", (2.2, 2.3), wait, Answer { decision: text("yes"), ..answer(200) });
    let story = story.status((3.0, 3.1), decided(Delivered, "yes"));
    story.status((3.2, 3.3), decided(Decided, "yes")).breaks(Invariant::StateTable);
}

#[test]
fn expired_and_decided_are_caught_in_either_order() {
    let late = || submitted().status((62.0, 62.1), state(Expired));
    late().passes();
    late().ok("t/a", (62.5, 62.6), decide("yes"), accepted("decided")).breaks(Invariant::Expiry);
    let conflict = refused(409, "PROTO_ERR_EXPIRED");
    late().fail("t/a", (62.5, 62.6), decide("yes"), conflict.clone()).passes();
    approved()
        .fail("t/e", (62.0, 62.1), Call::Withdraw { request: "r".into() }, conflict)
        .breaks(Invariant::Expiry);
}

#[test]
fn what_expires_early_or_is_decided_late_breaks() {
    submitted().status((30.0, 30.1), state(Expired)).breaks(Invariant::Expiry);
    submitted().ok("t/a", (63.0, 63.1), decide("yes"), accepted("decided")).breaks(Invariant::Expiry);
    // Sent in time, and answered when it was sent again.
    submitted()
        .unknown("t/a", (50.0, 55.0), decide("yes"))
        .ok("t/a", (63.0, 63.1), decide("yes"), accepted("decided"))
        .passes();
}

#[test]
fn a_replay_that_differs_breaks() {
    let again = |answer| submitted().ok("t/e", (5.0, 5.1), submit(), answer);
    again(accepted("accepted")).passes();
    again(accepted("other")).breaks(Invariant::ReplayEqual);
    let refused_again = submitted().fail("t/e", (5.0, 5.1), submit(), refused(409, "AlreadyExistsConflict"));
    refused_again.breaks(Invariant::ReplayEqual);
    let decided_again = |answer| approved().fail("t/a", (5.0, 5.1), decide("yes"), answer);
    decided_again(refused(409, "AlreadyDecidedConflict")).breaks(Invariant::ReplayEqual);
    decided_again(refused(401, "PROTO_ERR_UNAUTHENTICATED")).passes();
}

#[test]
fn acting_twice_or_without_approval_breaks() {
    approved().act(3.0).passes();
    approved().act(3.0).act(9.0).breaks(Invariant::ActedOnce);
    submitted().act(3.0).breaks(Invariant::ActedOnce);
}

#[test]
fn half_of_an_unknown_operation_breaks() {
    let read = |story: Story, answer| {
        story.fail("t/reader", (9.0, 9.1), Call::FinalRead { request: "r".into() }, answer)
    };
    let unknown = || Story::default().unknown("t/e", (1.0, 6.0), submit());
    read(unknown(), refused(404, "PROTO_ERR_NOT_FOUND")).passes();
    unknown().final_read((9.0, 9.1), state(PendingApproval)).passes();
    let pushed = unknown().push("t/a", 1.5, 90, message("approval.request", "m", "body"));
    read(pushed, refused(404, "PROTO_ERR_NOT_FOUND")).breaks(Invariant::AllOrNothing);
    let decision = || {
        let story = submitted().unknown("t/a", (2.0, 7.0), decide("yes"));
        story.push("t/e", 2.5, 91, message("decision.deliver", "m", "yes"))
    };
    decision().status((9.0, 9.1), decided(Decided, "yes")).passes();
    decision().status((9.0, 9.1), state(PendingApproval)).breaks(Invariant::AllOrNothing);
}

#[test]
fn what_was_refused_and_is_there_breaks() {
    let refused = || Story::default().fail("t/e", (1.0, 1.1), submit(), refused(422, "PROTO_ERR_EXPIRED"));
    refused().passes();
    refused().status((2.0, 2.1), state(PendingApproval)).breaks(Invariant::AllOrNothing);
}
