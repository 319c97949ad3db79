//! How a person is notified of requests: the channels, quiet hours, and what became of each notification. Pure.

use std::{fmt, str::FromStr, time::Duration};

use countersign_wire::{Label, id::ApproverId, timestamp::Timestamp};
use serde::{Deserialize, Serialize};

use super::own_record::Sealed;
use crate::store::{Kind, Stored};

/// Channels of one person.
pub const MAX_CHANNELS: usize = 16;

/// A notification that is being sent belongs to one node for this long. After that any node sends it.
pub const SENDING_TIME: Duration = Duration::from_secs(15);

/// The time between two tests that a person wants by themselves.
pub const TEST_EVERY: Duration = Duration::from_hours(7 * 24);

/// How often one request is sent to channels that fail, and the pauses before each time but the first.
const RETRIES: [Duration; 6] = [
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(2),
];

/// How often the same news of a channel is written: a record for each notification would be written by all nodes at once.
const WRITTEN_EVERY: Duration = Duration::from_mins(1);

/// Entries of one request's log.
const MAX_NOTIFIED: usize = 64;

/// Names a channel among those of its person; its device chooses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ChannelId(String);

impl FromStr for ChannelId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        match !text.is_empty() && text.len() <= 64 && text.bytes().all(fits) {
            true => Ok(Self(text.to_owned())),
            false => Err("must be 1 to 64 letters, digits, - or _"),
        }
    }
}

impl TryFrom<String> for ChannelId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

impl From<ChannelId> for String {
    fn from(id: ChannelId) -> Self {
        id.0
    }
}

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Everything that a person has set about notifications.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notifications {
    pub channels: Vec<NotificationChannel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// When the next of the weekly tests is sent; `None` if the person wants none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly_test: Option<Timestamp>,
}

impl Stored for Notifications {
    const KIND: Kind = Kind::Notifications;
}

/// One way to notify a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotificationChannel {
    pub id: ChannelId,
    pub kind: ChannelKind,
    pub label: Label,
    /// The host of its address, for people to recognise it.
    pub host: String,
    pub created_at: Timestamp,
    /// The address with its keys; `None` once its service has said that it is gone.
    pub address: Option<Sealed>,
    /// When its service last accepted a notification.
    pub accepted_at: Option<Timestamp>,
    /// When its device last said that it had shown one.
    pub displayed_at: Option<Timestamp>,
    /// Why it fails; `None` while it works.
    pub failing: Option<Failing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChannelKind {
    /// A browser's push service.
    WebPush,
    /// A push service of `UnifiedPush`, which speaks as a browser's does.
    UnifiedPush,
    /// An address that is called with a signed message.
    Webhook,
}

/// Since when a channel fails, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    pub since: Timestamp,
    pub reason: FailureReason,
    /// What its service answered; `None` if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureReason {
    /// The service refuses it.
    Refused,
    /// The service no longer knows the address.
    Gone,
    /// There was no connection, or none that can be trusted.
    Unreachable,
    /// There was no answer in time.
    TimedOut,
    /// The service has too much to do.
    Busy,
    /// The address is not one that this gateway may call.
    NotAllowed,
    /// The gateway has lost the key of what it stored.
    Unreadable,
}

/// What became of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Accepted,
    Failed { reason: FailureReason, status: Option<u16> },
}

impl FailureReason {
    /// Whether another attempt may succeed.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::Unreachable | Self::TimedOut | Self::Busy)
    }
}

impl NotificationChannel {
    /// Whether this failure is no news.
    pub fn is_known_to_fail(&self, attempt: Attempt) -> bool {
        let Attempt::Failed { reason, status } = attempt else { return false };
        self.failing.as_ref().is_some_and(|known| known.reason == reason && known.status == status)
    }

    /// What is known of the channel after an attempt; `None` if that need not be written.
    pub(crate) fn after(&self, attempt: Attempt, now: Timestamp) -> Option<Self> {
        let next = match attempt {
            Attempt::Accepted => {
                let is_known = self.accepted_at.is_some_and(|at| now < at.plus(WRITTEN_EVERY));
                if is_known && self.failing.is_none() {
                    return None;
                }
                Self { accepted_at: Some(now), failing: None, ..self.clone() }
            }
            Attempt::Failed { reason, status } => {
                if self.is_known_to_fail(attempt) {
                    return None;
                }
                let since = self.failing.as_ref().map_or(now, |known| known.since);
                let failing = Some(Failing { since, reason, status });
                let address = self.address.clone().filter(|_| reason != FailureReason::Gone);
                Self { address, failing, ..self.clone() }
            }
        };
        Some(next)
    }
}

/// When a person does not want to be notified, by their own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    /// Minutes of the day.
    pub from: u16,
    pub to: u16,
    /// What the person's clock is ahead of UTC.
    pub utc_offset_minutes: i16,
}

impl QuietHours {
    const DAY: i64 = 24 * 60;

    /// When the quiet hours that it is in end; `None` outside of them.
    pub(crate) fn end(self, now: Timestamp) -> Option<Timestamp> {
        let minutes = now.unix_micros().div_euclid(60_000_000);
        let minute = (minutes + i64::from(self.utc_offset_minutes)).rem_euclid(Self::DAY);
        let length = (i64::from(self.to) - i64::from(self.from)).rem_euclid(Self::DAY);
        let passed = (minute - i64::from(self.from)).rem_euclid(Self::DAY);
        let left = u64::try_from(length - passed).ok().filter(|left| *left > 0)?;
        let minute_began = Timestamp::from_unix_micros(minutes * 60_000_000);
        Some(minute_began.plus(Duration::from_mins(left)))
    }
}

/// The notifications of one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notifying {
    /// Whether quiet hours don't count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loud: bool,
    /// When somebody is to be notified next; `None` when there is nothing left to send.
    pub next_at: Option<Timestamp>,
    /// How often channels that failed were tried again, for those that the log has no room for.
    #[serde(default)]
    pub retries: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Notified>,
}

/// What became of a request's notification on one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    pub approver: ApproverId,
    pub channel: ChannelId,
    pub label: Label,
    /// When its service was last called.
    pub sent_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub displayed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailureReason>,
    /// When its service is called again; `None` if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// How often it was tried again.
    #[serde(default)]
    pub retries: u8,
}

/// What a device says of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptEvent {
    Displayed,
    Opened,
}

/// An attempt to notify somebody of a request.
#[derive(Debug, Clone)]
pub struct Sent {
    pub approver: ApproverId,
    pub channel: ChannelId,
    pub label: Label,
    pub attempt: Attempt,
    /// When it ended, by the store's clock.
    pub at: Timestamp,
    /// How long its service is left alone, beside the pause before another attempt.
    pub wait: Duration,
}

impl Notifying {
    /// Of a request that is submitted now: the node that takes it sends first.
    pub(crate) fn begin(loud: bool, now: Timestamp) -> Self {
        Self { loud, next_at: Some(now.plus(SENDING_TIME)), retries: 0, log: Vec::new() }
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.next_at.is_some_and(|at| at <= now)
    }

    fn of(&self, approver: &ApproverId, channel: &ChannelId) -> Option<&Notified> {
        self.log.iter().find(|known| known.approver == *approver && known.channel == *channel)
    }

    /// Whether a channel has got this notification.
    pub(crate) fn was_accepted(&self, approver: &ApproverId, channel: &ChannelId) -> bool {
        self.of(approver, channel).is_some_and(|known| known.accepted_at.is_some())
    }

    /// Until when a channel that failed is left alone; `None` if it is not.
    pub(crate) fn left_alone_until(
        &self,
        approver: &ApproverId,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.of(approver, channel)?.retry_at.filter(|at| now < *at)
    }

    /// What is known after these attempts, while others are still under way. The same attempts again change nothing.
    pub(crate) fn noting(&self, sent: &[Sent]) -> Self {
        let mut next = self.clone();
        for Sent { approver, channel, label, attempt, at, .. } in sent {
            let (accepted_at, failed) = match attempt {
                Attempt::Accepted => (Some(*at), None),
                Attempt::Failed { reason, .. } => (None, Some(*reason)),
            };
            let known = next.log.iter_mut().find(|it| it.approver == *approver && it.channel == *channel);
            if let Some(known) = known {
                known.sent_at = *at;
                known.accepted_at = known.accepted_at.or(accepted_at);
                known.failed = failed;
                known.retry_at = known.retry_at.filter(|_| failed.is_some());
            } else if next.log.len() < MAX_NOTIFIED {
                let (approver, channel, label) = (approver.clone(), channel.clone(), label.clone());
                next.log.push(Notified {
                    approver,
                    channel,
                    label,
                    sent_at: *at,
                    accepted_at,
                    displayed_at: None,
                    opened_at: None,
                    failed,
                    retry_at: None,
                    retries: 0,
                });
            }
        }
        next
    }

    /// What is known after all attempts. `later` is when to go on with those that the plan left out.
    pub(crate) fn after(&self, sent: &[Sent], later: Option<Timestamp>, now: Timestamp) -> Self {
        let mut next = self.noting(sent);
        next.next_at = later;
        let mut is_retried = false;
        for Sent { approver, channel, attempt, wait, .. } in sent {
            let is_temporary = matches!(attempt, Attempt::Failed { reason, .. } if reason.is_temporary());
            let known = next.log.iter_mut().find(|it| it.approver == *approver && it.channel == *channel);
            let retries = known.as_ref().map_or(self.retries, |known| known.retries);
            let pause = RETRIES.get(usize::from(retries)).filter(|_| is_temporary);
            let retry_at = pause.map(|pause| now.plus(*pause).plus(*wait));
            if let Some(known) = known {
                known.retry_at = retry_at;
                known.retries += u8::from(retry_at.is_some());
            }
            is_retried |= retry_at.is_some();
            next.next_at = [next.next_at, retry_at].into_iter().flatten().min();
        }
        next.retries = next.retries.saturating_add(u8::from(is_retried));
        next
    }

    /// What is known after a device's word; `None` if it was known. It may come before the attempt is noted.
    pub(crate) fn after_receipt(
        &self,
        approver: &ApproverId,
        channel: &NotificationChannel,
        event: ReceiptEvent,
        now: Timestamp,
    ) -> Option<Self> {
        let accepted = Sent {
            approver: approver.clone(),
            channel: channel.id.clone(),
            label: channel.label.clone(),
            attempt: Attempt::Accepted,
            at: now,
            wait: Duration::ZERO,
        };
        let is_noted = self.was_accepted(approver, &channel.id);
        let mut next = if is_noted { self.clone() } else { self.noting(&[accepted]) };
        let of = |known: &&mut Notified| known.approver == *approver && known.channel == channel.id;
        let known = next.log.iter_mut().find(of)?;
        // What was opened was displayed, even if that word is late or lost.
        known.displayed_at.get_or_insert(now);
        if event == ReceiptEvent::Opened {
            known.opened_at.get_or_insert(now);
        }
        (next != *self).then_some(next)
    }
}

#[cfg(test)]
mod tests;
