//! Tenants and revoked credentials.

use super::*;

fn with_tenants(tenants: &[&str]) -> Answer {
    Answer { tenants: tenants.iter().map(|tenant| (*tenant).to_owned()).collect(), ..answer(200) }
}

#[test]
fn what_crosses_tenants_breaks() {
    Story::default().ok("t/e", (1.0, 1.1), Call::Presence, with_tenants(&["t"])).passes();
    let seen = Story::default().ok("t/e", (1.0, 1.1), Call::Presence, with_tenants(&["t", "u"]));
    seen.breaks(Invariant::Tenants);
    let pushed = Message { tenants: ["u".to_owned()].into(), ..message("approval.request", "m", "body") };
    submitted().push("t/a", 1.5, 90, pushed).breaks(Invariant::Tenants);
}

#[test]
fn a_probe_that_succeeds_breaks() {
    let probe = || Call::Probe { of: "u".into(), request: "r".into(), tries: "status".into() };
    Story::default().fail("t/e", (1.0, 1.1), probe(), refused(404, "PROTO_ERR_NOT_FOUND")).passes();
    Story::default().ok("t/e", (1.0, 1.1), probe(), answer(200)).breaks(Invariant::Tenants);
}

/// A key that is revoked at 2 s, with which the status is read at this time.
fn used_at(seconds: f64, outcome: Outcome, answer: Answer) -> Story {
    let revoke = Call::RevokeKey { credential: "k".into() };
    let mut story = Story::default().ok("t/operator", (1.9, 2.0), revoke, self::answer(200));
    story = story.op("t/e", (seconds, seconds + 0.1), Call::Presence, outcome, answer);
    for event in &mut story.events {
        if let What::Invoke { by, call: Call::Presence, .. } = &mut event.what {
            by.credential = "k".into();
        }
    }
    story
}

#[test]
fn a_revoked_key_that_is_accepted_after_its_bound_breaks() {
    used_at(7.9, Outcome::Ok, answer(200)).passes();
    used_at(8.1, Outcome::Ok, answer(200)).breaks(Invariant::Revoked);
    used_at(8.1, Outcome::Fail, refused(401, "PROTO_ERR_UNAUTHENTICATED")).passes();
    used_at(8.1, Outcome::Fail, refused(404, "PROTO_ERR_NOT_FOUND")).breaks(Invariant::Revoked);
    used_at(8.1, Outcome::Unknown, refused(503, "PROTO_ERR_UNAVAILABLE")).passes();
    used_at(9.9, Outcome::Ok, answer(200)).fault(3.0, 5.0).passes();
    used_at(10.1, Outcome::Ok, answer(200)).fault(3.0, 5.0).breaks(Invariant::Revoked);
}

#[test]
fn a_connection_of_a_revoked_key_that_gets_messages_after_its_bound_breaks() {
    let pushed = |at: f64| {
        let mut story = used_at(2.5, Outcome::Ok, answer(200));
        story = story.push("t/e", at, 1, Message { kind: "refresh.request".into(), ..Message::default() });
        for event in &mut story.events {
            if let What::Push(push) = &mut event.what {
                push.by.credential = "k".into();
            }
        }
        story
    };
    pushed(17.9).passes();
    pushed(18.1).breaks(Invariant::Revoked);
}
