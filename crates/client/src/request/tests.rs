//! Every check of a request that an approver opens.

use super::*;
use crate::profile::PinSource;

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

    fn open(&self, text: &str, pins: &Pins, except: Option<Check>) -> Result<OpenedRequest, OpenError> {
        let envelope = parse(text.as_bytes()).unwrap();
        OpenedRequest::open_except(&envelope, "ada", &self.ada, pins, now(), except)
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
    assert_eq!(world.open(&honest, &world.adas, None).unwrap().payload, r#"{"argv":["ls"]}"#);
    let mut revoked = world.adas.clone();
    revoked.revoke(world.robot.fingerprint(), now()).unwrap();
    let other_content = world.pushed(&artifact(|_| ()), Some(Sha256Hex::digest(b"shown elsewhere")), |_| ());
    let other_request = world.pushed(&artifact(|it| it["requestId"] = "r2".into()), None, |_| ());
    let longer = world.pushed(&artifact(|it| it["expiresAt"] = "2026-11-16T13:00:00Z".into()), None, |_| ());
    let other_type =
        world.pushed(&artifact(|_| ()), None, |body| body["artifactType"] = "plan.review".into());
    for (check, text, pins, differs) in [
        (Check::Sender, &honest, &revoked, None),
        (Check::Hash, &other_content, &world.adas, Some("artifactHash")),
        (Check::RequestId, &other_request, &world.adas, Some("requestId")),
        (Check::ExpiresAt, &longer, &world.adas, Some("expiresAt")),
        (Check::ArtifactType, &other_type, &world.adas, Some("artifactType")),
    ] {
        let expected = differs.map_or(OpenError::UnknownSender("robot".to_owned()), OpenError::Differs);
        assert_eq!(world.open(text, pins, None).err(), Some(expected), "{check:?}");
        assert!(world.open(text, pins, Some(check)).is_ok(), "without {check:?} the attack succeeds");
    }
}

/// docs/sealing.md: times are texts, without normalisation. `toISOString` of JavaScript writes milliseconds.
#[test]
fn a_time_belongs_to_the_content_as_it_is_written() {
    let world = World::new();
    let [short, long] = ["2026-11-15T13:00:00Z", "2026-11-15T13:00:00.000Z"];
    for (written, changed) in [(short, long), (long, short)] {
        let honest = world.pushed_until(written, &artifact(|_| ()), None, |_| ());
        assert!(world.open(&honest, &world.adas, None).is_ok(), "{written}");
        let rewritten =
            world.pushed_until(written, &artifact(|_| ()), None, |body| body["expiresAt"] = changed.into());
        assert!(world.open(&rewritten, &world.adas, None).is_err(), "{written} became {changed}");
    }
}

#[test]
fn what_is_not_sealed_is_not_opened() {
    let world = World::new();
    let open = world
        .pushed(&artifact(|_| ()), None, |body| drop(body.as_object_mut().unwrap().remove("ciphertext")));
    assert_eq!(world.open(&open, &world.adas, None).err(), Some(OpenError::NotSealed));
}
