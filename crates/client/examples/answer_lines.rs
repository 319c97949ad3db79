//! The Rust side of `web/test/interop`: does what each line of stdin asks for, and answers with one line.
//!
//! A line is an object with an `op` and what that operation needs; every secret in it is a test key. An answer is what the
//! operation made, or `refused` with the reason in words.

#[path = "../tests/client/support/seal_cases.rs"]
mod seal_cases;

use std::io::{BufRead as _, Write as _};

use countersign_client::{
    audience::Audience,
    bundle::Bundle,
    journal::MemoryJournal,
    keys::DeviceKeys,
    payload::{Payload, visible, visible_code},
    profile::{Party, Pin, PinSource, Pins},
    prompt::{Prompt, PromptContent, PromptDraft, PromptReader},
    reply::{Choice, Verifier, Words, decide},
    request::{Draft, OpenedRequest, Request},
    seal::{Recipient, seal},
};
use countersign_wire::{
    FromJson as _, RawObject, base64url, envelope::Envelope, keys::KeyBundle, parse,
    requested_actions::Action, timestamp::Timestamp,
};
use seal_cases::{Readable, context, device, text};
use serde_json::{Value, json};

fn main() -> Readable<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let line: Value = serde_json::from_str(&line?)?;
        writeln!(out, "{}", answer(&line)?)?;
        // Whoever asks may wait for the answer before it asks again.
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &Value) -> Readable<Value> {
    match text(line, "op")? {
        "seal" => seal_content(line),
        "unseal" => {
            let opened = seal_cases::open(line)?.into_iter();
            let answers =
                opened.map(|it| it.map_or_else(|reason| json!({ "refused": reason }), |it| json!(it)));
            Ok(Value::Array(answers.collect()))
        }
        "request" => request(line),
        "open" => Ok(open(line)?.map_or_else(|reason| refused(&reason), |request| opened(&request))),
        "decide" => decision(line),
        "verify" => verify(line),
        "prompt" => prompt(line),
        "read-prompt" => read_prompt(line),
        "visible" => {
            let shown = text(line, "text")?;
            Ok(json!({ "prose": visible(shown), "code": visible_code(shown) }))
        }
        "payload" => payload(line),
        "time" => Ok(json!(text(line, "text")?.parse::<Timestamp>().ok())),
        "bundle" => bundle(line),
        other => Err(format!("there is no operation {other}").into()),
    }
}

fn refused(reason: &str) -> Value {
    json!({ "refused": reason })
}

fn list<'v>(line: &'v Value, name: &str) -> Readable<&'v Vec<Value>> {
    line[name].as_array().ok_or_else(|| format!("no list {name}").into())
}

fn time(line: &Value, name: &str) -> Readable<Timestamp> {
    Ok(text(line, name)?.parse()?)
}

/// The pins of what `name` lists, each with an `id` and a `bundle`.
fn pins(line: &Value, name: &str, party: impl Fn(&str) -> Readable<Party>) -> Readable<Pins> {
    let mut pins = Pins::default();
    for entry in list(line, name)? {
        let bundle: KeyBundle = text(entry, "bundle")?.parse()?;
        let since = "2026-01-01T00:00:00Z".parse()?;
        pins.insert(Pin::new(party(text(entry, "id")?)?, &bundle, PinSource::Paired, since))?;
    }
    Ok(pins)
}

fn approvers(line: &Value) -> Readable<Pins> {
    pins(line, "approvers", |id| Ok(Party::Approver(id.parse()?)))
}

fn enforcers(line: &Value) -> Readable<Pins> {
    pins(line, "enforcers", |id| Ok(Party::Enforcer(id.parse()?)))
}

fn seal_content(line: &Value) -> Readable<Value> {
    let content = base64url::decode_all(text(line, "content")?).ok_or("the content is not base64url")?;
    let mut devices = Vec::new();
    for entry in list(line, "recipients")? {
        devices.push((text(entry, "id")?, text(entry, "bundle")?.parse::<KeyBundle>()?));
    }
    let recipients: Vec<Recipient<'_>> =
        devices.iter().map(|(id, bundle)| Recipient { id, bundle }).collect();
    Ok(json!(seal(&device(line)?, &context(line)?, &content, &recipients)?))
}

fn request(line: &Value) -> Readable<Value> {
    let mut actions = Vec::new();
    for action in list(line, "actions")? {
        let action = serde_json::value::to_raw_value(action)?;
        actions.push(Action::from_json(&action)?);
    }
    let draft = Draft {
        artifact_type: text(line, "artifactType")?.parse()?,
        payload: text(line, "payload")?.to_owned(),
        repo_name: text(line, "repoName")?.to_owned(),
        valid_for: time(line, "expiresAt")?.since(time(line, "now")?),
        session: line["session"].as_str().map(str::to_owned),
        actions,
        edits: Vec::new(),
        to: Audience::everybody(),
    };
    let enforcer = text(line, "enforcerId")?.parse()?;
    let built = Request::build(&draft, &enforcer, &device(line)?, &approvers(line)?, time(line, "now")?)?;
    Ok(json!({
        "requestId": built.request_id, "artifactHash": built.artifact_hash, "repoRef": built.repo_ref,
        "expiresAt": built.expires_at, "artifact": *built.artifact, "envelope": built.envelope,
    }))
}

fn open(line: &Value) -> Readable<Result<OpenedRequest, String>> {
    let keys = device(line)?;
    let pins = enforcers(line)?;
    let read = parse::<Envelope<'_>>(text(line, "envelope")?.as_bytes());
    let Ok(envelope) = read else { return Ok(Err("not an envelope".to_owned())) };
    let opened = OpenedRequest::open(&envelope, text(line, "approverId")?, &keys, &pins, time(line, "now")?);
    Ok(opened.map_err(|error| error.to_string()))
}

fn opened(request: &OpenedRequest) -> Value {
    json!({
        "requestId": request.request_id, "enforcerId": request.enforcer, "artifactType": request.artifact_type,
        "artifactHash": request.artifact_hash, "repoRef": request.repo_ref, "repoName": request.repo_name,
        "session": request.session, "createdAt": request.created_at, "expiresAt": request.expires_at,
        "payload": request.payload, "actions": request.actions,
    })
}

fn decision(line: &Value) -> Readable<Value> {
    let request = open(line)??;
    let words: Words = serde_json::from_value(line["words"].clone())?;
    let choice = Choice {
        outcome: text(line, "outcome")?.parse()?,
        scope: text(line, "scope")?.parse()?,
        valid_until: time(line, "validUntil")?,
        words,
    };
    let approver = text(line, "approverId")?.parse()?;
    let signed = decide(&request, &choice, &approver, &device(line)?, time(line, "now")?);
    Ok(signed.map_or_else(|error| refused(&error.to_string()), |decision| json!({ "decision": decision })))
}

fn verify(line: &Value) -> Readable<Value> {
    let (artifact, envelope) = (text(line, "artifact")?.to_owned(), text(line, "envelope")?.to_owned());
    let request = Request::of_artifact(artifact.into(), envelope)?;
    let (keys, pins, journal) = (device(line)?, approvers(line)?, MemoryJournal::default());
    let verifier =
        Verifier { enforcer: text(line, "enforcerId")?, keys: &keys, pins: &pins, journal: &journal };
    let decision = text(line, "decision")?.as_bytes();
    Ok(match verifier.verify(decision, &request, time(line, "now")?) {
        Err(error) => refused(&error.to_string()),
        Ok(taken) => json!({
            "outcome": taken.outcome, "scope": taken.scope, "validUntil": taken.valid_until,
            "approverId": taken.approver, "words": taken.words, "session": taken.session,
            "nonce": taken.nonce, "hash": taken.hash.to_string(),
        }),
    })
}

fn prompt(line: &Value) -> Readable<Value> {
    let (approver, enforcer) = (text(line, "approverId")?.parse()?, text(line, "enforcerId")?.parse()?);
    let session_id = line["session"].as_str().map(str::parse).transpose()?;
    let draft = PromptDraft {
        target: text(line, "target")?.parse()?,
        content: PromptContent::Text(text(line, "text")?.to_owned()),
        session_id,
        valid_for: time(line, "expiresAt")?.since(time(line, "now")?),
    };
    let keys: DeviceKeys = device(line)?;
    let built = Prompt::build(&draft, &approver, &enforcer, &keys, &enforcers(line)?, time(line, "now")?)?;
    Ok(json!({ "requestId": built.request_id, "promptHash": built.prompt_hash, "envelope": built.envelope }))
}

fn read_prompt(line: &Value) -> Readable<Value> {
    let (keys, pins, journal) = (device(line)?, approvers(line)?, MemoryJournal::default());
    let reader =
        PromptReader { enforcer: text(line, "enforcerId")?, keys: &keys, pins: &pins, journal: &journal };
    let envelope = parse::<Envelope<'_>>(text(line, "envelope")?.as_bytes())?;
    Ok(match reader.open(&envelope, time(line, "now")?) {
        Err(error) => refused(&error.to_string()),
        Ok(prompt) => {
            let said = match &prompt.content {
                PromptContent::Text(text) => json!(text),
                PromptContent::Statement(statement) => json!(statement),
                PromptContent::Stop { words } => json!({ "stop": true, "words": words }),
            };
            json!({
                "approverId": prompt.approver, "target": prompt.target, "said": said,
                "session": prompt.session_id, "expiresAt": prompt.expires_at,
            })
        }
    })
}

fn payload(line: &Value) -> Readable<Value> {
    let object = text(line, "payload")?;
    let read = Payload::read(text(line, "artifactType")?.parse()?, &RawObject::parse(object.as_bytes())?);
    Ok(json!({ "headline": read.headline(), "isRaw": matches!(read, Payload::Raw(_)) }))
}

fn bundle(line: &Value) -> Readable<Value> {
    let verified = Bundle::read(text(line, "text")?).and_then(|bundle| bundle.verify(None));
    Ok(verified.map_or_else(
        |error| refused(&error.to_string()),
        |report| {
            let findings = report.findings.iter();
            let findings = findings.map(|(claim, certainty)| (claim.to_string(), json!(certainty)));
            Value::Object(findings.collect())
        },
    ))
}
