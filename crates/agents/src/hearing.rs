//! What an approver's device says about devices, taken into the pins of this machine.

use countersign_client::{
    enforcer::Enforcer,
    pairing::statement::Statement,
    profile::{Applied, ApplyError, Pin, PinSource, ProfileError, RECOVERY_WAIT},
};

use crate::tool::{home::Identity, moment};

/// From when and until when a recovery code can be used, in words; `None` if it is no code.
pub fn recovery_times(pin: &Pin) -> Option<String> {
    let PinSource::Recovery { until, spent_on, .. } = pin.source() else { return None };
    if spent_on.is_some() {
        return Some("no more: it was used".to_owned());
    }
    let (from, until) =
        (moment::date_and_time(pin.since().plus(RECOVERY_WAIT)), moment::date_and_time(until));
    Some(format!("from {from} until {until} (UTC)"))
}

/// Takes a statement, and says what it has changed.
pub fn apply(
    identity: &Identity,
    statement: &Statement,
    enforcer: &Enforcer,
) -> Result<String, ProfileError> {
    let (id, now) = (enforcer.id.as_str(), enforcer.clock.now());
    let (applied, code) = identity.profile.update_pins(|pins| {
        let applied = pins.apply(statement, id, now)?;
        let code = match applied {
            Applied::Vouched(device) => pins.get(device).and_then(recovery_times),
            _ => None,
        };
        Ok::<_, ApplyError>((applied, code))
    })?;
    Ok(match applied {
        Applied::Vouched(device) if code.is_some() => {
            format!("recovery code {} works {}", device.short(), code.unwrap_or_default())
        }
        Applied::Vouched(device) => format!("the device {} may approve too", device.short()),
        Applied::Recovered { device, lost } => {
            format!("the device {} takes the place of {}, which is revoked", device.short(), lost.short())
        }
        Applied::Revoked(device) => format!("the device {} must not approve any more", device.short()),
        Applied::AlreadyKnown => "nothing new".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use countersign_client::{keys::DeviceKeys, profile::Party};

    use super::*;

    #[test]
    fn a_recovery_code_says_from_when_until_when() {
        let (keys, at) = (DeviceKeys::generate().unwrap(), "2026-11-15T12:00:00Z".parse().unwrap());
        let (by, until) = (keys.fingerprint(), "2027-11-15T12:00:00Z".parse().unwrap());
        let times = |source| {
            let party = Party::Approver("ada".parse().unwrap());
            recovery_times(&Pin::new(party, keys.bundle(), source, at))
        };
        assert_eq!(times(PinSource::Paired), None);
        let unused = times(PinSource::Recovery { by, until, spent_on: None });
        assert_eq!(unused.as_deref(), Some("from 16 Nov 2026, 12:00 until 15 Nov 2027, 12:00 (UTC)"));
        let used = times(PinSource::Recovery { by, until, spent_on: Some(by) });
        assert_eq!(used.as_deref(), Some("no more: it was used"));
    }
}
