//! `config`: where everything lies, and what applies.

use std::{env, ffi::OsStr, path::Path};

use clap::Args;
use countersign_agents::tool::{
    exit::Failure,
    home::{Home, NamedProfile, PROFILE_FILE_VARIABLE, failed, word},
    moment,
    output::{columns, object, out},
};
use countersign_client::{
    grant::GrantRules,
    journal::Retention,
    payload::visible,
    profile::{HOME_VARIABLE, KeyPlace, Profile, Role},
};
use serde_json::{Value, json};

use super::{ask, options::Options};
use crate::review::APPROVAL_VALID;

/// Show where Countersign keeps its files and which settings apply.
///
/// Folders, profiles, variables that are set, and limits. No key, no credential and no passphrase is shown, and nobody is
/// called.
#[derive(Debug, Args)]
pub(super) struct Config {}

/// The variables that the tool reads. Their values are paths and names.
const VARIABLES: &[&str] =
    &[HOME_VARIABLE, "COUNTERSIGN_PROFILE", PROFILE_FILE_VARIABLE, "COUNTERSIGN_SESSION", "NO_COLOR"];

pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let profiles = home.all()?;
    match options.json {
        true => object(&json_of(&home, &profiles, options)?),
        false => out(&columns(&rows(&home, &profiles, options)?)),
    }
}

/// The variables that are set and begin like ours, with the values of those that are read.
fn variables() -> Vec<(String, Option<String>)> {
    let is_ours = |name: &OsStr| {
        let name = name.to_string_lossy();
        name.starts_with("COUNTERSIGN_") || VARIABLES.contains(&&*name)
    };
    let mut found: Vec<(String, Option<String>)> = env::vars_os()
        .filter(|(name, value)| is_ours(name) && !value.is_empty())
        .map(|(name, value)| {
            let name = name.to_string_lossy().into_owned();
            // What is not known here may be a secret of somebody else.
            let value = VARIABLES.contains(&name.as_str()).then(|| visible(&value.to_string_lossy()));
            (name, value)
        })
        .collect();
    found.sort();
    found
}

/// The profile that a command would act with, or why there is none.
fn acting(home: &Home, role: Role, options: &Options) -> Result<String, String> {
    let found = home.find(role, options.profile.as_deref());
    found.map(|identity| visible(&identity.name)).map_err(|failure| failure.what)
}

fn keys_of(profile: &Profile) -> Result<&'static str, Failure> {
    Ok(match profile.key_place().map_err(failed)? {
        Some(KeyPlace::Passphrase) => "locked by a passphrase",
        Some(KeyPlace::System) => "in the keyring of the system",
        _ => "in a file that only you can read",
    })
}

fn rows(home: &Home, profiles: &[NamedProfile], options: &Options) -> Result<Vec<Vec<String>>, Failure> {
    let shown = |path: &Path| visible(&path.display().to_string());
    let row = |name: &str, text: String| vec![name.to_owned(), text];
    let why = if home.is_usual() { "the usual place".to_owned() } else { format!("from {HOME_VARIABLE}") };
    let mut rows = vec![row("home", format!("{} ({why})", shown(home.folder())))];
    for (name, profile) in profiles {
        let what = match profile {
            Ok(profile) => {
                let facts = profile.facts();
                let (role, id) = (word(facts.party.role()), visible(facts.party.id()));
                let gateway = visible(facts.gateway.as_str());
                format!("{role} {id} at {gateway}, keys {}", keys_of(profile)?)
            }
            Err(error) => format!("can't be opened: {error}"),
        };
        rows.push(row(&format!("profile {name}"), what));
        rows.push(row("", shown(&home.profile_folder(name))));
    }
    for (name, role) in [("asks with", Role::Enforcer), ("answers with", Role::Approver)] {
        let acting = acting(home, role, options);
        rows.push(row(name, acting.unwrap_or_else(|why| format!("nobody: {why}"))));
    }
    let gateway = home.gateway_folder();
    let there = if gateway.join("gateway.toml").exists() { "" } else { ", not set up" };
    rows.push(row("own gateway", format!("{}{there}", shown(&gateway))));
    for (name, value) in variables() {
        let value = value.unwrap_or_else(|| "set, and not read by this version".to_owned());
        rows.push(row(&visible(&name), value));
    }
    let (longest, retention) = (GrantRules::default().longest, Retention::default());
    rows.push(row("requests", format!("wait {} unless --valid-for says otherwise", ask::DEFAULT_VALID_FOR)));
    rows.push(row(
        "approvals",
        format!("count for {} unless they are for longer", moment::whole(APPROVAL_VALID)),
    ));
    rows.push(row(
        "grants",
        format!("end after {} at the latest; what is dangerous always asks", moment::whole(longest)),
    ));
    rows.push(row(
        "exchanges",
        format!("kept for {}, at most {} MB", moment::whole(retention.time), retention.bytes >> 20),
    ));
    Ok(rows)
}

fn json_of(home: &Home, profiles: &[NamedProfile], options: &Options) -> Result<Value, Failure> {
    let profile = |(name, profile): &NamedProfile| {
        let folder = home.profile_folder(name);
        Ok(match profile {
            Ok(profile) => {
                let facts = profile.facts();
                json!({
                    "profile": name.as_str(), "folder": folder, "role": word(facts.party.role()),
                    "id": facts.party.id(), "tenant": facts.tenant, "gateway": facts.gateway.as_str(),
                    "keys": profile.key_place().map_err(failed)?.map(KeyPlace::as_str),
                    "journal": profile.journal(),
                })
            }
            Err(error) => json!({ "profile": name.as_str(), "folder": folder, "error": error.to_string() }),
        })
    };
    let profiles = profiles.iter().map(profile).collect::<Result<Vec<Value>, Failure>>()?;
    let variables: serde_json::Map<String, Value> =
        variables().into_iter().map(|(name, value)| (name, json!(value))).collect();
    let (longest, retention) = (GrantRules::default().longest, Retention::default());
    Ok(json!({
        "home": home.folder(), "isUsualHome": home.is_usual(), "profiles": profiles,
        "asksWith": acting(home, Role::Enforcer, options).ok(),
        "answersWith": acting(home, Role::Approver, options).ok(),
        "gatewayFolder": home.gateway_folder(), "variables": variables,
        "approvalSeconds": APPROVAL_VALID.as_secs(), "longestGrantSeconds": longest.as_secs(),
        "exchangesKeptSeconds": retention.time.as_secs(), "exchangesKeptBytes": retention.bytes,
    }))
}
