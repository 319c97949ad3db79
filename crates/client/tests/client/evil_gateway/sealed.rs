//! Lies about what was asked: contents and wraps of one exchange, device or person in the place of another's, also by a
//! gateway to which one of the recipients gives every content key.

use std::sync::Arc;

use aes_gcm::{
    Aes256Gcm, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use countersign_client::{
    approver::Approver,
    keys::DeviceKeys,
    profile::Pins,
    request::OpenError,
    seal::{Context, Recipient, seal},
};
use countersign_wire::{base64url, canonical, hash::Sha256Hex, keys::KeyBundle};
use hpke::{Deserializable as _, OpModeR, aead::AesGcm256, kdf::HkdfSha256, kem::X25519HkdfSha256};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{EXCHANGES, Scene, approver};
use crate::support::{
    evil::{Evil, Given},
    pair,
};

type Kem = X25519HkdfSha256;

/// What a content is bound to, as the protocol builds it from an item of the inbox.
fn context(item: &Value) -> Value {
    json!({
        "v": 1, "requestId": item["requestId"], "artifactHash": item["body"]["artifactHash"],
        "enforcerId": item["sender"]["enforcerId"], "expiresAt": item["body"]["expiresAt"],
    })
}

fn canonical_form(value: &Value) -> Vec<u8> {
    canonical::form(value.to_string().as_bytes()).unwrap()
}

fn bytes(value: &Value) -> Vec<u8> {
    base64url::decode_all(value.as_str().unwrap()).unwrap()
}

/// A recipient who tells the gateway the content key of an item.
fn content_key(item: &Value, id: &str, keys: &DeviceKeys, sender: &KeyBundle) -> Vec<u8> {
    let fingerprint = keys.fingerprint().to_string();
    let wraps = item["body"]["ciphertext"]["recipients"].as_array().unwrap();
    let wrap = wraps.iter().find(|wrap| wrap["fingerprint"] == fingerprint.as_str()).unwrap();
    let mut aad = context(item);
    (aad["approverId"], aad["fingerprint"]) = (id.into(), fingerprint.into());
    let public = <Kem as hpke::Kem>::PublicKey::from_bytes(sender.agreement.as_bytes()).unwrap();
    let private = <Kem as hpke::Kem>::PrivateKey::from_bytes(&keys.to_secret()[32..]).unwrap();
    let enc = <Kem as hpke::Kem>::EncappedKey::from_bytes(&bytes(&wrap["enc"])).unwrap();
    let info = b"countersign v1 artifact";
    let aad = canonical_form(&aad);
    let mode = OpModeR::Auth(public);
    hpke::single_shot_open::<AesGcm256, HkdfSha256, Kem>(
        &mode,
        &private,
        &enc,
        info,
        &bytes(&wrap["key"]),
        &aad,
    )
    .unwrap()
}

/// The content of an item, for whoever has its content key.
fn content(item: &Value, key: &[u8]) -> Value {
    let ciphertext = &item["body"]["ciphertext"];
    let nonce: [u8; 12] = bytes(&ciphertext["nonce"]).try_into().unwrap();
    let (encrypted, aad) = (bytes(&ciphertext["content"]), canonical_form(&context(item)));
    let cipher = Aes256Gcm::new_from_slice(key).unwrap();
    let content = cipher.decrypt(&Nonce::from(nonce), Payload { msg: &encrypted, aad: &aad }).unwrap();
    serde_json::from_slice(&content).unwrap()
}

/// The item with another content under a content key, bound to what the item says of itself.
fn with_content(item: &Value, key: &[u8], content: &Value) -> Value {
    let (nonce, aad) = ([7; 12], canonical_form(&context(item)));
    let cipher = Aes256Gcm::new_from_slice(key).unwrap();
    let text = content.to_string();
    let encrypted = cipher.encrypt(&Nonce::from(nonce), Payload { msg: text.as_bytes(), aad: &aad }).unwrap();
    let mut lie = item.clone();
    lie["body"]["ciphertext"]["nonce"] = base64url::encode(&nonce).into();
    lie["body"]["ciphertext"]["content"] = base64url::encode(&encrypted).into();
    lie
}

/// Another payload in an artifact. Its hash is that of the new content if it `is_hashed`, else still that of the old one.
fn rewritten(artifact: &Value, is_hashed: bool) -> Value {
    let mut lie = artifact.clone();
    lie["payload"] = json!({ "argv": ["rm", "-rf", "/"] });
    if is_hashed {
        let mut unhashed = lie.clone();
        unhashed.as_object_mut().unwrap().remove("artifactHash");
        lie["artifactHash"] = Sha256Hex::digest(&canonical_form(&unhashed)).to_string().into();
    }
    lie
}

/// One device that is lied to.
struct Victim<'a> {
    device: &'a Approver,
    pins: &'a Pins,
    evil: &'a Evil,
    /// The honest page of its inbox.
    page: Value,
}

impl Victim<'_> {
    async fn new<'a>(device: &'a Approver, pins: &'a Pins, evil: &'a Evil) -> Victim<'a> {
        let seen = Arc::new(Mutex::new(Value::Null));
        let keeping = seen.clone();
        evil.honest();
        evil.back(move |_, given| {
            *keeping.lock() = serde_json::from_slice(&given.body).unwrap();
            Some(given)
        });
        let items = device.inbox(pins).await.unwrap();
        assert_eq!(items.iter().filter(|item| item.opened.is_ok()).count(), EXCHANGES);
        let page = seen.lock().clone();
        Victim { device, pins, evil, page }
    }

    fn items(&self) -> &[Value] {
        self.page["body"]["items"].as_array().unwrap()
    }

    /// Shows these items, and returns how many were refused; each must be refused for this reason.
    async fn shown(&self, items: Vec<Value>, expected: &str, what: &str) -> usize {
        let mut page = self.page.clone();
        page["body"]["items"] = items.into();
        let page = page.to_string();
        self.evil
            .forth(move |asked| asked.path.contains("/inbox").then(|| Given::invented(200, page.as_str())));
        let items = self.device.inbox(self.pins).await.unwrap();
        for item in &items {
            let said = match &item.opened {
                Ok(_) => "opened".to_owned(),
                Err(OpenError::UnknownSender(_)) => "UnknownSender".to_owned(),
                Err(error) => format!("{error:?}"),
            };
            assert_eq!(said, expected, "{what}");
        }
        items.len()
    }
}

/// A gateway, two devices of ada and one of bob, and twenty exchanges that all of them can open.
async fn scene() -> (Scene, Approver, Pins, Approver, Pins) {
    let mut scene = Scene::start().await;
    let laptop = approver(&scene.world, &scene.evil, "ada").await;
    let bob = approver(&scene.world, &scene.evil, "bob").await;
    let (robots, of_laptop) = pair(&scene.robot, &laptop, scene.robots.clone()).await;
    let (robots, of_bob) = pair(&scene.robot, &bob, robots).await;
    scene.robots = robots;
    for number in 0..EXCHANGES {
        scene.submit(number).await;
    }
    (scene, laptop, of_laptop, bob, of_bob)
}

const FORGED: &str = "Seal(Forged)";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sealed_for_one_exchange_opens_in_no_other_one() {
    let (scene, laptop, of_laptop, bob, of_bob) = scene().await;
    let mut attempts = 0;
    for (device, pins) in [(&scene.ada, &scene.adas), (&laptop, &of_laptop), (&bob, &of_bob)] {
        let victim = Victim::new(device, pins, &scene.evil).await;
        for shift in 1..EXCHANGES {
            let swapped = |swap: fn(&mut Value, &Value)| {
                let items = victim.items().iter().enumerate();
                let swapped = items.map(|(at, item)| {
                    let mut lie = item.clone();
                    swap(&mut lie, &victim.items()[(at + shift) % EXCHANGES]);
                    lie
                });
                swapped.collect::<Vec<_>>()
            };
            for (what, lies) in [
                (
                    "ciphertext",
                    swapped(|lie, other| lie["body"]["ciphertext"] = other["body"]["ciphertext"].clone()),
                ),
                ("body", swapped(|lie, other| lie["body"] = other["body"].clone())),
                ("id", swapped(|lie, other| lie["requestId"] = other["requestId"].clone())),
                (
                    "hash",
                    swapped(|lie, other| {
                        lie["body"]["artifactHash"] = other["body"]["artifactHash"].clone();
                    }),
                ),
                (
                    "content",
                    swapped(|lie, other| {
                        for name in ["nonce", "content"] {
                            lie["body"]["ciphertext"][name] = other["body"]["ciphertext"][name].clone();
                        }
                    }),
                ),
                (
                    "wraps",
                    swapped(|lie, other| {
                        lie["body"]["ciphertext"]["recipients"] =
                            other["body"]["ciphertext"]["recipients"].clone();
                    }),
                ),
            ] {
                attempts += victim.shown(lies, FORGED, what).await;
            }
        }
    }
    assert_eq!(attempts, 3 * 6 * EXCHANGES * (EXCHANGES - 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipient_who_gives_its_content_keys_away_can_not_change_what_others_see() {
    let (scene, laptop, of_laptop, bob, _) = scene().await;
    let sender = scene.robot.keys.bundle();
    let mut attempts = 0;
    for (device, pins) in [(&scene.ada, &scene.adas), (&laptop, &of_laptop)] {
        let victim = Victim::new(device, pins, &scene.evil).await;
        let items = victim.items();
        let keys: Vec<Vec<u8>> =
            items.iter().map(|item| content_key(item, "bob", &bob.keys, sender)).collect();
        let contents: Vec<Value> = items.iter().zip(&keys).map(|(item, key)| content(item, key)).collect();
        // It is the true key: with the same content, everything opens.
        let same: Vec<Value> =
            (0..EXCHANGES).map(|at| with_content(&items[at], &keys[at], &contents[at])).collect();
        victim.shown(same, "opened", "the same content").await;
        for shift in 1..EXCHANGES {
            let of = |make: &dyn Fn(usize, usize) -> Value| -> Vec<Value> {
                (0..EXCHANGES).map(|at| make(at, (at + shift) % EXCHANGES)).collect()
            };
            // The content of another exchange, encrypted for this one.
            let moved = of(&|at, other| with_content(&items[at], &keys[at], &contents[other]));
            attempts += victim.shown(moved, r#"Differs("artifactHash")"#, "moved content").await;
            // The other exchange itself, its content encrypted under this one's key, for which there are wraps.
            let rewrapped = of(&|at, other| {
                let mut lie = with_content(&items[other], &keys[at], &contents[other]);
                lie["body"]["ciphertext"]["recipients"] =
                    items[at]["body"]["ciphertext"]["recipients"].clone();
                lie
            });
            attempts += victim.shown(rewrapped, FORGED, "wraps of another exchange").await;
        }
        for (at, item) in items.iter().enumerate() {
            let rewritten_content =
                |is_hashed| with_content(item, &keys[at], &rewritten(&contents[at], is_hashed));
            let differs = r#"Differs("artifactHash")"#;
            for is_hashed in [true, false] {
                attempts += victim.shown(vec![rewritten_content(is_hashed)], differs, "rewritten").await;
            }
            // With its true hash in the envelope too, no wrap is for it.
            let new = rewritten(&contents[at], true);
            let mut renamed = item.clone();
            renamed["body"]["artifactHash"] = new["artifactHash"].clone();
            attempts += victim.shown(vec![with_content(&renamed, &keys[at], &new)], FORGED, "renamed").await;
        }
    }
    assert_eq!(attempts, 2 * (2 * EXCHANGES * (EXCHANGES - 1) + 3 * EXCHANGES));
}

#[tokio::test(flavor = "multi_thread")]
async fn wraps_of_other_devices_and_people_and_of_the_gateway_itself_open_nothing() {
    let (scene, laptop, of_laptop, bob, of_bob) = scene().await;
    let gateway = DeviceKeys::generate().unwrap();
    let mut attempts = 0;
    for (device, pins) in [(&scene.ada, &scene.adas), (&laptop, &of_laptop), (&bob, &of_bob)] {
        let victim = Victim::new(device, pins, &scene.evil).await;
        let own = device.keys.fingerprint().to_string();
        for item in victim.items() {
            let wraps = item["body"]["ciphertext"]["recipients"].as_array().unwrap();
            assert_eq!(wraps.len(), 3);
            let with = |wraps: Value| {
                let mut lie = item.clone();
                lie["body"]["ciphertext"]["recipients"] = wraps;
                vec![lie]
            };
            let (mine, others): (Vec<&Value>, Vec<&Value>) =
                wraps.iter().partition(|wrap| wrap["fingerprint"] == own.as_str());
            for other in &others {
                let mut relabelled = mine[0].clone();
                (relabelled["enc"], relabelled["key"]) = (other["enc"].clone(), other["key"].clone());
                attempts += victim.shown(with(json!([relabelled])), FORGED, "another device's").await;
            }
            let not_mine = "Seal(NotForThisDevice)";
            attempts += victim.shown(with(json!(others)), not_mine, "only others'").await;
            // The gateway seals something itself, in the name of the enforcer and in its own.
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let body = &item["body"];
            let context = Context::artifact(
                &text(&item["requestId"]),
                &text(&body["artifactHash"]),
                "robot",
                &text(&body["expiresAt"]),
            );
            let recipient = Recipient { id: device.id.as_str(), bundle: device.keys.bundle() };
            let mut lie = item.clone();
            lie["body"]["ciphertext"] = json!(seal(&gateway, &context, b"{}", &[recipient]).unwrap());
            attempts += victim.shown(vec![lie.clone()], "UnknownSender", "the gateway's own").await;
            lie["body"]["ciphertext"]["sender"] = scene.robot.keys.fingerprint().to_string().into();
            attempts += victim.shown(vec![lie], FORGED, "the gateway's in the enforcer's name").await;
            let mut open = item.clone();
            open["body"].as_object_mut().unwrap().remove("ciphertext");
            open["body"]["payload"] = json!({});
            attempts += victim.shown(vec![open], "NotSealed", "not sealed").await;
        }
    }
    assert_eq!(attempts, 3 * EXCHANGES * 6);
}
