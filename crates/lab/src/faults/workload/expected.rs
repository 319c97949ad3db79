//! Which requests somebody was notified of, and which they have to be.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// The first notification of each tenth request is refused.
const REFUSED: usize = 10;

/// A request by its tenant and number.
type Numbered = (usize, usize);

/// What has come and what has to come.
#[derive(Default)]
pub(super) struct Notified(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Requests that nobody ends.
    expected: BTreeSet<Numbered>,
    got: BTreeSet<Numbered>,
    refused: BTreeSet<Numbered>,
}

impl Notified {
    /// Somebody is notified. Returns whether it is taken.
    pub(super) fn take(&self, request: Numbered) -> bool {
        let mut known = self.0.lock();
        let is_refused = request.1.is_multiple_of(REFUSED) && known.refused.insert(request);
        if !is_refused {
            known.got.insert(request);
        }
        !is_refused
    }

    /// Somebody has to be notified of this request.
    pub(super) fn expect(&self, request: Numbered) {
        self.0.lock().expected.insert(request);
    }

    /// Whether somebody was not notified yet who has to be.
    pub(super) fn is_missing(&self) -> bool {
        let known = self.0.lock();
        !known.expected.is_subset(&known.got)
    }
}
