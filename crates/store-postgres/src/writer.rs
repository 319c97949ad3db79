//! A writer: commits queued changes as one transaction and replies to each caller.

use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use countersign_core::store::{Outcome, PayloadId, StoreError, error_chain};
use countersign_wire::timestamp::Timestamp;
use tokio::time::Instant;
use tokio_postgres::{Client, error::SqlState};

use crate::{
    commit::{self, BeginError, Beginning, CommitResult, Counters},
    connect::{Connector, InDoubt, check_durability},
    error::OpenError,
    plan::{self, Plan, PlannedOutcome},
    queue::{Job, Queue},
    statements::Statements,
};

/// How often a change that conflicts with another node's transaction is tried on its own.
const MAX_ATTEMPTS: usize = 5;

/// Commits the jobs of `queue` until it is closed and drained.
pub(crate) async fn run(connector: Connector, queue: Arc<Queue>) {
    let mut writer = Writer { connector, session: None };
    loop {
        let mut jobs = queue.next_batch().await;
        if jobs.is_empty() {
            return;
        }
        while !jobs.is_empty() {
            let dependent = plan::split_off_dependent(&mut jobs);
            queue.metrics.batch_changes.observe_size(jobs.len());
            let started = Instant::now();
            writer.commit_batch(jobs).await;
            queue.metrics.write_seconds.observe(started.elapsed());
            jobs = dependent;
        }
    }
}

struct Writer {
    connector: Connector,
    /// `None` until the first commit, and after a connection failed.
    session: Option<Session>,
}

/// A connection with its prepared statements.
struct Session {
    client: Client,
    statements: Statements,
    in_doubt: InDoubt,
}

/// Why an attempt at a transaction failed.
enum AttemptError {
    /// No server is available that is safe to write to.
    Unavailable(OpenError),
    /// Nothing was written, so a retry is safe.
    Rejected(tokio_postgres::Error),
    /// The server's answer can't be decoded. Nothing was written.
    Answer(StoreError),
    /// Something may have been written.
    OutcomeUnknown,
}

impl Writer {
    async fn commit_batch(&mut self, jobs: Vec<Job>) {
        match self.attempt(&jobs).await {
            Ok(outcomes) => reply(jobs, outcomes),
            Err(AttemptError::OutcomeUnknown) => reply_all(jobs, &StoreError::OutcomeUnknown),
            Err(AttemptError::Unavailable(error)) => reply_all(jobs, &StoreError::unavailable(error)),
            Err(AttemptError::Answer(error)) => reply_all(jobs, &error),
            // One bad change must not fail the rest of its batch.
            Err(AttemptError::Rejected(_)) => {
                for job in jobs {
                    self.commit_alone(job).await;
                }
            }
        }
    }

    async fn commit_alone(&mut self, job: Job) {
        let jobs = [job];
        let mut attempts = 0;
        let error = loop {
            attempts += 1;
            match self.attempt(&jobs).await {
                Ok(outcomes) => return reply(jobs, outcomes),
                Err(AttemptError::OutcomeUnknown) => return reply_all(jobs, &StoreError::OutcomeUnknown),
                Err(AttemptError::Unavailable(error)) => {
                    return reply_all(jobs, &StoreError::unavailable(error));
                }
                Err(AttemptError::Answer(error)) => return reply_all(jobs, &error),
                Err(AttemptError::Rejected(error)) if attempts == MAX_ATTEMPTS || !is_retryable(&error) => {
                    break error;
                }
                Err(AttemptError::Rejected(_)) => {}
            }
        };
        tracing::warn!(
            error = error_chain(&error),
            attempts,
            "PostgreSQL rejected a change; nothing was written"
        );
        reply_all(jobs, &rejection(error));
    }

    /// Runs one transaction with all of `jobs`.
    async fn attempt(&mut self, jobs: &[Job]) -> Result<Vec<Result<Outcome, StoreError>>, AttemptError> {
        let session = match self.session.take() {
            Some(session) if !session.client.is_closed() => session,
            _ => Session::open(&self.connector).await.map_err(AttemptError::Unavailable)?,
        };
        // A warning of an earlier attempt says nothing of this one.
        session.in_doubt.store(false, Ordering::Relaxed);
        let (client, statements) = (&session.client, &session.statements);
        let named = plan::named_records(jobs);
        let seen = plan::seen_records(jobs, &named);
        let tenants = plan::tenants(jobs);
        let pending_payloads: Vec<PayloadId> =
            jobs.iter().flat_map(|job| job.pending_payloads.iter().copied()).collect();
        let beginning = match jobs.iter().all(|job| job.change.is_carried_by_a_lease()) {
            true => Beginning::CarriedByALease,
            false => Beginning::Durable,
        };
        let begun =
            match commit::begin(client, statements, beginning, &tenants, &named, &seen, &pending_payloads)
                .await
            {
                Ok(begun) => begun,
                Err(error) => {
                    self.roll_back(session).await;
                    return Err(match error {
                        BeginError::Engine(error) => AttemptError::Rejected(error),
                        BeginError::Answer(error) => AttemptError::Answer(error),
                    });
                }
            };
        let now = begun.now;
        let plan = plan::plan(jobs, begun);
        match commit::write_and_commit(client, statements, &plan.writes, now).await {
            CommitResult::Committed(_) if session.in_doubt.load(Ordering::Relaxed) => {
                Err(AttemptError::OutcomeUnknown)
            }
            CommitResult::Committed(counters) => {
                self.session = Some(session);
                Ok(outcomes(plan, &counters, now))
            }
            CommitResult::Rejected(error) => {
                self.roll_back(session).await;
                Err(AttemptError::Rejected(error))
            }
            CommitResult::Unknown => Err(AttemptError::OutcomeUnknown),
        }
    }

    /// Keeps the session for the next attempt if its transaction can be rolled back.
    async fn roll_back(&mut self, session: Session) {
        if session.client.batch_execute("ROLLBACK").await.is_ok() {
            self.session = Some(session);
        }
    }
}

impl Session {
    /// Checks the server every time: after a failover it may be another one.
    async fn open(connector: &Connector) -> Result<Self, OpenError> {
        let (client, in_doubt) = connector.connect().await?;
        check_durability(&client).await?;
        let statements = Statements::prepare(&client).await?;
        Ok(Self { client, statements, in_doubt })
    }
}

/// The connection failed, or another node locked in another order.
fn is_retryable(error: &tokio_postgres::Error) -> bool {
    error.code().is_none_or(|code| *code == SqlState::T_R_DEADLOCK_DETECTED)
}

/// The columns are never NULL unless [`crate::statements`] refuses a damaged counter that way.
fn rejection(error: tokio_postgres::Error) -> StoreError {
    match error.code() {
        Some(code) if *code == SqlState::NOT_NULL_VIOLATION => StoreError::corrupt(error),
        _ => StoreError::unavailable(error),
    }
}

fn outcomes(plan: Plan, counters: &Counters, now: Timestamp) -> Vec<Result<Outcome, StoreError>> {
    let Plan { outcomes, writes } = plan;
    let number = |index: usize| {
        let (tenant, delivery, position) = &writes.deliveries[index];
        let mailbox = (tenant.clone(), delivery.mailbox.to_string());
        let (newest, in_batch) = (counters.get(&mailbox)?, writes.counters.get(&mailbox)?);
        (newest + position).checked_sub(*in_batch)
    };
    // It is committed, but a caller that can't be told its numbers must not take it for success.
    let committed = |deliveries: Range<usize>, versions| match deliveries.map(number).collect() {
        Some(numbers) => Ok(Outcome::Committed { now, numbers, versions }),
        None => Err(StoreError::OutcomeUnknown),
    };
    let outcome = |planned| match planned {
        PlannedOutcome::Committed { deliveries, versions } => committed(deliveries, versions),
        PlannedOutcome::Conflict(current) => Ok(Outcome::Conflict { current, now }),
        PlannedOutcome::Failed(error) => Err(error),
    };
    outcomes.into_iter().map(outcome).collect()
}

/// Ignores callers that no longer wait.
fn reply(jobs: impl IntoIterator<Item = Job>, outcomes: Vec<Result<Outcome, StoreError>>) {
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        drop(job.reply.send(outcome));
    }
}

fn reply_all(jobs: impl IntoIterator<Item = Job>, error: &StoreError) {
    for job in jobs {
        drop(job.reply.send(Err(error.clone())));
    }
}
