//! A request that waits while the answer to another one becomes a grant that covers it (docs/grants.md).

use std::{collections::BTreeSet, time::Duration};

use tokio::time::Instant;

use crate::{
    ends::enforcer::{AskError, Enforcer},
    exchange::{
        audience::Turn,
        grant::{Grant, GrantRules},
        request::{Draft, Request},
        taken::Taken,
    },
    identity::profile::Pins,
    journal::{Kind, off_thread},
};

/// How long the gateway has to take a request back. Longer, and the grant is looked for again.
const CALL_TIME: Duration = Duration::from_secs(2);

/// Looks for grants that were given while a request waits.
pub struct GrantWatch<'a> {
    enforcer: &'a Enforcer,
    request: &'a Request,
    draft: Draft,
    /// Requests whose end is known not to cover this one. It is read once.
    seen: BTreeSet<String>,
    /// Whether the gateway has taken the request back.
    is_back: bool,
    is_edited: bool,
}

impl<'a> GrantWatch<'a> {
    /// For a request that was submitted.
    pub fn new(enforcer: &'a Enforcer, request: &'a Request) -> Result<Self, AskError> {
        let (draft, is_edited) = (request.draft()?, request.is_edited());
        Ok(Self { enforcer, request, draft, seen: BTreeSet::new(), is_back: false, is_edited })
    }

    /// Lets the request be done by a grant that covers it now; `None` if none does. Call it again while the request waits,
    /// and not while an answer to it is being taken.
    ///
    /// The gateway takes the request back first: if somebody has answered it, their answer counts and no grant does. Then
    /// the end of the request and the use of the grant are recorded together.
    ///
    /// What a person has changed waits for that person, also where a grant covers what it has become.
    pub async fn look(&mut self, pins: &Pins, rules: &GrantRules) -> Result<Option<Taken>, AskError> {
        if self.is_edited {
            return Ok(None);
        }
        for grant in self.new_grants(pins, rules).await? {
            if !self.take_back().await {
                return Ok(None);
            }
            let also = self.enforcer.withdrawal(self.request);
            if let Some(taken) = self.enforcer.use_grant(grant, &self.draft, also).await? {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// The grants that cover the request.
    async fn new_grants(&mut self, pins: &Pins, rules: &GrantRules) -> Result<Vec<Grant>, AskError> {
        let seen = self.seen.clone();
        let (settled, revoked) = off_thread(&self.enforcer.journal, move |journal| {
            let settled = journal.list_new(Kind::Settled, &seen)?;
            let revoked = if settled.is_empty() { Vec::new() } else { journal.list(Kind::Revoked)? };
            Ok((settled, revoked))
        })
        .await?;
        if settled.is_empty() {
            return Ok(Vec::new());
        }
        let (verifier, now) = (self.enforcer.verifier(pins), self.enforcer.clock.now());
        // A grant of somebody who was not asked does not count.
        // What else the request demands stays: whether a person must be verified, above all.
        let asked = self.request.addressees(pins).into_iter();
        self.draft.to.people = asked.map(|asked| Turn::at_once(asked.person)).collect();
        if self.draft.to.people.is_empty() {
            return Ok(Vec::new());
        }
        let mut covering = Vec::new();
        for record in &settled {
            let is_revoked = revoked.iter().any(|revoked| revoked.key == record.key);
            let grant =
                Grant::read(record, &verifier, rules, now).filter(|grant| grant.covers(&self.draft, now));
            match grant {
                Some(grant) if !is_revoked => covering.push(grant),
                _ => drop(self.seen.insert(record.key.clone())),
            }
        }
        Ok(covering)
    }

    /// Whether nobody can answer the request any more.
    async fn take_back(&mut self) -> bool {
        if !self.is_back {
            let until = Instant::now() + CALL_TIME;
            self.is_back = self.enforcer.withdraw_at_gateway(self.request, until).await.is_ok();
        }
        self.is_back
    }
}
