//! Every check of a snapshot.

use super::*;
use crate::exchange::fixture::{Ends, now, robot_id};

fn event(change: impl FnOnce(&mut Value)) -> Value {
    let mut event = json!({
        "eventType": "session.snapshot", "sessionId": "s", "snapshotId": "1", "snapshotType": "summary",
        "createdAt": now(), "payload": { "text": "hello" }, "snapshotHashAlg": "SHA-256",
    });
    change(&mut event);
    let text = event.to_string();
    let object = RawObject::parse(text.as_bytes()).unwrap();
    event["snapshotHash"] = json!(Sha256Hex::of_object_without(object, "snapshotHash").unwrap());
    event
}

/// An event whose content is `inner`, sealed for the session `s` and the snapshot `1`.
fn pushed(ends: &Ends, inner: &Value, hash: Option<Sha256Hex>, change: impl FnOnce(&mut Value)) -> String {
    let hash = hash.unwrap_or_else(|| inner["snapshotHash"].as_str().unwrap().parse().unwrap());
    let context = Context::snapshot("s", "1", &hash.to_string(), "robot");
    let recipient = Recipient { id: "ada", bundle: ends.ada.bundle() };
    let sealed = seal(&ends.robot, &context, inner.to_string().as_bytes(), &[recipient]).unwrap();
    let mut outer = event(|_| ());
    outer["snapshotHash"] = json!(hash);
    outer["payload"] = json!({ "ciphertext": sealed });
    change(&mut outer);
    outer.to_string()
}

fn open(ends: &Ends, event: &str, pins: &Pins) -> Result<OpenedSnapshot, SnapshotError> {
    OpenedSnapshot::open(event, "ada", &ends.ada, pins, now())
}

/// What would be shown without one of the checks.
fn open_without(
    left_out: &str,
    ends: &Ends,
    event: &str,
    pins: &Pins,
) -> Result<OpenedSnapshot, SnapshotError> {
    let relayed = Relayed::read(event, pins, now())?;
    checks::all_but(left_out, &Relayed::SENDER, &relayed)?;
    let text = relayed.open("ada", &ends.ada)?;
    let unsealed = Unsealed::read(&relayed, &text)?;
    checks::all_but(left_out, &Unsealed::AGREES, &unsealed)?;
    Ok(unsealed.accept())
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_catches_what_no_other_catches() {
    let ends = Ends::new();
    let honest = pushed(&ends, &event(|_| ()), None, |_| ());
    assert_eq!(open(&ends, &honest, &ends.adas).unwrap().payload.as_str(), r#"{"text":"hello"}"#);
    let mut revoked = ends.adas.clone();
    revoked.revoke(ends.robot.fingerprint(), now()).unwrap();
    let other_content = pushed(&ends, &event(|_| ()), Some(Sha256Hex::digest(b"other")), |_| ());
    let other_session = pushed(&ends, &event(|it| it["sessionId"] = "s2".into()), None, |_| ());
    let other_snapshot = pushed(&ends, &event(|it| it["snapshotId"] = "2".into()), None, |_| ());
    let other_type = pushed(&ends, &event(|_| ()), None, |outer| outer["snapshotType"] = "plan".into());
    let attacks = [
        ("sender", &honest, &revoked, None),
        ("hash", &other_content, &ends.adas, Some("snapshotHash")),
        ("session id", &other_session, &ends.adas, Some("sessionId")),
        ("snapshot id", &other_snapshot, &ends.adas, Some("snapshotId")),
        ("snapshot type", &other_type, &ends.adas, Some("snapshotType")),
    ];
    let listed = [checks::names(&Relayed::SENDER), checks::names(&Unsealed::AGREES)].concat();
    assert_eq!(attacks.map(|(check, ..)| check).as_slice(), listed);
    for (check, text, pins, differs) in attacks {
        let expected = differs.map_or(SnapshotError::UnknownSender, SnapshotError::Differs);
        assert_eq!(open(&ends, text, pins).err(), Some(expected), "{check}");
        assert!(open_without(check, &ends, text, pins).is_ok(), "without {check} the attack succeeds");
    }
}

#[test]
fn what_is_not_sealed_or_not_of_an_enforcer_is_not_opened() {
    let ends = Ends::new();
    let bare = event(|_| ()).to_string();
    assert_eq!(open(&ends, &bare, &ends.adas).err(), Some(SnapshotError::NotSealed));
    let honest = pushed(&ends, &event(|_| ()), None, |_| ());
    // Pinned, and as an approver.
    let mut pins = Pins::default();
    let party = Party::Approver("robot".parse().unwrap());
    pins.insert(Pin::new(party, ends.robot.bundle(), crate::identity::profile::PinSource::Paired, now()))
        .unwrap();
    assert_eq!(open(&ends, &honest, &pins).err(), Some(SnapshotError::UnknownSender));
    assert_eq!(open(&ends, "{}", &ends.adas).err(), Some(SnapshotError::Malformed));
}

#[test]
fn a_sealed_snapshot_opens_and_shows_nothing() {
    let ends = Ends::new();
    let session_id: SessionId = "s".parse().unwrap();
    let (snapshot_type, payload) = (SnapshotType::Plan, r#"{"text":"a secret plan"}"#);
    let draft = SnapshotDraft { session_id: &session_id, snapshot_id: "1", snapshot_type, payload };
    let recipient = Recipient { id: "ada", bundle: ends.ada.bundle() };
    let event = seal_snapshot(draft, &robot_id(), &ends.robot, &[recipient], now()).unwrap();
    assert!(!event.contains("secret") && !event.contains("salt"));
    let opened = open(&ends, &event, &ends.adas).unwrap();
    assert_eq!((opened.payload.as_str(), opened.snapshot_type), (payload, snapshot_type));
    assert_eq!(opened.sent_by.fingerprint(), ends.robot.fingerprint());
}
