//! What a gateway does on every store: the use cases as cases of the suite, the model, the races.

mod exchanges;
mod inboxes;
pub mod model;
mod pairs;
pub mod races;
mod retention;
pub mod world;

use crate::store_suite::Case;

macro_rules! cases {
    ($($name:ident,)+) => {
        pub(super) const CASES: &[crate::store_suite::Case] = &[
            $(crate::store_suite::Case { name: stringify!($name), run: |harness| Box::pin($name(harness)) },)+
        ];
    };
}
use cases;

/// Every case, by subject.
pub const SUBJECTS: &[(&str, &[Case])] = &[
    ("exchanges", exchanges::CASES),
    ("inboxes", inboxes::CASES),
    ("pairs", pairs::CASES),
    ("retention", retention::CASES),
    ("races", races::CASES),
    ("model", model::CASES),
];
