//! The Rust side of `tests/interop/calls.py`: reads a host's message from each line of stdin, and answers with the payload that
//! people would review and its effect hash.
//!
//! A line is the word of a host, a tab, and the message as bytes in hex, so that white space survives.

use std::{
    error::Error,
    io::{BufRead as _, Write as _},
};

use countersign_agents::{
    calls::{
        event::Kind,
        message::Message,
        whole::{Origin, payload_of},
    },
    examine::environment::{hook::HookEnvironment, last::LastEnvironment},
    hosts,
    tool::caller::Caller,
};
use countersign_client::effect_hash::effect_hash;
use countersign_wire::RawObject;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (host, bytes) = line.split_once('\t').ok_or("a line has a host and a message")?;
        writeln!(out, "{}", answer(host, &decoded(bytes)?)?)?;
        out.flush()?;
    }
    Ok(())
}

fn answer(word: &str, text: &[u8]) -> Result<Value, Box<dyn Error>> {
    let host = hosts::ALL.iter().find(|host| host.word() == word).ok_or("there is no such host")?;
    let Some(message) = Message::read(text) else { return Ok(json!({ "refused": "no message" })) };
    let event = match host.read(&message.value, &Caller::this_process()) {
        Ok(event) => event,
        Err(error) => return Ok(json!({ "refused": error.to_string() })),
    };
    let Kind::Call { call, .. } = event.kind else { return Ok(json!({ "refused": "no call" })) };
    let origin = Origin {
        host: word,
        moment: &event.name,
        message: &message,
        aside: host.messages.aside,
        is_named: false,
        last: &LastEnvironment::default(),
        environment: &HookEnvironment::default(),
    };
    let payload = payload_of(&call, &origin);
    let text = match payload.to_json() {
        Ok(text) => text,
        Err(error) => return Ok(json!({ "refused": error.to_string() })),
    };
    let object = RawObject::parse(text.as_bytes())?;
    let hash = effect_hash(payload.artifact_type(), object, "acme/widgets");
    Ok(match hash {
        Ok(hash) => json!({
            "artifactType": payload.artifact_type(), "payload": object, "effectHash": hash, "notShown": payload.not_shown(),
        }),
        Err(error) => json!({ "refused": error.to_string() }),
    })
}

fn decoded(hex: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    (0..hex.len())
        .step_by(2)
        .map(|at| Ok(u8::from_str_radix(hex.get(at..at + 2).ok_or("odd")?, 16)?))
        .collect()
}
