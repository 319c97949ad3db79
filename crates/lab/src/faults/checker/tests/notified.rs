//! Notifications outside of the protocol: at least one, and none of what has ended.

use super::{super::notified, *};

fn with_channel() -> Story {
    let set = Call::SetChannel { approver: "t/a".into() };
    let story = Story::default().ok("t/channels", (0.1, 0.2), set, answer(200));
    story.ok("t/e", (1.0, 1.1), submit(), accepted("accepted"))
}

fn withdraw() -> Call {
    Call::Withdraw { request: "r".into() }
}

#[test]
fn what_waits_and_nobody_is_notified_of_breaks() {
    let end = |story: Story| story.quiet(3.0).final_read((40.0, 40.1), state(ExchangeState::PendingApproval));
    end(with_channel().notified(1.2, true)).passes();
    end(with_channel()).breaks(Invariant::Notified);
    end(with_channel().notified(1.2, false)).breaks(Invariant::Notified);
    // Nobody is promised anything who has no channel, or whose request may have ended.
    end(submitted()).passes();
    end(with_channel().unknown("t/e", (2.0, 7.0), withdraw())).passes();
}

#[test]
fn a_notification_long_after_the_end_breaks() {
    let ended = || with_channel().ok("t/e", (2.0, 2.1), withdraw(), state(ExchangeState::Withdrawn));
    ended().passes();
    ended().notified(3.0, true).passes();
    ended().notified(3.2, true).breaks(Invariant::NotNotifiedLate);
    // A node was stopped for a while.
    ended().fault(2.5, 6.5).notified(7.0, true).passes();
    ended().fault(2.5, 6.5).notified(7.2, true).breaks(Invariant::NotNotifiedLate);
}

#[test]
fn what_is_sent_again_is_counted() {
    let story = with_channel().notified(1.2, false).notified(11.2, true).notified(11.3, true);
    let counted = notified::count(&History::of(story.events).unwrap());
    assert_eq!((counted.requests, counted.again), (1, 1));
}
