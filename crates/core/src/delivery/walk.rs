//! Reads a mailbox for somebody who does not see all of it: skips what is known to be hidden, and never looks at more rows
//! than a request may cost.

use countersign_wire::id::TenantId;

use crate::{
    error::Error,
    gateway::Gateway,
    store::{DeliveryPage, DeliveryQuery},
};

/// Reads of one walk, each of at most [`crate::store::MAX_SCANNED`] rows.
const MAX_READS: usize = 8;

impl Gateway {
    /// One page. It ends at the limit, at the end of the mailbox, or where so many rows were looked at;
    /// [`DeliveryPage::read_to`] is where the next one begins.
    pub(crate) async fn walk(
        &self,
        tenant: &TenantId,
        mut query: DeliveryQuery,
    ) -> Result<DeliveryPage, Error> {
        let (limit, up_to) = (query.limit as usize, query.up_to);
        let mut deliveries = Vec::new();
        for read in 1.. {
            let timeline = self.cache.timeline();
            self.cache.skips.shorten(tenant, &mut query);
            let page = self.store.deliveries(tenant, query.clone()).await?;
            // What another history has hidden is not hidden in this one.
            if self.cache.timeline() == timeline {
                self.cache.skips.learn(tenant, &query, &page);
            }
            let has_more = page.has_more() && up_to.is_none_or(|up_to| page.read_to < up_to);
            deliveries.extend(page.deliveries);
            if deliveries.len() >= limit || !has_more || read == MAX_READS {
                return Ok(DeliveryPage { deliveries, ..page });
            }
            let missing = limit - deliveries.len();
            query = DeliveryQuery {
                after: page.read_to,
                up_to,
                limit: u32::try_from(missing).unwrap_or(u32::MAX),
                ..query
            };
        }
        unreachable!("the loop ends with its last read")
    }
}
