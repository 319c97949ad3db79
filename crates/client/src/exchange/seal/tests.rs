//! Who opens what, and who does not.

use super::*;

fn keys(number: u8) -> DeviceKeys {
    DeviceKeys::from_secret(&std::array::from_fn(|at| {
        number.wrapping_mul(31).wrapping_add(u8::try_from(at).unwrap())
    }))
    .unwrap()
}

fn context() -> Context {
    Context::artifact("r", &"a".repeat(64), "robot", "2026-11-15T12:00:00Z")
}

struct World {
    robot: DeviceKeys,
    phone: DeviceKeys,
    laptop: DeviceKeys,
    bob: DeviceKeys,
}

impl World {
    fn new() -> Self {
        Self { robot: keys(1), phone: keys(2), laptop: keys(3), bob: keys(4) }
    }

    fn sealed(&self, content: &[u8]) -> Sealed {
        let recipients = [
            Recipient { id: "ada", bundle: self.phone.bundle() },
            Recipient { id: "ada", bundle: self.laptop.bundle() },
            Recipient { id: "bob", bundle: self.bob.bundle() },
        ];
        seal(&self.robot, &context(), content, &recipients).unwrap()
    }
}

#[test]
fn every_device_opens_what_was_sealed_to_it() {
    let world = World::new();
    let sealed = world.sealed(b"rm -rf /");
    let text = serde_json::to_string(&sealed).unwrap();
    assert!(!text.contains("rm -rf"));
    let sealed: Sealed = serde_json::from_str(&text).unwrap();
    for (device, id) in [(&world.phone, "ada"), (&world.laptop, "ada"), (&world.bob, "bob")] {
        let content = sealed.open(device, id, world.robot.bundle(), &context()).unwrap();
        assert_eq!(&**content, b"rm -rf /");
    }
}

#[test]
fn nobody_else_opens_it() {
    let world = World::new();
    let sealed = world.sealed(b"secret");
    let open =
        |device: &DeviceKeys, id: &str| sealed.open(device, id, world.robot.bundle(), &context()).err();
    assert_eq!(open(&keys(9), "ada"), Some(SealError::NotForThisDevice));
    assert_eq!(open(&world.bob, "ada"), Some(SealError::NotForThisDevice), "another approver's name");
}

#[test]
fn a_content_opens_in_its_own_context_only() {
    let world = World::new();
    let sealed = world.sealed(b"secret");
    let hash = "a".repeat(64);
    for other in [
        Context::artifact("r2", &hash, "robot", "2026-11-15T12:00:00Z"),
        Context::artifact("r", &"b".repeat(64), "robot", "2026-11-15T12:00:00Z"),
        Context::artifact("r", &hash, "robot2", "2026-11-15T12:00:00Z"),
        Context::artifact("r", &hash, "robot", "2026-11-15T12:00:01Z"),
        Context::snapshot("r", &hash, "robot", "2026-11-15T12:00:00Z"),
    ] {
        let opened = sealed.open(&world.phone, "ada", world.robot.bundle(), &other);
        assert_eq!(opened.err(), Some(SealError::Forged), "{other:?}");
    }
}

#[test]
fn only_the_pinned_sender_can_have_sealed_it() {
    let world = World::new();
    let recipients = [Recipient { id: "ada", bundle: world.phone.bundle() }];
    let mut forged = seal(&world.bob, &context(), b"run this", &recipients).unwrap();
    let open = |sealed: &Sealed| sealed.open(&world.phone, "ada", world.robot.bundle(), &context()).err();
    assert_eq!(open(&forged), Some(SealError::Forged));
    // A claimed fingerprint changes nothing.
    forged.sender = world.robot.fingerprint().to_string();
    assert_eq!(open(&forged), Some(SealError::Forged));
}

#[test]
fn a_recipient_can_not_reuse_wraps_for_a_content_of_its_own() {
    let world = World::new();
    let sealed = world.sealed(b"harmless");
    // Bob opens his wrap, so he knows the content key. With it he encrypts something else for the same context; what
    // the approver then hashes is not what the context names, and in another context no wrap opens.
    let key = sealed.unwrap_key(&world.bob, "bob", world.robot.bundle(), &context()).unwrap();
    let other = Context::artifact("r2", &"a".repeat(64), "robot", "2026-11-15T12:00:00Z");
    let nonce = [1; 12];
    let aad = other.content_aad().unwrap();
    let cipher = Aes256Gcm::new_from_slice(&key).unwrap();
    let encrypted = cipher.encrypt(&Nonce::from(nonce), Payload { msg: b"evil", aad: &aad }).unwrap();
    let forged =
        Sealed { nonce: base64url::encode(&nonce), content: base64url::encode(&encrypted), ..sealed.clone() };
    assert_eq!(forged.open(&world.phone, "ada", world.robot.bundle(), &other).err(), Some(SealError::Forged));
    // Bob's wrap under ada's name is refused too.
    let mut swapped = sealed;
    swapped.recipients[0].enc = swapped.recipients[2].enc.clone();
    swapped.recipients[0].key = swapped.recipients[2].key.clone();
    assert_eq!(
        swapped.open(&world.phone, "ada", world.robot.bundle(), &context()).err(),
        Some(SealError::Forged)
    );
}

#[test]
fn every_changed_byte_is_noticed() {
    let world = World::new();
    let text = serde_json::to_string(&world.sealed(b"some content")).unwrap();
    let opens = |text: &str| {
        let sealed: Result<Sealed, _> = serde_json::from_str(text);
        sealed.is_ok_and(|it| it.open(&world.phone, "ada", world.robot.bundle(), &context()).is_ok())
    };
    assert!(opens(&text));
    // The wraps of other devices may be changed: they are not this device's to check.
    let own_part = text.find("\"recipients\"").unwrap();
    let own_wrap_end = own_part + text[own_part..].find('}').unwrap();
    for at in 0..own_wrap_end {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert!(!opens(&String::from_utf8(changed).unwrap()), "byte {at} of {text}");
    }
}

#[test]
fn a_sealed_object_has_one_way_to_be_written() {
    let world = World::new();
    let sealed = world.sealed(b"some content");
    let text = serde_json::to_string(&sealed).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let as_list = |names: [&str; 6]| Value::from_iter(names.map(|name| value[name].clone()));
    for other in [
        as_list(["v", "suite", "sender", "nonce", "content", "recipients"]).to_string(),
        text.replace("{\"v\":1", "{\"v\":1,\"v\":1"),
        text.replace("\"approverId\":\"ada\"", "\"approverId\":\"ada\",\"enforcerId\":null"),
        text.replace("\"v\":1", "\"v\":1,\"more\":1"),
    ] {
        assert_ne!(other, text);
        assert!(serde_json::from_str::<Sealed>(&other).is_err(), "{other}");
    }
    assert_eq!(serde_json::from_str::<Sealed>(&text).unwrap(), sealed);
}

#[test]
fn it_is_sealed_to_somebody_and_not_to_everybody() {
    let robot = keys(1);
    let recipient = Recipient { id: "robot", bundle: robot.bundle() };
    let sealed = |count: usize| seal(&robot, &context(), b"", &vec![recipient.clone(); count]).err();
    assert_eq!((sealed(0), sealed(65)), (Some(SealError::Recipients), Some(SealError::Recipients)));
    assert_eq!(sealed(64), None);
    let mut received = seal(&robot, &context(), b"", &[recipient]).unwrap();
    let opened = |it: &Sealed| it.open(&robot, "robot", robot.bundle(), &context()).map(drop);
    assert_eq!(opened(&received), Ok(()));
    received.recipients = vec![received.recipients[0].clone(); 65];
    assert_eq!(opened(&received), Err(SealError::Malformed));
    received.recipients.clear();
    assert_eq!(opened(&received), Err(SealError::Malformed));
}
