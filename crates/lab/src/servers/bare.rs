//! The bare engine: a second database on the same PostgreSQL, and pgbench with the scripts in `baselines/`.

use std::{
    fs,
    process::{Command, Stdio},
    str::FromStr,
    time::Duration,
};

use countersign_testkit::postgres::Postgres;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use crate::{Failure, rounds::Completed};

/// Threads that the clients of pgbench share.
const THREADS: &str = "2";

/// A stretch is not made longer than this.
const MAX_LENGTH: Duration = Duration::from_secs(30);

const DATABASE: &str = "bare";

/// A database beside the gateway's, on the same server.
pub(crate) struct Bare<'a> {
    postgres: &'a Postgres,
    client: Client,
    folder: TempDir,
}

impl<'a> Bare<'a> {
    /// Makes the database with these tables.
    pub(crate) fn new(runtime: &Runtime, postgres: &'a Postgres, tables: &str) -> Result<Self, Failure> {
        let client = runtime.block_on(async {
            connect(&postgres.url()).await?.batch_execute(&format!("CREATE DATABASE {DATABASE}")).await?;
            let client = connect(&url(postgres)).await?;
            client.batch_execute(tables).await?;
            Ok::<_, Failure>(client)
        })?;
        Ok(Self { postgres, client, folder: TempDir::new()? })
    }

    /// Connects on the runtime that runs the future.
    pub(crate) fn connect(&self) -> impl Future<Output = Result<Client, Failure>> + Send + use<> {
        let url = url(self.postgres);
        async move { connect(&url).await }
    }

    /// Writes what earlier stretches left to write, so that no stretch pays for another.
    pub(crate) async fn checkpoint(&self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("CHECKPOINT").await?)
    }

    /// Runs a script with prepared statements for `length`; every transaction must succeed. Where the disk is so slow that
    /// not one is done in that time, it runs longer.
    pub(crate) fn pgbench(
        &self,
        script: &str,
        clients: u64,
        length: Duration,
        variables: &[(&str, &str)],
    ) -> Result<Completed, Failure> {
        let mut length = length;
        loop {
            match self.pgbench_once(script, clients, length, variables)? {
                Some(completed) => return Ok(completed),
                None if length < MAX_LENGTH => length *= 2,
                None => return Err(format!("pgbench: no transaction in {} s", length.as_secs()).into()),
            }
        }
    }

    /// `None` if no transaction was done.
    fn pgbench_once(
        &self,
        script: &str,
        clients: u64,
        length: Duration,
        variables: &[(&str, &str)],
    ) -> Result<Option<Completed>, Failure> {
        let file = self.folder.path().join("script.sql");
        fs::write(&file, script)?;
        let mut command = Command::new(self.postgres.program("pgbench"));
        command.args(["--no-vacuum", "--protocol=prepared", "--host=127.0.0.1", "--username=postgres"]);
        command.args(["--jobs", THREADS, "--client", &clients.to_string()]);
        command.args(["--time", &length.as_secs().max(1).to_string()]);
        command.args(["--port", &self.postgres.port().to_string()]).arg("--file").arg(&file);
        for (name, value) in variables {
            command.arg("--define").arg(format!("{name}={value}"));
        }
        let done = command.arg(DATABASE).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&done.stdout);
        let failed: Option<u64> = number_after(&text, "number of failed transactions: ");
        let count: Option<u32> = number_after(&text, "number of transactions actually processed: ");
        let rate: Option<f64> = number_after(&text, "tps = ");
        match (done.status.success(), failed, count, rate) {
            (true, Some(0) | None, Some(count), Some(rate)) if rate > 0.0 => {
                // Without the time of connecting.
                let elapsed = Duration::from_secs_f64(f64::from(count) / rate);
                Ok(Some(Completed { count: count.into(), elapsed, latencies: Vec::new() }))
            }
            (true, Some(0), Some(0), _) => Ok(None),
            _ => Err(format!("pgbench: {text}{}", String::from_utf8_lossy(&done.stderr)).into()),
        }
    }
}

fn url(postgres: &Postgres) -> String {
    postgres.url().replace("dbname=postgres", &format!("dbname={DATABASE}"))
}

async fn connect(url: &str) -> Result<Client, Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The number that follows this text.
fn number_after<N: FromStr>(text: &str, before: &str) -> Option<N> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}
