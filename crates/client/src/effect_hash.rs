//! Identifies what an artifact does, so that an approval can cover the same again (docs/grants.md).

use countersign_wire::{
    RawObject, Verbatim,
    artifact::{Artifact, ArtifactType},
    canonical,
    hash::Sha256Hex,
};
use serde_json::json;
use zeroize::Zeroizing;

use crate::request::{Draft, repo_name};

/// The hash of what an artifact does: its type, payload and repository, without salt, ids and times.
pub fn effect_hash(
    artifact_type: ArtifactType,
    payload: RawObject<'_>,
    repo_name: &str,
) -> Result<Sha256Hex, countersign_wire::Error> {
    let object = json!({ "artifactType": artifact_type, "payload": payload, "repoName": repo_name, "v": 1 });
    let text = Zeroizing::new(object.to_string());
    Ok(Sha256Hex::digest(&Zeroizing::new(canonical::form(text.as_bytes())?)))
}

/// The effect of a draft.
pub(crate) fn effect_of_draft(draft: &Draft) -> Result<Sha256Hex, countersign_wire::Error> {
    effect_hash(draft.artifact_type, RawObject::parse(draft.payload.as_bytes())?, &draft.repo_name)
}

/// The effect of an artifact that was built here.
pub(crate) fn effect_of_artifact(artifact: &str) -> Result<Sha256Hex, countersign_wire::Error> {
    let read: Verbatim<'_, Artifact<'_>> = countersign_wire::parse(artifact.as_bytes())?;
    effect_hash(read.artifact_type, read.payload, &repo_name(&read).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_documentation() {
        let payload = RawObject::parse(br#"{ "argv" : ["ls"] }"#).unwrap();
        let hash = effect_hash(ArtifactType::CommandReview, payload, "acme/widgets").unwrap();
        let canonical =
            r#"{"artifactType":"command.review","payload":{"argv":["ls"]},"repoName":"acme/widgets","v":1}"#;
        assert_eq!(hash, Sha256Hex::digest(canonical.as_bytes()));
    }
}
