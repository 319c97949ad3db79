//! The gateway of `countersign up`: its configuration, data and log in a folder of the user, and its process.

mod binary;
mod settings;
mod tailscale;

use std::{
    ffi::OsString,
    path::PathBuf,
    process::{Command, Stdio},
};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    home::{Home, failed},
};
use countersign_client::{http::Http, profile::GatewayUrl};
use serde::Deserialize;

use self::{binary::binary, settings::Settings};
pub use self::{settings::OwnName, tailscale::Tailscale};
use crate::background::Background;

/// The tenant of a gateway for one person.
const TENANT: &str = "home";

/// The gateway of this user.
#[derive(Debug)]
pub struct LocalGateway {
    folder: PathBuf,
    /// Whether the folder is the user's usual one, for which there can be one service of the system.
    is_usual: bool,
}

#[derive(Deserialize)]
struct Invited {
    link: String,
}

impl LocalGateway {
    /// The one that belongs to a home, whether it exists or not.
    pub fn of(home: &Home) -> Self {
        Self { folder: home.gateway_folder(), is_usual: home.is_usual() }
    }

    fn config(&self) -> PathBuf {
        self.folder.join("gateway.toml")
    }

    fn unusable(&self, error: impl std::fmt::Display) -> Failure {
        Failure::new(Exit::Failed, format!("{} can't be used: {error}", self.folder.display()))
    }

    /// Writes the configuration when there is none. What the user has changed in it stays.
    pub fn configure(&self) -> Result<(), Failure> {
        match self.config().exists() {
            true => Ok(()),
            false => Settings::create(&self.folder, &self.config()).map_err(|error| self.unusable(error)),
        }
    }

    /// Sets where other devices reach the gateway. Returns whether that has changed.
    pub fn set_public_url(&self, url: &str) -> Result<bool, Failure> {
        if !url.starts_with("https://") || GatewayUrl::new(url).is_err() {
            return Err(Failure::new(Exit::Usage, "--public-url must begin with https://").next(
                "plain HTTP would show every credential to the network; put a proxy with a certificate in front",
            ));
        }
        let mut settings = self.settings()?;
        let changed = settings.set_public_url(url);
        if changed {
            settings.write(&self.config()).map_err(|error| self.unusable(error))?;
        }
        Ok(changed)
    }

    /// Makes the gateway reachable under a name of the user's, with a certificate that comes by itself. Returns whether that has
    /// changed, and what the gateway says of it. What can't work is not kept.
    pub fn set_name(&self, own: &OwnName) -> Result<(bool, Vec<String>), Failure> {
        let is_name = own.name.contains('.') && GatewayUrl::new(&format!("https://{}", own.name)).is_ok();
        if !is_name || own.name.contains(['/', ':', '@', '"', '\\']) {
            let message = format!("--name {:?} is not a name of the DNS", own.name);
            return Err(Failure::new(Exit::Usage, message)
                .next("write it like gateway.example.org, without https://"));
        }
        let (before, mut settings) = (self.settings()?, self.settings()?);
        let changed = settings.set_name(own).map_err(|reason| self.unusable(reason))?;
        let write =
            |settings: &Settings| settings.write(&self.config()).map_err(|error| self.unusable(error));
        write(&settings)?;
        match self.check() {
            Ok(said) => Ok((changed, said)),
            Err(failure) => {
                write(&before)?;
                Err(failure)
            }
        }
    }

    /// Whether it gets its certificate from an authority.
    pub fn orders_certificate(&self) -> bool {
        self.settings().is_ok_and(|settings| settings.orders_certificate())
    }

    /// What the gateway says of its own configuration, name, port and authority; an error if something is wrong.
    fn check(&self) -> Result<Vec<String>, Failure> {
        let mut command = Command::new(binary()?);
        command.args(["check", "--config"]).arg(self.config()).stdin(Stdio::null());
        let checked = command.output().map_err(|error| self.unusable(error))?;
        let said = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
        let lines: Vec<String> = said.lines().map(str::to_owned).collect();
        match (checked.status.success(), lines.split_last()) {
            (true, _) => Ok(lines),
            (false, Some((reason, _))) => {
                let reason = reason.trim_start_matches("countersign-gateway: ");
                Err(Failure::new(Exit::NotSetUp, reason).next("mend that, then run this again"))
            }
            (false, None) => Err(self.unusable("countersign-gateway check says nothing")),
        }
    }

    fn settings(&self) -> Result<Settings, Failure> {
        Settings::read(&self.config()).map_err(|error| self.unusable(error))
    }

    /// Where this machine reaches the gateway.
    pub fn url(&self) -> Result<GatewayUrl, Failure> {
        let settings = self.settings()?;
        let listen =
            settings.listen().ok_or_else(|| self.unusable("gateway.toml has no line: listen = \"…\""))?;
        GatewayUrl::new(&format!("http://{listen}")).map_err(failed)
    }

    /// Where other devices reach the gateway at this address; `None` if it is another gateway, or no address is set.
    pub fn public_url_of(&self, gateway: &GatewayUrl) -> Option<GatewayUrl> {
        let settings = self.is_at(gateway).then(|| self.settings().ok()).flatten()?;
        GatewayUrl::new(settings.public_url()?).ok()
    }

    /// Whether this machine runs the gateway at this address, and so invites.
    pub fn is_at(&self, gateway: &GatewayUrl) -> bool {
        self.config().exists() && self.url().is_ok_and(|own| own == *gateway)
    }

    /// Why an address does not lead to a gateway; `None` if it does.
    pub async fn unreachable(&self, gateway: &GatewayUrl) -> Option<String> {
        reason_not_to_answer(gateway).await
    }

    /// The port that it listens on.
    pub fn port(&self) -> Result<u16, Failure> {
        let settings = self.settings()?;
        let port = settings.listen().and_then(|listen| listen.rsplit_once(':')?.1.parse().ok());
        port.ok_or_else(|| self.unusable("gateway.toml has no port in its line: listen = \"…\""))
    }

    /// Starts the gateway, unless it answers already.
    pub async fn start(&self) -> Result<GatewayUrl, Failure> {
        let url = self.url()?;
        if !answers(&url).await {
            self.background(binary()?.into()).start(async || answers(&url).await).await?;
        }
        Ok(url)
    }

    /// Stops the gateway; false if it was not running.
    pub async fn stop(&self) -> Result<bool, Failure> {
        let is_running = async || match self.url() {
            Ok(url) => answers(&url).await,
            Err(_) => false,
        };
        self.background("countersign-gateway".into()).stop(is_running).await
    }

    fn background(&self, binary: OsString) -> Background {
        Background {
            name: "gateway",
            service: "countersign-gateway",
            command: vec![binary, "serve".into(), "--config".into(), self.config().into()],
            folder: self.folder.clone(),
            may_be_service: self.is_usual,
        }
    }

    /// Invites somebody, and returns the link, which leads to the public address.
    pub fn invite(&self, role: &str, id: &str) -> Result<String, Failure> {
        let invited = Command::new(binary()?)
            .args(["invite", "--json", "--tenant", TENANT, "--role", role, "--id", id, "--config"])
            .arg(self.config())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.unusable(error))?;
        let invited: Invited = serde_json::from_slice(&invited.stdout).map_err(|_| {
            let reason = String::from_utf8_lossy(&invited.stderr).trim().to_owned();
            Failure::new(Exit::Failed, format!("the gateway does not admit {id}: {reason}"))
        })?;
        Ok(invited.link)
    }
}

/// Whether a gateway is ready there.
async fn answers(url: &GatewayUrl) -> bool {
    reason_not_to_answer(url).await.is_none()
}

/// Why no gateway is ready there; `None` if one is.
async fn reason_not_to_answer(url: &GatewayUrl) -> Option<String> {
    let checked = async { Http::new(url.clone(), None)?.check().await };
    checked.await.err().map(|error| error.to_string())
}
