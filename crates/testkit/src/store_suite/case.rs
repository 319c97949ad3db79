//! A case, and the tables of them.

use std::{future::Future, pin::Pin};

use super::harness::StoreHarness;

/// The future of a running case.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One claim about stores, with the code that checks it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The claim, as a function name; the test's name is `<subject>::<name>`.
    pub name: &'static str,
    /// Panics if the store violates the claim.
    pub run: fn(Box<dyn StoreHarness>) -> Run,
}

/// Builds the table of a file's cases. The compiler reports a case that is not listed as dead code.
macro_rules! cases {
    ($($name:ident,)+) => {
        pub(super) const CASES: &[crate::store_suite::Case] = &[
            $(crate::store_suite::Case { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)+
        ];
    };
}
pub(crate) use cases;
