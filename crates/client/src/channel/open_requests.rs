//! Which requests were handed out to an approver and have not ended, as far as is known.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use countersign_wire::id::RequestId;

/// Requests that are remembered. Of more it is not said when they have ended.
const MAX_REQUESTS: usize = 10_000;

/// Requests that were handed out. A listing shows which of them have ended.
///
/// A listing is read some time after it was made, and a request that came in between is not in it. So the lister counts
/// listings when it begins them, and each request remembers the last one that had begun when it was handed out.
#[derive(Debug)]
pub(super) struct OpenRequests {
    begun: Arc<AtomicU64>,
    requests: BTreeMap<RequestId, u64>,
    /// The number of the listing that is read, and what it has found.
    listing: u64,
    found: BTreeSet<RequestId>,
}

impl OpenRequests {
    /// `begun` counts the listings that have begun.
    pub(super) fn new(begun: Arc<AtomicU64>) -> Self {
        Self { begun, requests: BTreeMap::new(), listing: 0, found: BTreeSet::new() }
    }

    /// A request is handed out.
    pub(super) fn insert(&mut self, request_id: RequestId) {
        if self.requests.len() < MAX_REQUESTS {
            self.requests.insert(request_id, self.begun.load(Ordering::SeqCst));
        }
    }

    /// It is said that a request has ended.
    pub(super) fn remove(&mut self, request_id: &RequestId) {
        self.requests.remove(request_id);
    }

    /// A listing is read from here on.
    pub(super) fn listing_begun(&mut self, number: u64) {
        self.listing = number;
        self.found.clear();
    }

    /// The listing has this request.
    pub(super) fn found(&mut self, request_id: RequestId) {
        self.found.insert(request_id);
    }

    /// The listing was read to its end. Returns what was handed out before it began and is not in it, once.
    pub(super) fn listing_done(&mut self, is_complete: bool) -> Vec<RequestId> {
        let found = std::mem::take(&mut self.found);
        if !is_complete {
            return Vec::new();
        }
        let is_gone = |id: &RequestId, since: &mut u64| *since < self.listing && !found.contains(id);
        self.requests.extract_if(.., is_gone).map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RequestId {
        text.parse().unwrap()
    }

    #[test]
    fn what_was_handed_out_before_a_listing_and_is_not_in_it_is_gone() {
        let begun = Arc::new(AtomicU64::new(0));
        let mut open = OpenRequests::new(begun.clone());
        for name in ["stays", "ends", "withdrawn"] {
            open.insert(id(name));
        }
        open.remove(&id("withdrawn"));
        begun.store(1, Ordering::SeqCst);
        // It is made, then a request comes, and only then it is read.
        open.insert(id("came later"));
        open.listing_begun(1);
        open.found(id("stays"));
        assert_eq!(open.listing_done(true), [id("ends")]);
        begun.store(2, Ordering::SeqCst);
        open.listing_begun(2);
        assert_eq!(open.listing_done(false), [], "a listing that was cut off shows nothing");
        begun.store(3, Ordering::SeqCst);
        open.listing_begun(3);
        open.found(id("stays"));
        assert_eq!(open.listing_done(true), [id("came later")]);
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut open = OpenRequests::new(Arc::default());
        for number in 0..2 * MAX_REQUESTS {
            open.insert(id(&format!("r-{number}")));
        }
        assert_eq!(open.requests.len(), MAX_REQUESTS);
    }
}
