//! A request that expires while it is waited for: for some time, an approver may still ask for it again.

use std::time::Duration;

use countersign_client::{
    channel::{Capabilities, ChannelError, Settings},
    enforcer::{AskError, Enforcer},
    grant::GrantRules,
    profile::Pins,
    request::{Draft, Request},
    taken::Taken,
};
use countersign_wire::id::RequestId;
use tokio::time::{Instant, interval, sleep, sleep_until};

use super::{
    Attendance, Interruption, Rejection, Unanswered, Watching, asked_people, follow, nothing_ran, row,
    say_covered, submit, submit_edited, submitted, wait_and_show,
};
use crate::tool::{
    exit::{Exit, Failure},
    gateway_error::describe_ask,
    home::{Identity, failed},
    moment,
    output::{StatusLine, say, short},
};

/// How this machine asks, and for how long what has expired may be asked for again.
pub struct Asker<'a> {
    /// Whose pins are read again each time.
    pub identity: &'a Identity,
    /// The enforcer of this identity.
    pub enforcer: &'a Enforcer,
    /// What this machine says of itself.
    pub capabilities: Capabilities,
    /// How long this process goes on after a request has expired; none at all ends it then.
    pub patience: Duration,
}

/// How waiting for an approver who wants it again has ended.
enum Heard {
    /// One of these was wanted again.
    Wanted(RequestId),
    Nothing,
}

impl Asker<'_> {
    /// By a grant that covers it, without asking anybody; else by asking.
    pub async fn permission(&self, draft: &Draft, interruption: &mut Interruption) -> Result<Taken, Failure> {
        let (enforcer, pins) = (self.enforcer, self.pins()?);
        let by_grant = enforcer.by_grant(draft, &pins, &GrantRules::default()).await;
        if let Some(taken) = by_grant.map_err(|error| describe_ask(&error))? {
            say_covered(&taken);
            return Ok(taken);
        }
        let request = submit(enforcer, &pins, draft, Attendance::Attended, interruption).await?;
        self.wait(request, Attendance::Attended, interruption).await
    }

    /// By asking whoever has made it of what they have rejected.
    pub async fn changed(
        &self,
        draft: &Draft,
        rejection: &Rejection,
        interruption: &mut Interruption,
    ) -> Result<Taken, Failure> {
        let request = submit_edited(self.enforcer, &self.pins()?, draft, rejection, interruption).await?;
        self.wait(request, Attendance::Attended, interruption).await
    }

    /// Waits for the answer to a request, or for a grant that covers it: the answer to another request of this machine may
    /// be one. It counts as used when this returns. An interruption takes the request back. When it has expired, an approver
    /// may ask for it again for some time; then the same is asked under a new id and waited for.
    pub async fn wait(
        &self,
        mut request: Request,
        attendance: Attendance,
        interruption: &mut Interruption,
    ) -> Result<Taken, Failure> {
        let mut ids = Vec::new();
        loop {
            let pins = self.pins()?;
            match wait_and_show(self.enforcer, &pins, &request, interruption, Watching::Somebody).await {
                Ok(taken) => return Ok(taken),
                Err(Unanswered::Failed(failure)) => return Err(failure),
                Err(Unanswered::Replaced) => {
                    request = follow(self.identity, self.enforcer, &request).await?;
                    continue;
                }
                Err(Unanswered::Expired) => {}
            }
            ids.push(request.request_id.clone());
            match self.wanted(&request, &ids, interruption).await {
                Heard::Wanted(id) => request = self.ask_again(&request, &id, interruption).await?,
                Heard::Nothing => {
                    if attendance == Attendance::Attended {
                        // If it stays, it is listed for a day and nothing else.
                        drop(self.enforcer.abandon(&request.request_id).await);
                    }
                    return Err(nothing_ran(describe_ask(&AskError::Expired), &request));
                }
            }
        }
    }

    /// The pins as they are now: a device that was revoked since the first time is not asked again.
    fn pins(&self) -> Result<Pins, Failure> {
        self.identity.profile.pins().map_err(failed)
    }

    /// Waits until an approver wants one of these again, or another process has asked again.
    async fn wanted(&self, expired: &Request, ids: &[RequestId], interruption: &mut Interruption) -> Heard {
        if self.patience.is_zero() {
            return Heard::Nothing;
        }
        say(&row("expired", "nobody answered in time", expired.expires_at));
        let command = format!("countersign ask-again {}", short(&expired.request_id));
        say(&format!("  Ask for it again on your phone, or with `{command}`."));
        let until = Instant::now() + self.patience;
        let (capabilities, names) = (self.capabilities.clone(), self.identity.names());
        let settings = Settings { capabilities, names, ..Settings::default() };
        let refreshed = self.enforcer.refreshed(ids, settings);
        tokio::pin!(refreshed);
        let (mut line, mut seconds) = (StatusLine::default(), interval(Duration::from_secs(1)));
        loop {
            tokio::select! {
                heard = &mut refreshed => return match heard {
                    Ok(id) => Heard::Wanted(id),
                    Err(error) => deaf(&error),
                },
                _ = seconds.tick() => {
                    // Whoever listens on this machine may have heard it first.
                    let newest = self.enforcer.newest(&expired.request_id).await;
                    if newest.is_ok_and(|newest| newest != expired.request_id) {
                        return Heard::Wanted(expired.request_id.clone());
                    }
                    let left = moment::left(until.saturating_duration_since(Instant::now()));
                    line.show(&format!("  waiting … {left} left to ask for it again · Ctrl-C stops"));
                }
                () = sleep_until(until) => return Heard::Nothing,
                () = interruption.happens() => return Heard::Nothing,
            }
        }
    }

    async fn ask_again(
        &self,
        expired: &Request,
        id: &RequestId,
        interruption: &mut Interruption,
    ) -> Result<Request, Failure> {
        // Clocks differ: by this one it may not have expired yet.
        let rest = expired.expires_at.since(self.enforcer.clock.now());
        tokio::select! {
            () = sleep(rest) => {}
            () = interruption.happens() => {
                return Err(nothing_ran(Failure::new(Exit::Expired, "nobody answered in time"), expired));
            }
        }
        let pins = self.pins()?;
        let asking = self.enforcer.ask_again(id, &pins);
        let request = submitted(self.enforcer, asking, interruption).await?;
        let now = self.enforcer.clock.now();
        say(&row("asked", &format!("{}, again", asked_people(&request, &pins, now)), now));
        Ok(request)
    }
}

/// Nobody could be heard: the gateway does not take the credential any more.
fn deaf(error: &ChannelError) -> Heard {
    say(&format!("  It can't be asked again: {error}."));
    Heard::Nothing
}
