//! `export`, and `show --export`: finished exchanges, for others to verify.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    home::{Home, failed},
    output::{object, say},
};
use countersign_client::{
    bundle::{Bundle, ProofError},
    enforcer::Enforcer,
    profile::Role,
};
use countersign_wire::{base64url, id::RequestId};
use serde_json::json;

use super::options::Options;
use crate::answers::{Answers, KeptRequest};

/// Save this machine's finished requests to a folder, for `verify`.
///
/// Each file has what was asked, in the clear, what was decided, by whose key, and what was done.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The folder to write to. It is made if it is missing; files that are there are not replaced.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error)
}

impl Export {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let enforcer = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?.enforcer()?;
        fs::create_dir_all(&self.folder).map_err(broken)?;
        let mut written = 0;
        for name in enforcer.bundles().await.map_err(broken)? {
            let Some(bundle) = enforcer.bundle(&name).await.map_err(broken)? else { continue };
            let path = self.folder.join(format!("{}.json", name.trim_end_matches(".json")));
            match write(&path, &bundle) {
                Ok(()) => written += 1,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(not_written(&path, &error)),
            }
        }
        if options.json {
            return object(&json!({ "written": written, "folder": self.folder }));
        }
        say(&format!("✓ {written} new in {}", self.folder.display()));
        Ok(())
    }
}

/// Writes a new file that only its owner can read: what was asked may be private.
fn write(path: &Path, bundle: &Bundle) -> std::io::Result<()> {
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(bundle.to_json().as_bytes()))
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    let failure = broken(format!("{} can't be written: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => failure.next("choose a name that is not there yet"),
        _ => failure,
    }
}

/// Writes one exchange: from the machine that asked, which has all of it, else from the device that has decided.
pub(super) async fn export_one(id: &str, path: &Path, options: &Options) -> Result<(), Failure> {
    let id: RequestId =
        id.parse().map_err(|_| Failure::new(Exit::Usage, "this is not the id of a request"))?;
    let (home, profile) = (Home::of_user()?, options.profile.as_deref());
    let mut found = Vec::new();
    if let Ok(identity) = home.find(Role::Enforcer, profile) {
        found = bundles_of(&identity.enforcer()?, &id).await?;
    }
    let (bundle, uses) = match (found.len(), found.into_iter().next()) {
        (uses, Some(first)) => (first, uses),
        (_, None) => (own_bundle(&home, &id, options).await?, 1),
    };
    write(path, &bundle).map_err(|error| not_written(path, &error))?;
    if options.json {
        let is_complete = bundle.artifact.is_some();
        return object(&json!({ "requestId": id, "file": path, "hasArtifact": is_complete, "uses": uses }));
    }
    say(&format!("✓ written to {}; check it with `countersign verify`", path.display()));
    if bundle.artifact.is_none() {
        say(
            "  It proves that you signed the decision, and what the machine has signed that it did. What was asked is not in it: this device keeps that of its newest 200 answers, up to 64 KB each.",
        );
    }
    if uses > 1 {
        say(&format!("  It is the first of {uses} uses; `countersign export` writes all of them."));
    }
    Ok(())
}

/// The bundles of a request, by the number of their use.
async fn bundles_of(enforcer: &Enforcer, id: &RequestId) -> Result<Vec<Bundle>, Failure> {
    let mark = format!("-{}-", base64url::encode(id.as_str().as_bytes()));
    let mut found = Vec::new();
    for name in enforcer.bundles().await.map_err(broken)?.iter().filter(|name| name.contains(&mark)) {
        found.extend(enforcer.bundle(name).await.map_err(broken)?);
    }
    found.retain(|bundle| bundle.receipt.request_id == id.as_str());
    found.sort_by_key(|bundle| bundle.receipt.number);
    Ok(found)
}

async fn own_bundle(home: &Home, id: &RequestId, options: &Options) -> Result<Bundle, Failure> {
    let identity = home.find(Role::Approver, options.profile.as_deref()).map_err(|failure| {
        Failure::new(Exit::Failed, format!("no finished exchange {id} is kept here")).next(failure.next)
    })?;
    let (approver, pins) = (identity.approver()?, identity.profile.pins().map_err(failed)?);
    let mut bundle = approver.bundle(id, &pins).await.map_err(|error| match &error {
        ProofError::Call(error) => describe(error),
        ProofError::NotDecided => broken(&error).next("answer it first"),
        ProofError::NotReported => broken(&error).next("try again when the command has ended"),
        _ => broken(&error),
    })?;
    if let Some(KeptRequest { artifact, words }) = Answers::of(&home.folder_named(&identity.name)?).asked(id)
    {
        (bundle.artifact, bundle.words) = (Some(artifact), words);
    }
    Ok(bundle)
}
