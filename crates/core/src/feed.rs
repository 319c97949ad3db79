//! What a reader is to be told, in order: the backlog of its mailboxes, then whatever comes.

use std::time::Duration;

use countersign_wire::id::{ApproverId, EnforcerId, TenantId};
use tokio::time::timeout;

use crate::{
    Error, Gateway,
    doorbell::Listener,
    gateway::mailbox_ring,
    store::{Delivery, DeliveryQuery, Mailbox, MarkKind},
};

/// Who reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reader {
    /// An enforcer reads its own mailbox.
    Enforcer(EnforcerId),
    /// An approver reads requests and news, their own and the shared ones.
    Approver(ApproverId),
}

impl Reader {
    fn mailboxes(&self) -> Vec<Mailbox> {
        match self {
            Self::Enforcer(enforcer) => vec![Mailbox::Enforcer(enforcer.clone())],
            Self::Approver(approver) => vec![
                Mailbox::Approver(approver.clone()),
                Mailbox::Shared,
                Mailbox::News(approver.clone()),
                Mailbox::SharedNews,
            ],
        }
    }
}

/// Read at once from one mailbox.
const CHUNK: u32 = 100;

/// A ring can be lost, so a feed also looks by itself from time to time.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// A reader of mailboxes. It keeps its place, and nothing of what it has read.
#[derive(Debug)]
pub struct Feed {
    gateway: Gateway,
    tenant: TenantId,
    unless_marked: Option<(ApproverId, MarkKind)>,
    lanes: Vec<Lane>,
}

#[derive(Debug)]
struct Lane {
    mailbox: Mailbox,
    after: u64,
    listener: Listener,
}

impl Gateway {
    /// Opens a feed of what is unacknowledged and still relevant, after these numbers of the reader's
    /// mailboxes (in the order of [`Feed::places`]; none means all).
    pub fn feed(&self, tenant: &TenantId, reader: &Reader, after: &[u64]) -> Feed {
        let places = after.iter().copied().chain(std::iter::repeat(0));
        let lanes = reader.mailboxes().into_iter().zip(places).map(|(mailbox, after)| Lane {
            // Subscribe before reading: what comes between the two would be missed.
            listener: self.doorbell.listen(mailbox_ring(tenant, &mailbox)),
            mailbox,
            after,
        });
        let unless_marked = match reader {
            Reader::Approver(approver) => Some((approver.clone(), MarkKind::Acknowledged)),
            Reader::Enforcer(_) => None,
        };
        Feed { gateway: self.clone(), tenant: tenant.clone(), unless_marked, lanes: lanes.collect() }
    }
}

impl Feed {
    /// What comes next, oldest first within each mailbox; waits until there is something.
    pub async fn next(&mut self) -> Result<Vec<(Mailbox, Delivery)>, Error> {
        loop {
            let mut news = Vec::new();
            for lane in &mut self.lanes {
                let query = DeliveryQuery {
                    mailbox: lane.mailbox.clone(),
                    after: lane.after,
                    limit: CHUNK,
                    unless_marked: self.unless_marked.clone(),
                    only_relevant: true,
                };
                let unread = self.gateway.store.deliveries(&self.tenant, query).await?;
                lane.after = unread.deliveries.last().map_or(lane.after, |last| last.number);
                news.extend(unread.deliveries.into_iter().map(|delivery| (lane.mailbox.clone(), delivery)));
            }
            if !news.is_empty() {
                return Ok(news);
            }
            // Whether it rang or not, the next thing to do is to look.
            drop(timeout(LOOK_AGAIN, self.rung()).await);
        }
    }

    /// How far it has read, by mailbox.
    pub fn places(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.after).collect()
    }

    async fn rung(&mut self) {
        match self.lanes.as_mut_slice() {
            [one] => one.listener.rung().await,
            [one, two, three, four] => tokio::select! {
                () = one.listener.rung() => {}
                () = two.listener.rung() => {}
                () = three.listener.rung() => {}
                () = four.listener.rung() => {}
            },
            _ => std::future::pending().await,
        }
    }
}
