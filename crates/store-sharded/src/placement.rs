//! Where a tenant is, from what each shard knows of it.

use countersign_core::store::{Epoch, Residence, ResidenceState, Shard};

/// Where a tenant is, for whoever reads it or writes to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) shard: Shard,
    pub(crate) epoch: Epoch,
    /// Whether it is about to leave this shard: neither read nor written.
    pub(crate) is_leaving: bool,
}

impl Location {
    /// Of a tenant that was never moved.
    pub(crate) fn home(shard: Shard) -> Self {
        Self { shard, epoch: Epoch::default(), is_leaving: false }
    }
}

/// What the shards together know of a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// None of them knows of a move.
    Home,
    Here {
        at: Shard,
        epoch: Epoch,
    },
    Leaving {
        from: Shard,
        to: Shard,
        epoch: Epoch,
    },
    /// It is on `to`, of which this says nothing itself: its residence was not read, or it takes back a tenant whose move was
    /// given up.
    Left {
        from: Shard,
        to: Shard,
        epoch: Epoch,
    },
}

impl Whereabouts {
    /// The newest that is said. A tenant that only arrives is still where it comes from. Of one epoch, that it is here counts
    /// before that it has left, and that before that it leaves: the order in which they become true.
    pub(crate) fn of(residences: impl Iterator<Item = (Shard, Residence)>) -> Self {
        let said = residences.filter_map(|(shard, Residence { epoch, state })| {
            let (rank, says) = match state {
                ResidenceState::Arriving { .. } => return None,
                ResidenceState::Leaving { to } => (0, Self::Leaving { from: shard, to, epoch }),
                ResidenceState::Left { to } => (1, Self::Left { from: shard, to, epoch }),
                ResidenceState::Here => (2, Self::Here { at: shard, epoch }),
            };
            Some(((epoch, rank, shard), says))
        });
        said.max_by_key(|(newest, _)| *newest).map_or(Self::Home, |(_, says)| says)
    }

    /// `None` for a tenant that is at home.
    pub(crate) fn location(self) -> Option<Location> {
        match self {
            Self::Home => None,
            Self::Here { at: shard, epoch } | Self::Left { to: shard, epoch, .. } => {
                Some(Location { shard, epoch, is_leaving: false })
            }
            Self::Leaving { from: shard, epoch, .. } => Some(Location { shard, epoch, is_leaving: true }),
        }
    }
}

#[cfg(test)]
mod tests {
    use ResidenceState::{Arriving, Here, Leaving, Left};

    use super::*;

    const A: Shard = Shard(0);
    const B: Shard = Shard(1);

    fn of(said: &[(Shard, u64, ResidenceState)]) -> Whereabouts {
        Whereabouts::of(
            said.iter()
                .map(|(shard, epoch, state)| (*shard, Residence { epoch: Epoch(*epoch), state: *state })),
        )
    }

    #[test]
    fn a_tenant_is_in_one_place_at_each_step_of_a_move() {
        let (leaving, arriving) = ((A, 1, Leaving { to: B }), (B, 1, Arriving { from: A }));
        let epoch = Epoch(1);
        assert_eq!(of(&[]), Whereabouts::Home);
        assert_eq!(of(&[arriving]), Whereabouts::Home);
        let is_leaving = Whereabouts::Leaving { from: A, to: B, epoch };
        assert_eq!(of(&[leaving, arriving]), is_leaving);
        assert_eq!(of(&[leaving]), is_leaving);
        let is_there = Whereabouts::Here { at: B, epoch };
        assert_eq!(of(&[leaving, (B, 1, Here)]), is_there);
        assert_eq!(of(&[(A, 1, Left { to: B }), (B, 1, Here)]), is_there);
        // The other shard does not answer.
        let has_left = of(&[(A, 1, Left { to: B })]);
        assert_eq!(has_left, Whereabouts::Left { from: A, to: B, epoch });
        assert_eq!(has_left.location(), is_there.location());
    }

    #[test]
    fn a_move_that_is_given_up_leaves_the_tenant_where_it_was() {
        let leaving = (A, 1, Leaving { to: B });
        let given_up = (B, 2, Left { to: A });
        assert_eq!(of(&[leaving, given_up]).location().unwrap().shard, A);
        assert_eq!(of(&[(A, 2, Here), given_up]), Whereabouts::Here { at: A, epoch: Epoch(2) });
    }

    #[test]
    fn the_newest_move_counts() {
        let back = [(A, 1, Left { to: B }), (A, 2, Here), (B, 2, Left { to: A })];
        assert_eq!(of(&back), Whereabouts::Here { at: A, epoch: Epoch(2) });
    }
}
