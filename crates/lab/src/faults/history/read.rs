//! Reads a history again.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufRead as _, BufReader},
    path::Path,
};

use super::event::{Act, Answer, Call, Caller, Event, Notified, Push, What};
use crate::Failure;

/// Everything that happened, in order of its begin.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) operations: Vec<Operation>,
    /// With the time of arrival.
    pub(crate) pushes: Vec<(u64, Push)>,
    pub(crate) acts: Vec<(u64, Act)>,
    pub(crate) notified: Vec<(u64, Notified)>,
    pub(crate) faults: Vec<Fault>,
    /// When the quiet phase began.
    pub(crate) quiet_at: Option<u64>,
    /// The time of the last line.
    pub(crate) end: u64,
}

/// An operation from its begin to its end. Times are microseconds.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) number: u64,
    pub(crate) by: Caller,
    pub(crate) call: Call,
    pub(crate) invoked: u64,
    /// `u64::MAX` if the history ends before.
    pub(crate) ended: u64,
    pub(crate) outcome: Outcome,
    pub(crate) answer: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    /// It certainly did nothing.
    Fail,
    Unknown,
}

impl Operation {
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == Outcome::Ok
    }

    /// Whether it may have done something.
    pub(crate) fn may_have_happened(&self) -> bool {
        self.outcome != Outcome::Fail
    }

    /// The exchange that it is about, if that is known.
    pub(crate) fn request(&self) -> Option<&str> {
        self.call.request().or(self.answer.request.as_deref())
    }
}

/// A fault from its begin to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: String,
    pub(crate) target: String,
    pub(crate) begins: u64,
    /// `u64::MAX` if it never ended.
    pub(crate) ends: u64,
}

impl History {
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let mut events = Vec::new();
        for (number, line) in BufReader::new(File::open(path)?).lines().enumerate() {
            let event: Result<Event, _> = serde_json::from_str(&line?);
            events.push(event.map_err(|error| format!("line {} of the history: {error}", number + 1))?);
        }
        Self::of(events)
    }

    /// The history of these lines, in order.
    pub(crate) fn of(events: impl IntoIterator<Item = Event>) -> Result<Self, Failure> {
        let mut history = Self::default();
        let (mut open, mut faults) = (HashMap::new(), HashMap::new());
        for Event { at, what } in events {
            history.end = history.end.max(at);
            match what {
                What::Invoke { op, by, call } => {
                    open.insert(op, history.operations.len());
                    history.operations.push(Operation {
                        number: op,
                        by,
                        call,
                        invoked: at,
                        ended: u64::MAX,
                        outcome: Outcome::Unknown,
                        answer: Answer::default(),
                    });
                }
                What::Ok { op, answer } => history.close(open.remove(&op), at, Outcome::Ok, answer)?,
                What::Fail { op, answer } => history.close(open.remove(&op), at, Outcome::Fail, answer)?,
                What::Unknown { op, answer } => {
                    history.close(open.remove(&op), at, Outcome::Unknown, answer)?;
                }
                What::Push(push) => history.pushes.push((at, push)),
                What::Act(act) => history.acts.push((at, act)),
                What::Notified(notified) => history.notified.push((at, notified)),
                What::FaultBegins { fault, kind, target } => {
                    faults.insert(fault, history.faults.len());
                    history.faults.push(Fault { kind, target, begins: at, ends: u64::MAX });
                }
                What::FaultEnds { fault } => {
                    let fault = faults.remove(&fault).ok_or("a fault ends that did not begin")?;
                    history.faults[fault].ends = at;
                }
                What::Quiet => history.quiet_at = Some(at),
            }
        }
        Ok(history)
    }

    fn close(
        &mut self,
        opened: Option<usize>,
        at: u64,
        outcome: Outcome,
        answer: Answer,
    ) -> Result<(), Failure> {
        let operation = &mut self.operations[opened.ok_or("an operation ends that is not open")?];
        (operation.ended, operation.outcome, operation.answer) = (at, outcome, answer);
        Ok(())
    }

    /// For how many microseconds between these times at least one fault was active.
    pub(crate) fn faulty_time(&self, from: u64, to: u64) -> u64 {
        let (mut total, mut counted_to) = (0, from);
        // Faults are in order of their begin.
        for fault in &self.faults {
            let (begins, ends) = (fault.begins.max(counted_to), fault.ends.min(to));
            if begins < ends {
                total += ends - begins;
                counted_to = ends;
            }
        }
        total
    }
}
