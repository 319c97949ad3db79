use super::*;

fn at(hour: i64, minute: i64) -> Timestamp {
    Timestamp::from_unix_micros((hour * 60 + minute) * 60_000_000)
}

#[test]
fn quiet_hours_are_by_the_clock_of_the_person_and_may_pass_midnight() {
    let night = QuietHours { from: 22 * 60, to: 7 * 60, utc_offset_minutes: 60 };
    // 22:00 there is 21:00 UTC.
    assert_eq!(night.end(at(20, 59)), None);
    assert_eq!(night.end(at(21, 0)), Some(at(30, 0)));
    assert_eq!(night.end(at(5, 59)), Some(at(6, 0)));
    assert_eq!(night.end(at(6, 0)), None);
    let noon = QuietHours { from: 12 * 60, to: 13 * 60, utc_offset_minutes: -300 };
    assert_eq!(noon.end(at(17, 30)), Some(at(18, 0)));
    assert_eq!(noon.end(at(12, 30)), None);
    let never = QuietHours { from: 600, to: 600, utc_offset_minutes: 0 };
    assert_eq!(never.end(at(10, 0)), None);
}

fn sent(attempt: Attempt, at: Timestamp) -> Sent {
    Sent {
        approver: "ada".parse().unwrap(),
        channel: "phone".parse().unwrap(),
        label: Label::new("phone"),
        attempt,
        at,
        wait: Duration::ZERO,
    }
}

#[test]
fn what_may_succeed_later_is_retried_with_growing_pauses_and_a_bound() {
    let busy = Attempt::Failed { reason: FailureReason::Busy, status: Some(429) };
    let mut notifying = Notifying::begin(false, at(0, 0));
    let mut now = at(0, 0);
    for pause in RETRIES {
        notifying = notifying.after(&[sent(busy, now)], None, now);
        assert_eq!(notifying.next_at, Some(now.plus(pause)));
        now = now.plus(pause);
    }
    assert_eq!(notifying.after(&[sent(busy, now)], None, now).next_at, None);
    let refused = Attempt::Failed { reason: FailureReason::Refused, status: Some(403) };
    let once = Notifying::begin(false, now).after(&[sent(refused, now)], None, now);
    assert_eq!((once.next_at, once.log[0].failed), (None, Some(FailureReason::Refused)));
}

#[test]
fn each_channel_is_left_alone_for_as_long_as_its_service_needs() {
    let (now, busy) = (at(1, 0), Attempt::Failed { reason: FailureReason::Busy, status: Some(503) });
    let (ada, phone): (ApproverId, ChannelId) = ("ada".parse().unwrap(), "phone".parse().unwrap());
    let slow = Sent { wait: Duration::from_mins(20), ..sent(busy, now) };
    let other = Sent { channel: "desk".parse().unwrap(), ..sent(busy, now) };
    let once = Notifying::begin(false, now).after(&[slow.clone(), other], None, now);
    assert_eq!(once.next_at, Some(now.plus(RETRIES[0])), "the other one does not wait for it");
    let until = now.plus(RETRIES[0] + slow.wait);
    assert_eq!(once.left_alone_until(&ada, &phone, now.plus(RETRIES[0])), Some(until));
    assert_eq!(once.left_alone_until(&ada, &phone, until), None);
    let later = once.after(&[], Some(until), now.plus(RETRIES[0]));
    assert_eq!((later.next_at, later.log[0].retries), (Some(until), 1));
    let done = later.after(&[sent(Attempt::Accepted, until)], None, until);
    assert_eq!((done.next_at, done.log[0].retry_at), (None, None));
}

#[test]
fn an_end_of_quiet_hours_is_not_missed_and_what_was_accepted_stays_so() {
    let now = at(1, 0);
    let first = Notifying::begin(false, now).after(&[sent(Attempt::Accepted, now)], Some(at(7, 0)), now);
    assert_eq!(first.next_at, Some(at(7, 0)));
    assert!(first.was_accepted(&"ada".parse().unwrap(), &"phone".parse().unwrap()));
    assert!(!first.was_accepted(&"bob".parse().unwrap(), &"phone".parse().unwrap()));
    let busy = Attempt::Failed { reason: FailureReason::Busy, status: None };
    let second = first.after(&[sent(busy, at(1, 1))], None, at(1, 1));
    assert_eq!((second.log.len(), second.log[0].accepted_at), (1, Some(now)));
}

#[test]
fn a_receipt_is_noted_once_and_what_was_opened_was_displayed() {
    let now = at(1, 0);
    let notifying = Notifying::begin(false, now).after(&[sent(Attempt::Accepted, now)], None, now);
    let (ada, phone): (ApproverId, _) = ("ada".parse().unwrap(), channel());
    let opened = notifying.after_receipt(&ada, &phone, ReceiptEvent::Opened, at(1, 1)).unwrap();
    assert_eq!((opened.log[0].displayed_at, opened.log[0].opened_at), (Some(at(1, 1)), Some(at(1, 1))));
    assert_eq!(opened.after_receipt(&ada, &phone, ReceiptEvent::Displayed, at(1, 2)), None);
    // A device may be faster than the service's answer.
    let early = Notifying::begin(false, now);
    let early = early.after_receipt(&ada, &phone, ReceiptEvent::Displayed, at(1, 1)).unwrap();
    assert!(early.was_accepted(&ada, &phone.id) && early.next_at.is_some());
    let noted = early.after(&[sent(Attempt::Accepted, now)], None, at(1, 2));
    assert_eq!((noted.log.len(), noted.log[0].displayed_at), (1, Some(at(1, 1))));
    assert_eq!(noted.noting(&[sent(Attempt::Accepted, now)]), noted, "the same again changes nothing");
}

fn channel() -> NotificationChannel {
    NotificationChannel {
        id: "phone".parse().unwrap(),
        kind: ChannelKind::WebPush,
        label: Label::new("phone"),
        host: "push.example".to_owned(),
        created_at: at(0, 0),
        address: Some(Sealed { key_id: "k".to_owned(), text: "t".to_owned() }),
        accepted_at: None,
        displayed_at: None,
        failing: None,
    }
}

#[test]
fn a_channel_whose_service_does_not_know_it_loses_its_address_and_one_that_works_is_written_rarely() {
    let works = channel().after(Attempt::Accepted, at(1, 0)).unwrap();
    assert_eq!(works.after(Attempt::Accepted, at(1, 0)), None);
    assert!(works.after(Attempt::Accepted, at(1, 1)).is_some());
    let gone = Attempt::Failed { reason: FailureReason::Gone, status: Some(410) };
    let ended = works.after(gone, at(2, 0)).unwrap();
    assert_eq!((ended.address.clone(), ended.accepted_at), (None, Some(at(1, 0))));
    assert_eq!(ended.after(gone, at(3, 0)), None);
    let busy = Attempt::Failed { reason: FailureReason::Busy, status: Some(503) };
    let busy = works.after(busy, at(2, 0)).unwrap();
    assert!(busy.address.is_some());
    assert_eq!(busy.after(Attempt::Accepted, at(2, 0)).unwrap().failing, None);
}
