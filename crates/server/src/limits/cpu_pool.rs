//! Threads for what keeps a processor busy: parsing, hashing and rendering large bodies, and handshakes. They are apart from
//! the threads that serve connections, so that nobody's small request waits for somebody's large one.

use std::{future::Future, io, thread};

use countersign_core::fair::{FairPermit, FairSemaphore};
use countersign_wire::id::TenantId;
use tokio::{runtime, sync::oneshot};
use tracing::Instrument as _;

use crate::error::ApiError;

/// Above this size, in bytes, a body is parsed, hashed or rendered in the pool.
pub(crate) const LARGE_BODY: usize = 64 << 10;

/// Large bodies in work for each thread. One is parsed while another waits for its commit.
const TURNS_PER_THREAD: usize = 2;

/// A bounded pool of threads in which tenants take turns.
#[derive(Debug)]
pub(crate) struct CpuPool {
    threads: runtime::Handle,
    turns: FairSemaphore,
    /// The threads end when it is dropped.
    _running: oneshot::Sender<()>,
}

impl CpuPool {
    /// Starts the threads: half as many as there are processors, so that the other half stays free.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1));
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name(name)
            .enable_all()
            .build()?;
        let handle = runtime.handle().clone();
        let (running, ended) = oneshot::channel::<()>();
        // A runtime must not be dropped by a task, so a thread of its own keeps it.
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _ended = ended.blocking_recv();
            runtime.shutdown_background();
        })?;
        let turns = FairSemaphore::new(threads * TURNS_PER_THREAD);
        Ok(Self { threads: handle, turns, _running: running })
    }

    /// Runs a future on the threads of the pool. It goes on if the caller does not wait for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ApiError> {
        self.threads.spawn(work.in_current_span()).await.map_err(|ended| ApiError::internal(&ended))
    }

    /// Waits until it is the tenant's turn to work on a large body. The turn ends when the permit is dropped.
    pub(crate) async fn turn(&self, tenant: &TenantId) -> FairPermit {
        self.turns.acquire(tenant).await
    }
}
