//! What tenants share without one of them keeping it from the others. Data structures only: their owners lock and wake.

mod bounds;

mod queue;
mod quota;

pub use bounds::Bounds;
pub use queue::FairQueue;
pub use quota::FairQuota;
