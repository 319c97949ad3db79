//! What the databases are to each other: each says which shard it is, so that a list that was mixed up is refused.

use countersign_core::store::{Epoch, Membership, Relocation, Residence, ResidenceState, Shard, StoreError};

use crate::{buckets::Buckets, error::OpenError, part::Part};

/// What the first shard says of all of them. A database that was no shard before becomes the first, with all tenants that
/// it has.
pub(crate) async fn found(
    first: &dyn Relocation,
    parts: &[(String, Part)],
    new_store_id: &str,
) -> Result<(String, Buckets), OpenError> {
    let (name, _) = parts.first().ok_or(OpenError::NoFirst)?;
    let failed = |source| OpenError::Store { name: name.clone(), source };
    let membership = match first.membership().await.map_err(failed)? {
        Some(membership) => membership,
        None => set_up(first, parts, new_store_id, name).await?,
    };
    let store_id = membership.store_id.clone();
    let buckets = check(membership, &store_id, None, Shard(0), name)?;
    match buckets.numbers().iter().find(|shard| usize::from(**shard) >= parts.len()) {
        Some(missing) => Err(OpenError::Missing { missing: *missing }),
        None => Ok((store_id, buckets)),
    }
}

/// Whether databases are the shards that they are listed as, by what each says of itself; those that say nothing are none yet.
pub fn check_members(listed: &[(String, Option<Membership>)]) -> Result<(), OpenError> {
    let (name, first) = listed.first().ok_or(OpenError::NoFirst)?;
    let Some(first) = first else {
        let other = listed.iter().find(|(_, member)| member.is_some());
        return other.map_or(Ok(()), |(other, _)| {
            Err(OpenError::FirstIsNew { name: name.clone(), other: other.clone() })
        });
    };
    let buckets = check(first.clone(), &first.store_id, None, Shard(0), name)?;
    if let Some(missing) = buckets.numbers().iter().find(|shard| usize::from(**shard) >= listed.len()) {
        return Err(OpenError::Missing { missing: *missing });
    }
    for (number, (name, member)) in (0..).map(Shard).zip(listed) {
        if let Some(member) = member {
            check(member.clone(), &first.store_id, Some(&buckets), number, name)?;
        }
    }
    Ok(())
}

/// Makes a database the first of these shards. All must answer: one that is a shard already says that this database is not the one
/// that it was.
async fn set_up(
    first: &dyn Relocation,
    parts: &[(String, Part)],
    new_store_id: &str,
    name: &str,
) -> Result<Membership, OpenError> {
    for (other, part) in parts.iter().skip(1) {
        let Part::Open(store) = part else { return Err(OpenError::SetUpWithout { name: other.clone() }) };
        let failed = |source| OpenError::Store { name: other.clone(), source };
        if store.membership().await.map_err(failed)?.is_none() {
            continue;
        }
        // Another node may have set them up meanwhile, and begins with the first.
        let failed = |source| OpenError::Store { name: name.to_owned(), source };
        return match first.membership().await.map_err(failed)? {
            Some(membership) => Ok(membership),
            None => Err(OpenError::FirstIsNew { name: name.to_owned(), other: other.clone() }),
        };
    }
    let failed = |source| OpenError::Store { name: name.to_owned(), source };
    // Nodes of before shards may run on it, even if it has no tenant yet: they use no other.
    let buckets = match is_new(first).await.map_err(failed)? {
        true => Buckets::spread_over(u16::try_from(parts.len()).unwrap_or(u16::MAX)),
        false => Buckets::on_the_first(),
    };
    first.join(&membership_of(new_store_id, &buckets, Shard(0), name)).await.map_err(failed)
}

/// Makes sure that a database is this shard of these. One that was none becomes it, if it is new and that shard never was another
/// one.
pub(crate) async fn join(
    store: &dyn Relocation,
    first: &dyn Relocation,
    store_id: &str,
    buckets: &Buckets,
    shard: Shard,
    name: &str,
) -> Result<(), OpenError> {
    let failed = |source| OpenError::Store { name: name.to_owned(), source };
    // Before it is asked what it is: another node may be making it that shard.
    let has_joined = shard == Shard(0) || has_joined(first, shard).await.map_err(failed)?;
    let membership = match store.membership().await.map_err(failed)? {
        Some(membership) => membership,
        None if has_joined => return Err(OpenError::Replaced { name: name.to_owned() }),
        None if !is_new(store).await.map_err(failed)? => {
            return Err(OpenError::NotNew { name: name.to_owned() });
        }
        None => store.join(&membership_of(store_id, buckets, shard, name)).await.map_err(failed)?,
    };
    check(membership, store_id, Some(buckets), shard, name)?;
    match has_joined {
        true => Ok(()),
        false => note_joined(first, shard).await.map_err(failed),
    }
}

/// What the first shard keeps of another that has joined: what the nodes share on that one is there.
fn joined(shard: Shard) -> Residence {
    Residence { epoch: Epoch::default().next(), state: ResidenceState::Left { to: shard } }
}

async fn has_joined(first: &dyn Relocation, shard: Shard) -> Result<bool, StoreError> {
    Ok(first.residence(&shard.nodes_tenant()?).await? == Some(joined(shard)))
}

async fn note_joined(first: &dyn Relocation, shard: Shard) -> Result<(), StoreError> {
    first.change_residence(&shard.nodes_tenant()?, None, joined(shard)).await.map(drop)
}

fn membership_of(store_id: &str, buckets: &Buckets, shard: Shard, name: &str) -> Membership {
    Membership {
        store_id: store_id.to_owned(),
        shard,
        name: name.to_owned(),
        buckets: buckets.numbers().to_vec(),
    }
}

fn check(
    found: Membership,
    store_id: &str,
    buckets: Option<&Buckets>,
    shard: Shard,
    name: &str,
) -> Result<Buckets, OpenError> {
    let name = || name.to_owned();
    if found.store_id != store_id {
        return Err(OpenError::OtherStore { name: name() });
    }
    if found.shard != shard || found.name != name() {
        let found = format!("{} (number {} of the list)", found.name, found.shard.0 + 1);
        return Err(OpenError::OtherShard { name: name(), found });
    }
    let of_found = Buckets::of_numbers(found.buckets);
    let of_found = of_found.filter(|found| buckets.is_none_or(|buckets| buckets == found));
    of_found.ok_or_else(|| OpenError::Buckets { name: name() })
}

/// Whether nobody has used it: not even a node has said that it runs.
async fn is_new(store: &dyn Relocation) -> Result<bool, StoreError> {
    Ok(store.tenants(Shard(0), None, 1).await?.is_empty())
}
