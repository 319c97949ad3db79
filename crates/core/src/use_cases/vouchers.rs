//! A device that was vouched for presents its voucher: the gateway adds the pair and the signing key, until the voucher ends.
//! The enforcer's own pins still decide whether a decision counts.

use countersign_wire::{
    failure::Failure,
    hash::Sha256Hex,
    id::{ApproverId, EnforcerId, TenantId},
    statement::{Said, Statement, Vouch},
    timestamp::Timestamp,
};

use crate::{
    audit,
    couple::{Couple, OpenedCouple, too_many},
    error::Error,
    gateway::{Evaluation, Gateway},
    load::record_at,
    model::pairs::{
        MAX_RECOVERY_KEYS, MAX_TAKEN_VOUCHERS, Pair, PairId, Pairs, RecoveryKey, TakenVoucher, Vouched,
        pairs_record,
    },
    store::{Change, Guard},
};

/// What an accepted voucher has led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedVoucher {
    pub enforcer: EnforcerId,
    pub approver: ApproverId,
    /// The device that was vouched for; `None` for a recovery code, which is no device.
    pub device: Option<Sha256Hex>,
    /// From then on it counts for nothing.
    pub until: Timestamp,
}

/// Whose key a voucher verifies under.
enum Voucher {
    /// A device that was paired, or stands in for one that was.
    Device(Box<Pair>),
    /// A recovery code of the approver who presents the voucher, by its place in the record.
    Recovery(usize),
}

impl Gateway {
    /// Accepts the voucher of `statement`, or recognises one that was accepted before. The caller must be the approver
    /// whose device it names. Whatever is wrong with it, the answer is the same: nobody learns who is paired with whom.
    pub async fn present_voucher(
        &self,
        tenant: &TenantId,
        statement: &Statement,
    ) -> Result<AcceptedVoucher, Error> {
        let Ok(Said::Vouch(vouch)) = statement.claim().read() else {
            return Err(Error::breaks("voucher", "does not vouch for a device"));
        };
        let refused = |_| Error::from(Failure::SignatureInvalid);
        let approver: ApproverId = vouch.approver_id.parse().map_err(refused)?;
        let enforcer: EnforcerId = statement.enforcer_id().parse().map_err(refused)?;
        let by: ApproverId = statement.by().parse().map_err(refused)?;
        let digest = statement.digest().map_err(|_| Failure::SignatureInvalid)?;
        let couple = Couple { enforcer: &enforcer, approver: &approver };
        let of_voucher = (by != approver).then(|| record_at::<Pairs>(pairs_record(&enforcer, &by)));
        let load = (couple.records(), of_voucher);
        self.update(tenant, &load, |(values, of_voucher), now| {
            let mut change = Change::new(tenant.clone());
            let mut opened = couple.open(&mut change, &values, now);
            if let Some(record) = &load.1 {
                change.guards.push(Guard::unchanged(record.key(), of_voucher.as_ref()));
            }
            let presented = Presented { statement, vouch: &vouch, by: &by, digest, now };
            let answer = presented.answer(couple);
            if opened.pairs.taken.iter().any(|taken| taken.statement == digest) {
                return Ok(match presented.is_in_force(&opened.pairs) {
                    true => Evaluation::commit(change, answer),
                    // What was removed does not come back.
                    false => Evaluation::reject_if_unchanged(change, Failure::SignatureInvalid),
                });
            }
            let of_others = of_voucher.map(|known| known.value);
            let Some(voucher) = presented.voucher(&opened.pairs, of_others.as_ref()) else {
                return Ok(Evaluation::reject_if_unchanged(change, Failure::SignatureInvalid));
            };
            presented.accept(&mut change, &mut opened, voucher)?;
            opened.close(&mut change)?;
            change.audit.push(presented.audit_row(couple)?);
            change.guards.push(Guard::Before(vouch.until));
            Ok(Evaluation::commit(change, answer))
        })
        .await
    }
}

/// A voucher at the time at which it is presented.
struct Presented<'a> {
    statement: &'a Statement,
    vouch: &'a Vouch<'a>,
    by: &'a ApproverId,
    digest: Sha256Hex,
    now: Timestamp,
}

impl Presented<'_> {
    fn device(&self) -> Sha256Hex {
        Sha256Hex::digest(self.vouch.bundle.signing.as_bytes())
    }

    fn is_own(&self) -> bool {
        self.by.as_str() == self.vouch.approver_id
    }

    fn answer(&self, couple: Couple<'_>) -> AcceptedVoucher {
        AcceptedVoucher {
            enforcer: couple.enforcer.clone(),
            approver: couple.approver.clone(),
            device: (!self.vouch.recovery).then(|| self.device()),
            until: self.vouch.until,
        }
    }

    /// Whether what it led to is still there.
    fn is_in_force(&self, pairs: &Pairs) -> bool {
        let key = self.vouch.bundle.signing;
        match self.vouch.recovery {
            true => pairs.recovery.iter().any(|recovery| recovery.key == key),
            false => pairs.get(self.device()).is_some(),
        }
    }

    /// Who has vouched; `None` if nobody has whose word counts for this.
    fn voucher(&self, pairs: &Pairs, of_others: Option<&Pairs>) -> Option<Voucher> {
        let key = self.vouch.bundle.signing;
        // The keys of a recovery code are never those of a device.
        let is_code = pairs.recovery.iter().any(|recovery| recovery.key == key);
        let is_device = pairs.pairs.iter().any(|pair| pair.signing_key == Some(key));
        if self.vouch.recovery && (is_device || !self.is_own()) || !self.vouch.recovery && is_code {
            return None;
        }
        let enforcer = self.statement.enforcer_id();
        let verifies = |key| self.statement.verify(key, enforcer, self.now).is_ok();
        let vouchers = if self.is_own() { Some(pairs) } else { of_others.filter(|_| self.is_first(pairs)) };
        let mut devices = vouchers.into_iter().flat_map(|vouchers| vouchers.pairs.iter());
        let device = devices.find(|pair| {
            let has_ended = pair.vouched.as_ref().is_some_and(|vouched| self.now >= vouched.until);
            !has_ended && pair.counts_as_paired() && pair.signing_key.as_ref().is_some_and(verifies)
        });
        if let Some(device) = device {
            return Some(Voucher::Device(Box::new(device.clone())));
        }
        let mut codes = pairs.recovery.iter();
        let code = codes.position(|recovery| recovery.used_for.is_none() && verifies(&recovery.key));
        code.filter(|_| self.is_own() && !self.vouch.recovery).map(Voucher::Recovery)
    }

    /// Whether it is the approver's first device. Nobody adds one to the name of somebody who has one.
    fn is_first(&self, pairs: &Pairs) -> bool {
        pairs.pairs.iter().all(|pair| pair.device == self.device() && !pair.counts_as_paired())
    }

    fn accept(
        &self,
        change: &mut Change,
        opened: &mut OpenedCouple<'_>,
        voucher: Voucher,
    ) -> Result<(), Error> {
        let (key, until, device) = (self.vouch.bundle.signing, self.vouch.until, self.device());
        if opened.pairs.taken.len() >= MAX_TAKEN_VOUCHERS {
            return Err(too_many());
        }
        opened.pairs.taken.push(TakenVoucher { statement: self.digest, until });
        if self.vouch.recovery {
            let codes = &mut opened.pairs.recovery;
            if let Some(known) = codes.iter_mut().find(|recovery| recovery.key == key) {
                known.until = known.until.max(until);
            } else if codes.len() < MAX_RECOVERY_KEYS {
                codes.push(RecoveryKey { key, until, used_for: None });
            } else {
                return Err(too_many());
            }
            // A code is no pair, and a couple without one stays so.
            return Ok(());
        }
        let (shown_as, recovered) = match voucher {
            Voucher::Device(pair) => (Some(*pair), false),
            Voucher::Recovery(place) => {
                opened.pairs.recovery[place].used_for = Some(device);
                (opened.pairs.pairs.first().cloned(), true)
            }
        };
        let pair = Pair {
            device,
            signing_key: Some(key),
            enforcer_label: shown_as.as_ref().and_then(|pair| pair.enforcer_label.clone()),
            workspace_name: shown_as.and_then(|pair| pair.workspace_name),
            created_at: Some(self.now),
            routing_tokens: Vec::new(),
            vouched: Some(Vouched { by: self.by.clone(), until, recovered }),
        };
        // A device that is paired stays so, with its labels.
        match opened.pairs.get(device).is_some_and(|known| known.vouched.is_none()) {
            true => Ok(()),
            false => opened.add(change, pair),
        }
    }

    fn audit_row(&self, couple: Couple<'_>) -> Result<crate::store::AuditRow, Error> {
        let (enforcer, approver) = (couple.enforcer.clone(), couple.approver.clone());
        let id = PairId { enforcer, approver, device: self.device() };
        let did = if self.vouch.recovery { "recovery.vouched" } else { "pair.vouched" };
        let record = pairs_record(couple.enforcer, couple.approver);
        Ok(audit::vouched(record, did, &id, self.vouch.bundle.signing, self.by, self.digest)?)
    }
}
