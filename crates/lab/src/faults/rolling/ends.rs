//! How everything ended that clients of the library did. They have time to spare, and nobody stops or contradicts them, so each
//! end that is not as it should be is a failure of a gateway or of the library.

use std::collections::BTreeMap;

use super::super::{
    history::{Call, ExchangeState, History, Operation, Outcome, Transport},
    report::Rolling,
};

/// What the two sides of one exchange did.
#[derive(Default)]
struct Ends<'a> {
    submits: Vec<&'a Operation>,
    decides: Vec<&'a Operation>,
    withdrawals: Vec<&'a Operation>,
    waits: Vec<&'a Operation>,
    acts: usize,
}

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Executed,
    Rejected,
    Withdrawn,
}

/// Counts what clients of the library did and saw, and names all that failed.
pub(crate) fn count(rolling: &mut Rolling, history: &History) {
    let exchanges = exchanges(history);
    let key = |operation: &Operation| Some((operation.by.tenant.clone(), operation.request()?.to_owned()));
    for operation in &history.operations {
        let withdraws = matches!(operation.call, Call::Withdraw { .. });
        let is_ours = withdraws && key(operation).is_some_and(|key| exchanges.contains_key(&key));
        if !is_ours && !is_of_library(&operation.call) {
            continue;
        }
        match operation.outcome {
            Outcome::Ok => rolling.library_succeeded += 1,
            Outcome::Fail | Outcome::Unknown => rolling.library_failed.push(words(operation)),
        }
    }
    for ((tenant, request), ends) in &exchanges {
        match ends.end() {
            Ok(End::Executed) => rolling.exchanges.executed += 1,
            Ok(End::Rejected) => rolling.exchanges.rejected += 1,
            Ok(End::Withdrawn) => rolling.exchanges.withdrawn += 1,
            Err(why) => rolling.library_failed.push(format!("{tenant} {request}: {why}")),
        }
    }
    // Restarts while nobody works prove nothing.
    let counted = &rolling.exchanges;
    if counted.executed == 0 || counted.rejected == 0 || counted.withdrawn == 0 {
        rolling.library_failed.push("not every kind of exchange has happened".to_owned());
    }
}

/// The exchanges that the client library has submitted, by tenant and id.
fn exchanges(history: &History) -> BTreeMap<(String, String), Ends<'_>> {
    let mut all: BTreeMap<(String, String), Ends<'_>> = BTreeMap::new();
    let submits = |operation: &&Operation| matches!(operation.call, Call::Submit { body: None, .. });
    for operation in history.operations.iter().filter(submits) {
        if let Some(request) = operation.request() {
            let key = (operation.by.tenant.clone(), request.to_owned());
            all.entry(key).or_default().submits.push(operation);
        }
    }
    for operation in &history.operations {
        let Some(request) = operation.request() else { continue };
        let Some(ends) = all.get_mut(&(operation.by.tenant.clone(), request.to_owned())) else { continue };
        match &operation.call {
            Call::Decide { .. } => ends.decides.push(operation),
            Call::Withdraw { .. } => ends.withdrawals.push(operation),
            Call::Wait { acknowledges: true, .. } => ends.waits.push(operation),
            _ => {}
        }
    }
    for (_, act) in &history.acts {
        if let Some(ends) = all.get_mut(&(act.tenant.clone(), act.request.clone())) {
            ends.acts += 1;
        }
    }
    all
}

impl Ends<'_> {
    /// How it ended, if it ended as it should: asked, decided once and executed once; or withdrawn.
    fn end(&self) -> Result<End, String> {
        if !self.submits.iter().all(|submit| submit.is_ok()) {
            return Err("it was not submitted".to_owned());
        }
        let seen: Vec<Option<ExchangeState>> =
            self.waits.iter().filter(|wait| wait.is_ok()).map(|wait| wait.answer.state).collect();
        if seen.len() != self.waits.len() {
            return Err("who waited for it got no answer".to_owned());
        }
        let expected = match (self.decides.as_slice(), self.withdrawals.as_slice()) {
            ([decide], []) if decide.is_ok() => match decide.call {
                Call::Decide { approves: true, .. } => End::Executed,
                _ => End::Rejected,
            },
            ([], [withdrawal]) if withdrawal.is_ok() => End::Withdrawn,
            (decides, withdrawals) => {
                let (decides, withdrawals) = (decides.len(), withdrawals.len());
                return Err(format!(
                    "there are {decides} decisions and {withdrawals} withdrawals, or they failed"
                ));
            }
        };
        let state = if expected == End::Withdrawn { Some(ExchangeState::Withdrawn) } else { None };
        if seen.iter().any(|seen| *seen != state) {
            return Err(format!("it was {expected:?}, and who waited for it saw {seen:?}"));
        }
        let acts = usize::from(expected == End::Executed);
        match self.acts == acts {
            true => Ok(expected),
            false => Err(format!("it was {expected:?}, and acted on {} times", self.acts)),
        }
    }
}

/// Whether only the client library makes such a call: it makes the texts itself.
fn is_of_library(call: &Call) -> bool {
    matches!(
        call,
        Call::Submit { body: None, .. }
            | Call::Decide { decision: None, .. }
            | Call::Wait { acknowledges: true, .. }
            | Call::Finish { .. }
            | Call::Work
            | Call::Listen { transport: Transport::Sdk, .. }
    )
}

fn words(operation: &Operation) -> String {
    let Operation { by, call, invoked, answer, .. } = operation;
    let request = operation.request().unwrap_or_default();
    format!(
        "{} ms {} {} {request}: {} {} {}",
        invoked / 1_000,
        by.client,
        call.kind(),
        answer.status,
        answer.code,
        answer.reason
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::faults::{
        checker::notified::Counted,
        history::{Act, Answer, Caller, Counts},
        report::{Exchanges, Report},
    };

    fn operation(call: Call, outcome: Outcome, answer: Answer) -> Operation {
        let by = Caller { tenant: "t".to_owned(), ..Caller::default() };
        Operation { number: 1, by, call, invoked: 1, ended: 2, outcome, answer }
    }

    fn ok(call: Call) -> Operation {
        operation(call, Outcome::Ok, Answer::default())
    }

    fn submit(request: &str) -> Operation {
        let (request, enforcer) = (Some(request.to_owned()), "e".to_owned());
        ok(Call::Submit { request, enforcer, approver: None, body: None, lifetime_ms: 1 })
    }

    fn decide(request: &str, approves: bool) -> Operation {
        ok(Call::Decide { request: request.to_owned(), approver: "a".to_owned(), decision: None, approves })
    }

    fn wait(request: &str, state: Option<ExchangeState>) -> Operation {
        let call = Call::Wait { request: request.to_owned(), acknowledges: true };
        operation(call, Outcome::Ok, Answer { state, ..Answer::default() })
    }

    fn act(request: &str) -> (u64, Act) {
        let (client, tenant) = ("e".to_owned(), "t".to_owned());
        (3, Act { client, tenant, request: request.to_owned(), decision: None })
    }

    /// One exchange of each kind.
    fn good() -> History {
        let operations = vec![
            ok(Call::Work),
            submit("executed"),
            decide("executed", true),
            wait("executed", None),
            ok(Call::Finish { request: "executed".to_owned() }),
            submit("rejected"),
            decide("rejected", false),
            wait("rejected", None),
            submit("withdrawn"),
            ok(Call::Withdraw { request: "withdrawn".to_owned() }),
            wait("withdrawn", Some(ExchangeState::Withdrawn)),
        ];
        History { operations, acts: vec![act("executed")], ..History::default() }
    }

    fn report(history: &History) -> Report {
        let mut rolling = Rolling {
            rounds: 1,
            slowest_drain_ms: 0.0,
            library_succeeded: 0,
            exchanges: Exchanges::default(),
            library_failed: Vec::new(),
        };
        count(&mut rolling, history);
        Report {
            seed: 1,
            seconds: 1,
            arrangement: "pair",
            tls: false,
            faults: 0,
            failovers: 0,
            acknowledged: 0,
            counts: Counts::default(),
            recovery: Vec::new(),
            violations: Vec::new(),
            notified: Counted::default(),
            moves: 0,
            node_starts: 6,
            resyncs: BTreeMap::new(),
            rolling: Some(rolling),
            left_out: Vec::new(),
            folder: None,
        }
    }

    #[test]
    fn exchanges_that_end_as_they_should_are_counted() {
        let report = report(&good());
        assert!(!report.is_bad(), "{:?}", report.rolling);
        let rolling = report.rolling.unwrap();
        assert_eq!(rolling.exchanges, Exchanges { executed: 1, rejected: 1, withdrawn: 1 });
        assert_eq!(rolling.library_succeeded, 11);
    }

    #[test]
    fn one_call_that_fails_makes_the_report_bad_whatever_it_was_and_why() {
        for number in 0..good().operations.len() {
            for (outcome, status, reason) in [
                (Outcome::Unknown, 0, "the client was stopped"),
                (Outcome::Unknown, 0, "no answer in time"),
                (Outcome::Unknown, 0, "nobody answered in time"),
                (Outcome::Fail, 409, "expired"),
                (Outcome::Fail, 503, ""),
            ] {
                let mut history = good();
                let failed = &mut history.operations[number];
                failed.outcome = outcome;
                failed.answer = Answer { status, ..Answer::none(reason) };
                let kind = failed.call.kind();
                assert!(report(&history).is_bad(), "{kind} {status} {reason}");
            }
        }
    }

    #[test]
    fn one_call_that_is_missing_makes_the_report_bad() {
        // A client need not say what it did, or wait on its own for what it has asked and waited for in one call.
        let needed =
            |call: &Call| matches!(call, Call::Submit { .. } | Call::Decide { .. } | Call::Withdraw { .. });
        for number in 0..good().operations.len() {
            let mut history = good();
            let missing = history.operations.remove(number);
            assert_eq!(report(&history).is_bad(), needed(&missing.call), "{}", missing.call.kind());
        }
    }

    #[test]
    fn an_exchange_with_another_end_than_it_should_have_makes_the_report_bad() {
        let bad = |change: fn(&mut History), what: &str| {
            let mut history = good();
            change(&mut history);
            assert!(report(&history).is_bad(), "{what}");
        };
        bad(|history| history.acts.clear(), "approved and not executed");
        bad(|history| history.acts.push(act("executed")), "executed twice");
        bad(|history| history.acts.push(act("rejected")), "rejected and executed");
        bad(|history| history.acts.push(act("withdrawn")), "withdrawn and executed");
        bad(|history| history.operations.push(decide("executed", false)), "decided twice");
        bad(|history| history.operations.push(decide("withdrawn", true)), "withdrawn and decided");
        let expired = |history: &mut History| {
            history.operations.push(wait("executed", Some(ExchangeState::Expired)));
        };
        bad(expired, "decided, and seen as expired");
        bad(|history| *history = History::default(), "nobody did anything");
    }
}
