//! Cursors of pages: opaque, and valid only for the list that they came from.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use countersign_core::{
    model::pairs::PairId,
    use_cases::{
        inbox::{List, Position},
        pairs::PairFilter,
    },
};
use countersign_wire::{
    failure::Failure,
    id::{ApproverId, EnforcerId, TenantId},
};

use crate::{
    error::ApiError,
    rest::{pair_id, params::QueryParams},
    secrets::Secret,
};

const MAC: usize = 16;

/// Signs a position in the list that `list` names.
fn sign(secret: &Secret, list: &[&[u8]], position: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode([position, &mac(secret, list, position)].concat())
}

/// The position in a cursor; `None` if it was not signed for this list.
fn verify(secret: &Secret, list: &[&[u8]], cursor: &str) -> Option<Vec<u8>> {
    let mut position = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let given = position.split_off(position.len().checked_sub(MAC)?);
    // A position is no secret, so there is nothing to learn from how long this takes.
    let is_ours =
        secret.macs("cursor", &[list, &[&position]].concat()).any(|mac| given == mac.as_bytes()[..MAC]);
    is_ours.then_some(position)
}

fn mac(secret: &Secret, list: &[&[u8]], position: &[u8]) -> [u8; MAC] {
    let mac = secret.mac("cursor", &[list, &[position]].concat());
    let mut short = [0; MAC];
    short.copy_from_slice(&mac.as_bytes()[..MAC]);
    short
}

/// Signs and checks the cursors of one list of one approver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InboxCursor<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) approver: &'a ApproverId,
    pub(crate) list: List,
}

impl InboxCursor<'_> {
    pub(crate) fn cursor(&self, secret: &Secret, position: Position) -> String {
        let numbers = [position.own.to_be_bytes(), position.shared.to_be_bytes()].concat();
        sign(secret, &self.list(), &numbers)
    }

    pub(crate) fn position(&self, secret: &Secret, cursor: &str) -> Result<Position, ApiError> {
        self.read(secret, cursor).ok_or_else(|| Failure::Cursor.into())
    }

    fn read(&self, secret: &Secret, cursor: &str) -> Option<Position> {
        let numbers = verify(secret, &self.list(), cursor)?;
        let (own, shared) = numbers.split_first_chunk()?;
        Some(Position { own: u64::from_be_bytes(*own), shared: u64::from_be_bytes(shared.try_into().ok()?) })
    }

    fn list(&self) -> [&[u8]; 3] {
        let list: &[u8] = match self.list {
            List::Active => b"active",
            List::Expired => b"expired",
        };
        [self.tenant.as_str().as_bytes(), self.approver.as_str().as_bytes(), list]
    }
}

/// Signs and checks the cursors of a list of a tenant's records, which go by their ids.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordsCursor<'a> {
    pub(crate) tenant: &'a TenantId,
    /// The name of the list, in the plural.
    pub(crate) list: &'static str,
}

impl RecordsCursor<'_> {
    pub(crate) fn cursor(&self, secret: &Secret, id: &str) -> String {
        sign(secret, &self.list(), id.as_bytes())
    }

    /// The id after which the page that a query asks for begins; `None` for the first page.
    pub(crate) fn after(&self, secret: &Secret, query: &QueryParams) -> Result<Option<String>, ApiError> {
        query.get("cursor")?.map(|cursor| self.position(secret, cursor)).transpose()
    }

    fn position(&self, secret: &Secret, cursor: &str) -> Result<String, ApiError> {
        let id = verify(secret, &self.list(), cursor).and_then(|id| String::from_utf8(id).ok());
        id.ok_or_else(|| Failure::Cursor.into())
    }

    fn list(&self) -> [&[u8]; 2] {
        [self.tenant.as_str().as_bytes(), self.list.as_bytes()]
    }
}

/// Signs and checks the cursors of one list of pairs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PairsCursor<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) filter: &'a PairFilter,
}

impl PairsCursor<'_> {
    pub(crate) fn cursor(&self, secret: &Secret, position: &PairId) -> String {
        sign(secret, &self.list(), pair_id::text(position).as_bytes())
    }

    pub(crate) fn position(&self, secret: &Secret, cursor: &str) -> Result<PairId, ApiError> {
        let position = verify(secret, &self.list(), cursor);
        let position = position.and_then(|position| pair_id::read(&String::from_utf8(position).ok()?));
        position.ok_or_else(|| Failure::Cursor.into())
    }

    /// An absent id is empty, as no id is.
    fn list(&self) -> [&[u8]; 4] {
        let PairFilter { enforcer, approver } = self.filter;
        let enforcer = enforcer.as_ref().map_or("", EnforcerId::as_str);
        let approver = approver.as_ref().map_or("", ApproverId::as_str);
        [self.tenant.as_str().as_bytes(), b"pairs", enforcer.as_bytes(), approver.as_bytes()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_only_and_only_unchanged() {
        let secret = Secret::random();
        let (acme, ada): (TenantId, ApproverId) = ("acme".parse().unwrap(), "ada".parse().unwrap());
        let list = InboxCursor { tenant: &acme, approver: &ada, list: List::Active };
        let position = Position { own: 7, shared: u64::MAX };
        let cursor = list.cursor(&secret, position);
        assert_eq!(list.position(&secret, &cursor).unwrap(), position);
        assert!(list.position(&Secret::random(), &cursor).is_err());
        let (other, bob) = ("other".parse().unwrap(), "bob".parse().unwrap());
        for elsewhere in [
            InboxCursor { tenant: &other, ..list },
            InboxCursor { approver: &bob, ..list },
            InboxCursor { list: List::Expired, ..list },
        ] {
            assert!(elsewhere.position(&secret, &cursor).is_err());
        }
        for place in 0..cursor.len() {
            let mut forged = cursor.clone();
            let other = if &forged[place..=place] == "A" { "B" } else { "A" };
            forged.replace_range(place..=place, other);
            assert!(list.position(&secret, &forged).is_err(), "{forged}");
        }
        for nonsense in ["", "A", "!!", &cursor[1..], &format!("{cursor}AAAA")] {
            assert!(list.position(&secret, nonsense).is_err());
        }
    }

    #[test]
    fn a_cursor_of_records_is_good_for_its_own_list_only() {
        let secret = Secret::random();
        let (acme, other): (TenantId, TenantId) = ("acme".parse().unwrap(), "other".parse().unwrap());
        let list = RecordsCursor { tenant: &acme, list: "keys" };
        let cursor = list.cursor(&secret, "id");
        assert_eq!(list.position(&secret, &cursor).unwrap(), "id");
        for elsewhere in
            [RecordsCursor { tenant: &other, ..list }, RecordsCursor { list: "invitations", ..list }]
        {
            assert!(elsewhere.position(&secret, &cursor).is_err());
        }
        assert!(list.position(&secret, &cursor[1..]).is_err());
    }

    #[test]
    fn a_cursor_of_pairs_is_good_for_its_own_filter_only() {
        let secret = Secret::random();
        let (acme, other): (TenantId, TenantId) = ("acme".parse().unwrap(), "other".parse().unwrap());
        let filter = PairFilter { enforcer: Some("robot".parse().unwrap()), approver: None };
        let list = PairsCursor { tenant: &acme, filter: &filter };
        let device = countersign_wire::hash::Sha256Hex::digest(b"phone");
        let position =
            PairId { enforcer: "robot".parse().unwrap(), approver: "ada".parse().unwrap(), device };
        let cursor = list.cursor(&secret, &position);
        assert_eq!(list.position(&secret, &cursor).unwrap(), position);
        let all = PairFilter::default();
        let swapped = PairFilter { enforcer: None, approver: Some("robot".parse().unwrap()) };
        for elsewhere in [
            PairsCursor { tenant: &other, ..list },
            PairsCursor { filter: &all, ..list },
            PairsCursor { filter: &swapped, ..list },
        ] {
            assert!(elsewhere.position(&secret, &cursor).is_err());
        }
        for nonsense in ["", "A", "!!", &cursor[1..]] {
            assert!(list.position(&secret, nonsense).is_err());
        }
    }
}
