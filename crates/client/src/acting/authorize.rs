//! How an enforcer comes to act: by a grant that covers it, or by asking; and what it does with the answer.
//!
//! Everything is in the journal before anything rests on it: a request before it is submitted, a use before it is acted on.

use countersign_wire::{decision::DecisionOutcome, id::RequestId, timestamp::Timestamp};
use zeroize::Zeroizing;

use crate::{
    acting::open::{Manner, OpenRequest, removed},
    ends::enforcer::{AskError, Enforcer},
    exchange::{
        audience,
        effect_hash::{effect_of_artifact, effect_of_draft},
        grant::{Grant, GrantRules},
        reply::{Rejected, VerifiedDecision, Verifier},
        request::{Draft, Request, RequestError},
        taken::{Decided, OPEN_TIME, Settled, Signer, Taken, number_of, use_record},
    },
    gateway::http::CallError,
    identity::{keys::Fingerprint, profile::Pins},
    journal::{Change, Commit, Journal, JournalError, Kind, Record, off_thread},
    reports::receipt::Outcome,
};

/// The answer of a person, or what they have answered before. Finish it with [`Enforcer::finish`], so that they learn what
/// became of it.
#[derive(Debug)]
pub enum Answer {
    /// It may be done, once, now.
    Approved(Taken),
    /// It must not be done.
    Rejected(Taken),
}

impl Enforcer {
    /// Lets something be done: by a grant that covers it, else by asking every paired approver. The use is recorded when
    /// this returns, whichever it is.
    pub async fn authorize(
        &self,
        draft: &Draft,
        pins: &Pins,
        rules: &GrantRules,
    ) -> Result<Answer, AskError> {
        match self.by_grant(draft, pins, rules).await? {
            Some(taken) => Ok(Answer::Approved(taken)),
            None => Ok(answer(self.ask_and_take(draft, pins).await?)),
        }
    }

    /// Lets something be done by a grant that covers it; `None` if none does. Nobody is asked.
    pub async fn by_grant(
        &self,
        draft: &Draft,
        pins: &Pins,
        rules: &GrantRules,
    ) -> Result<Option<Taken>, AskError> {
        for grant in self.grants(pins, rules).await? {
            if grant.covers(draft, self.clock.now())
                && let Some(taken) = self.use_grant(grant, draft, Vec::new()).await?
            {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// Asks, and does not wait. The answer is there for [`Enforcer::pick_up`], also in a later process.
    pub async fn ask_detached(&self, draft: &Draft, pins: &Pins) -> Result<Request, AskError> {
        self.record_and_submit(draft, pins, true).await
    }

    /// As [`Enforcer::ask_detached`], for a process that waits itself: if it ends, nobody asks for the same again.
    pub async fn ask_attended(&self, draft: &Draft, pins: &Pins) -> Result<Request, AskError> {
        self.record_and_submit(draft, pins, false).await
    }

    /// The requests without an answer, also of earlier processes.
    pub async fn open_requests(&self) -> Result<Vec<Request>, AskError> {
        let records = off_thread(&self.journal, |journal| journal.list(Kind::Open)).await?;
        let request = |record| OpenRequest::read(record).map(|(request, _)| request);
        Ok(records.iter().map(request).collect::<Result<_, _>>()?)
    }

    /// Waits for the answer to a request that was asked before. Whatever ends the request also ends it here; only if the
    /// gateway can't be reached, or the journal not be written, it can be picked up again. What fails with
    /// [`AskError::Replaced`] goes on under another id, which [`Enforcer::follow`] finds.
    pub async fn pick_up(&self, request_id: &RequestId, pins: &Pins) -> Result<Answer, AskError> {
        let answered = self.pick_up_or_keep(request_id, pins).await;
        if let Err(AskError::Expired) = answered {
            self.abandon(request_id).await?;
        }
        answered
    }

    /// As [`Enforcer::pick_up`], and a request that has expired stays: it can be asked for once more, with
    /// [`Enforcer::ask_again`], for a day. [`Enforcer::abandon`] ends it.
    pub async fn pick_up_or_keep(&self, request_id: &RequestId, pins: &Pins) -> Result<Answer, AskError> {
        let (request, _) = match self.open_request(request_id).await {
            Err(AskError::NotOpen) if self.newest(request_id).await? != *request_id => {
                return Err(AskError::Replaced);
            }
            open => open?,
        };
        if self.clock.now() < request.expires_at {
            // It may have been recorded and not submitted.
            self.submit(&request).await?;
        }
        match self.wait_or_keep(&request, pins).await {
            Err(AskError::Call(CallError::Refused { status: 404, .. })) => {
                self.abandon(request_id).await?;
                Err(AskError::Expired)
            }
            taken => Ok(answer(taken?)),
        }
    }

    pub(crate) async fn open_request(&self, request_id: &RequestId) -> Result<(Request, Manner), AskError> {
        let key = request_id.as_str().to_owned();
        let record = off_thread(&self.journal, move |journal| journal.get(Kind::Open, &key)).await?;
        Ok(OpenRequest::read(&record.ok_or(AskError::NotOpen)?)?)
    }

    /// The grants that count now.
    pub async fn grants(&self, pins: &Pins, rules: &GrantRules) -> Result<Vec<Grant>, AskError> {
        let (settled, revoked) = off_thread(&self.journal, |journal| {
            Ok((journal.list(Kind::Settled)?, journal.list(Kind::Revoked)?))
        })
        .await?;
        let (verifier, now) = (self.verifier(pins), self.clock.now());
        let is_revoked = |record: &Record| revoked.iter().any(|it| it.key == record.key);
        let counting = settled.iter().filter(|record| !is_revoked(record));
        Ok(counting.filter_map(|record| Grant::read(record, &verifier, rules, now)).collect())
    }

    /// Takes a grant back. Whoever has begun to act on it goes on; nobody begins any more.
    pub async fn revoke_grant(&self, request_id: &RequestId) -> Result<(), AskError> {
        let (key, now) = (request_id.as_str().to_owned(), self.clock.now());
        let done = off_thread(&self.journal, move |journal| {
            let settled = journal.get(Kind::Settled, &key)?;
            let Some(Record { keep_until, .. }) = settled else { return Ok(None) };
            let value = Zeroizing::new(now.to_string());
            let record = Record { kind: Kind::Revoked, key, value, keep_until };
            journal.commit(&[Change::Put(record)], now).map(Some)
        });
        done.await?.map(|_| ()).ok_or(AskError::NotOpen)
    }

    /// One more use of a grant, recorded together with other changes; `None` if it was revoked meanwhile, or the request
    /// that waits for it was settled.
    pub(crate) async fn use_grant(
        &self,
        grant: Grant,
        draft: &Draft,
        also: Vec<Change>,
    ) -> Result<Option<Taken>, AskError> {
        let now = self.clock.now();
        let effect = effect_of_draft(draft).map_err(RequestError::from)?;
        let Grant { request_id, decision, decided, .. } = grant;
        let keep_until = decision.keep_until(now);
        let id = request_id.clone();
        let number = off_thread(&self.journal, move |journal| {
            next_use(journal, &id, |number| use_record(&id, number, effect, keep_until), &also, now)
        });
        let Some(number) = number.await? else { return Ok(None) };
        let is_shown = effect_of_artifact(&decided.artifact).is_ok_and(|shown| shown == effect);
        let other_payload = (!is_shown).then(|| Zeroizing::new(draft.payload.clone()));
        Ok(Some(Taken { request_id, decision, number, effect, other_payload, decided }))
    }

    pub(crate) async fn ask_and_take(&self, draft: &Draft, pins: &Pins) -> Result<Taken, AskError> {
        let request = self.record_and_submit(draft, pins, false).await?;
        self.wait_and_take(&request, pins).await
    }

    async fn record_and_submit(
        &self,
        draft: &Draft,
        pins: &Pins,
        is_detached: bool,
    ) -> Result<Request, AskError> {
        let now = self.clock.now();
        let request = Request::build(draft, &self.id, &self.keys, pins, now)?;
        let people = audience::in_time(&draft.to.people, draft.valid_for);
        let manner = Manner { people, is_detached, ..Manner::default() };
        let change = Change::Add(OpenRequest::record(&request, manner));
        let commit = off_thread(&self.journal, move |journal| journal.commit(&[change], now)).await?;
        if commit != Commit::Done {
            return Err(AskError::Rejected(Rejected::Settled));
        }
        self.submit_recorded(&request).await?;
        Ok(request)
    }

    /// Submits a request that is in the journal. One that the gateway will never take leaves it.
    pub(crate) async fn submit_recorded(&self, request: &Request) -> Result<(), AskError> {
        match self.submit(request).await {
            Err(AskError::Call(error)) if !error.is_retryable() => {
                self.abandon(&request.request_id).await?;
                Err(error.into())
            }
            submitted => submitted,
        }
    }

    /// Waits for an answer, checks it and records that it is used.
    pub(crate) async fn wait_and_take(&self, request: &Request, pins: &Pins) -> Result<Taken, AskError> {
        let taken = self.wait_or_keep(request, pins).await;
        if let Err(AskError::Expired) = taken {
            self.abandon(&request.request_id).await?;
        }
        taken
    }

    /// As [`Enforcer::wait_and_take`], and a request that has expired stays in the journal.
    async fn wait_or_keep(&self, request: &Request, pins: &Pins) -> Result<Taken, AskError> {
        let taken = match self.wait_for_text(request).await {
            Ok(text) => self.take(&text, request, pins).await,
            Err(error) => Err(error),
        };
        match taken {
            // It is the same that is asked for, so nobody stops waiting.
            Err(AskError::TakenBack | AskError::Rejected(Rejected::Settled))
                if self.is_replaced(&request.request_id).await? =>
            {
                return Err(AskError::Replaced);
            }
            Err(AskError::TakenBack | AskError::Rejected(_)) => self.abandon(&request.request_id).await?,
            _ => {}
        }
        taken
    }

    async fn take(&self, text: &str, request: &Request, pins: &Pins) -> Result<Taken, AskError> {
        let (verifier, now) = (self.verifier(pins), self.clock.now());
        let decision = match verifier.check(text.as_bytes(), request, now) {
            Err(Rejected::TooLate) => {
                let late = verifier.too_late(text.as_bytes(), request, now);
                self.refuse_late(late, text, request, pins, now).await;
                return Err(Rejected::TooLate.into());
            }
            decision => decision?,
        };
        let taken = first_use(decision, text, request, pins, now)?;
        let changes = taken.changes(now, request);
        committed(off_thread(&self.journal, move |journal| journal.commit(&changes, now)).await?)?;
        self.acknowledge(&request.request_id).await;
        Ok(taken)
    }

    /// As [`Enforcer::wait`] does with a text, without waiting for anything but the disk: whoever drops a future must not
    /// lose what was recorded as used.
    pub(crate) fn take_now(&self, text: &str, request: &Request, pins: &Pins) -> Result<Taken, Rejected> {
        let now = self.clock.now();
        let decision = self.verifier(pins).check(text.as_bytes(), request, now)?;
        let taken = first_use(decision, text, request, pins, now).map_err(|error| match error {
            AskError::Rejected(rejected) => rejected,
            _ => Rejected::Malformed,
        })?;
        committed(self.journal.commit(&taken.changes(now, request), now)?)?;
        Ok(taken)
    }

    /// Says to whoever decided that it came too late. It is only news: if it fails, nothing is done all the same.
    async fn refuse_late(
        &self,
        late: Option<VerifiedDecision>,
        text: &str,
        request: &Request,
        pins: &Pins,
        now: Timestamp,
    ) {
        let Some(taken) = late.and_then(|late| first_use(late, text, request, pins, now).ok()) else {
            return;
        };
        self.acknowledge(&request.request_id).await;
        if let Err(error) = self.finish(taken, Outcome::TooLate, pins).await {
            tracing::debug!(%error, "there is no receipt for a decision that came too late");
        }
    }

    /// Records that a request was taken back, unless a decision was faster.
    pub(crate) async fn record_withdrawal(&self, request: &Request) -> Result<(), AskError> {
        let (changes, now) = (self.withdrawal(request), self.clock.now());
        match off_thread(&self.journal, move |journal| journal.commit(&changes, now)).await? {
            Commit::Done => Ok(()),
            Commit::Conflict(_) => Err(Rejected::Settled.into()),
        }
    }

    /// What is recorded when a request is taken back.
    pub(crate) fn withdrawal(&self, request: &Request) -> Vec<Change> {
        let keep_until = request.expires_at.plus(OPEN_TIME).max(self.clock.now());
        vec![
            Change::Add(Settled::Withdrawn.record(&request.request_id, keep_until)),
            removed(&request.request_id),
        ]
    }

    /// Ends a request that has no answer, here and not at the gateway: nobody waits for one any more, or asks again.
    pub async fn abandon(&self, request_id: &RequestId) -> Result<(), AskError> {
        let (request_id, now) = (request_id.clone(), self.clock.now());
        off_thread(&self.journal, move |journal| {
            if journal.get(Kind::Open, request_id.as_str())?.is_some() {
                let _done = journal.commit(&[removed(&request_id)], now)?;
            }
            Ok(())
        })
        .await?;
        Ok(())
    }

    pub(crate) fn verifier<'a>(&'a self, pins: &'a Pins) -> Verifier<'a> {
        Verifier { enforcer: self.id.as_str(), keys: &self.keys, pins, journal: &*self.journal }
    }
}

fn answer(taken: Taken) -> Answer {
    match taken.decision.outcome {
        DecisionOutcome::Approve => Answer::Approved(taken),
        DecisionOutcome::Reject => Answer::Rejected(taken),
    }
}

/// Why a decision was not recorded as used.
fn committed(commit: Commit) -> Result<(), Rejected> {
    match commit {
        Commit::Done => Ok(()),
        Commit::Conflict(Kind::Nonce | Kind::Use) => Err(Rejected::Replayed),
        Commit::Conflict(_) => Err(Rejected::Settled),
    }
}

/// The first use of a decision about a request.
fn first_use(
    decision: VerifiedDecision,
    text: &str,
    request: &Request,
    pins: &Pins,
    now: Timestamp,
) -> Result<Taken, AskError> {
    let signer = signer(pins, decision.device)?;
    let artifact = request.artifact.clone();
    let effect = effect_of_artifact(&artifact).map_err(RequestError::from)?;
    let decided = Decided { artifact, decision: text.to_owned(), signer, taken_at: now.to_string() };
    let request_id = request.request_id.clone();
    Ok(Taken { request_id, decision, number: 1, effect, other_payload: None, decided })
}

fn signer(pins: &Pins, device: Fingerprint) -> Result<Signer, Rejected> {
    pins.get(device).map(Signer::of).ok_or(Rejected::UnknownSigner)
}

/// Records the next use of a grant with other changes and returns its number; `None` if the grant was revoked, or the
/// request that waits for it was settled.
fn next_use(
    journal: &dyn Journal,
    request_id: &RequestId,
    record: impl Fn(u64) -> Record,
    also: &[Change],
    now: Timestamp,
) -> Result<Option<u64>, JournalError> {
    let (mut number, revoked) = (0, request_id.as_str().to_owned());
    loop {
        let last = journal.last(Kind::Use, &format!("{}/", request_id.as_str()))?;
        number = last.and_then(|last| number_of(&last.key)).unwrap_or(number) + 1;
        let mut changes = vec![Change::Absent(Kind::Revoked, revoked.clone()), Change::Add(record(number))];
        changes.extend_from_slice(also);
        match journal.commit(&changes, now)? {
            Commit::Done => return Ok(Some(number)),
            Commit::Conflict(Kind::Revoked | Kind::Settled) => return Ok(None),
            // Another process was faster with this number.
            Commit::Conflict(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use countersign_wire::hash::Sha256Hex;

    use super::*;
    use crate::{exchange::fixture::now, journal::MemoryJournal};

    /// Somebody takes a grant back after it was read and before its use is recorded.
    #[test]
    fn a_grant_that_was_revoked_meanwhile_is_not_used() {
        let journal = MemoryJournal::default();
        let (id, later): (RequestId, _) = ("r".parse().unwrap(), now().plus(OPEN_TIME));
        let record = |number| use_record(&id, number, Sha256Hex::digest(b"x"), later);
        let next = || next_use(&journal, &id, record, &[], now()).unwrap();
        assert_eq!((next(), next(), next()), (Some(1), Some(2), Some(3)));
        let value = Zeroizing::new(String::new());
        let revoked = Record { kind: Kind::Revoked, key: "r".to_owned(), value, keep_until: later };
        assert_eq!(journal.commit(&[Change::Put(revoked)], now()).unwrap(), Commit::Done);
        assert_eq!((next(), journal.list(Kind::Use).unwrap().len()), (None, 3));
    }

    /// A request that waits is answered after it was seen that a grant covers it.
    #[test]
    fn a_grant_is_not_used_for_a_request_that_was_settled_meanwhile() {
        let journal = MemoryJournal::default();
        let (id, later): (RequestId, _) = ("r".parse().unwrap(), now().plus(OPEN_TIME));
        let record = |number| use_record(&id, number, Sha256Hex::digest(b"x"), later);
        let end = Change::Add(Settled::Withdrawn.record(&"waits".parse().unwrap(), later));
        let next = || next_use(&journal, &id, record, std::slice::from_ref(&end), now()).unwrap();
        assert_eq!((next(), next()), (Some(1), None), "the second time the request is settled");
        assert_eq!(journal.list(Kind::Use).unwrap().len(), 1);
    }
}
