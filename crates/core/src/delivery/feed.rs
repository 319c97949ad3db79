//! What a reader has to be sent, in order: the backlog of its mailboxes, then new deliveries.

use countersign_wire::id::{ApproverId, EnforcerId, TenantId};

use crate::{
    error::Error,
    gateway::{Gateway, mailbox_ring},
    notify::{Listener, Ring},
    store::{Delivery, DeliveryQuery, Mailbox, MailboxKey, MarkKind, StoreError},
};

/// Who reads, and which mailboxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reader {
    /// An enforcer reads its own mailbox.
    Enforcer(EnforcerId),
    /// An approver reads requests and other messages, their own and the shared ones.
    Approver(ApproverId),
    /// An approver that reads requests only.
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

/// Deliveries that one read of one mailbox brings.
const CHUNK: u32 = 100;

/// A reader of mailboxes. It keeps its position, and nothing of what it has read.
#[derive(Debug)]
pub struct Feed {
    gateway: Gateway,
    tenant: TenantId,
    reader: Reader,
    sources: Box<[Source]>,
    listener: Listener,
}

/// One of the mailboxes that a feed merges.
#[derive(Debug)]
struct Source {
    mailbox: Mailbox,
    /// The last number that was read.
    after: u64,
    /// Whether there may be something to read.
    rung: bool,
}

/// A delivery and the mailbox that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedItem {
    /// The index of its mailbox in [`Feed::positions`].
    pub source: usize,
    pub delivery: Delivery,
}

impl Gateway {
    /// Opens a feed of what is unacknowledged and still relevant, after these numbers of the reader's
    /// mailboxes (in the order of [`Feed::positions`]; none means from the start).
    pub fn feed(&self, tenant: &TenantId, reader: &Reader, after: &[u64]) -> Feed {
        let positions = after.iter().copied().chain(std::iter::repeat(0));
        let sources: Box<[Source]> = reader
            .mailboxes()
            .into_iter()
            .zip(positions)
            .map(|(mailbox, after)| Source { mailbox, after, rung: true })
            .collect();
        // Listen before reading: a commit between the two would be missed.
        let rings: Vec<Ring> = sources.iter().map(|source| mailbox_ring(tenant, &source.mailbox)).collect();
        let listener = self.doorbell.listen(rings);
        Feed { gateway: self.clone(), tenant: tenant.clone(), reader: reader.clone(), sources, listener }
    }
}

impl Feed {
    /// The next items, oldest first within each mailbox; waits until there are some. Cancel-safe.
    pub async fn next(&mut self) -> Result<Vec<FeedItem>, Error> {
        loop {
            let unread = self.unread().await?;
            if !unread.is_empty() {
                return Ok(unread);
            }
            self.rung().await;
        }
    }

    /// The items that can be read now. Cancel-safe.
    pub async fn unread(&mut self) -> Result<Vec<FeedItem>, Error> {
        let mut items = Vec::new();
        let mut read = Vec::new();
        for (index, from) in self.sources.iter().enumerate().filter(|(_, from)| from.rung) {
            let unread = self.read(index, from.after, CHUNK).await?;
            read.push((index, unread.last().map(|last| last.number), unread.len() == CHUNK as usize));
            items.extend(unread.into_iter().map(|delivery| FeedItem { source: index, delivery }));
        }
        // No await from here on: either all of it is returned, or nothing has changed.
        for (index, last, more) in read {
            let source = &mut self.sources[index];
            source.after = last.unwrap_or(source.after);
            source.rung = more;
        }
        Ok(items)
    }

    /// Returns when there may be something to read. Reads nothing.
    pub async fn rung(&mut self) {
        let rung = self.listener.rung().await;
        for (index, source) in self.sources.iter_mut().enumerate() {
            source.rung |= rung.at(index);
        }
    }

    /// Whether there are more items than were returned.
    pub fn has_more(&self) -> bool {
        self.sources.iter().any(|source| source.rung)
    }

    /// Reads one delivery again. `None` if it was acknowledged or is no longer relevant.
    pub async fn reload(&self, source: usize, number: u64) -> Result<Option<FeedItem>, Error> {
        let found = self.read(source, number - 1, 1).await?.into_iter().next();
        let found = found.filter(|delivery| delivery.number == number);
        Ok(found.map(|delivery| FeedItem { source, delivery }))
    }

    /// Reads the deliveries after this number again, one chunk of those that are unacknowledged and still relevant. The
    /// position of the feed does not change.
    pub async fn read_again(&self, source: usize, after: u64) -> Result<Vec<FeedItem>, Error> {
        let found = self.read(source, after, CHUNK).await?;
        Ok(found.into_iter().map(|delivery| FeedItem { source, delivery }).collect())
    }

    /// The last number that was read, by mailbox.
    pub fn positions(&self) -> Vec<u64> {
        self.sources.iter().map(|source| source.after).collect()
    }

    /// Whether a position is beyond the end of its mailbox: then it was another store's. An error where an end is not
    /// known: a position that is believed wrongly would skip what is read later.
    pub async fn is_ahead(&self) -> Result<bool, Error> {
        let mailboxes: Vec<MailboxKey> = self
            .sources
            .iter()
            .map(|source| MailboxKey { tenant: self.tenant.clone(), mailbox: source.mailbox.clone() })
            .collect();
        let heads = self.gateway.store.heads(&mailboxes).await?;
        let known: Option<Vec<u64>> = heads.into_iter().collect();
        let known = known.ok_or_else(|| StoreError::unavailable("the end of a mailbox is not known"))?;
        Ok(self.sources.iter().zip(known).any(|(source, head)| source.after > head))
    }

    async fn read(&self, source: usize, after: u64, limit: u32) -> Result<Vec<Delivery>, Error> {
        let query = DeliveryQuery {
            mailbox: self.sources[source].mailbox.clone(),
            after,
            limit,
            unless_marked: self.reader.unless_marked(),
            only_relevant: true,
        };
        Ok(self.gateway.store.deliveries(&self.tenant, query).await?.deliveries)
    }
}
