//! Handmade histories: for each invariant one that passes and one that is caught.

mod access;
mod delivery;
mod exchanges;
mod notified;

use super::{super::history::*, Invariant, check};

const SECOND: u64 = 1_000_000;

/// A history in the making. Times are seconds.
#[derive(Default)]
struct Story {
    events: Vec<Event>,
    next: u64,
}

fn caller(client: &str) -> Caller {
    let tenant = client.split('/').next().unwrap_or_default();
    let (client, tenant) = (client.to_owned(), tenant.to_owned());
    Caller { client, tenant, node: "http://n1".into(), credential: String::new() }
}

fn answer(status: u16) -> Answer {
    Answer { status, ..Answer::default() }
}

fn refused(status: u16, code: &str) -> Answer {
    Answer { code: code.into(), ..answer(status) }
}

#[expect(clippy::unnecessary_wraps, reason = "as it stands in calls and answers")]
fn text(of: &str) -> Option<Hash> {
    Some(Hash::of(of))
}

fn submit() -> Call {
    Call::Submit {
        request: Some("r".into()),
        enforcer: "t/e".into(),
        approver: Some("t/a".into()),
        body: text("body"),
        lifetime_ms: 60_000,
    }
}

fn decide(decision: &str) -> Call {
    Call::Decide { request: "r".into(), approver: "t/a".into(), decision: text(decision), approves: true }
}

fn state(state: ExchangeState) -> Answer {
    Answer { state: Some(state), ..answer(200) }
}

fn decided(state: ExchangeState, decision: &str) -> Answer {
    Answer { decision: text(decision), ..self::state(state) }
}

fn accepted(body: &str) -> Answer {
    Answer { body: text(body), ..answer(202) }
}

impl Story {
    fn event(&mut self, seconds: f64, what: What) {
        let at = std::time::Duration::from_secs_f64(seconds).as_micros();
        self.events.push(Event { at: u64::try_from(at).unwrap(), what });
    }

    fn op(mut self, client: &str, times: (f64, f64), call: Call, outcome: Outcome, answer: Answer) -> Self {
        self.next += 1;
        let op = self.next;
        self.event(times.0, What::Invoke { op, by: caller(client), call });
        self.event(
            times.1,
            match outcome {
                Outcome::Ok => What::Ok { op, answer },
                Outcome::Fail => What::Fail { op, answer },
                Outcome::Unknown => What::Unknown { op, answer },
            },
        );
        self
    }

    fn ok(self, client: &str, times: (f64, f64), call: Call, answer: Answer) -> Self {
        self.op(client, times, call, Outcome::Ok, answer)
    }

    fn fail(self, client: &str, times: (f64, f64), call: Call, answer: Answer) -> Self {
        self.op(client, times, call, Outcome::Fail, answer)
    }

    fn unknown(self, client: &str, times: (f64, f64), call: Call) -> Self {
        self.op(client, times, call, Outcome::Unknown, Answer::none("no answer in time"))
    }

    fn status(self, times: (f64, f64), answer: Answer) -> Self {
        self.ok("t/e", times, Call::Status { request: "r".into() }, answer)
    }

    fn final_read(self, times: (f64, f64), answer: Answer) -> Self {
        self.ok("t/reader", times, Call::FinalRead { request: "r".into() }, answer)
    }

    fn push(mut self, client: &str, at: f64, connection: u64, message: Message) -> Self {
        let (by, reader) = (caller(client), client.to_owned());
        let push = Push { by, reader, connection, transport: Transport::Websocket, message };
        self.event(at, What::Push(push));
        self
    }

    fn notified(mut self, at: f64, accepted: bool) -> Self {
        let (tenant, request) = ("t".to_owned(), "r".to_owned());
        self.event(at, What::Notified(Notified { tenant, request, accepted }));
        self
    }

    fn fault(mut self, from: f64, to: f64) -> Self {
        self.next += 1;
        let fault = self.next;
        self.event(from, What::FaultBegins { fault, kind: "stop".into(), target: "node 1".into() });
        self.event(to, What::FaultEnds { fault });
        self
    }

    fn quiet(mut self, at: f64) -> Self {
        self.event(at, What::Quiet);
        self
    }

    fn act(mut self, at: f64) -> Self {
        let act = Act { client: "t/e".into(), tenant: "t".into(), request: "r".into(), decision: None };
        self.event(at, What::Act(act));
        self
    }

    /// What is violated, each once.
    fn violated(mut self) -> Vec<Invariant> {
        self.events.sort_by_key(|event| event.at);
        let found = check(&History::of(self.events).unwrap());
        let mut invariants: Vec<Invariant> = found.iter().map(|violation| violation.invariant).collect();
        invariants.sort();
        invariants.dedup();
        invariants
    }

    fn passes(self) {
        assert_eq!(self.violated(), []);
    }

    fn breaks(self, invariant: Invariant) {
        let violated = self.violated();
        assert!(violated.contains(&invariant), "{violated:?}");
    }
}

fn message(kind: &str, id: &str, body: &str) -> Message {
    let (id, kind, request) = (id.to_owned(), kind.to_owned(), "r".to_owned());
    Message { id, kind, request, body: text(body), ..Message::default() }
}

/// An exchange that is submitted, and decided with "yes".
fn submitted() -> Story {
    Story::default().ok("t/e", (1.0, 1.1), submit(), accepted("accepted"))
}

fn approved() -> Story {
    submitted().ok("t/a", (2.0, 2.1), decide("yes"), accepted("decided"))
}

#[test]
fn each_invariant_has_a_sentence_on_the_page() {
    let page = include_str!("../../../../../../docs/guarantees.md");
    for invariant in Invariant::ALL {
        assert!(page.contains(invariant.sentence()), "{invariant:?}: {}", invariant.sentence());
    }
}

#[test]
fn a_violation_says_where_to_look() {
    let story = approved().final_read((9.0, 9.1), state(ExchangeState::PendingApproval));
    let found = check(&History::of(story.events).unwrap());
    let lost = found.iter().find(|violation| violation.invariant == Invariant::DecisionKept).unwrap();
    assert_eq!((lost.request.as_deref(), lost.at), (Some("r"), 9 * SECOND + SECOND / 10));
    assert_eq!((lost.operations.as_slice(), lost.clients.len()), ([3, 2].as_slice(), 2));
    assert!(lost.to_string().starts_with("9.100 s, DecisionKept, t, r: "), "{lost}");
}
