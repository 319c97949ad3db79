//! Profiles: whether their gateway answers and knows them, who is paired, whether clock and keys are right.

use std::{path::Path, time::Duration};

use countersign_client::{
    clock::{Clock as _, SystemClock},
    http::{CallError, Http},
    profile::{GatewayUrl, KeyPlace, Profile, Role},
};
use countersign_wire::timestamp::Timestamp;

use super::report::Report;
use crate::{
    install::program::{Trusted, changeable_by_others},
    rules::{
        RulesError,
        policy::{FILE, Policy},
    },
    tool::{
        exit::Failure,
        finding::Finding,
        gateway_error,
        home::{Home, word},
    },
};

/// The difference between two clocks that is still right: requests live for minutes.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_mins(1);

/// Looks at every profile, or at the named one, and at the rules beside them. Returns their gateways.
pub async fn check(home: &Home, name: Option<&str>, report: &mut Report) -> Result<Vec<GatewayUrl>, Failure> {
    let (mut roles, mut gateways) = (Vec::new(), Vec::new());
    for (profile_name, profile) in home.all()? {
        if name.is_some_and(|wanted| wanted != profile_name.as_str()) {
            continue;
        }
        match profile {
            Ok(profile) => {
                roles.push(profile.facts().party.role());
                check_one(profile_name.as_str(), &profile, report).await;
                let gateway = &profile.facts().gateway;
                if !gateways.contains(gateway) {
                    gateways.push(gateway.clone());
                }
            }
            Err(error) => report.find(Finding::problem(
                profile_name.as_str(),
                format!("the profile can't be opened: {error}"),
                "nothing can be asked or answered with it",
                "put right what the message names, or join again with `countersign join`",
            )),
        }
    }
    if !roles.contains(&Role::Enforcer) {
        report.find(Finding::problem(
            "profiles",
            "this machine can't ask anybody: no profile here is an agent's",
            "a hook that can't ask denies, or leaves the decision to the host",
            "run `countersign up` for a gateway of your own, or `countersign join` with an invitation",
        ));
    }
    let file = home.gateway_folder().with_file_name("rules.toml");
    if file.exists() {
        report.add("rules", rules_file(&file));
    }
    match Policy::of_machine(home.user()) {
        Ok(None) => {}
        Ok(Some(_)) => report
            .pass("policy", format!("{FILE} is in force; `countersign policy show` says what it lays down")),
        Err(error) => report.find(policy_that_is_wrong(&error)),
    }
    Ok(gateways)
}

async fn check_one(name: &str, profile: &Profile, report: &mut Report) {
    report.add(name, keys(name, profile));
    report.add(name, paired(name, profile));
    let gateway = profile.facts().gateway.as_str().to_owned();
    let http = match Http::new(profile.facts().gateway.clone(), Some(profile.credential())) {
        Ok(http) => http,
        Err(error) => return report.find(unreachable(name, &error)),
    };
    match http.check().await {
        Ok(()) => report.pass(name, format!("the gateway at {gateway} answers and knows the credential")),
        Err(error @ CallError::Refused { status: 401, .. }) => report.find(Finding::problem(
            name,
            format!("the gateway at {gateway} does not accept the credential ({error}): it has expired, or was revoked"),
            "nothing can be asked or answered with this profile",
            "ask the gateway's operator for a new invitation, and join again with `countersign join`",
        )),
        Err(error) => return report.find(unreachable(name, &error)),
    }
    let before = SystemClock.now();
    if let Ok(Some(date)) = http.date().await {
        report.add(name, clock(name, date, before, SystemClock.now()));
    }
}

fn unreachable(name: &str, error: &CallError) -> Finding {
    let failure = gateway_error::describe(error);
    let remedy = match failure.next.is_empty() {
        true => "try again, and ask the gateway's operator if it stays so".to_owned(),
        false => failure.next,
    };
    Finding::problem(name, failure.what, "requests do not reach anybody, so agents are denied", remedy)
}

fn keys(name: &str, profile: &Profile) -> Result<String, Finding> {
    let failed = |error: &dyn std::fmt::Display| {
        Finding::problem(
            name,
            format!("the keys can't be read: {error}"),
            "nothing can be asked or answered with this profile",
            "put right what the message names, or join again with `countersign join`",
        )
    };
    match profile.key_place().map_err(|error| failed(&error))? {
        Some(KeyPlace::Passphrase) => Ok("the keys are there, locked by a passphrase".to_owned()),
        _ => profile.unlock(None).map(|_| "the keys can be read".to_owned()).map_err(|error| failed(&error)),
    }
}

fn paired(name: &str, profile: &Profile) -> Result<String, Finding> {
    let (other, remedy) = match profile.facts().party.role() {
        Role::Enforcer => (Role::Approver, "pair a person's phone or terminal with `countersign pair`"),
        Role::Approver => (Role::Enforcer, "pair an agent's machine with `countersign pair --answer`"),
    };
    let pins = profile.pins().map_err(|error| {
        Finding::problem(
            name,
            format!("the paired devices can't be read: {error}"),
            "nobody can be asked",
            remedy,
        )
    })?;
    let active: Vec<_> = pins.active_in_role(other, SystemClock.now()).collect();
    match active.len() {
        0 => Err(Finding::problem(
            name,
            format!("no {} is paired", word(other)),
            "there is nobody whose answer would count",
            remedy,
        )),
        count if other == Role::Approver => {
            let locks = active.iter().filter(|pin| pin.lock().is_some()).count();
            Ok(format!("paired: {count} of role {}, {locks} of them with a device lock", word(other)))
        }
        count => Ok(format!("paired: {count} of role {}", word(other))),
    }
}

fn clock(name: &str, gateway: Timestamp, before: Timestamp, after: Timestamp) -> Result<String, Finding> {
    let (ahead, behind) = (before.since(gateway), gateway.since(after));
    let (difference, direction) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
    if difference <= MAX_CLOCK_DIFFERENCE {
        return Ok("the clock agrees with the gateway's".to_owned());
    }
    Err(Finding::problem(
        name,
        format!("the clock of this machine is {} s {direction} the gateway's", difference.as_secs()),
        "requests are refused as expired, or stay valid too long",
        "set the clock, best by a time service: `timedatectl set-ntp true`",
    ))
}

fn rules_file(path: &Path) -> Result<String, Finding> {
    let problem = |what: String| {
        Finding::problem(
            "rules",
            what,
            "who can change the rules can allow everything",
            format!("make it yours alone: `chmod 600 {}`, and check its owner", path.display()),
        )
    };
    match changeable_by_others(path, Trusted::User) {
        Ok(None) => Ok(format!("only you can change {}", path.display())),
        Ok(Some(part)) => Err(problem(format!("others than you can change {}", part.display()))),
        Err(error) => Err(problem(format!("{} can't be read: {error}", path.display()))),
    }
}

fn policy_that_is_wrong(error: &RulesError) -> Finding {
    Finding::problem(
        "policy",
        error.to_string(),
        "agents are denied everything",
        "let root put right what the message names, and look again with `countersign policy show`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_be_a_minute_off_and_no_more() {
        let at = |seconds: i64| Timestamp::from_unix_micros(1_700_000_000_000_000 + seconds * 1_000_000);
        let check = |gateway| clock("a", at(gateway), at(0), at(2));
        for right in [-60, -1, 0, 3, 62] {
            check(right).unwrap();
        }
        let ahead = check(-61).unwrap_err();
        assert!(ahead.what.contains("61 s ahead of"), "{}", ahead.what);
        let behind = check(100).unwrap_err();
        assert!(behind.what.contains("98 s behind"), "{}", behind.what);
    }

    #[test]
    fn rules_that_others_can_write_are_found() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rules.toml");
        std::fs::write(&path, "").unwrap();
        for (mode, is_right) in [(0o600, true), (0o644, true), (0o622, false), (0o606, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(rules_file(&path).is_ok(), is_right, "{mode:o}");
        }
    }
}
