//! `fleet`: what the machines of a tenant say of themselves.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    home::{Home, Identity, failed},
    moment,
    output::{object, out, say},
};
use countersign_client::{
    clock::{Clock as _, SystemClock},
    http::Http,
    presence::Enforcers,
    profile::Role,
};
use countersign_wire::machine::PolicyId;
use serde_json::{Value, json};

use super::options::Options;
use crate::fleet::{Machine, Wrong, table};

/// See which policy and which hooks the machines of your team have.
///
/// Lists every machine that asks through your gateway and was seen within thirty days: its version, its policy, what `countersign
/// doctor` found there last and when, and the agents in which there is a hook. It is each machine's own word, from when it last
/// connected, and proves nothing. ✗ is something to put right there.
///
/// Ends with 0 if there is no ✗ in the list, and with 87 if there is.
#[derive(Debug, Args)]
pub(super) struct Fleet {
    /// List only machines on which another policy is in force than this one, or none. ID is what `countersign policy show`
    /// says, or the SHA-256 of the file.
    #[arg(long, value_name = "ID", value_parser = policy_id)]
    policy: Option<PolicyId>,
    /// List only machines with something to put right.
    #[arg(long)]
    problems: bool,
    /// List only machines that were seen within this time, such as 7d.
    #[arg(long, value_name = "TIME", value_parser = moment::duration)]
    seen_within: Option<Duration>,
}

fn policy_id(text: &str) -> Result<PolicyId, String> {
    text.to_lowercase()
        .parse::<PolicyId>()
        .map_err(|rule| format!("{rule}; `countersign policy show` says it"))
}

impl Fleet {
    pub(super) async fn run(self, options: &Options) -> Result<ExitCode, Failure> {
        let identity = any(&Home::of_user()?, options.profile.as_deref())?;
        let (gateway, credential) = (identity.profile.facts().gateway.clone(), identity.profile.credential());
        let http = Http::new(gateway, Some(credential)).map_err(|error| describe(&error))?;
        let seen = Enforcers::seen_by(&http).await.map_err(|error| describe(&error))?;
        let (now, unreadable) = (SystemClock.now(), seen.not_understood);
        let all = seen.list.into_iter().map(|presence| Machine::new(presence, self.policy.as_ref()));
        let all: Vec<Machine> = all
            .filter(|machine| self.seen_within.is_none_or(|time| machine.seen_within(time, now)))
            .collect();
        let count = all.len();
        let listed: Vec<Machine> = all.into_iter().filter(|machine| self.lists(machine)).collect();
        let wrong = listed.iter().filter(|machine| !machine.wrong.is_empty()).count() + unreadable;
        let (outcome, code) = match wrong {
            0 => ("ok", 0),
            _ => (Exit::Findings.word(), Exit::Findings.code()),
        };
        if options.json {
            let machines: Vec<Value> = listed.iter().map(Machine::json).collect();
            object(&json!({
                "outcome": outcome, "asOf": now, "machines": machines, "notListed": count - listed.len(),
                "unreadable": unreadable,
            }))?;
        } else {
            if !listed.is_empty() {
                out(&table(&listed, now))?;
            }
            say(&summary(count, listed.len(), wrong, unreadable));
        }
        Ok(ExitCode::from(code))
    }

    fn lists(&self, machine: &Machine) -> bool {
        match (self.problems, &self.policy) {
            (true, _) => !machine.wrong.is_empty(),
            (false, Some(_)) => machine.has(&[Wrong::OtherPolicy]),
            (false, None) => true,
        }
    }
}

/// Whoever may ask, with any role.
fn any(home: &Home, name: Option<&str>) -> Result<Identity, Failure> {
    if let Some(name) = name {
        let role = home.named(name)?.map(|profile| profile.facts().party.role());
        return home.find(role.unwrap_or(Role::Enforcer), Some(name));
    }
    if home.profile_file().is_some() {
        return home.find(Role::Enforcer, None);
    }
    let mut found: Option<Identity> = None;
    for (name, profile) in home.all()? {
        let profile = profile.map_err(failed)?;
        let Some(known) = &found else {
            found = Some(Identity::new(name.to_string(), profile));
            continue;
        };
        let (one, other) = (known.profile.facts(), profile.facts());
        if one.gateway != other.gateway || one.tenant != other.tenant {
            let what = format!("the profiles {} and {name} are of different teams", known.name);
            return Err(Failure::new(Exit::NotSetUp, what).next("say which one with --profile NAME"));
        }
    }
    found.map_or_else(|| home.find(Role::Enforcer, None), Ok)
}

/// How many there are, how many are not listed, and what to do.
fn summary(count: usize, listed: usize, wrong: usize, unreadable: usize) -> String {
    let machines = |count: usize| format!("{count} machine{}", if count == 1 { "" } else { "s" });
    let first = match (count, listed) {
        (0, _) => "No machine was seen.".to_owned(),
        (_, listed) if listed < count => format!("{listed} of {}.", machines(count)),
        _ => format!("{}.", machines(count)),
    };
    let others = (unreadable > 0).then(|| format!("{unreadable} more can't be read."));
    let whose = (listed > 0).then(|| "Each one's own word, from when it last connected.".to_owned());
    let text = [Some(first), others, whose].into_iter().flatten().collect::<Vec<_>>().join(" ");
    match wrong {
        0 => text,
        _ => {
            text + "\n✗ is something to put right. On that machine, `countersign doctor` and `countersign policy show` say what."
        }
    }
}
