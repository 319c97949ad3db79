//! The Rust side of `tests/interop/calls.py` for `exec`: reads a command with its folder and environment from each line of stdin,
//! and answers with the payload that people would review and its effect hash.

use std::{
    collections::BTreeMap,
    error::Error,
    ffi::OsString,
    io::{BufRead as _, Write as _},
    path::PathBuf,
};

use countersign_agents::{
    examine::environment::last::LastEnvironment,
    execution::{Plan, Reads, RunAs, Wanted},
};
use countersign_client::effect_hash::effect_hash;
use countersign_wire::{RawObject, hash::Sha256Hex};
use serde::Deserialize;
use serde_json::{Value, json};

/// A command that somebody wants to run.
#[derive(Deserialize)]
struct Line {
    argv: Vec<String>,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
    /// Variables that were asked for.
    env: Vec<String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(serde_json::from_str(&line?)?)?)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: Line) -> Result<Value, Box<dyn Error>> {
    // The judge can't know the key of a profile.
    let mac = |name: &str, value: &[u8]| Sha256Hex::digest(&[name.as_bytes(), b"\0", value].concat());
    let variables: Vec<(OsString, OsString)> =
        line.environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let last = LastEnvironment::default();
    let wanted = Wanted { variables: &variables, env: &line.env, with: &[], mac: &mac, last: &last };
    let payload = match Plan::examine(&line.argv, &line.folder, &wanted) {
        Ok(plan) => plan.payload(Reads::Terminal, &RunAs::this_process()),
        Err(error) => return Ok(json!({ "refused": error.to_string() })),
    };
    let text = payload.to_json()?;
    let object = RawObject::parse(text.as_bytes())?;
    let hash = effect_hash(payload.artifact_type(), object, "acme/widgets")?;
    Ok(json!({ "payload": object, "effectHash": hash, "notShown": payload.not_shown() }))
}
