//! Who is notified of a request now, and what became of it. The sending itself is outside of this crate.

use countersign_wire::{
    id::{ApproverId, RequestId, TenantId},
    timestamp::Timestamp,
};

use crate::{
    error::Error,
    gateway::{Evaluation, Gateway},
    load::ReadFrom,
    model::{
        exchange::{Exchange, State},
        notification::{NotificationChannel, Notifications, Notifying, SENDING_TIME, Sent},
        viewer::Viewer,
    },
    notices::{Notice, NoticeQueue},
    store::{Key, Mailbox, Stored as _},
    transitions::{ExchangeRef, next_due_at},
};

/// People of a tenant that are notified of a request to everybody.
const MAX_EVERYBODY: u32 = 100;

/// What is to be sent for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationPlan {
    pub to: Vec<(ApproverId, NotificationChannel)>,
    /// When to go on with those that are left out now: because of quiet hours, or because their service is left alone.
    pub later: Option<Timestamp>,
    pub expires_at: Timestamp,
    /// The time of the reading.
    pub now: Timestamp,
}

impl Gateway {
    /// Everything that is to be sent from now on; `None` if something takes it already.
    pub fn take_notices(&self) -> Option<NoticeQueue> {
        self.notices.take()
    }

    /// Whom to notify of a request now; `None` if it needs no answer any more.
    pub async fn notification_plan(&self, notice: &Notice) -> Result<Option<NotificationPlan>, Error> {
        let Notice { tenant, request_id } = notice;
        let exchange = ExchangeRef::new(tenant, request_id);
        let (known, now) = self.read_exchange(exchange, Viewer::Operator).await?;
        let Some(known) = known.map(|known| known.value) else { return Ok(None) };
        let (State::Pending, Some(notifying)) = (known.state_at(now), &known.notifying) else {
            return Ok(None);
        };
        let mut plan = NotificationPlan { to: Vec::new(), later: None, expires_at: known.expires_at, now };
        for (approver, notifications) in self.notified_of(tenant, &known).await? {
            let wanted = notifications.channels.into_iter().filter(|channel| {
                channel.address.is_some() && !notifying.was_accepted(&approver, &channel.id)
            });
            let quiet = notifications.quiet_hours.filter(|_| !notifying.loud);
            let quiet_until = quiet.and_then(|hours| hours.end(now));
            for channel in wanted {
                let alone_until = notifying.left_alone_until(&approver, &channel.id, now);
                match quiet_until.max(alone_until) {
                    Some(until) => plan.later = Some(plan.later.map_or(until, |later| later.min(until))),
                    None => plan.to.push((approver.clone(), channel)),
                }
            }
        }
        Ok(Some(plan))
    }

    /// What the people have set that a request is addressed to.
    async fn notified_of(
        &self,
        tenant: &TenantId,
        exchange: &Exchange,
    ) -> Result<Vec<(ApproverId, Notifications)>, Error> {
        let named = exchange.mailboxes.iter().filter_map(|mailbox| match mailbox {
            Mailbox::Approver(approver) => Some(approver),
            _ => None,
        });
        let named: Vec<&ApproverId> = named.collect();
        let mut all = Vec::new();
        if exchange.mailboxes.contains(&Mailbox::Shared) {
            all = self.page_of::<Notifications, ApproverId>(tenant, None, MAX_EVERYBODY).await?.items;
        } else if !named.is_empty() {
            let keys: Vec<Key> = named.iter().map(Notifications::key).collect();
            let loaded = self.store.load(tenant, &keys).await?;
            for (approver, record) in named.into_iter().zip(&loaded.records) {
                all.extend(Notifications::read(record.as_ref())?.map(|it| (approver.clone(), it.value)));
            }
        }
        all.retain(|(approver, _)| !exchange.hidden_by.contains(approver));
        Ok(all)
    }

    /// Notes what was sent while other channels still take their time.
    pub async fn note_notification(&self, notice: &Notice, sent: &[Sent]) -> Result<(), Error> {
        self.update_notifying(notice, |_, notifying, _| notifying.noting(sent)).await
    }

    /// Notes what was sent, and when to go on. `later` is that of the plan.
    pub async fn record_notification(
        &self,
        notice: &Notice,
        sent: &[Sent],
        later: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.update_notifying(notice, |exchange, notifying, now| {
            // Whoever is to be notified of a turn that began meanwhile may die: it stays due.
            let turn = exchange.last_turn_at().map(|at| at.plus(SENDING_TIME)).filter(|until| now < *until);
            let later = [later, turn].into_iter().flatten().min();
            notifying.after(sent, later, now)
        })
        .await
    }

    async fn update_notifying(
        &self,
        Notice { tenant, request_id }: &Notice,
        next: impl Fn(&Exchange, &Notifying, Timestamp) -> Notifying,
    ) -> Result<(), Error> {
        let exchange = ExchangeRef::new(tenant, request_id);
        let load = (exchange.record(), ());
        let from = ReadFrom::Memory { new: &[] };
        self.update_exchange(from, exchange, Viewer::Operator, &load, |known, (), now| {
            let found = known.and_then(|known| Some((known, known.value.notifying.as_ref()?)));
            // A tombstone has no log any more.
            let Some((known, notifying)) = found else { return Ok(Evaluation::NothingToDo(())) };
            let changed =
                Exchange { notifying: Some(next(&known.value, notifying, now)), ..known.value.clone() };
            let mut change = exchange.unchanged(known);
            change.puts.push(changed.put(exchange.key())?);
            change.due.push((next_due_at(&changed, &self.retention), exchange.key()));
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }
}

/// The notice of a request that was just submitted.
pub(super) fn notice_of(tenant: &TenantId, request_id: &RequestId) -> Notice {
    Notice { tenant: tenant.clone(), request_id: request_id.clone() }
}
