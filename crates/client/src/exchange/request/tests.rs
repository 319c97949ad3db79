//! Every check of a request that an approver opens.

use super::*;
use crate::identity::profile::PinSource;

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

struct World {
    robot: DeviceKeys,
    ada: DeviceKeys,
    adas: Pins,
}

impl World {
    fn new() -> Self {
        let (robot, ada) = (DeviceKeys::generate().unwrap(), DeviceKeys::generate().unwrap());
        let mut adas = Pins::default();
        let party = Party::Enforcer("robot".parse().unwrap());
        adas.insert(Pin::new(party, robot.bundle(), PinSource::Paired, now())).unwrap();
        Self { robot, ada, adas }
    }

    /// A pushed request whose content is `artifact`, sealed for what the envelope says; `body` changes the body.
    fn pushed(&self, artifact: &Value, hash: Option<Sha256Hex>, body: impl FnOnce(&mut Value)) -> String {
        self.pushed_until("2026-11-15T13:00:00Z", artifact, hash, body)
    }

    fn pushed_until(
        &self,
        expires_at: &str,
        artifact: &Value,
        hash: Option<Sha256Hex>,
        body: impl FnOnce(&mut Value),
    ) -> String {
        let id: RequestId = "r".parse().unwrap();
        let own = artifact["artifactHash"].as_str().unwrap().parse().unwrap();
        let hash = hash.unwrap_or(own);
        let context = context(&id, hash, &"robot".parse().unwrap(), expires_at);
        let recipient = Recipient { id: "ada", bundle: self.ada.bundle() };
        let sealed = seal(&self.robot, &context, artifact.to_string().as_bytes(), &[recipient]).unwrap();
        let mut sent = json!({
            "artifactType": "command.review", "artifactHash": hash, "expiresAt": expires_at, "ciphertext": sealed,
        });
        body(&mut sent);
        json!({
            "msgType": "approval.request", "requestId": id, "createdAt": now(),
            "sender": { "enforcerId": "robot" }, "body": sent,
        })
        .to_string()
    }

    fn open(&self, text: &str, pins: &Pins) -> Result<OpenedRequest, OpenError> {
        OpenedRequest::open(&parse(text.as_bytes()).unwrap(), "ada", &self.ada, pins, now())
    }

    /// What would be shown without one of the checks.
    fn open_without(&self, left_out: &str, text: &str, pins: &Pins) -> Result<OpenedRequest, OpenError> {
        let envelope = parse(text.as_bytes()).unwrap();
        let relayed = Relayed::read(&envelope, pins, now())?;
        checks::all_but(left_out, &Relayed::SENDER, &relayed)?;
        let text = relayed.open("ada", &self.ada)?;
        let unsealed = Unsealed::read(&relayed, &text)?;
        checks::all_but(left_out, &Unsealed::AGREES, &unsealed)?;
        Ok(unsealed.accept())
    }
}

fn artifact(change: impl FnOnce(&mut Value)) -> Value {
    let mut artifact = json!({
        "requestId": "r", "artifactType": "command.review", "repoRef": "repo:x", "createdAt": now(),
        "expiresAt": "2026-11-15T13:00:00Z", "payload": { "argv": ["ls"] }, "artifactHashAlg": "SHA-256",
    });
    change(&mut artifact);
    let text = artifact.to_string();
    let object = RawObject::parse(text.as_bytes()).unwrap();
    artifact["artifactHash"] = json!(Sha256Hex::of_object_without(object, "artifactHash").unwrap());
    artifact
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_catches_what_no_other_catches() {
    let world = World::new();
    let honest = world.pushed(&artifact(|_| ()), None, |_| ());
    assert_eq!(world.open(&honest, &world.adas).unwrap().payload, r#"{"argv":["ls"]}"#);
    let mut revoked = world.adas.clone();
    revoked.revoke(world.robot.fingerprint(), now()).unwrap();
    let other_content = world.pushed(&artifact(|_| ()), Some(Sha256Hex::digest(b"shown elsewhere")), |_| ());
    let other_request = world.pushed(&artifact(|it| it["requestId"] = "r2".into()), None, |_| ());
    let longer = world.pushed(&artifact(|it| it["expiresAt"] = "2026-11-16T13:00:00Z".into()), None, |_| ());
    let other_type =
        world.pushed(&artifact(|_| ()), None, |body| body["artifactType"] = "plan.review".into());
    let attacks = [
        ("sender", &honest, &revoked, None),
        ("hash", &other_content, &world.adas, Some("artifactHash")),
        ("request id", &other_request, &world.adas, Some("requestId")),
        ("expiry", &longer, &world.adas, Some("expiresAt")),
        ("artifact type", &other_type, &world.adas, Some("artifactType")),
    ];
    let listed = [checks::names(&Relayed::SENDER), checks::names(&Unsealed::AGREES)].concat();
    assert_eq!(attacks.map(|(check, ..)| check).as_slice(), listed);
    for (check, text, pins, differs) in attacks {
        let expected = differs.map_or(OpenError::UnknownSender("robot".to_owned()), OpenError::Differs);
        assert_eq!(world.open(text, pins).err(), Some(expected), "{check}");
        assert!(world.open_without(check, text, pins).is_ok(), "without {check} the attack succeeds");
    }
}

/// docs/sealing.md: times are texts, without normalisation. `toISOString` of JavaScript writes milliseconds.
#[test]
fn a_time_belongs_to_the_content_as_it_is_written() {
    let world = World::new();
    let [short, long] = ["2026-11-15T13:00:00Z", "2026-11-15T13:00:00.000Z"];
    for (written, changed) in [(short, long), (long, short)] {
        let honest = world.pushed_until(written, &artifact(|_| ()), None, |_| ());
        assert!(world.open(&honest, &world.adas).is_ok(), "{written}");
        let rewritten =
            world.pushed_until(written, &artifact(|_| ()), None, |body| body["expiresAt"] = changed.into());
        assert!(world.open(&rewritten, &world.adas).is_err(), "{written} became {changed}");
    }
}

#[test]
fn what_is_not_sealed_is_not_opened() {
    let world = World::new();
    let open = world
        .pushed(&artifact(|_| ()), None, |body| drop(body.as_object_mut().unwrap().remove("ciphertext")));
    assert_eq!(world.open(&open, &world.adas).err(), Some(OpenError::NotSealed));
}

/// An artifact as programs wrote it that kept everything of ours in the namespace of the protocol.
const FORMER: &str = r#"{
    "requestId": "r", "artifactType": "command.review", "repoRef": "repo:x", "createdAt": "2026-11-15T12:00:00Z",
    "expiresAt": "2026-11-15T13:00:00Z", "payload": {"argv": ["ls"]}, "artifactHashAlg": "SHA-256",
    "extensions": {"org.proto.salt": "AAECAwQFBgcICQoLDA0ODw", "org.proto.repoName": "acme/widgets",
        "org.proto.sessionId": "s1"},
    "artifactHash": "84d12515b83978d9b7da4079c4e260ec462650e549bdd88cde877f22165e2009"
}"#;

/// The same as it is written now.
const PRESENT: &str = r#"{
    "requestId": "r", "sessionId": "s1", "artifactType": "command.review", "repoRef": "repo:x",
    "createdAt": "2026-11-15T12:00:00Z", "expiresAt": "2026-11-15T13:00:00Z", "payload": {"argv": ["ls"]},
    "artifactHashAlg": "SHA-256",
    "extensions": {"org.countersign.salt": "AAECAwQFBgcICQoLDA0ODw", "org.countersign.repoName": "acme/widgets"},
    "artifactHash": "c0b846d0c26ac31463f5e0031f64bbc9aa3db201306c3bff439e3cac9c3dfa3b"
}"#;

#[test]
fn a_request_of_an_earlier_program_opens_with_its_session_and_repository() {
    let world = World::new();
    for text in [FORMER, PRESENT] {
        let pushed = world.pushed(&serde_json::from_str(text).unwrap(), None, |_| ());
        let opened = world.open(&pushed, &world.adas).unwrap();
        assert_eq!(
            (opened.session.as_deref(), opened.repo_name.as_deref()),
            (Some("s1"), Some("acme/widgets"))
        );
        let own = Request::of_artifact(text.to_owned().into(), String::new()).unwrap();
        assert_eq!(own.session.as_deref(), Some("s1"));
        assert_eq!(own.draft().unwrap().repo_name, "acme/widgets");
    }
}

#[test]
fn the_session_is_the_member_where_an_artifact_has_both() {
    let world = World::new();
    let both = artifact(|it| {
        it["sessionId"] = "member".into();
        it["extensions"] = json!({
            "org.proto.sessionId": "extension",
            "org.proto.repoName": "former", "org.countersign.repoName": "present",
        });
    });
    let opened = world.open(&world.pushed(&both, None, |_| ()), &world.adas).unwrap();
    assert_eq!((opened.session.as_deref(), opened.repo_name.as_deref()), (Some("member"), Some("present")));
}

/// What earlier programs do with a request of this one: the format is theirs and the hash verifies, so they show and decide
/// it. They look for session and repository where nothing is, and offer no approval for the session.
#[test]
fn an_earlier_program_opens_a_request_and_finds_no_session_and_no_repository() {
    let read: Verbatim<'_, Artifact<'_>> = parse(PRESENT.as_bytes()).unwrap();
    read.check_hash().unwrap();
    let mut extensions = read.extensions.unwrap().members().unwrap();
    for key in ["org.proto.sessionId", "org.proto.repoName"] {
        assert_eq!(extensions.optional::<String>(key).unwrap(), None, "{key}");
    }
}

#[test]
fn a_request_has_a_uuid_its_session_as_a_member_and_nothing_of_ours_in_the_namespace_of_the_protocol() {
    let ends = crate::exchange::fixture::Ends::new();
    let fixture = |session| {
        let command = crate::exchange::fixture::command(&["ls"]);
        let draft = crate::exchange::fixture::draft_of(command, session);
        Request::build(&draft, &"robot".parse().unwrap(), &ends.robot, &ends.robots, now())
    };
    let request = fixture(Some("s1")).unwrap();
    let artifact: Value = serde_json::from_str(&request.artifact).unwrap();
    let members = |value: &Value| -> Vec<String> {
        let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(members(&artifact["extensions"]), ["org.countersign.repoName", "org.countersign.salt"]);
    assert_eq!(artifact["sessionId"], "s1");
    assert_eq!(request.session.as_deref(), Some("s1"));
    let id = request.request_id.as_str();
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    assert_eq!(groups, [8, 4, 4, 4, 12], "{id}");
    assert!(id.bytes().all(|byte| matches!(byte, b'-' | b'0'..=b'9' | b'a'..=b'f')), "{id}");
    let without: Value = serde_json::from_str(&fixture(None).unwrap().artifact).unwrap();
    assert!(!members(&without).contains(&"sessionId".to_owned()));
    for session in ["", "a\nb"] {
        assert!(matches!(fixture(Some(session)), Err(RequestError::Session(_))), "{session:?}");
    }
}

/// A gateway may leave out who asks, and must not say that it is somebody else.
#[test]
fn the_seal_says_who_asks_where_the_gateway_does_not() {
    let world = World::new();
    let honest = world.pushed(&artifact(|_| ()), None, |_| ());
    let from = |sender: Value| {
        let mut pushed: Value = serde_json::from_str(&honest).unwrap();
        pushed["sender"] = sender;
        pushed.to_string()
    };
    let unnamed = from(json!({ "gatewayId": "gw" }));
    assert_eq!(world.open(&unnamed, &world.adas).unwrap().enforcer.as_str(), "robot");
    let renamed = from(json!({ "enforcerId": "other", "gatewayId": "gw" }));
    assert_eq!(
        world.open(&renamed, &world.adas).err(),
        Some(OpenError::UnknownSender("other".to_owned())),
        "what it says must be so"
    );
    let stranger = world.open(&unnamed, &Pins::default()).err();
    assert!(matches!(stranger, Some(OpenError::UnknownSender(_))), "{stranger:?}");
    let mut revoked = world.adas.clone();
    revoked.revoke(world.robot.fingerprint(), now()).unwrap();
    assert!(world.open(&unnamed, &revoked).is_err());
    // The same keys, pinned as a person's.
    let mut person = Pins::default();
    let party = Party::Approver("robot".parse().unwrap());
    person.insert(Pin::new(party, world.robot.bundle(), PinSource::Paired, now())).unwrap();
    assert!(matches!(world.open(&unnamed, &person), Err(OpenError::UnknownSender(_))));
}

#[test]
fn a_request_that_is_sealed_in_place_is_an_artifact_that_says_nothing_more_and_opens_after_the_same_checks() {
    let ends = crate::exchange::fixture::Ends::new();
    let draft =
        crate::exchange::fixture::draft_of(crate::exchange::fixture::command(&["canary"]), Some("s1"));
    let robot = "robot".parse().unwrap();
    let request = Request::build(&draft, &robot, &ends.robot, &ends.robots, now()).unwrap();
    let mut envelope: Value = serde_json::from_str(&request.sealed_in_place().unwrap()).unwrap();
    let text = envelope["body"].to_string();
    let outer: Verbatim<'_, Artifact<'_>> = parse(text.as_bytes()).unwrap();
    assert_eq!((outer.session_id.as_ref(), outer.extensions.is_none()), (None, true));
    assert!(!text.contains("canary") && !text.contains(&draft.repo_name), "{text}");
    envelope["msgType"] = "approval.request".into();
    let opened = |envelope: &Value| {
        let text = envelope.to_string();
        OpenedRequest::open(&parse(text.as_bytes()).unwrap(), "ada", &ends.ada, &ends.adas, now())
    };
    let shown = opened(&envelope).unwrap();
    assert!(shown.payload.contains("canary") && shown.session.as_deref() == Some("s1"));
    assert_eq!(shown.artifact_hash, request.artifact_hash);
    let mut open = envelope.clone();
    open["body"]["payload"] = json!({ "argv": ["rm"] });
    assert_eq!(opened(&open).err(), Some(OpenError::NotSealed));
    envelope["body"]["artifactType"] = "plan.review".into();
    assert_eq!(opened(&envelope).err(), Some(OpenError::Differs("artifactType")));
}
