//! What a team sees of the result, in the presence of this machine.

use std::{path::Path, time::Duration};

use countersign_client::{
    channel::{EnforcerEvent, Settings},
    enforcer::Enforcer,
    names::Names,
    profile::Pins,
};
use countersign_wire::timestamp::Timestamp;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::report::Report;
use crate::{hook::last_check, tool::finding::Level};

/// How long it may take to say it.
const SAY_TIME: Duration = Duration::from_secs(3);

/// How many problems there are, and in which mode each host has the hook.
pub fn result(report: &Report, hosts: &[Value], at: Timestamp) -> Value {
    let problems = report.findings.iter().filter(|finding| finding.level == Level::Problem).count();
    let mode = |fact: &Value| Some((fact["host"].as_str()?.to_owned(), fact["mode"].clone()));
    let modes: Map<String, Value> = hosts.iter().filter_map(mode).collect();
    json!({ "checkedAt": at, "problems": problems, "hosts": modes })
}

/// Says it to the gateway now. Hooks say it again whenever they are connected.
pub async fn say(enforcer: &Enforcer, pins: &Pins, names: Names, folder: &Path) {
    let settings = Settings { capabilities: last_check::capabilities(folder), names, ..Settings::default() };
    let mut listener = enforcer.listen(Vec::new(), settings);
    let connected = async {
        while let Ok(event) = listener.next(pins).await {
            if matches!(event, EnforcerEvent::Connected { .. }) {
                return;
            }
        }
    };
    drop(timeout(SAY_TIME, connected).await);
}
