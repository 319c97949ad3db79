//! Identifies what an artifact does, so that an approval can cover the same again (docs/grants.md).

use countersign_wire::{
    RawObject, Verbatim,
    artifact::{Artifact, ArtifactType},
    canonical,
    hash::Sha256Hex,
};
use serde_json::{json, value::RawValue};
use zeroize::Zeroizing;

use crate::{
    content::payload::{ABOUT, SCHEMA},
    exchange::request::{Draft, repo_name},
};

/// Members of a call that identify it. The message is called `call` in what is hashed.
const IN_KEY: [&str; 8] =
    ["kind", "moment", "tool", "folder", "repository", "message", "environment", "files"];

/// The hash of what an artifact does, without salt, ids and times: the grant key (docs/payloads.md). Payloads without a call
/// are hashed with their type and repository.
pub fn effect_hash(
    artifact_type: ArtifactType,
    payload: RawObject<'_>,
    repo_name: &str,
) -> Result<Sha256Hex, countersign_wire::Error> {
    let mut members = payload.members()?;
    let is_ours = members.optional::<String>("schema").ok().flatten().as_deref() == Some(SCHEMA)
        && members.optional::<f64>("version").ok().flatten() == Some(2.0);
    let call: Option<RawObject<'_>> = if is_ours { members.optional("call")? } else { None };
    let object = match (is_ours, call) {
        (_, Some(call)) => key_of(call)?,
        (true, None) => {
            let text = Zeroizing::new(payload.text_without(&ABOUT)?);
            let payload = RawObject::parse(text.as_bytes())?;
            json!({ "v": 2, "kind": artifact_type, "repository": repo_name, "call": payload }).to_string()
        }
        (false, None) => {
            json!({ "artifactType": artifact_type, "payload": payload, "repoName": repo_name, "v": 1 })
                .to_string()
        }
    };
    let object = Zeroizing::new(object);
    // No member has an empty name: all are hashed, and numbers that readers round differently are refused.
    let canonical = canonical::form_without(RawObject::parse(object.as_bytes())?, "")?;
    Ok(Sha256Hex::digest(&Zeroizing::new(canonical)))
}

/// What identifies a call, as JSON.
fn key_of(call: RawObject<'_>) -> Result<String, countersign_wire::Error> {
    let mut members = call.members()?;
    let mut key = String::from(r#"{"v":2"#);
    for name in IN_KEY {
        let value = members.optional::<&RawValue>(name)?.map(RawValue::get);
        let (name, absent) = match name {
            "message" => ("call", "{}"),
            "environment" | "files" => (name, "[]"),
            _ => (name, "null"),
        };
        let text = [",\"", name, "\":", value.unwrap_or(absent)];
        key.extend(text);
    }
    key.push('}');
    Ok(key)
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

    fn hash(payload: &str) -> Sha256Hex {
        let payload = RawObject::parse(payload.as_bytes()).unwrap();
        effect_hash(ArtifactType::CommandReview, payload, "acme/widgets").unwrap()
    }

    #[test]
    fn the_hash_is_that_of_the_documentation() {
        let canonical =
            r#"{"artifactType":"command.review","payload":{"argv":["ls"]},"repoName":"acme/widgets","v":1}"#;
        assert_eq!(hash(r#"{ "argv" : ["ls"] }"#), Sha256Hex::digest(canonical.as_bytes()));
        let canonical = r#"{"call":{"schema":"org.proto.payload","version":2},"kind":"command.review","repository":"acme/widgets","v":2}"#;
        let given = r#"{"schema":"org.proto.payload","version":2,"words":"I only look","task":"x"}"#;
        assert_eq!(hash(given), Sha256Hex::digest(canonical.as_bytes()));
        let canonical = r#"{"call":{"a":1},"environment":[],"files":[],"folder":"/w","kind":"exec","moment":"run","repository":null,"tool":"ls","v":2}"#;
        let given = r#"{"schema":"org.proto.payload","version":2,"argv":["ls"],"call":{"kind":"exec","moment":"run","tool":"ls",
            "folder":"/w","message":{"a":1},"aside":{"/id":1},"digest":"x","shown":[]}}"#;
        assert_eq!(hash(given), Sha256Hex::digest(canonical.as_bytes()));
    }

    #[test]
    fn only_members_of_the_key_change_it() {
        let of = |member: &str| {
            hash(&format!(
                r#"{{"schema":"org.proto.payload","version":2,"call":{{"kind":"exec","moment":"run","tool":"ls","folder":"/w","message":{{}}{member}}}}}"#
            ))
        };
        let same = of("");
        for aside in
            [r#","aside":{"/a":1}"#, r#","digest":"x""#, r#","shown":["/a"]"#, r#","environment":[]"#]
        {
            assert_eq!(of(aside), same, "{aside}");
        }
        for other in
            [r#","repository":"/w""#, r#","environment":[{"name":"A"}]"#, r#","files":[{"path":"/a"}]"#]
        {
            assert_ne!(of(other), same, "{other}");
        }
    }
}
