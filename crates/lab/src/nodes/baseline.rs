//! The minimum possible: one durable commit like that of a decision, and one request with its reply over NATS.

use std::sync::Arc;

use countersign_core::store::Store;
use countersign_store_postgres::{Options, PostgresStore};
use countersign_testkit::{nats::Nats, postgres::Postgres};
use futures_util::StreamExt as _;
use tokio::runtime::Runtime;

use crate::{
    Failure,
    latency::{
        baseline::{DELIVERED_BYTES, commits_and_round_trips},
        pacing::Pacing,
    },
    rounds::Sample,
};

const SUBJECT: &str = "lab.round-trip";

pub(super) fn measure(
    runtime: &Runtime,
    postgres: &Postgres,
    nats: &Nats,
    pacing: Pacing,
) -> Result<Sample, Failure> {
    let url = nats.url();
    let (store, client) = runtime.block_on(async {
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(Options::new(postgres.url())).await?);
        let (server, client) = (async_nats::connect(&url).await?, async_nats::connect(&url).await?);
        let mut requests = server.subscribe(SUBJECT).await?;
        server.flush().await?;
        tokio::spawn(async move {
            while let Some(request) = requests.next().await {
                let Some(reply) = request.reply else { continue };
                // The client is gone when the stretch is over.
                server.publish(reply, vec![b'x'; DELIVERED_BYTES].into()).await.ok();
            }
        });
        Ok::<_, Failure>((store, client))
    })?;
    let mut servers = vec![("postgres", postgres.pid())];
    servers.extend(nats.pid().map(|server| ("nats", server)));
    commits_and_round_trips(runtime, &store, &servers, pacing, || {
        let client = client.clone();
        Ok(move |posted: &[u8]| {
            runtime.block_on(client.request(SUBJECT, posted.to_vec().into()))?;
            Ok(())
        })
    })
}
