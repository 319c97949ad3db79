//! A person says how to be notified of requests, and their devices say what they have shown.

use countersign_wire::{
    Label,
    failure::Failure,
    id::{ApproverId, RequestId, TenantId},
};

use crate::{
    audit::{self, Actor},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::{ReadFrom, record_of},
    model::{
        notification::{
            Attempt, ChannelId, ChannelKind, MAX_CHANNELS, NotificationChannel, Notifications, QuietHours,
            ReceiptEvent, TEST_EVERY,
        },
        own_record::Sealed,
        policy::{POLICY_ID, Policy},
        viewer::Viewer,
    },
    store::{Change, Guard, Stored as _},
    transitions::ExchangeRef,
};

/// What a device or a person sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSpec {
    pub id: ChannelId,
    pub kind: ChannelKind,
    pub label: Label,
    /// The host of the address.
    pub host: String,
    /// The address with its keys.
    pub address: Sealed,
}

impl Gateway {
    /// What a person has set about notifications.
    pub async fn notifications(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
    ) -> Result<Notifications, Error> {
        let (known, _) = self.load(tenant, &record_of::<Notifications>(approver)).await?;
        Ok(known.map(|known| known.value).unwrap_or_default())
    }

    /// Adds a channel, or replaces the one of the same id.
    pub async fn set_channel(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        spec: &ChannelSpec,
    ) -> Result<NotificationChannel, Error> {
        let records = (record_of::<Notifications>(approver), record_of::<Policy>(POLICY_ID));
        self.update(tenant, &records, |(known, policy), now| {
            let mut change = Change::new(tenant.clone());
            let key = Notifications::key(approver);
            change.guards.push(Guard::unchanged(key.clone(), known.as_ref()));
            let mut next = known.map(|known| known.value).unwrap_or_default();
            let channel = NotificationChannel {
                id: spec.id.clone(),
                kind: spec.kind,
                label: spec.label.clone(),
                host: spec.host.clone(),
                created_at: now,
                address: Some(spec.address.clone()),
                accepted_at: None,
                displayed_at: None,
                failing: None,
            };
            next.channels.retain(|known| known.id != spec.id);
            if next.channels.len() >= MAX_CHANNELS {
                return Ok(Evaluation::reject_if_unchanged(change, Failure::State));
            }
            next.channels.push(channel.clone());
            change.puts.push(next.put(key.clone())?);
            if !policy.as_ref().is_some_and(|policy| policy.value.notifies) {
                let key = Policy::key(POLICY_ID);
                change.guards.push(Guard::unchanged(key.clone(), policy.as_ref()));
                let policy = policy.map(|policy| policy.value).unwrap_or_default();
                change.puts.push(Policy { notifies: true, ..policy }.put(key)?);
            }
            let actor = Actor::Approver(approver.as_str());
            change.audit.push(audit::action(key, actor, "notifications.channelSet")?);
            Ok(Evaluation::commit(change, channel))
        })
        .await
    }

    /// Removes a channel. One that does not exist is no error.
    pub async fn remove_channel(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        channel: &ChannelId,
    ) -> Result<(), Error> {
        self.update_notifications(tenant, approver, Some("notifications.channelRemoved"), |next| {
            next.channels.retain(|known| known.id != *channel);
        })
        .await
    }

    /// Sets or ends quiet hours.
    pub async fn set_quiet_hours(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        hours: Option<QuietHours>,
    ) -> Result<(), Error> {
        self.update_notifications(tenant, approver, Some("notifications.quietHours"), |next| {
            next.quiet_hours = hours;
        })
        .await
    }

    /// Switches the weekly test on or off. The first is sent in a week.
    pub async fn set_weekly_test(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        wanted: bool,
    ) -> Result<(), Error> {
        self.update(tenant, &record_of::<Notifications>(approver), |known, now| {
            let key = Notifications::key(approver);
            let guard = Guard::unchanged(key.clone(), known.as_ref());
            let before = known.map(|known| known.value).unwrap_or_default();
            if before.weekly_test.is_some() == wanted {
                return Ok(Evaluation::NothingToDo(()));
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(guard);
            let weekly_test = wanted.then(|| now.plus(TEST_EVERY));
            change.puts.push(Notifications { weekly_test, ..before }.put(key.clone())?);
            match weekly_test {
                Some(at) => change.due.push((at, key.clone())),
                None => change.no_longer_due.push(key.clone()),
            }
            let actor = Actor::Approver(approver.as_str());
            change.audit.push(audit::action(key, actor, "notifications.weeklyTest")?);
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }

    /// A test that was due was sent, whatever became of it: the next one is in a week, if it is still wanted.
    pub async fn record_weekly_test(&self, tenant: &TenantId, approver: &ApproverId) -> Result<(), Error> {
        self.update(tenant, &record_of::<Notifications>(approver), |known, now| {
            let Some(known) = known.filter(|known| known.value.weekly_test.is_some()) else {
                return Ok(Evaluation::NothingToDo(()));
            };
            let (key, at) = (Notifications::key(approver), now.plus(TEST_EVERY));
            let mut change = Change::new(tenant.clone());
            change.guards.push(Guard::unchanged(key.clone(), Some(&known)));
            change.puts.push(Notifications { weekly_test: Some(at), ..known.value }.put(key.clone())?);
            change.due.push((at, key));
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }

    /// Notes what became of attempts on a person's channels, unless that is known.
    pub async fn record_attempts(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        attempts: &[(ChannelId, Attempt)],
    ) -> Result<(), Error> {
        let now = self.store.now().await?;
        self.update_notifications(tenant, approver, None, |next| {
            for (channel, attempt) in attempts {
                if let Some(known) = next.channels.iter_mut().find(|known| known.id == *channel)
                    && let Some(after) = known.after(*attempt, now)
                {
                    *known = after;
                }
            }
        })
        .await
    }

    /// Replaces how the address of a channel is encrypted, unless it has changed.
    pub async fn reseal_channel(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        channel: &NotificationChannel,
        address: &Sealed,
    ) -> Result<(), Error> {
        self.update_notifications(tenant, approver, None, |next| {
            let same =
                |known: &&mut NotificationChannel| known.id == channel.id && known.address == channel.address;
            if let Some(known) = next.channels.iter_mut().find(same) {
                known.address = Some(address.clone());
            }
        })
        .await
    }

    /// A device says that it has shown a notification of these requests, or that somebody has opened it.
    pub async fn record_receipt(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        channel: &ChannelId,
        event: ReceiptEvent,
        requests: &[RequestId],
    ) -> Result<(), Error> {
        let now = self.store.now().await?;
        self.update_notifications(tenant, approver, None, |next| {
            if let Some(known) = next.channels.iter_mut().find(|known| known.id == *channel) {
                known.displayed_at = Some(now);
            }
        })
        .await?;
        let known = self.notifications(tenant, approver).await?;
        let Some(channel) = known.channels.iter().find(|known| known.id == *channel) else { return Ok(()) };
        for request in requests {
            let exchange = ExchangeRef::new(tenant, request);
            let (viewer, load) = (Viewer::Approver(approver), (exchange.record(), ()));
            self.update_exchange(ReadFrom::Store, exchange, viewer, &load, |known, (), now| {
                let after = known.and_then(|known| {
                    let notifying = known.value.notifying.as_ref()?;
                    Some((known, notifying.after_receipt(approver, channel, event, now)?))
                });
                // An id that the approver may not see is treated as one that nobody was notified of.
                let Some((known, notifying)) = after else { return Ok(Evaluation::NothingToDo(())) };
                let mut change = exchange.unchanged(known);
                let mut next = known.value.clone();
                next.notifying = Some(notifying);
                change.puts.push(next.put(exchange.key())?);
                Ok(Evaluation::commit(change, ()))
            })
            .await?;
        }
        Ok(())
    }

    /// Writes what `edit` changes, if it changes anything.
    async fn update_notifications(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        action: Option<&'static str>,
        edit: impl Fn(&mut Notifications),
    ) -> Result<(), Error> {
        self.update(tenant, &record_of::<Notifications>(approver), |known, _| {
            let key = Notifications::key(approver);
            let guard = Guard::unchanged(key.clone(), known.as_ref());
            let before = known.map(|known| known.value).unwrap_or_default();
            let mut next = before.clone();
            edit(&mut next);
            if next == before {
                return Ok(Evaluation::NothingToDo(()));
            }
            let mut change = Change::new(tenant.clone());
            change.guards.push(guard);
            change.puts.push(next.put(key.clone())?);
            if let Some(action) = action {
                let actor = Actor::Approver(approver.as_str());
                change.audit.push(audit::action(key, actor, action)?);
            }
            Ok(Evaluation::commit(change, ()))
        })
        .await
    }
}
