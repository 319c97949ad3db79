//! What a reader has to be sent, in order: the backlog of its mailboxes, then new deliveries.

use countersign_wire::id::{ApproverId, EnforcerId, TenantId};

use crate::{
    cache::HandedOver,
    error::Error,
    gateway::{Gateway, mailbox_ring},
    notify::{Listener, Ring},
    store::{Delivery, DeliveryPage, DeliveryQuery, Mailbox, MailboxKey, MarkKind, StoreError},
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
    /// The history of the store that the positions are from.
    timeline: u64,
}

/// One of the mailboxes that a feed merges.
#[derive(Debug)]
struct Source {
    mailbox: Mailbox,
    /// Everything up to this number was read.
    after: u64,
    /// Whether there may be something to read.
    rung: bool,
    /// Whether `after` was the end of the mailbox once. Before that, what is handed over may have been answered already.
    at_head: bool,
}

/// A delivery and the mailbox that it came from.
#[derive(Debug, Clone)]
pub struct FeedItem {
    /// The index of its mailbox in [`Feed::positions`].
    pub source: usize,
    pub delivery: Delivery,
    /// Its message, where the commit handed it over.
    pub handed_over: HandedOver,
}

impl FeedItem {
    fn read(source: usize, delivery: Delivery) -> Self {
        Self { source, delivery, handed_over: HandedOver::default() }
    }
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
            .map(|(mailbox, after)| Source { mailbox, after, rung: true, at_head: false })
            .collect();
        // Listen before reading: a commit between the two would be missed.
        let rings: Vec<Ring> = sources.iter().map(|source| mailbox_ring(tenant, &source.mailbox)).collect();
        let listener = self.listen(rings);
        let (gateway, tenant, reader) = (self.clone(), tenant.clone(), reader.clone());
        Feed { timeline: self.cache.timeline(), gateway, tenant, reader, sources, listener }
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

    /// The items that can be had now: those that were handed over, or else those that can be read. Cancel-safe.
    pub async fn unread(&mut self) -> Result<Vec<FeedItem>, Error> {
        let handed_over = self.handed_over();
        match handed_over.is_empty() && self.has_more() {
            true => self.read_unread().await,
            false => Ok(handed_over),
        }
    }

    /// The items that come next and were handed over by their commits. Reads nothing.
    pub fn handed_over(&mut self) -> Vec<FeedItem> {
        self.follow_timeline();
        let cache = &self.gateway.cache;
        let mut items = Vec::new();
        for (index, source) in self.sources.iter_mut().enumerate().filter(|(_, it)| it.rung && it.at_head) {
            let mailbox = MailboxKey { tenant: self.tenant.clone(), mailbox: source.mailbox.clone() };
            let before = source.after;
            while let Some((delivery, handed_over)) = cache.hand_overs.next(&mailbox, source.after) {
                source.after = delivery.number;
                items.push(FeedItem { source: index, delivery, handed_over });
            }
            // What rang with a higher number was not handed over, and is read next.
            source.rung =
                source.after == before || source.after < cache.listeners.highest(&Ring::Mailbox(mailbox));
        }
        items
    }

    /// The items that can be read now, whatever was handed over. Cancel-safe.
    pub async fn read_unread(&mut self) -> Result<Vec<FeedItem>, Error> {
        let mut items = Vec::new();
        let mut read = Vec::new();
        for (index, from) in self.sources.iter().enumerate().filter(|(_, from)| from.rung) {
            let page = self.read(index, from.after, CHUNK).await?;
            // What is not in the page up to there is gone, and never comes.
            read.push((index, page.read_to, page.has_more()));
            items.extend(page.deliveries.into_iter().map(|delivery| FeedItem::read(index, delivery)));
        }
        // No await from here on: either all of it is returned, or nothing has changed.
        for (index, after, has_more) in read {
            let source = &mut self.sources[index];
            (source.after, source.rung, source.at_head) = (after, has_more, !has_more);
        }
        Ok(items)
    }

    /// Starts from the beginning if the store's history is another one: its numbers may mean other deliveries.
    fn follow_timeline(&mut self) {
        let timeline = self.gateway.cache.timeline();
        if std::mem::replace(&mut self.timeline, timeline) != timeline {
            for source in &mut self.sources {
                (source.after, source.rung, source.at_head) = (0, true, false);
            }
        }
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
        let query = DeliveryQuery { up_to: Some(number), ..self.query(source, number - 1, 1) };
        let found = self.gateway.store.deliveries(&self.tenant, query).await?.deliveries.into_iter().next();
        Ok(found.map(|delivery| FeedItem::read(source, delivery)))
    }

    /// Reads the deliveries after this number again, one chunk of those that are unacknowledged and still relevant, and says
    /// up to which number. The position of the feed does not change.
    pub async fn read_again(&self, source: usize, after: u64) -> Result<(Vec<FeedItem>, u64), Error> {
        let page = self.read(source, after, CHUNK).await?;
        let items = page.deliveries.into_iter().map(|delivery| FeedItem::read(source, delivery));
        Ok((items.collect(), page.read_to))
    }

    /// Up to which number everything was read, by mailbox.
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

    async fn read(&self, source: usize, after: u64, limit: u32) -> Result<DeliveryPage, Error> {
        self.gateway.walk(&self.tenant, self.query(source, after, limit)).await
    }

    fn query(&self, source: usize, after: u64, limit: u32) -> DeliveryQuery {
        DeliveryQuery {
            mailbox: self.sources[source].mailbox.clone(),
            after,
            up_to: None,
            limit,
            unless_marked: self.reader.unless_marked(),
            only_relevant: true,
        }
    }
}
