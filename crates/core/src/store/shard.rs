//! Where a tenant's data is, if a store is spread over several databases.

use countersign_wire::id::TenantId;

use super::error::StoreError;

/// The tenant of what nodes share. No credential can have such a name: API keys refuse the underscore.
const NODES: &str = "_nodes";

/// One database of a store, from zero. Everything of a tenant is on one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u16);

impl Shard {
    /// The tenant of what nodes share on this shard, such as their leases: a tenant's channels are compared with the
    /// leases of their own shard, so that both are known or neither is.
    pub fn nodes_tenant(self) -> Result<TenantId, StoreError> {
        let name = match self.0 {
            0 => NODES.to_owned(),
            number => format!("{NODES}.{number}"),
        };
        TenantId::new(name).map_err(|rule| StoreError::corrupt(rule.to_string()))
    }

    /// The shard whose [`Shard::nodes_tenant`] this is; `None` for all other tenants. A store of several databases asks
    /// here first, and decides by itself about the others.
    pub fn of_nodes_tenant(tenant: &TenantId) -> Option<Self> {
        match tenant.as_str().strip_prefix(NODES)? {
            "" => Some(Self(0)),
            suffix => {
                let shard = Self(suffix.strip_prefix('.')?.parse().ok()?);
                // Each shard has one name only: "_nodes.01" and "_nodes.0" are nobody's.
                (shard.nodes_tenant().ok()? == *tenant).then_some(shard)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_of_a_nodes_tenant_is_in_its_name() {
        for shard in [0, 1, 2, 300, u16::MAX].map(Shard) {
            assert_eq!(Shard::of_nodes_tenant(&shard.nodes_tenant().unwrap()), Some(shard));
        }
        assert_eq!(Shard(0).nodes_tenant().unwrap().as_str(), "_nodes", "a single database has one");
        for other in
            ["acme", "_nodes.", "_nodes.0", "_nodes.01", "_nodes.+1", "_nodes.65536", "_nodes1", "nodes"]
        {
            assert_eq!(Shard::of_nodes_tenant(&other.parse().unwrap()), None, "{other}");
        }
    }
}
