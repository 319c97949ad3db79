//! Cases of sealing as they are written in `vectors/seal.json` and by `tests/interop`.

use countersign_client::{
    keys::DeviceKeys,
    seal::{Context, SealError, Sealed},
};
use countersign_wire::base64url;
use serde_json::Value;

/// A case that can't be read is a mistake of who wrote it.
pub(crate) type Readable<T> = Result<T, Box<dyn std::error::Error>>;

/// A member that is a text.
pub(crate) fn text<'v>(case: &'v Value, name: &str) -> Readable<&'v str> {
    case[name].as_str().ok_or_else(|| format!("{}: no text {name}", case["name"]).into())
}

/// The keys behind a `secret`.
pub(crate) fn device(case: &Value) -> Readable<DeviceKeys> {
    let secret = base64url::decode(text(case, "secret")?).ok_or("the secret is not 64 bytes")?;
    Ok(DeviceKeys::from_secret(&secret).ok_or("the secret is none of keys")?)
}

/// The context that `kind` and `context` describe.
pub(crate) fn context(case: &Value) -> Readable<Context> {
    let of = |name: &str| text(&case["context"], name);
    Ok(match text(case, "kind")? {
        "artifact" => {
            Context::artifact(of("requestId")?, of("artifactHash")?, of("enforcerId")?, of("expiresAt")?)
        }
        "prompt" => Context::prompt(of("requestId")?, of("promptHash")?, of("approverId")?, of("target")?),
        "snapshot" => {
            Context::snapshot(of("sessionId")?, of("snapshotId")?, of("snapshotHash")?, of("enforcerId")?)
        }
        "hints" => Context::hints(of("requestId")?, of("artifactHash")?, of("approverId")?, of("nonce")?),
        other => return Err(format!("there is no kind {other}").into()),
    })
}

/// Opens the case on every one of its `devices`: the plaintext in base64url, or why it is refused.
pub(crate) fn open(case: &Value) -> Readable<Vec<Result<String, &'static str>>> {
    let devices = case["devices"].as_array().ok_or("no devices")?;
    devices.iter().map(|at| open_on(case, &device(at)?, text(at, "id")?)).collect()
}

fn open_on(case: &Value, device: &DeviceKeys, own_id: &str) -> Readable<Result<String, &'static str>> {
    let Ok(sealed) = serde_json::from_str::<Sealed>(text(case, "sealed")?) else {
        return Ok(Err("malformed"));
    };
    let opened = sealed.open(device, own_id, &text(case, "sender")?.parse()?, &context(case)?);
    Ok(match opened {
        Ok(content) => Ok(base64url::encode(&content)),
        Err(SealError::Malformed) => Err("malformed"),
        Err(SealError::NotForThisDevice) => Err("not-for-this-device"),
        Err(SealError::Forged) => Err("forged"),
        Err(other) => return Err(other.into()),
    })
}
