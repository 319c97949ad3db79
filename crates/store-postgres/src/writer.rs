//! A writer: takes what waits, makes it one transaction, and tells each caller what became of its change.

use std::sync::{Arc, atomic::Ordering};

use countersign_core::store::{Outcome, PayloadId, StoreError, error_chain};
use countersign_wire::timestamp::Timestamp;
use tokio_postgres::{Client, error::SqlState};

use crate::{
    OpenError,
    connector::{Connector, InDoubt},
    open::refuse_unsafe,
    plan::{self, Answer, Plan},
    queue::{Job, Queue},
    reads::unavailable,
    write::{self, Counters, Statements, Written},
};

/// How often a change that met another node's is tried again by itself.
const TRIES: usize = 5;

/// Serves `queue` until it is closed and empty.
pub(crate) async fn run(connector: Connector, queue: Arc<Queue>) {
    let mut writer = Writer { connector, session: None };
    loop {
        let mut jobs = queue.take().await;
        if jobs.is_empty() {
            return;
        }
        while !jobs.is_empty() {
            let dependent = plan::split_off_dependent(&mut jobs);
            writer.serve(jobs).await;
            jobs = dependent;
        }
    }
}

struct Writer {
    connector: Connector,
    session: Option<Session>,
}

/// A connection with its statements.
struct Session {
    client: Client,
    statements: Statements,
    in_doubt: InDoubt,
}

/// How an attempt at a transaction failed.
enum Failed {
    /// There is no server that is safe to write to.
    Away(OpenError),
    /// Nothing was written.
    Refused(tokio_postgres::Error),
    /// Something may have been written.
    Unknown,
}

impl Writer {
    async fn serve(&mut self, jobs: Vec<Job>) {
        match self.attempt(&jobs).await {
            Ok(outcomes) => answer(jobs, outcomes),
            Err(Failed::Unknown) => answer_all(jobs, &StoreError::OutcomeUnknown),
            Err(Failed::Away(error)) => answer_all(jobs, &unavailable(error)),
            // One bad change must not fail its neighbours.
            Err(Failed::Refused(_)) => {
                for job in jobs {
                    self.serve_alone(job).await;
                }
            }
        }
    }

    async fn serve_alone(&mut self, job: Job) {
        let jobs = [job];
        let mut last = String::new();
        for _ in 0..TRIES {
            match self.attempt(&jobs).await {
                Ok(outcomes) => return answer(jobs, outcomes),
                Err(Failed::Unknown) => return answer_all(jobs, &StoreError::OutcomeUnknown),
                Err(Failed::Away(error)) => return answer_all(jobs, &unavailable(error)),
                Err(Failed::Refused(error)) => {
                    last = error_chain(&error);
                    // Another node put in the same key, or locked in another order: look again.
                    let look_again = [SqlState::UNIQUE_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED];
                    let worth_it = error.code().is_none_or(|code| look_again.contains(code));
                    if !worth_it {
                        break;
                    }
                }
            }
        }
        tracing::warn!(error = last, "a change was refused by PostgreSQL");
        answer_all(jobs, &StoreError::unavailable("PostgreSQL refused the change"));
    }

    /// One transaction with all of `jobs`.
    async fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Result<Outcome, StoreError>>, Failed> {
        let session = match self.session.take() {
            Some(session) if !session.client.is_closed() => session,
            _ => Session::open(&self.connector).await.map_err(Failed::Away)?,
        };
        let places = plan::places(jobs);
        let ahead: Vec<PayloadId> = jobs.iter().flat_map(|job| job.ahead.iter().copied()).collect();
        let (rows, swept, now) =
            match write::begin(&session.client, &session.statements, &places, &ahead).await {
                Ok(begun) => begun,
                Err(error) => {
                    self.keep(session).await;
                    return Err(Failed::Refused(error));
                }
            };
        let plan = plan::plan(jobs, &rows, &swept, now);
        match write::write_and_commit(&session.client, &session.statements, &plan.writes, now).await {
            Written::Committed(_) if session.in_doubt.swap(false, Ordering::Relaxed) => Err(Failed::Unknown),
            Written::Committed(counters) => {
                self.session = Some(session);
                Ok(outcomes(plan, &counters, now))
            }
            Written::Refused(error) => {
                self.keep(session).await;
                Err(Failed::Refused(error))
            }
            Written::Unknown => Err(Failed::Unknown),
        }
    }

    /// Keeps a session for the next attempt if its transaction can be ended.
    async fn keep(&mut self, session: Session) {
        if session.client.batch_execute("ROLLBACK").await.is_ok() {
            self.session = Some(session);
        }
    }
}

impl Session {
    /// Whatever server it is by now, after a failover it may be another: one that loses commits is refused.
    async fn open(connector: &Connector) -> Result<Self, OpenError> {
        let (client, in_doubt) = connector.connect().await?;
        refuse_unsafe(&client).await?;
        let statements = Statements::prepare(&client).await?;
        Ok(Self { client, statements, in_doubt })
    }
}

fn outcomes(plan: Plan, counters: &Counters, now: Timestamp) -> Vec<Result<Outcome, StoreError>> {
    let Plan { answers, writes } = plan;
    let number = |index: usize| {
        let (tenant, delivery, ordinal) = &writes.deliveries[index];
        let mailbox = (tenant.clone(), delivery.mailbox.to_string());
        let newest = counters.get(&mailbox).copied().unwrap_or_default();
        let in_batch = writes.counters.get(&mailbox).copied().unwrap_or_default();
        newest + ordinal - in_batch
    };
    let outcome = |answer| match answer {
        Answer::Committed(deliveries) => {
            Ok(Outcome::Committed { now, numbers: deliveries.map(number).collect() })
        }
        Answer::Conflict(current) => Ok(Outcome::Conflict { current, now }),
        Answer::Failed(error) => Err(error),
    };
    answers.into_iter().map(outcome).collect()
}

/// A caller that has gone away does not want to know.
fn answer(jobs: impl IntoIterator<Item = Job>, outcomes: Vec<Result<Outcome, StoreError>>) {
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        drop(job.answer.send(outcome));
    }
}

fn answer_all(jobs: impl IntoIterator<Item = Job>, error: &StoreError) {
    for job in jobs {
        drop(job.answer.send(Err(error.clone())));
    }
}
