//! What a team sees of the result, in the presence of this machine.

use std::time::Duration;

use countersign_client::{
    channel::{EnforcerEvent, Settings},
    enforcer::Enforcer,
    names::Names,
    profile::Pins,
};
use countersign_wire::{
    machine::{MachineDoctor, MachineHooks},
    timestamp::Timestamp,
};
use tokio::time::{sleep, timeout};

use super::report::Report;
use crate::{
    hook::{desk::Desk, machine},
    install::inspection::Inspection,
    tool::finding::{Finding, Level},
};

/// How long it may take to say it.
const SAY_TIME: Duration = Duration::from_secs(3);

/// How long the connection is kept then: a gateway records presence with a delay, and forgets what was not recorded before it
/// was closed.
const KEPT_TIME: Duration = Duration::from_millis(500);

/// Which hooks there are, and how many problems.
pub fn result(report: &Report, found: &[Inspection], at: Timestamp) -> (MachineHooks, MachineDoctor) {
    let problems: Vec<&Finding> =
        report.findings.iter().filter(|finding| finding.level == Level::Problem).collect();
    let is_armed = |host: &str| problems.iter().all(|problem| problem.subject != host);
    (machine::hooks(found, at, is_armed), MachineDoctor::new(at, problems.len()))
}

/// Says it to the gateway now. Hooks say it again whenever they are connected.
pub async fn say(enforcer: &Enforcer, pins: &Pins, names: Names, desk: &Desk) {
    let capabilities = machine::capabilities(desk.folder().to_owned());
    let mut listener = enforcer.listen(Vec::new(), Settings { capabilities, names, ..Settings::default() });
    let connected = async {
        while let Ok(event) = listener.next(pins).await {
            if matches!(event, EnforcerEvent::Connected { .. }) {
                return sleep(KEPT_TIME).await;
            }
        }
    };
    drop(timeout(SAY_TIME, connected).await);
}
