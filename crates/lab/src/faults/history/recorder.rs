//! Writes a history while it happens.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Write as _},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;

use super::event::{Act, Answer, Call, Caller, Event, Notified, Push, What};
use crate::stopwatch::Stopwatch;

/// Appends to one history. Clones write to the same one.
#[derive(Debug, Clone)]
pub(crate) struct Recorder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    watch: Stopwatch,
    next: AtomicU64,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    file: BufWriter<File>,
    counts: Counts,
    /// The first line that could not be written.
    error: Option<io::Error>,
}

/// How many of everything a history has.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Counts {
    /// By the kind of call.
    pub(crate) operations: BTreeMap<&'static str, Ends>,
    /// By transport and type of message.
    pub(crate) pushed: BTreeMap<String, u64>,
    pub(crate) acts: u64,
    pub(crate) faults: u64,
}

impl Counts {
    /// How many operations were acknowledged by a gateway. A receipt may be sent later, and work is no operation of a gateway.
    pub(crate) fn acknowledged(&self) -> u64 {
        let counted = self.operations.iter().filter(|(kind, _)| !["finish", "work"].contains(*kind));
        counted.map(|(_, ends)| ends.ok).sum()
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Ends {
    pub(crate) ok: u64,
    pub(crate) fail: u64,
    pub(crate) unknown: u64,
}

/// Names a fault that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultId(u64);

/// An operation that has begun. If it is dropped, because its client was stopped, its end is unknown.
#[derive(Debug)]
pub(crate) struct Open {
    recorder: Recorder,
    op: u64,
    kind: &'static str,
    is_pending: bool,
}

impl Recorder {
    /// A new history in this file.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create_new(path)?);
        let written = Mutex::new(Written { file, counts: Counts::default(), error: None });
        Ok(Self(Arc::new(Shared { watch: Stopwatch::start(), next: AtomicU64::new(1), written })))
    }

    /// Begins an operation. Call it before anything is sent.
    pub(crate) fn invoke(&self, by: &Caller, call: Call) -> Open {
        let op = self.0.next.fetch_add(1, Ordering::Relaxed);
        let kind = call.kind();
        self.write(What::Invoke { op, by: by.clone(), call }, |_| {});
        Open { recorder: self.clone(), op, kind, is_pending: true }
    }

    /// A message that was pushed.
    pub(crate) fn pushed(&self, push: Push) {
        let kind = format!("{:?} {}", push.transport, push.message.kind).to_lowercase();
        self.write(What::Push(push), |counts| *counts.pushed.entry(kind).or_default() += 1);
    }

    /// An act. The line is written out before this returns, as an act in the world would be.
    pub(crate) fn acted(&self, act: Act) {
        self.write(What::Act(act), |counts| counts.acts += 1);
        self.flush();
    }

    /// Somebody was notified of a request.
    pub(crate) fn notified(&self, tenant: &str, request: &str, accepted: bool) {
        let (tenant, request) = (tenant.to_owned(), request.to_owned());
        self.write(What::Notified(Notified { tenant, request, accepted }), |_| {});
    }

    /// A fault of this kind begins, at for example a node.
    pub(crate) fn fault_begins(&self, kind: &str, target: &str) -> FaultId {
        let fault = self.0.next.fetch_add(1, Ordering::Relaxed);
        let what = What::FaultBegins { fault, kind: kind.to_owned(), target: target.to_owned() };
        self.write(what, |counts| counts.faults += 1);
        FaultId(fault)
    }

    /// What the fault has broken is whole again.
    pub(crate) fn fault_ends(&self, fault: FaultId) {
        self.write(What::FaultEnds { fault: fault.0 }, |_| {});
    }

    /// All faults are over, and no client begins anything new.
    pub(crate) fn quiet(&self) {
        self.write(What::Quiet, |_| {});
    }

    /// What was written so far.
    pub(crate) fn counts(&self) -> Counts {
        self.written().counts.clone()
    }

    /// Writes out everything; fails if any line was not written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let mut written = self.written();
        match written.error.take() {
            Some(error) => Err(error),
            None => written.file.flush(),
        }
    }

    fn flush(&self) {
        let mut written = self.written();
        if let Err(error) = written.file.flush() {
            written.error.get_or_insert(error);
        }
    }

    fn write(&self, what: What, count: impl FnOnce(&mut Counts)) {
        let mut written = self.written();
        // The lock is held: times in the file do not decrease.
        let at = u64::try_from(self.0.watch.elapsed().as_micros()).unwrap_or(u64::MAX);
        count(&mut written.counts);
        let line = serde_json::to_vec(&Event { at, what }).map_err(io::Error::from);
        let result = line.and_then(|mut line| {
            line.push(b'\n');
            written.file.write_all(&line)
        });
        if let Err(error) = result {
            written.error.get_or_insert(error);
        }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.written.lock()
    }
}

impl Open {
    /// The number of the operation.
    pub(crate) fn number(&self) -> u64 {
        self.op
    }

    pub(crate) fn ok(mut self, answer: Answer) {
        self.is_pending = false;
        let kind = self.kind;
        let count = |counts: &mut Counts| counts.operations.entry(kind).or_default().ok += 1;
        self.recorder.write(What::Ok { op: self.op, answer }, count);
    }

    /// It certainly did nothing.
    pub(crate) fn fail(mut self, answer: Answer) {
        self.is_pending = false;
        let kind = self.kind;
        let count = |counts: &mut Counts| counts.operations.entry(kind).or_default().fail += 1;
        self.recorder.write(What::Fail { op: self.op, answer }, count);
    }

    pub(crate) fn unknown(mut self, answer: Answer) {
        self.end_unknown(answer);
    }

    fn end_unknown(&mut self, answer: Answer) {
        self.is_pending = false;
        let kind = self.kind;
        let count = |counts: &mut Counts| counts.operations.entry(kind).or_default().unknown += 1;
        self.recorder.write(What::Unknown { op: self.op, answer }, count);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.is_pending {
            self.end_unknown(Answer::none("the client was stopped"));
        }
    }
}
