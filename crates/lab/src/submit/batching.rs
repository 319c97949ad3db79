//! What this engine and this driver can do at best: two writers, each of which takes what waits and writes it with one
//! statement. No HTTP, no JSON, no rules.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_postgres::Client;

use crate::{Failure, rounds::Completed, servers::bare::Bare, stopwatch::Stopwatch, workload::scattered};

const WRITERS: u64 = 2;

/// Rows of one statement at most, as the gateway's writers.
const MAX_ROWS: usize = 100;

const INSERT: &str = "INSERT INTO submission (request, approver, content) \
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::text[])";

struct Row {
    request: i64,
    approver: i32,
    committed: oneshot::Sender<()>,
}

/// Keeps the same number of rows in flight as over HTTP; each waits for its own commit.
pub(super) async fn run(
    bare: &Bare<'_>,
    content: &Arc<str>,
    next: &Arc<AtomicU64>,
    in_flight: u64,
    length: Duration,
) -> Result<Completed, Failure> {
    let (mut writers, mut queues) = (JoinSet::new(), Vec::new());
    for _ in 0..WRITERS {
        let (rows, queue) = mpsc::channel(1_024);
        queues.push(rows);
        writers.spawn(write(bare.connect().await?, queue, Arc::clone(content)));
    }
    let watch = Stopwatch::start();
    let mut callers = JoinSet::new();
    for caller in 0..in_flight {
        let (next, rows) = (Arc::clone(next), queues[usize::try_from(caller % WRITERS)?].clone());
        callers.spawn(async move {
            let mut latencies = Vec::new();
            loop {
                let started = watch.elapsed();
                if started >= length {
                    return Ok::<_, Failure>(latencies);
                }
                let number = next.fetch_add(1, Ordering::Relaxed);
                let (committed, answer) = oneshot::channel();
                let (request, approver) = (scattered(number).cast_signed(), i32::try_from(number % 50)?);
                rows.send(Row { request, approver, committed }).await?;
                answer.await?;
                let ended = watch.elapsed();
                if ended <= length {
                    latencies.push(ended.saturating_sub(started));
                }
            }
        });
    }
    drop(queues);
    let mut latencies = Vec::new();
    while let Some(caller) = callers.join_next().await {
        latencies.extend(caller??);
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(Completed::timed(latencies, length))
}

async fn write(
    client: Client,
    mut queue: mpsc::Receiver<Row>,
    content: Arc<str>,
) -> Result<(), tokio_postgres::Error> {
    let insert = client.prepare(INSERT).await?;
    let mut rows = Vec::new();
    while queue.recv_many(&mut rows, MAX_ROWS).await > 0 {
        let requests: Vec<i64> = rows.iter().map(|row| row.request).collect();
        let approvers: Vec<i32> = rows.iter().map(|row| row.approver).collect();
        let contents: Vec<&str> = rows.iter().map(|_| &*content).collect();
        client.execute(&insert, &[&requests, &approvers, &contents]).await?;
        for row in rows.drain(..) {
            // A caller whose time is up has gone.
            row.committed.send(()).ok();
        }
    }
    Ok(())
}
