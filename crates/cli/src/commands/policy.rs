//! `policy`: what the administrator of this machine has laid down.

use clap::{Args, Subcommand};
use countersign_agents::{
    rules::policy::{self, FILE, Policy},
    tool::{
        exit::Failure,
        home::Home,
        output::{columns, object, out},
    },
};
use countersign_client::{payload::visible_code, profile::GatewayUrl};
use countersign_wire::machine::PolicyId;
use serde_json::{Value, json};

use super::{options::Options, rules};

/// The policy of this machine, which other rules can only tighten.
///
/// It is /etc/countersign/policy.toml, and belongs to root. Nothing here changes it. docs/policy.md explains it.
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Say what the administrator has laid down for this machine.
    ///
    /// It fails if there is a policy and it can't be used. Agents are denied everything then.
    Show(Show),
    /// Say which rule decides about a call, and what the policy alone says of it.
    Test(rules::Test),
}

/// Say what the administrator has laid down for this machine.
#[derive(Debug, Args)]
pub(super) struct Show {}

impl PolicyCommand {
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Show(Show {}) => show(options),
            Self::Test(test) => test.run_with_policy(options),
        }
    }
}

fn show(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let policy = Policy::of_machine(home.user()).map_err(|error| error.failure())?;
    let id = policy::report().id;
    match (options.json, &policy) {
        (true, Some(policy)) => object(&json!({ "file": FILE, "id": id, "policy": json_of(policy) })),
        (true, None) => object(&json!({ "file": FILE, "policy": null })),
        (false, Some(policy)) => out(&columns(&rows(policy, id.as_ref()))),
        (false, None) => out(&format!("there is no policy on this machine ({FILE})")),
    }
}

fn json_of(policy: &Policy) -> Value {
    let rule = |line: &countersign_agents::rules::Line| json!({ "verdict": line.verdict, "what": line.what, "place": line.place });
    json!({
        "mode": policy.requires_gate().then_some("gate"),
        "ask": policy.people(),
        "gateway": policy.gateway().map(GatewayUrl::as_str),
        "tenant": policy.tenant(),
        "minimumVersion": policy.minimum_version(),
        "unlisted": policy.asks_unlisted().then_some("ask"),
        "rules": policy.lines().iter().map(rule).collect::<Vec<_>>(),
    })
}

fn rows(policy: &Policy, id: Option<&PolicyId>) -> Vec<Vec<String>> {
    let row = |name: &str, what: String, place: &str| vec![name.to_owned(), what, place.to_owned()];
    let people = match policy.people() {
        [] => "everybody who is paired may be asked".to_owned(),
        people => format!("only {} may be asked", people.join(", ")),
    };
    let mode = match policy.requires_gate() {
        true => "every hook is a gate, whatever it was installed as",
        false => "as the hook was installed",
    };
    let unlisted = match policy.asks_unlisted() {
        true => "what no rule here allows, no other rule can allow",
        false => "other rules decide about what no rule here names",
    };
    let any = |name: &str| format!("any {name}");
    let gateway = policy.gateway().map_or_else(|| any("gateway"), |gateway| gateway.as_str().to_owned());
    let tenant = policy.tenant().map_or_else(|| any("tenant"), ToString::to_string);
    let version =
        policy.minimum_version().map_or_else(|| any("version"), |least| format!("{least} or newer"));
    let mut rows = vec![
        row("file", FILE.to_owned(), ""),
        row("id", id.map(ToString::to_string).unwrap_or_default(), ""),
        row("mode", mode.to_owned(), ""),
        row("ask", people, ""),
        row("gateway", gateway, ""),
        row("tenant", tenant, ""),
        row("version", version, ""),
        row("unlisted", unlisted.to_owned(), ""),
    ];
    rows.extend(
        policy.lines().iter().map(|line| row(line.verdict.word(), visible_code(&line.what), &line.place)),
    );
    rows
}
