//! An accepted envelope can be relayed, and its body arrives byte for byte.

#![no_main]

use countersign_wire::{
    RawObject,
    ack::AckSubmit,
    artifact::{Artifact, ArtifactSubmit, Routing},
    core_envelope::CoreEnvelope,
    decision::Decision,
    envelope::Envelope,
    exchange::ExchangeStatus,
    failure::GatewayError,
    inbox::InboxPage,
    pairing::{CompleteRequest, InitiateRequest, PairingStatus},
    parse,
    presence::Hello,
    prompt::PromptSubmit,
    refresh::RefreshRequest,
    session::SessionEvent,
};
use libfuzzer_sys::fuzz_target;

fn read_as_every_type(object: RawObject<'_>) {
    if let Ok(submit) = object.view::<ArtifactSubmit<'_>>() {
        let _ = submit.check_hash();
        let text = submit.text_for_approvers().expect("a text");
        let shown = parse::<ArtifactSubmit<'_>>(text.as_bytes()).expect("still an artifact");
        if let ArtifactSubmit::Sealed(sealed) = &*shown {
            let left = sealed.metadata.map(|metadata| metadata.members().unwrap());
            assert!(Routing::KEYS.iter().all(|key| left.as_ref().is_none_or(|left| !left.contains(key))));
        }
    }
    if let Ok(artifact) = object.view::<Artifact<'_>>() {
        let _ = artifact.requested_actions();
    }
    if let Ok(prompt) = object.view::<PromptSubmit<'_>>() {
        let _ = prompt.check_hash();
    }
    if let Ok(event) = object.view::<SessionEvent<'_>>() {
        let _ = event.check_hash();
    }
    let _ = object.view::<Decision<'_>>();
    let _ = object.view::<AckSubmit<'_>>();
    let _ = object.view::<ExchangeStatus<'_>>();
    let _ = object.view::<GatewayError<'_>>();
    let _ = object.view::<InboxPage<Envelope<'_>>>();
    let _ = object.view::<InitiateRequest>();
    let _ = object.view::<CompleteRequest>();
    let _ = object.view::<PairingStatus>();
    let _ = object.view::<Hello>();
    let _ = object.view::<RefreshRequest>();
    let _ = object.view::<CoreEnvelope<'_>>();
}

fuzz_target!(|data: &[u8]| {
    let Ok(object) = RawObject::parse(data) else { return };
    read_as_every_type(object);
    let Ok(envelope) = object.view::<Envelope<'_>>() else { return };
    read_as_every_type(envelope.body);
    assert_eq!(serde_json::to_string(&envelope).unwrap(), object.as_str());

    let relayed = serde_json::to_string(&*envelope).unwrap();
    let arrived = parse::<Envelope<'_>>(relayed.as_bytes()).expect("what we write we can read");
    assert_eq!(arrived.body.as_str(), envelope.body.as_str());
    assert_eq!(arrived.trace.map(RawObject::as_str), envelope.trace.map(RawObject::as_str));
    assert_eq!(arrived.msg_type, envelope.msg_type);
    assert_eq!(arrived.request_id, envelope.request_id);
    assert_eq!(arrived.created_at, envelope.created_at);
    assert_eq!(arrived.expires_at, envelope.expires_at);
    assert_eq!(arrived.sender, envelope.sender);
    assert_eq!(arrived.recipient, envelope.recipient);
});
