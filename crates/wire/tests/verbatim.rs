//! Bytes in, same bytes out, whatever the spacing, the order of members, the escapes and the size.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/documents.rs"]
mod documents;

use countersign_wire::{
    RawObject,
    artifact::{ArtifactSubmit, Routing},
    envelope::Envelope,
    parse,
};
use documents::SeededRandom;
use proptest::prelude::*;

/// An envelope around `body` with its members in a random order and spacing.
fn envelope_around(body: &str, trace: &str, random: &mut SeededRandom) -> String {
    let mut members = [
        r#""msgType":"artifact.submit""#.to_owned(),
        r#""requestId":"\u0072\/1""#.to_owned(),
        r#""createdAt":"2026-02-21T12:00:00.000+00:00""#.to_owned(),
        r#""sender":{"enforcerId":"e"}"#.to_owned(),
        format!(r#""body":{body}"#),
        format!(r#""trace" : {trace}"#),
    ];
    for last in (1..members.len()).rev() {
        let other = usize::try_from(random.below(last as u64 + 1)).unwrap();
        members.swap(last, other);
    }
    let between = ["", " ", "\n\t", "\r\n  "];
    let space = |random: &mut SeededRandom| between[usize::try_from(random.below(4)).unwrap()];
    let spaced = members.map(|member| format!("{}{member}{}", space(random), space(random)));
    format!("{}{{{}}}{}", space(random), spaced.join(","), space(random))
}

fn assert_body_survives(body: &str, trace: &str, random: &mut SeededRandom) {
    let received = envelope_around(body, trace, random);
    let envelope = parse::<Envelope<'_>>(received.as_bytes()).unwrap();
    // Read every member of the body through a view.
    let members = envelope.body.members().unwrap();
    assert!(members.rest().all(|(_, value)| body.contains(value.get())));

    assert_eq!(serde_json::to_string(&envelope).unwrap(), received.trim());
    let sent_on = serde_json::to_string(&*envelope).unwrap();
    let arrived = parse::<Envelope<'_>>(sent_on.as_bytes()).unwrap();
    assert_eq!(arrived.body.as_str(), body);
    assert_eq!(arrived.trace.unwrap().as_str(), trace);
    assert_eq!(arrived.request_id.as_str(), "r/1");
    assert_eq!(RawObject::reread(arrived.body.as_str().as_bytes()).unwrap().as_str(), body);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn bodies_of_any_spelling_are_relayed_byte_for_byte(seed: u64) {
        let mut random = SeededRandom::new(seed);
        let body = documents::object(&mut random);
        let trace = documents::object(&mut random);
        assert_body_survives(&body, &trace, &mut random);
    }

    #[test]
    fn removing_members_leaves_the_others_byte_for_byte(seed: u64, picks: [bool; 5]) {
        let text = documents::object(&mut SeededRandom::new(seed));
        let object = RawObject::parse(text.as_bytes()).unwrap();
        let members = object.members().unwrap();
        let all: Vec<(&str, &str)> = members.rest().map(|(name, value)| (name, value.get())).collect();
        let out: Vec<&str> = all.iter().zip(picks).filter(|(_, pick)| *pick).map(|((name, _), _)| *name).collect();

        let left = object.text_without(&out).unwrap();
        let left = RawObject::parse(left.as_bytes()).unwrap();
        let members = left.members().unwrap();
        let found: Vec<(&str, &str)> = members.rest().map(|(name, value)| (name, value.get())).collect();
        let wanted: Vec<(&str, &str)> = all.into_iter().filter(|(name, _)| !out.contains(name)).collect();
        prop_assert_eq!(found, wanted);
        if out.is_empty() {
            prop_assert_eq!(left.as_str(), text);
        }
    }
}

#[test]
fn two_megabytes_are_relayed_byte_for_byte() {
    let mut random = SeededRandom::new(7);
    let sealed = format!(r#"{{ "ciphertext" :"{}"}}"#, "Zm9vYmFy".repeat(2 << 17));
    assert!(sealed.len() > 2 << 20);
    assert_body_survives(&sealed, "{}", &mut random);

    let items: Vec<String> = std::iter::repeat_with(|| documents::object(&mut random)).take(30_000).collect();
    let open = format!("{{\"payload\": [{}]}}", items.join(" ,\n"));
    assert!(open.len() > 2 << 20);
    assert_body_survives(&open, "{}", &mut random);
}

const HASH: &str = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";

fn for_approvers(body: &str) -> String {
    parse::<ArtifactSubmit<'_>>(body.as_bytes()).unwrap().text_for_approvers().unwrap().into_owned()
}

#[test]
fn routing_keys_are_removed_from_sealed_metadata_and_nothing_else_changes() {
    let body = |metadata: &str| {
        format!(
            r#"{{ "x" : 1.0, "metadata" :{metadata}, "artifactType":"plan.review","artifactHash":"{HASH}","ciphertext":{{"metadata":{{"routingToken":"inner"}}}} }}"#
        )
    };
    for (metadata, left) in [
        (r#"{ "routingToken" : "t", "a" : 1.50 }"#, r#"{ "a" : 1.50 }"#),
        (r#"{ "a" : 1.50 , "routingToken" : "t" }"#, r#"{ "a" : 1.50 }"#),
        (r#"{"a":1,"approverId":"x","b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"approverId":"x","tenantId":"y","routingToken":"z"}"#, "{}"),
        (r#"{"approverId":"x","tenantId":"y",  "z":[]}"#, r#"{  "z":[]}"#),
        (r#"{"rout\u0069ngToken":"t"}"#, "{}"),
        (r#"{"routingtoken":"stays"}"#, r#"{"routingtoken":"stays"}"#),
        ("{ }", "{ }"),
    ] {
        assert_eq!(for_approvers(&body(metadata)), body(left), "{metadata}");
    }
}

#[test]
fn sealed_metadata_contains_the_routing() {
    let body = format!(
        r#"{{"artifactType":"plan.review","artifactHash":"{HASH}","ciphertext":"c","metadata":{{"routingToken":"t","approverId":"ada","other":1}}}}"#
    );
    let submit = parse::<ArtifactSubmit<'_>>(body.as_bytes()).unwrap();
    let ArtifactSubmit::Sealed(sealed) = &*submit else { unreachable!("it has a ciphertext") };
    let routing = sealed.routing().unwrap();
    assert_eq!(routing.routing_token.unwrap().as_str(), "t");
    assert_eq!(routing.approver_id.unwrap().as_str(), "ada");
    assert_eq!(Routing::KEYS.len(), 4);
}

#[test]
fn turns_are_read_whole_or_refused_with_their_place() {
    let turns = |turns: &str| {
        let body = format!(
            r#"{{"artifactType":"plan.review","artifactHash":"{HASH}","ciphertext":"c","metadata":{{"org.countersign.turns":{turns}}}}}"#
        );
        let submit = parse::<ArtifactSubmit<'_>>(body.as_bytes()).unwrap();
        submit.turns().map(|turns| turns.0).map_err(|error| error.to_string())
    };
    let read = turns(r#"[{"approverId":"ada"},{"approverId":"bob","at":"2026-11-18T12:00:00Z"}]"#).unwrap();
    assert_eq!((read.len(), read[0].at, read[1].approver_id.as_str()), (2, None, "bob"));
    for (text, what) in [
        ("[]", "1 to 20 approvers"),
        (r#"[{"approverId":"ada"},{"approverId":"ada"}]"#, "each once"),
        (r#"[{"approverId":"ada","at":5}]"#, "metadata.org.countersign.turns"),
        (r#"[{"approverId":"ada","after":5}]"#, "metadata.org.countersign.turns"),
        (r#"{"approverId":"ada"}"#, "metadata.org.countersign.turns"),
    ] {
        let error = turns(text).unwrap_err();
        assert!(error.contains(what), "{text}: {error}");
    }
}

#[test]
fn routing_keys_of_the_wrong_type_are_refused_with_their_place() {
    let body = format!(
        r#"{{"artifactType":"plan.review","artifactHash":"{HASH}","ciphertext":"c","metadata":{{"routingToken":7}}}}"#
    );
    let submit = parse::<ArtifactSubmit<'_>>(body.as_bytes()).unwrap();
    let ArtifactSubmit::Sealed(sealed) = &*submit else { unreachable!("it has a ciphertext") };
    assert_eq!(sealed.routing().unwrap_err().to_string(), "metadata.routingToken is not a string");
}
