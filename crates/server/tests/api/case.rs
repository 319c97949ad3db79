//! A case, and how a file lists its own.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::world::World;

/// A case: its name is a claim.
pub struct Case {
    /// What it claims.
    pub name: &'static str,
    /// What shows it.
    pub run: fn(Arc<World>) -> BoxFuture<'static, ()>,
}

/// Lists the cases of a file.
macro_rules! cases {
    ($($name:ident,)+) => {
        pub const CASES: &[$crate::case::Case] = &[$($crate::case::Case {
            name: stringify!($name),
            run: |world| Box::pin($name(world)),
        },)+];
    };
}

pub(crate) use cases;
