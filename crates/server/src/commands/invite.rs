//! `invite`: a link with which somebody makes a key of their own.

use std::{io::IsTerminal as _, path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use countersign_core::{
    model::invitation::{DEFAULT_INVITATION_LIFE, Invitee},
    use_cases::invitations::{InvitationSpec, NewInvitation},
};
use countersign_wire::{Label, id::TenantId, timestamp::Timestamp};
use qrcode::{QrCode, render::unicode::Dense1x2};
use serde::Serialize;

use super::{life, output};
use crate::{assemble, config::Config};

/// Invite an enforcer or approver: print a link with which they make a key of their own.
///
/// The link goes to stdout, everything else, with a QR code of the link, to stderr. Whoever has the link can join,
/// once: give it to nobody else.
#[derive(Debug, Args)]
pub struct Invite {
    /// The configuration file of the gateway. Its `public_url` is where the link leads.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The tenant: 1 to 63 lowercase letters, digits and dashes.
    #[arg(long)]
    tenant: TenantId,
    /// What they are to be.
    #[arg(long)]
    role: InviteeRole,
    /// Which enforcer or approver they are to be.
    #[arg(long)]
    id: String,
    /// What people call the key, for lists.
    #[arg(long)]
    label: Option<Label>,
    /// How long the link is valid, for example 30m or 7d, at most that.
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = life::life)]
    expires: Duration,
    /// For programs: one object on stdout, and nothing else.
    #[arg(long)]
    json: bool,
}

/// What somebody is invited to be.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum InviteeRole {
    /// Submits for an agent.
    Enforcer,
    /// Reviews and decides for people.
    Approver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invited<'a> {
    invitation_id: &'a str,
    invitation: String,
    link: &'a str,
    tenant: &'a TenantId,
    expires_at: Timestamp,
}

impl Invite {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        countersign_wire::api_key::check_tenant(&self.tenant)
            .map_err(|rule| anyhow::anyhow!("--tenant {rule}"))?;
        let invitee = self.invitee()?;
        let config = Config::read(&self.config)?;
        if config.public_url.is_none() && config.listen.port() == 0 {
            anyhow::bail!("the link would lead nowhere: set public_url in {}", self.config.display());
        }
        let gateway = assemble::gateway(&config).await?;
        let secrets = assemble::secrets(&config, &gateway).await?;
        let spec = InvitationSpec { invitee, label: self.label.clone(), life: self.expires };
        let made = gateway.invite(&self.tenant, spec, &secrets.mac_key()).await;
        let made = made.context("no invitation was made; --expires is at most 7d")?;
        self.print(&made, &made.invitation.link(&config.public_url()))
    }

    fn invitee(&self) -> anyhow::Result<Invitee> {
        let bad_id = |rule: countersign_wire::Rule| anyhow::anyhow!("--id {rule}");
        match self.role {
            InviteeRole::Enforcer => self.id.parse().map(Invitee::Enforcer).map_err(bad_id),
            InviteeRole::Approver => self.id.parse().map(Invitee::Approver).map_err(bad_id),
        }
    }

    fn print(&self, made: &NewInvitation, link: &str) -> anyhow::Result<()> {
        if self.json {
            let (id, invitation) = (made.invitation.id().as_str(), made.invitation.expose());
            let (tenant, expires_at) = (&self.tenant, made.expires_at);
            let invited = Invited { invitation_id: id, invitation, link, tenant, expires_at };
            return output::out(&serde_json::to_string(&invited)?);
        }
        output::say(&qr_code(link, std::io::stderr().is_terminal())?);
        output::say(&format!(
            "Good once, until {}. Whoever has it can join as {}:",
            made.expires_at, self.id
        ));
        output::out(link)
    }
}

/// The default life, as the command line writes it.
const _: () = assert!(DEFAULT_INVITATION_LIFE.as_secs() == 24 * 60 * 60, "the default of --expires is 1d");

/// For a camera: two modules in each character. In a terminal light is white and dark is black, however it is set.
fn qr_code(text: &str, in_terminal: bool) -> anyhow::Result<String> {
    let code = QrCode::with_error_correction_level(text, qrcode::EcLevel::L)?;
    // Characters are drawn in the light colour, so what is drawn is what is light.
    let drawn = code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build();
    let (before, after) = if in_terminal { ("\x1b[97;40m", "\x1b[0m") } else { ("", "") };
    Ok(drawn.lines().map(|line| format!("{before}{line}{after}")).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_qr_code_of_a_link_fits_a_terminal() {
        let (tenant, id, secret) = ("a".repeat(20), "0".repeat(42), "0".repeat(64));
        let link = format!("https://gateway.example.org/join#csi_{tenant}_{id}_{secret}");
        let code = qr_code(&link, false).unwrap();
        let lines: Vec<&str> = code.lines().collect();
        let width = lines[0].chars().count();
        assert!(width <= 66 && width.div_ceil(2) == lines.len(), "{width} columns, {} lines", lines.len());
        assert!(lines[0].chars().all(|char| char == '█'), "a light frame: {}", lines[0]);
        assert!(code.contains(' ') && !code.contains('\x1b'), "{code}");
        assert!(qr_code(&link, true).unwrap().lines().all(|line| line.starts_with("\x1b[97;40m")));
    }
}
