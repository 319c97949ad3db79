//! What an approver's device says about devices, taken into the pins of this machine.

use countersign_client::{
    enforcer::Enforcer,
    pairing::statement::Statement,
    profile::{Applied, ApplyError, PinSource, ProfileError},
};

use crate::tool::home::Identity;

/// Takes a statement, and says what it has changed.
pub fn apply(
    identity: &Identity,
    statement: &Statement,
    enforcer: &Enforcer,
) -> Result<String, ProfileError> {
    let (id, now) = (enforcer.id.as_str(), enforcer.clock.now());
    let (applied, is_code) = identity.profile.update_pins(|pins| {
        let applied = pins.apply(statement, id, now)?;
        let is_code = match applied {
            Applied::Vouched(device) => {
                pins.get(device).is_some_and(|pin| matches!(pin.source(), PinSource::Recovery { .. }))
            }
            _ => false,
        };
        Ok::<_, ApplyError>((applied, is_code))
    })?;
    Ok(match applied {
        Applied::Vouched(code) if is_code => {
            format!("there is a recovery code, {}; it can be used from a day after it was made", code.short())
        }
        Applied::Vouched(device) => format!("the device {} may approve too", device.short()),
        Applied::Recovered { device, lost } => {
            format!("the device {} takes the place of {}, which is revoked", device.short(), lost.short())
        }
        Applied::Revoked(device) => format!("the device {} must not approve any more", device.short()),
        Applied::AlreadyKnown => "nothing new".to_owned(),
    })
}
