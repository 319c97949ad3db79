//! What tenants share without one of them keeping it from the others.

mod bounds;
mod queue;
mod quota;
mod semaphore;

pub use bounds::Bounds;
pub use queue::FairQueue;
pub use quota::FairQuota;
pub use semaphore::{FairPermit, FairSemaphore};
