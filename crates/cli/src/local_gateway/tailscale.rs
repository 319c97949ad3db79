//! Tailscale, where it is installed: it gives this machine a name with a certificate that only the user's own devices reach.

use std::process::{Command, Stdio};

use countersign_agents::tool::exit::{Exit, Failure};
use serde::Deserialize;

use super::binary::in_path;

/// A machine in a tailnet.
#[derive(Debug)]
pub struct Tailscale {
    name: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(rename = "Self")]
    this: Node,
}

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "DNSName")]
    name: String,
}

impl Tailscale {
    /// `None` if it is not installed, or not connected.
    pub fn of_machine() -> Option<Self> {
        in_path("tailscale")?;
        let output =
            Command::new("tailscale").args(["status", "--json"]).stdin(Stdio::null()).output().ok()?;
        let status: Status = serde_json::from_slice(&output.stdout).ok()?;
        let name = status.this.name.trim_end_matches('.').to_owned();
        (output.status.success() && !name.is_empty()).then_some(Self { name })
    }

    /// Where the user's other devices reach this machine.
    pub fn url(&self) -> String {
        format!("https://{}", self.name)
    }

    /// Serves a port of this machine to the user's other devices.
    pub fn serve(&self, port: u16) -> Result<(), Failure> {
        let ran = Command::new("tailscale")
            .args(["serve", "--bg", &port.to_string()])
            .stdin(Stdio::null())
            .output();
        match ran {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => {
                let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Err(Failure::new(Exit::Failed, format!("tailscale serve failed: {reason}"))
                    .next("mend that, or use a proxy of your own with --public-url"))
            }
            Err(error) => Err(Failure::new(Exit::Failed, format!("tailscale can't be run: {error}"))),
        }
    }
}
