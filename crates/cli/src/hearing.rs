//! What an approver's device says about devices, taken into the pins of this machine.

use countersign_client::{enforcer::Enforcer, pairing::statement::Statement, profile::Applied};
use countersign_wire::prompt::AckStatus;

use crate::home::Identity;

/// Takes a statement, if it is to be taken. Returns what to say about it and what to answer.
pub fn apply(identity: &Identity, enforcer: &Enforcer, statement: &Statement) -> (String, AckStatus) {
    let now = enforcer.clock.now();
    match identity.profile.update_pins(|pins| pins.apply(statement, enforcer.id.as_str(), now)) {
        Ok(applied) => (sentence(applied), AckStatus::Delivered),
        Err(error) => (format!("something about a device that is not taken: {error}"), AckStatus::Rejected),
    }
}

fn sentence(applied: Applied) -> String {
    match applied {
        Applied::Vouched(device) => format!("the device {} may approve too", device.short()),
        Applied::Recovered { device, lost } => {
            format!("the device {} takes the place of {}, which is revoked", device.short(), lost.short())
        }
        Applied::Revoked(device) => format!("the device {} must not approve any more", device.short()),
        Applied::AlreadyKnown => "nothing new".to_owned(),
    }
}
