//! What a doorbell's test provides.

use std::sync::Arc;

use countersign_core::notify::Doorbell;

/// A doorbell under test, and what it needs to live.
pub trait DoorbellHarness: Send + Sync + 'static {
    /// The doorbell of one node. Doorbells of the same harness connect their nodes.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// Whether a receiver runs apart from the announcer; if not, it must not block, and has no case here.
    fn is_between_processes(&self) -> bool;
}

/// Makes a harness. It is called within a runtime.
pub type MakeDoorbell = fn() -> Box<dyn DoorbellHarness>;
