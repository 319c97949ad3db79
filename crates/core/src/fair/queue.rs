//! A queue in which tenants take turns: however much a tenant has queued, others wait for one of its items at most.

use std::collections::{HashMap, VecDeque};

use countersign_wire::id::TenantId;

use super::bounds::Bounds;

/// Bounded in items.
#[derive(Debug)]
pub struct FairQueue<T> {
    bounds: Bounds,
    /// Every tenant with items; the next one to be served is in front.
    turns: VecDeque<TenantId>,
    items: HashMap<TenantId, VecDeque<T>>,
    length: usize,
}

impl<T> FairQueue<T> {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, turns: VecDeque::new(), items: HashMap::new(), length: 0 }
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// In no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.values().flatten()
    }

    /// Adds an item after those of its tenant. Gives it back if the queue, or the tenant's part of it, is full.
    pub fn push(&mut self, tenant: &TenantId, item: T) -> Result<(), T> {
        let own = self.items.get(tenant).map_or(0, VecDeque::len);
        if !self.bounds.admit(self.length, own, 1) {
            return Err(item);
        }
        if own == 0 {
            self.turns.push_back(tenant.clone());
        }
        self.items.entry(tenant.clone()).or_default().push_back(item);
        self.length += 1;
        Ok(())
    }

    /// The first item of the tenant whose turn it is.
    pub fn pop(&mut self) -> Option<T> {
        let tenant = self.turns.pop_front()?;
        let own = self.items.get_mut(&tenant)?;
        let item = own.pop_front()?;
        match own.is_empty() {
            true => drop(self.items.remove(&tenant)),
            false => self.turns.push_back(tenant),
        }
        self.length -= 1;
        Some(item)
    }

    /// Up to `max_items`, in turn; none is added once they weigh `max_weight`.
    pub fn pop_batch(
        &mut self,
        max_items: usize,
        max_weight: usize,
        weight_of: impl Fn(&T) -> usize,
    ) -> Vec<T> {
        let (mut batch, mut weight) = (Vec::new(), 0);
        while batch.len() < max_items && weight < max_weight {
            let Some(item) = self.pop() else { break };
            weight += weight_of(&item);
            batch.push(item);
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(queue: &mut FairQueue<&'static str>, tenant: &'static str) -> bool {
        queue.push(&tenant.parse().unwrap(), tenant).is_ok()
    }

    fn all(queue: &mut FairQueue<&'static str>) -> Vec<&'static str> {
        queue.pop_batch(usize::MAX, usize::MAX, |_| 0)
    }

    #[test]
    fn tenants_take_turns() {
        let mut queue = FairQueue::new(Bounds::NONE);
        for tenant in ["loud", "loud", "loud", "loud", "quiet", "other", "quiet"] {
            assert!(push(&mut queue, tenant));
        }
        assert_eq!((queue.len(), queue.iter().count()), (7, 7));
        assert_eq!(all(&mut queue), ["loud", "quiet", "other", "loud", "quiet", "loud", "loud"]);
        assert!(queue.is_empty() && queue.items.is_empty(), "nothing is kept of a tenant without items");
    }

    #[test]
    fn one_tenant_gets_its_part_of_the_queue_and_all_of_them_no_more_than_there_is() {
        let mut queue = FairQueue::new(Bounds::half_each(10));
        assert_eq!((0..10).filter(|_| push(&mut queue, "loud")).count(), 5);
        assert_eq!((0..10).filter(|_| push(&mut queue, "quiet")).count(), 5);
        assert!(!push(&mut queue, "late"));
        assert_eq!(all(&mut queue).len(), 10);
        assert!(push(&mut queue, "late"));
    }

    #[test]
    fn a_batch_ends_with_the_item_that_makes_it_heavy_enough() {
        let mut queue = FairQueue::new(Bounds::NONE);
        for tenant in ["a", "bb", "ccc", "dddd"] {
            push(&mut queue, tenant);
        }
        assert_eq!(queue.pop_batch(9, 3, |item| item.len()), ["a", "bb"]);
        assert_eq!(queue.pop_batch(1, 9, |item| item.len()), ["ccc"]);
        assert_eq!(all(&mut queue), ["dddd"]);
    }
}
