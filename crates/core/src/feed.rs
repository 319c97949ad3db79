//! What a reader is to be told, in order: the backlog of its mailboxes, then whatever comes.

use countersign_wire::id::{ApproverId, EnforcerId, TenantId};

use crate::{
    Error, Gateway,
    doorbell::{Listener, Ring},
    gateway::mailbox_ring,
    store::{Delivery, DeliveryQuery, Mailbox, MailboxKey, MarkKind},
};

/// Who reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reader {
    /// An enforcer reads its own mailbox.
    Enforcer(EnforcerId),
    /// An approver reads requests and news, their own and the shared ones.
    Approver(ApproverId),
    /// An approver who is told of requests only.
    Requests(ApproverId),
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
            Self::Requests(approver) => vec![Mailbox::Approver(approver.clone()), Mailbox::Shared],
        }
    }

    fn unless_marked(&self) -> Option<(ApproverId, MarkKind)> {
        match self {
            Self::Approver(approver) | Self::Requests(approver) => {
                Some((approver.clone(), MarkKind::Acknowledged))
            }
            Self::Enforcer(_) => None,
        }
    }
}

/// Read at once from one mailbox.
const CHUNK: u32 = 100;

/// A reader of mailboxes. It keeps its place, and nothing of what it has read.
#[derive(Debug)]
pub struct Feed {
    gateway: Gateway,
    tenant: TenantId,
    reader: Reader,
    lanes: Box<[Lane]>,
    listener: Listener,
}

#[derive(Debug)]
struct Lane {
    mailbox: Mailbox,
    after: u64,
    /// Whether there may be something to read.
    rung: bool,
}

/// A delivery and the lane of the feed that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The place of its mailbox in [`Feed::places`].
    pub lane: usize,
    /// What to tell.
    pub delivery: Delivery,
}

impl Gateway {
    /// Opens a feed of what is unacknowledged and still relevant, after these numbers of the reader's
    /// mailboxes (in the order of [`Feed::places`]; none means all).
    pub fn feed(&self, tenant: &TenantId, reader: &Reader, after: &[u64]) -> Feed {
        let places = after.iter().copied().chain(std::iter::repeat(0));
        let lanes: Box<[Lane]> = reader
            .mailboxes()
            .into_iter()
            .zip(places)
            .map(|(mailbox, after)| Lane { mailbox, after, rung: true })
            .collect();
        // Subscribe before reading: what comes between the two would be missed.
        let rings: Vec<Ring> = lanes.iter().map(|lane| mailbox_ring(tenant, &lane.mailbox)).collect();
        let listener = self.doorbell.listen(rings);
        Feed { gateway: self.clone(), tenant: tenant.clone(), reader: reader.clone(), lanes, listener }
    }
}

impl Feed {
    /// What comes next, oldest first within each mailbox; waits until there is something. Dropping the future
    /// loses nothing.
    pub async fn next(&mut self) -> Result<Vec<Told>, Error> {
        loop {
            let unread = self.unread().await?;
            if !unread.is_empty() {
                return Ok(unread);
            }
            self.rung().await;
        }
    }

    /// What there is to tell now. Dropping the future loses nothing.
    pub async fn unread(&mut self) -> Result<Vec<Told>, Error> {
        let mut news = Vec::new();
        let mut read = Vec::new();
        for (lane, from) in self.lanes.iter().enumerate().filter(|(_, from)| from.rung) {
            let unread = self.read(lane, from.after, CHUNK).await?;
            read.push((lane, unread.last().map(|last| last.number), unread.len() == CHUNK as usize));
            news.extend(unread.into_iter().map(|delivery| Told { lane, delivery }));
        }
        // Nothing is awaited from here on: either all of it is returned, or nothing has changed.
        for (lane, last, more) in read {
            let lane = &mut self.lanes[lane];
            lane.after = last.unwrap_or(lane.after);
            lane.rung = more;
        }
        Ok(news)
    }

    /// Returns when there may be something to read. Reads nothing.
    pub async fn rung(&mut self) {
        let rung = self.listener.rung().await;
        for (place, lane) in self.lanes.iter_mut().enumerate() {
            lane.rung |= rung.at(place);
        }
    }

    /// Whether more is known to be there than was returned.
    pub fn has_more(&self) -> bool {
        self.lanes.iter().any(|lane| lane.rung)
    }

    /// One delivery again, if it is still unacknowledged and relevant.
    pub async fn again(&self, lane: usize, number: u64) -> Result<Option<Told>, Error> {
        let found = self.read(lane, number - 1, 1).await?.into_iter().next();
        let found = found.filter(|delivery| delivery.number == number);
        Ok(found.map(|delivery| Told { lane, delivery }))
    }

    /// How far it has read, by mailbox.
    pub fn places(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.after).collect()
    }

    /// Whether it has read further than there is: then its place was another store's.
    pub async fn is_ahead(&self) -> Result<bool, Error> {
        let mailboxes: Vec<MailboxKey> = self
            .lanes
            .iter()
            .map(|lane| MailboxKey { tenant: self.tenant.clone(), mailbox: lane.mailbox.clone() })
            .collect();
        let heads = self.gateway.store.heads(&mailboxes).await?;
        Ok(self.lanes.iter().zip(heads).any(|(lane, head)| lane.after > head))
    }

    async fn read(&self, lane: usize, after: u64, limit: u32) -> Result<Vec<Delivery>, Error> {
        let query = DeliveryQuery {
            mailbox: self.lanes[lane].mailbox.clone(),
            after,
            limit,
            unless_marked: self.reader.unless_marked(),
            only_relevant: true,
        };
        Ok(self.gateway.store.deliveries(&self.tenant, query).await?.deliveries)
    }
}
