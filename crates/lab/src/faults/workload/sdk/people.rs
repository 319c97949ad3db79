//! Joining and pairing.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use countersign_client::{
    approver::Approver,
    clock::SystemClock,
    enforcer::{Answered, Enforcer},
    http::Http,
    join::{JoinLink, join},
    journal::FileJournal,
    keys::DeviceKeys,
    profile::{Credential, Facts, FileKeys, GatewayUrl, Party, Profile, Role},
};
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::super::world::World;
use crate::Failure;

/// For how long an invitation is asked for again. Bare clients already work while others join, so an answer may be late.
const INVITATION_TIME: Duration = Duration::from_mins(1);

/// The profiles of everybody who uses the client library. They are deleted with it.
pub(in super::super) struct People {
    folder: TempDir,
}

impl People {
    pub(in super::super) fn new() -> Result<Self, Failure> {
        Ok(Self { folder: TempDir::new()? })
    }

    /// Joins as somebody new with an invitation of the operator; returns the folder of the profile.
    pub(in super::super) async fn join(
        &self,
        world: &World,
        tenant: usize,
        party: Party,
    ) -> Result<PathBuf, Failure> {
        let node = &world.setup.nodes[tenant % world.setup.nodes.len()];
        let invitation = invitation(world, tenant, node, &party).await?;
        let link: JoinLink = format!("{node}/join#{invitation}").parse()?;
        let joined = join(&link).await?;
        let facts = Facts {
            party: joined.party,
            tenant: joined.tenant.parse()?,
            gateway: joined.gateway,
            label: countersign_wire::Label::new(&world.marked(tenant, "device")),
        };
        let folder = self.folder.path().join(party.id().replace(':', "-"));
        Profile::create(&folder, facts, &joined.credential, &DeviceKeys::generate()?, &FileKeys)?;
        Ok(folder)
    }
}

/// An invitation for this party. What the gateway refuses is not asked for again.
async fn invitation(world: &World, tenant: usize, node: &str, party: &Party) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Invited {
        invitation: String,
    }
    let role = match party.role() {
        Role::Enforcer => "enforcer",
        Role::Approver => "approver",
    };
    let body = json!({ "role": role, "id": party.id() }).to_string();
    let until = Instant::now() + INVITATION_TIME;
    let answer = loop {
        match invite(world, tenant, node, body.clone()).await {
            Err(error)
                if Instant::now() < until
                    && !error.status().is_some_and(|status| status.is_client_error()) =>
            {
                sleep(Duration::from_millis(200)).await;
            }
            answer => break answer?,
        }
    };
    let Invited { invitation } = serde_json::from_slice(&answer)?;
    Ok(invitation)
}

async fn invite(world: &World, tenant: usize, node: &str, body: String) -> reqwest::Result<Vec<u8>> {
    let request = world.http.post(format!("{node}/platform/v1/invitations")).body(body);
    let request = request.header("content-type", "application/json").timeout(Duration::from_secs(10));
    let answer = request.bearer_auth(&world.tenant(tenant).operator_key).send().await?;
    Ok(answer.error_for_status()?.bytes().await?.to_vec())
}

/// An enforcer with the profile of this folder, at one node.
pub(super) fn enforcer(folder: &Path, node: &str) -> Result<(Enforcer, Profile), Failure> {
    let profile = Profile::open(folder)?;
    let Party::Enforcer(id) = profile.facts().party.clone() else { return Err("not an enforcer".into()) };
    let journal = profile.journal().ok_or("a profile in a folder has a journal")?;
    let (http, keys) = (http(node, profile.credential())?, profile.unlock(None)?);
    let journal = Arc::new(FileJournal::new(journal));
    Ok((Enforcer { http, id, keys, clock: Arc::new(SystemClock), journal }, profile))
}

/// An approver with the profile of this folder, at one node.
pub(super) fn approver(folder: &Path, node: &str) -> Result<(Approver, Profile), Failure> {
    let profile = Profile::open(folder)?;
    let Party::Approver(id) = profile.facts().party.clone() else { return Err("not an approver".into()) };
    let (http, keys) = (http(node, profile.credential())?, profile.unlock(None)?);
    Ok((Approver { http, id, keys, clock: Arc::new(SystemClock) }, profile))
}

fn http(node: &str, credential: &Credential) -> Result<Http, Failure> {
    Ok(Http::new(GatewayUrl::new(node)?, Some(credential))?)
}

/// Pairs an enforcer with an approver by a link.
pub(in super::super) async fn pair(
    node: &str,
    of_enforcer: &Path,
    of_approver: &Path,
) -> Result<(), Failure> {
    let (robot, robots) = enforcer(of_enforcer, node)?;
    let (ada, adas) = approver(of_approver, node)?;
    let started = robot.start_pairing("robot").await?;
    let there = ada.pair_by_link(&started.link.to_string().parse()?).await?;
    let here = robot.finish_pairing(&started, Answered::Link).await?;
    robots.update_pins(|pins| pins.insert(here.pin))?;
    adas.update_pins(|pins| pins.insert(there.pin))?;
    Ok(())
}
