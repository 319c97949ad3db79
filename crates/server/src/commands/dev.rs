//! `dev`: a gateway to try things out.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use anyhow::Context as _;
use clap::Args;
use countersign_core::{
    Gateway,
    model::{
        credential::Role,
        invitation::{DEFAULT_INVITATION_LIFE, Invitee},
    },
    use_cases::invitations::InvitationSpec,
};
use countersign_wire::{id::TenantId, mac::MacKey};
use serde::Serialize;

use super::{
    output,
    serve::{listen, serve_until_signalled},
};
use crate::{
    assemble,
    config::{Config, Log, LogFormat, LogLevel, RateLimits},
    telemetry,
};

/// Run a gateway to try things out: on this machine only, nothing to configure.
///
/// It has one tenant, `dev`, and three keys, which it prints: one that may act as any enforcer, one that may act
/// as any approver, and one for the operator. It also prints two links with which clients can join. Without --data everything is gone when it stops.
#[derive(Debug, Args)]
pub struct Dev {
    /// Where to listen; on the loopback only. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787")]
    listen: SocketAddr,
    /// Keep the data in this folder instead of a temporary one.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// For programs: the first line on stdout is an object with the address, the keys and the links.
    #[arg(long)]
    json: bool,
    /// Log each request to stderr.
    #[arg(long)]
    verbose: bool,
}

/// How to reach the gateway that was started.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Started {
    url: String,
    tenant: String,
    operator_key: String,
    enforcer_key: String,
    approver_key: String,
    enforcer_join_link: String,
    approver_join_link: String,
}

impl Dev {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let temporary = match self.data {
            Some(_) => None,
            None => {
                Some(tempfile::tempdir().context("no temporary folder can be made; name one with --data")?)
            }
        };
        let data = self.data.as_deref().or(temporary.as_ref().map(tempfile::TempDir::path));
        let mut config = Config {
            listen: self.listen,
            gateway_id: "dev".to_owned(),
            data: data.map(PathBuf::from).unwrap_or_default(),
            log: Log {
                format: LogFormat::Text,
                level: if self.verbose { LogLevel::Info } else { LogLevel::Warn },
            },
            rates: RateLimits::off(),
            ..Config::default()
        };
        config.check()?;
        let _flush = telemetry::start(config.log, &config.traces)?;
        let gateway = assemble::gateway(&config).await?;
        let listener = listen(config.listen).await?;
        config.listen = listener.local_addr()?;
        let secrets = assemble::secrets(&config, &gateway).await?;
        let started = started(&gateway, &secrets.mac_key(), listener.local_addr()?).await?;
        let app = assemble::app(&config, gateway, secrets)?;
        if self.json {
            output::out(&serde_json::to_string(&started)?)?;
        } else {
            output::say(&page(&started, self.data.as_deref().map(|data| data.display().to_string())));
        }
        let drain = app.drain().clone();
        serve_until_signalled(listener, assemble::service(app), drain).await
    }
}

/// Makes the three keys and two invitations, new ones at every start: they are stored nowhere and can't be shown again.
async fn started(gateway: &Gateway, mac_key: &MacKey, address: SocketAddr) -> anyhow::Result<Started> {
    let tenant: TenantId = id("dev")?;
    let key = async |role| anyhow::Ok(gateway.create_key(&tenant, role, mac_key).await?.key.expose());
    let url = format!("http://{address}");
    let link = async |invitee| {
        let spec = InvitationSpec { invitee, label: None, life: DEFAULT_INVITATION_LIFE };
        anyhow::Ok(gateway.invite(&tenant, spec, mac_key).await?.invitation.link(&url))
    };
    Ok(Started {
        url: url.clone(),
        tenant: tenant.to_string(),
        operator_key: key(Role::Operator).await?,
        enforcer_key: key(Role::Enforcer(None)).await?,
        approver_key: key(Role::Approver(None)).await?,
        enforcer_join_link: link(Invitee::Enforcer(id("dev-enforcer")?)).await?,
        approver_join_link: link(Invitee::Approver(id("dev-approver")?)).await?,
    })
}

fn id<T: FromStr<Err = countersign_wire::Rule>>(text: &str) -> anyhow::Result<T> {
    text.parse().map_err(|rule| anyhow::anyhow!("{rule}"))
}

/// What a person sees first. docs/by-hand.md shows the same commands, and a test compares the two.
const PAGE: &str = include_str!("dev_page.txt");

fn page(started: &Started, data: Option<String>) -> String {
    let kept = match data {
        Some(folder) => format!("The data is in {folder}."),
        None => "The data is in a temporary folder and goes with the gateway.".to_owned(),
    };
    PAGE.replace("{url}", &started.url)
        .replace("{enforcer}", &started.enforcer_key)
        .replace("{approver}", &started.approver_key)
        .replace("{operator}", &started.operator_key)
        .replace("{enforcer_link}", &started.enforcer_join_link)
        .replace("{approver_link}", &started.approver_join_link)
        .replace("{kept}", &kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_on_the_page_are_those_of_the_documentation() {
        let page = include_str!("../../../../docs/by-hand.md").replace("\n$ ", "\n");
        let commands: Vec<&str> = PAGE.split("\n\n").filter(|part| part.contains("curl -s")).collect();
        assert_eq!(commands.len(), 4);
        for command in commands {
            assert!(page.contains(command), "not in docs/by-hand.md: {command}");
        }
    }
}
