//! Telling the devices of a person what they have answered here, on whichever of them (docs/history.md).

use countersign_wire::{id::ApproverId, timestamp::Timestamp};
use zeroize::Zeroizing;

use crate::{
    acting::finish::{FinishError, RECEIPT_TIME},
    ends::enforcer::Enforcer,
    exchange::{seal::Recipient, taken::Taken},
    journal::{Change, JournalError, Kind, Record, off_thread},
    reports::{history, receipt::Outcome},
};

/// How often a list is made again because another process has finished something meanwhile.
const MAX_ROUNDS: usize = 2;

/// A list of answers that is to be sent.
pub(super) struct Sharing {
    /// The key of its record in the journal.
    key: String,
    /// The records of the answers that it has.
    answers: Vec<String>,
}

/// The keys of the lists for a person that are to be sent. No id has a line break, so no receipt has such a key.
fn prefix(approver: &ApproverId) -> String {
    format!("history\n{approver}\n")
}

fn keys(answers: &[Record]) -> Vec<String> {
    answers.iter().map(|answer| answer.key.clone()).collect()
}

fn removal(record: Record) -> Change {
    Change::Remove(record.kind, record.key)
}

impl Enforcer {
    /// What is recorded when a decision was acted on: the answer, if it is a new one, and the list that is then sent to the
    /// devices of that person. With one device there is nobody to tell.
    pub(super) async fn remember(
        &self,
        taken: &Taken,
        outcome: &Outcome,
        devices: &[Recipient<'_>],
        now: Timestamp,
    ) -> Result<(Vec<Change>, Option<Sharing>), FinishError> {
        let Some(answer) = history::record(taken, outcome, now) else { return Ok((Vec::new(), None)) };
        let approver = &taken.decision.approver;
        let mut answers = self.answers_of(approver, now).await?;
        answers.insert(0, answer.clone());
        let old = answers.split_off(answers.len().min(history::MAX_ANSWERS));
        let mut changes: Vec<Change> = old.into_iter().map(removal).collect();
        changes.push(Change::Put(answer));
        if devices.len() < 2 {
            return Ok((changes, None));
        }
        // This list has what those have that could not be sent.
        let unsent = off_thread(&self.journal, |journal| journal.list(Kind::Receipt)).await?;
        let own = prefix(approver);
        changes.extend(unsent.into_iter().filter(|record| record.key.starts_with(&own)).map(removal));
        let list = self.list(&answers, approver, devices, now)?;
        let share = Sharing { key: list.key.clone(), answers: keys(&answers) };
        changes.push(Change::Put(list));
        Ok((changes, Some(share)))
    }

    /// Sends a list that is recorded. If that fails, it is sent with a later receipt.
    pub(super) async fn share(
        &self,
        mut share: Sharing,
        approver: &ApproverId,
        devices: &[Recipient<'_>],
    ) -> Result<(), FinishError> {
        for _ in 0..MAX_ROUNDS {
            if !self.send_receipt(&share.key).await? {
                break;
            }
            let now = self.clock.now();
            let answers = self.answers_of(approver, now).await?;
            if keys(&answers) == share.answers {
                break;
            }
            // The gateway keeps the list that was made last.
            let list = self.list(&answers, approver, devices, now)?;
            share = Sharing { key: list.key.clone(), answers: keys(&answers) };
            off_thread(&self.journal, move |journal| journal.commit(&[Change::Put(list)], now).map(|_| ()))
                .await?;
        }
        Ok(())
    }

    fn list(
        &self,
        answers: &[Record],
        approver: &ApproverId,
        devices: &[Recipient<'_>],
        now: Timestamp,
    ) -> Result<Record, FinishError> {
        let event = history::event(answers, approver, (&self.id, &self.keys), devices, now)?;
        let key = format!("{}{:020}", prefix(approver), now.unix_micros().max(0));
        Ok(Record {
            kind: Kind::Receipt,
            key,
            value: Zeroizing::new(event),
            keep_until: now.plus(RECEIPT_TIME),
        })
    }

    async fn answers_of(&self, approver: &ApproverId, now: Timestamp) -> Result<Vec<Record>, JournalError> {
        let records = off_thread(&self.journal, |journal| journal.list(Kind::Answered)).await?;
        Ok(history::of_person(records, approver, now))
    }
}
