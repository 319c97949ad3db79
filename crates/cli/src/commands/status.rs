//! `status`.

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    home::{Home, failed, word},
    output::{columns, object, out, say},
};
use countersign_client::{
    http::Http,
    profile::{Profile, Role},
};
use serde_json::{Value, json};

use super::options::Options;

/// Show who this machine is and whether it can reach its gateway.
#[derive(Debug, Args)]
pub(super) struct Status {}

impl Status {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let mut rows = Vec::new();
        let mut objects = Vec::new();
        let mut roles = Vec::new();
        for (name, profile) in home.all()? {
            if options.profile.as_deref().is_some_and(|wanted| wanted != name.as_str()) {
                continue;
            }
            match profile {
                Ok(profile) => {
                    let reached = reach(&profile).await;
                    roles.push(profile.facts().party.role());
                    rows.push(row(name.as_str(), &profile, reached.as_deref())?);
                    objects.push(json_of(name.as_str(), &profile, reached.as_deref())?);
                }
                Err(error) => {
                    rows.push(vec![name.to_string(), error.to_string()]);
                    objects.push(json!({ "profile": name.as_str(), "error": error.to_string() }));
                }
            }
        }
        if options.json {
            return object(&json!({ "profiles": objects }));
        }
        if rows.is_empty() {
            return Err(Failure::new(Exit::NotSetUp, "nothing is set up here yet").next(
                "run `countersign up` for a gateway of your own, or `countersign join` with an invitation",
            ));
        }
        out(&columns(&rows))?;
        if roles.contains(&Role::Enforcer) && roles.contains(&Role::Approver) {
            say(
                "Both sides are in one account. Convenient, but any program in this account can bypass Countersign. Your passphrase keeps it from approving in your name.",
            );
        }
        Ok(())
    }
}

/// `None` if the gateway answers; else why not.
async fn reach(profile: &Profile) -> Option<String> {
    let http = match Http::new(profile.facts().gateway.clone(), Some(profile.credential())) {
        Ok(http) => http,
        Err(error) => return Some(error.to_string()),
    };
    http.check().await.err().map(|error| error.to_string())
}

fn row(name: &str, profile: &Profile, unreachable: Option<&str>) -> Result<Vec<String>, Failure> {
    let facts = profile.facts();
    Ok(vec![
        name.to_owned(),
        format!("{} {}", word(facts.party.role()), facts.party.id()),
        format!("key {}", profile.fingerprint().short()),
        format!("{} paired", paired(profile)?),
        facts.gateway.as_str().to_owned(),
        unreachable.map_or_else(|| "✓ reachable".to_owned(), |reason| format!("✗ {reason}")),
    ])
}

fn paired(profile: &Profile) -> Result<usize, Failure> {
    let pins = profile.pins().map_err(failed)?;
    Ok(pins.iter().filter(|pin| pin.revoked_at().is_none()).count())
}

fn json_of(name: &str, profile: &Profile, unreachable: Option<&str>) -> Result<Value, Failure> {
    let facts = profile.facts();
    Ok(json!({
        "profile": name, "role": word(facts.party.role()), "id": facts.party.id(), "tenant": facts.tenant,
        "gateway": facts.gateway.as_str(), "fingerprint": profile.fingerprint().to_string(),
        "pairedDevices": paired(profile)?, "reachable": unreachable.is_none(), "error": unreachable,
    }))
}
