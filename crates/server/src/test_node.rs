//! For unit tests: a node on a SQLite file of its own.

use std::sync::Arc;

use countersign_core::{Gateway, notify::LocalDoorbell, retention::Retention};
use countersign_store_sqlite::{Options, SqliteStore};
use countersign_testkit::recording_store::RecordingStore;
use countersign_wire::id::TenantId;

use crate::{
    random::SystemRandom,
    secrets::Secrets,
    state::{AppState, Settings, SharedState},
};

/// A node without a listener and without background tasks.
pub(crate) struct TestNode {
    pub(crate) app: SharedState,
    /// What the node uses: it counts calls, and can be made to fail.
    pub(crate) store: Arc<RecordingStore>,
    /// What is below it, which never fails.
    pub(crate) inner: Arc<SqliteStore>,
    pub(crate) tenant: TenantId,
    _folder: tempfile::TempDir,
}

impl TestNode {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inner = Arc::new(SqliteStore::open(folder.path().join("db"), Options::default()).unwrap());
        let store = RecordingStore::new(inner.clone());
        let doorbell = LocalDoorbell::default();
        let gateway = Gateway::new(store.clone(), &doorbell, Arc::new(SystemRandom), Retention::default());
        let id = "gw".parse().unwrap();
        let app = AppState::new(gateway, id, Secrets::random(), Settings::default()).unwrap();
        Self { app, store, inner, tenant: "acme".parse().unwrap(), _folder: folder }
    }
}
