//! The cases of sealing.

#[path = "../../tests/client/support/seal_cases.rs"]
#[expect(dead_code, reason = "the cases are only made here")]
mod seal_cases;

use countersign_client::seal::{Recipient, seal};
use countersign_wire::{base64url, keys::KeyBundle};
use serde_json::{Value, json};

use crate::devices::{all_keys, keys, secret};

/// Characters that are written differently by careless writers of JSON: quotes, a line separator, a byte order mark, a
/// pair of surrogates, an accent on its own.
const UNUSUAL: &str = "r \"1\" \\ / </x> \u{2028}\u{feff} ✓ 𝄞 e\u{301} {}[]:,#%00";

pub(crate) fn document() -> Value {
    let mut cases = good();
    cases.extend(changed());
    cases.extend(malformed());
    cases.extend(swapped());
    cases.extend(other_contexts());
    cases.extend(other_ends());
    json!({
        "about": "docs/sealing.md. TEST KEYS: every secret here is public; use none of them for anything else. Each of a case's devices (id, secret) opens `sealed` from `sender` in `context` to `plaintext` (base64url), or refuses it for the reason in `refused`. Cases with `textual` need a JSON reader that sees duplicate members and lone surrogates.",
        "keys": all_keys(),
        "cases": cases,
    })
}

fn context_of(kind: &str) -> Value {
    let hash = "8e326e1f69e5859a3b5b12965f06b5829f09b12d1748aa2fddb609fb44f831c1";
    match kind {
        "artifact" => {
            json!({ "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H", "artifactHash": hash, "enforcerId": "robot", "expiresAt": "2026-11-15T12:00:00Z" })
        }
        "prompt" => {
            json!({ "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8J", "promptHash": hash, "approverId": "ada", "target": "agentChat" })
        }
        "snapshot" => {
            json!({ "sessionId": "01J2V8V3M2YF0KX9Q0Z7E6H9R1", "snapshotId": "s-7", "snapshotHash": hash, "enforcerId": "robot" })
        }
        _ => {
            json!({ "requestId": "01J2V8V3K6B2Z9X6G1V7Y2QK8H", "artifactHash": hash, "approverId": "ada", "nonce": "bm9uY2UtMDAx" })
        }
    }
}

fn to_approvers(kind: &str) -> bool {
    matches!(kind, "artifact" | "snapshot")
}

/// Who seals and who opens a kind, unless a case says otherwise.
fn sender_of(kind: &str) -> &'static str {
    if to_approvers(kind) { "robot" } else { "phone" }
}

fn devices_of(kind: &str) -> Vec<(&'static str, &'static str)> {
    if to_approvers(kind) {
        vec![("ada", "phone"), ("ada", "laptop"), ("bob", "bob")]
    } else {
        vec![("robot", "robot")]
    }
}

/// A case with its sealed object, which the functions below change.
fn sealed_case(name: &str, kind: &str, context: &Value, devices: &[(&str, &str)], plain: &[u8]) -> Value {
    let bundles: Vec<(&str, KeyBundle)> =
        devices.iter().map(|(id, device)| (*id, keys(device).bundle().clone())).collect();
    let recipients: Vec<Recipient<'_>> =
        bundles.iter().map(|(id, bundle)| Recipient { id, bundle }).collect();
    let sender = keys(sender_of(kind));
    let mut case = json!({
        "name": name,
        "kind": kind,
        "context": context,
        "sender": sender.bundle().to_string(),
        "devices": devices.iter().map(|(id, device)| json!({ "id": id, "secret": secret(device) })).collect::<Vec<_>>(),
        "plaintext": base64url::encode(plain),
    });
    let sealed = seal(&sender, &seal_cases::context(&case).unwrap(), plain, &recipients).unwrap();
    case["sealed"] = serde_json::to_string(&sealed).unwrap().into();
    case
}

fn usual(kind: &str, content: &[u8]) -> Value {
    sealed_case(kind, kind, &context_of(kind), &devices_of(kind), content)
}

/// The sealed object of a case.
fn object(case: &Value) -> Value {
    serde_json::from_str(case["sealed"].as_str().unwrap()).unwrap()
}

fn named(mut case: Value, name: &str) -> Value {
    case["name"] = name.into();
    case
}

/// The case with another sealed object, and only one device.
fn with_sealed(case: &Value, name: &str, sealed: &Value) -> Value {
    let mut case = named(case.clone(), name);
    case["devices"].as_array_mut().unwrap().truncate(1);
    case["sealed"] = sealed.to_string().into();
    case
}

fn refused(mut case: Value, reason: &str) -> Value {
    case.as_object_mut().unwrap().remove("plaintext");
    case["refused"] = reason.into();
    case
}

fn good() -> Vec<Value> {
    let content = r#"{"command":"rm -rf ./build","why":"größer als 4 GB – 清理 🧹"}"#;
    let long: Vec<u8> = (0..4_099_u32).map(|at| u8::try_from(at * at % 251).unwrap()).collect();
    let every_byte: Vec<u8> = (0..=255).collect();
    let unusual = |kind: &str| {
        let usual = context_of(kind);
        let members = usual.as_object().unwrap();
        let changed = members
            .iter()
            .map(|(name, value)| (name.clone(), format!("{UNUSUAL} {}", value.as_str().unwrap()).into()));
        Value::Object(changed.collect())
    };
    let long_id = "é".repeat(128);
    let mut cases = vec![
        named(usual("artifact", content.as_bytes()), "an artifact to three devices of two approvers"),
        named(usual("artifact", b""), "an artifact without content"),
        named(usual("artifact", &[0]), "an artifact of one byte"),
        named(usual("artifact", &long), "an artifact of 4,099 bytes"),
        named(usual("artifact", &every_byte), "an artifact that is not UTF-8"),
        named(usual("prompt", "Weiter, bitte: naïve façade ✓".as_bytes()), "a prompt"),
        named(usual("snapshot", content.as_bytes()), "a snapshot to three devices of two approvers"),
        named(usual("hints", br#"{"reason":"looks fine","grant":null}"#), "what a decision says"),
        sealed_case(
            "one approver with an id of 256 bytes",
            "artifact",
            &context_of("artifact"),
            &[(&long_id, "bob")],
            b"x",
        ),
        sealed_case(
            "an enforcer with two devices",
            "prompt",
            &context_of("prompt"),
            &[("robot", "robot"), ("robot", "robot2")],
            b"x",
        ),
    ];
    for kind in ["artifact", "prompt", "snapshot", "hints"] {
        let name = format!("unusual characters: {kind}");
        cases.push(sealed_case(&name, kind, &unusual(kind), &[(UNUSUAL, "bob"), (UNUSUAL, "laptop")], b"x"));
    }
    cases.extend(good_texts());
    cases
}

/// What a sealed object may look like.
fn good_texts() -> Vec<Value> {
    let base = usual("artifact", b"x");
    let mut pretty = named(base.clone(), "white space, and members in another order");
    pretty["sealed"] = serde_json::to_string_pretty(&object(&base)).unwrap().into();
    let mut doubled = object(&base);
    let mut useless = doubled["recipients"][0].clone();
    useless["key"] = doubled["recipients"][2]["key"].clone();
    doubled["recipients"].as_array_mut().unwrap().push(useless);
    let mut broken = object(&base);
    broken["recipients"][2]["enc"] = "=".into();
    broken["recipients"][1]["fingerprint"] = "".into();
    let mut full = object(&base);
    let last = full["recipients"].as_array_mut().unwrap();
    last.reverse();
    let other = last[0].clone();
    while last.len() < 64 {
        last.insert(0, other.clone());
    }
    vec![
        pretty,
        with_sealed(&base, "the first of two wraps for a device counts", &doubled),
        with_sealed(&base, "broken wraps of other devices", &broken),
        with_sealed(&base, "64 recipients", &full),
    ]
}

/// The text in base64url with one byte changed.
fn flipped(text: &Value, at: usize) -> Value {
    let mut bytes = base64url::decode_all(text.as_str().unwrap()).unwrap();
    let at = at.min(bytes.len() - 1);
    bytes[at] ^= 1;
    base64url::encode(&bytes).into()
}

fn truncated(text: &Value) -> Value {
    let bytes = base64url::decode_all(text.as_str().unwrap()).unwrap();
    base64url::encode(&bytes[..bytes.len() - 1]).into()
}

/// The base with `value` at `pointer`.
fn edited(base: &Value, name: &str, pointer: &str, value: Value) -> Value {
    let mut sealed = object(base);
    *sealed.pointer_mut(pointer).unwrap() = value;
    with_sealed(base, name, &sealed)
}

fn changed() -> Vec<Value> {
    let base = usual("artifact", b"some content");
    let sealed = object(&base);
    let of = |pointer: &str| sealed.pointer(pointer).unwrap();
    let mut cases = Vec::new();
    let mut add = |name: &str, pointer: &str, value: Value, reason: &str| {
        cases.push(refused(edited(&base, &format!("{name}: {pointer}"), pointer, value), reason));
    };
    let fields = [
        ("/sender", "forged"),
        ("/nonce", "forged"),
        ("/content", "forged"),
        ("/recipients/0/fingerprint", "not-for-this-device"),
        ("/recipients/0/enc", "forged"),
        ("/recipients/0/key", "forged"),
    ];
    for (pointer, reason) in fields {
        add("first bit changed", pointer, flipped(of(pointer), 0), reason);
        add("last byte changed", pointer, flipped(of(pointer), usize::MAX), reason);
        let padded = format!("{}=", of(pointer).as_str().unwrap());

        add("padding", pointer, padded.into(), not_base64url(pointer));
        add("one byte less", pointer, truncated(of(pointer)), wrong_length(pointer));
        add("empty", pointer, "".into(), wrong_length(pointer));
        let other_alphabet = format!("+{}", &of(pointer).as_str().unwrap()[1..]);
        add("another alphabet", pointer, other_alphabet.into(), not_base64url(pointer));
        let spaced = format!("{} ", of(pointer).as_str().unwrap());
        add("white space", pointer, spaced.into(), not_base64url(pointer));
    }
    // 32 bytes are 43 characters, whose last two bits must be zero.
    let enc = of("/recipients/0/enc").as_str().unwrap();
    let (start, last) = enc.split_at(42);
    let next = char::from(last.as_bytes()[0] + 1);
    add("bits after the last byte", "/recipients/0/enc", format!("{start}{next}").into(), "malformed");
    add("a point of small order", "/recipients/0/enc", base64url::encode(&[0; 32]).into(), "forged");
    let mut high = base64url::decode_all(enc).unwrap();
    high[31] ^= 0x80;
    add("the bit that X25519 ignores", "/recipients/0/enc", base64url::encode(&high).into(), "forged");
    add("another name", "/recipients/0/approverId", "eve".into(), "not-for-this-device");
    cases
}

/// What a text that is not in base64url is refused for.
fn not_base64url(pointer: &str) -> &'static str {
    match pointer {
        "/sender" => "forged",
        "/recipients/0/fingerprint" => "not-for-this-device",
        _ => "malformed",
    }
}

/// What a text of too few bytes is refused for; ciphertexts may have any length.
fn wrong_length(pointer: &str) -> &'static str {
    match pointer {
        "/content" | "/recipients/0/key" => "forged",
        _ => not_base64url(pointer),
    }
}

fn malformed() -> Vec<Value> {
    let base = usual("artifact", b"some content");
    let sealed = object(&base);
    let mut cases = Vec::new();
    let places = [
        "/v",
        "/suite",
        "/sender",
        "/nonce",
        "/content",
        "/recipients",
        "/recipients/0/fingerprint",
        "/recipients/0/enc",
        "/recipients/0/key",
        "/recipients/0/approverId",
    ];
    for pointer in places {
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        let mut without = sealed.clone();
        without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(member);
        let reason = if member == "approverId" { "not-for-this-device" } else { "malformed" };
        cases.push(refused(with_sealed(&base, &format!("no {pointer}"), &without), reason));
        cases.push(refused(edited(&base, &format!("null: {pointer}"), pointer, Value::Null), "malformed"));
        cases.push(refused(
            edited(&base, &format!("a wrong type: {pointer}"), pointer, json!({})),
            "malformed",
        ));
    }
    let edits = [
        ("version 0", "/v", json!(0)),
        ("version 2", "/v", json!(2)),
        ("version 257", "/v", json!(257)),
        ("a version in quotes", "/v", json!("1")),
        ("another suite", "/suite", json!("HPKE-Auth-X25519-HKDF-SHA256-ChaCha20Poly1305")),
        ("the suite in lower case", "/suite", json!("hpke-auth-x25519-hkdf-sha256-aes-256-gcm")),
        ("no recipients", "/recipients", json!([])),
        ("a nonce of 13 bytes", "/nonce", base64url::encode(&[0; 13]).into()),
        ("65 recipients", "/recipients", vec![sealed["recipients"][0].clone(); 65].into()),
    ];
    for (name, pointer, value) in edits {
        cases.push(refused(edited(&base, name, pointer, value), "malformed"));
    }
    cases.extend(malformed_texts(&base, &sealed));
    cases
}

fn malformed_texts(base: &Value, sealed: &Value) -> Vec<Value> {
    let text = base["sealed"].as_str().unwrap();
    let mut cases = Vec::new();
    let array: Vec<Value> = ["v", "suite", "sender", "nonce", "content", "recipients"]
        .iter()
        .map(|name| sealed[*name].clone())
        .collect();
    let ada = r#""approverId":"ada""#;
    let texts = [
        ("an unknown member", text.replacen("{\"v\"", "{\"more\":1,\"v\"", 1), "malformed", false),
        (
            "an unknown member of a wrap",
            text.replacen(ada, &format!("{ada},\"more\":1"), 1),
            "malformed",
            false,
        ),
        (
            "a wrap that names an approver and an enforcer",
            text.replacen(ada, &format!("{ada},\"enforcerId\":\"ada\""), 1),
            "not-for-this-device",
            false,
        ),
        (
            "a wrap that names an enforcer only",
            text.replacen("approverId", "enforcerId", 1),
            "not-for-this-device",
            false,
        ),
        (
            "a wrap whose other name is null",
            text.replacen(ada, &format!("{ada},\"enforcerId\":null"), 1),
            "malformed",
            false,
        ),
        ("an array of the values", Value::from(array).to_string(), "malformed", false),
        ("not an object", "\"sealed\"".to_owned(), "malformed", false),
        ("not JSON", text[..text.len() - 1].to_owned(), "malformed", false),
        ("text after the object", format!("{text} {text}"), "malformed", false),
        ("a duplicate member", text.replacen("{\"v\":1", "{\"v\":1,\"v\":1", 1), "malformed", true),
        (
            "a duplicate member, spelled differently",
            text.replacen("{\"v\":1", "{\"\\u0076\":1,\"v\":1", 1),
            "malformed",
            true,
        ),
        ("a duplicate member of a wrap", text.replacen(ada, &format!("{ada},{ada}"), 1), "malformed", true),
        ("a lone surrogate", text.replacen("\"bob\"", "\"\\ud800\"", 1), "malformed", true),
    ];
    for (name, sealed, reason, textual) in texts {
        let mut case = refused(with_sealed(base, name, &Value::Null), reason);
        case["sealed"] = sealed.into();
        if textual {
            case["textual"] = true.into();
        }
        cases.push(case);
    }
    cases
}

fn swapped() -> Vec<Value> {
    let base = usual("artifact", b"some content");
    let mut context = context_of("artifact");
    context["requestId"] = "01J2V8V3K6B2Z9X6G1V7Y2QK8Z".into();
    let other = object(&sealed_case("", "artifact", &context, &devices_of("artifact"), b"other content"));
    let again = object(&usual("artifact", b"other content"));
    let sealed = object(&base);
    let mut cases = Vec::new();
    let mut add = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut swapped = sealed.clone();
        change(&mut swapped);
        cases.push(refused(with_sealed(&base, name, &swapped), "forged"));
    };
    let take = |to: &mut Value, from: &Value, members: &[&str]| {
        for member in members {
            to[*member] = from[*member].clone();
        }
    };
    for (name, from) in [("another device of the approver", 1), ("another approver", 2)] {
        let wrap = &sealed["recipients"][from];
        add(&format!("the wrap of {name}"), &|it| take(&mut it["recipients"][0], wrap, &["enc", "key"]));
        add(&format!("the wrapped key of {name}"), &|it| take(&mut it["recipients"][0], wrap, &["key"]));
        add(&format!("the encapsulated key of {name}"), &|it| take(&mut it["recipients"][0], wrap, &["enc"]));
    }
    for (name, from) in [("another exchange", &other), ("another content of the exchange", &again)] {
        add(&format!("the wraps of {name}"), &|it| take(it, from, &["recipients"]));
        add(&format!("the content of {name}"), &|it| take(it, from, &["nonce", "content"]));
        add(&format!("the nonce of {name}"), &|it| take(it, from, &["nonce"]));
    }
    cases.push(refused(with_sealed(&base, "the whole of another exchange", &other), "forged"));
    cases
}

fn other_contexts() -> Vec<Value> {
    let kinds = ["artifact", "prompt", "snapshot", "hints"];
    let mut cases = Vec::new();
    for kind in kinds {
        let base = usual(kind, b"some content");
        for member in context_of(kind).as_object().unwrap().keys() {
            let mut case = named(base.clone(), &format!("another {member} of the context: {kind}"));
            let other = format!("{}0", case["context"][member].as_str().unwrap());
            case["context"][member] = other.into();
            cases.push(refused(case, "forged"));
        }
        for other in kinds.into_iter().filter(|other| *other != kind) {
            let mut case = named(base.clone(), &format!("opened as another kind: {kind} as {other}"));
            case["kind"] = other.into();
            case["context"] = context_of(other);
            let reason =
                if to_approvers(kind) == to_approvers(other) { "forged" } else { "not-for-this-device" };
            cases.push(refused(case, reason));
        }
    }
    let mut same_time = named(usual("artifact", b"x"), "the same time, written differently");
    same_time["context"]["expiresAt"] = "2026-11-15T12:00:00.0Z".into();
    cases.push(refused(same_time, "forged"));
    cases
}

fn other_ends() -> Vec<Value> {
    let base = usual("artifact", b"some content");
    let mut other_pin = named(base.clone(), "the pin of another sender");
    other_pin["sender"] = keys("bob").bundle().to_string().into();
    let claims = |name: &str, fingerprint: &str| edited(&base, name, "/sender", fingerprint.into());
    let mut claimed = claims("another sender, named as such", &keys("bob").fingerprint().to_string());
    claimed["sender"] = keys("bob").bundle().to_string().into();
    let half = KeyBundle { signing: keys("bob").bundle().signing, ..keys("robot").bundle().clone() };
    let mut half_pin = named(base.clone(), "a pin of which only the agreement key is the sender's");
    half_pin["sender"] = half.to_string().into();
    // Bob seals to the phone as if he were the robot.
    let mut forged = usual("artifact", b"");
    let phone = keys("phone");
    let recipient = Recipient { id: "ada", bundle: phone.bundle() };
    let by_bob =
        seal(&keys("bob"), &seal_cases::context(&forged).unwrap(), b"run this", &[recipient]).unwrap();
    let mut by_bob = serde_json::to_value(by_bob).unwrap();
    by_bob["sender"] = keys("robot").fingerprint().to_string().into();
    forged = with_sealed(&forged, "sealed by a recipient in the name of the sender", &by_bob);
    let at = |name: &str, id: &str, device: &str| {
        let mut case = named(base.clone(), name);
        case["devices"] = json!([{ "id": id, "secret": secret(device) }]);
        refused(case, "not-for-this-device")
    };
    let composed = sealed_case(
        "an id in another normal form",
        "artifact",
        &context_of("artifact"),
        &[("ren\u{e9}", "phone")],
        b"x",
    );
    let mut decomposed = refused(composed, "not-for-this-device");
    decomposed["devices"][0]["id"] = "rene\u{301}".into();
    vec![
        refused(other_pin, "forged"),
        refused(claimed, "forged"),
        refused(half_pin, "forged"),
        refused(forged, "forged"),
        at("another device", "ada", "robot2"),
        at("another approver's device under this name", "ada", "bob"),
        at("this device under another approver's name", "bob", "phone"),
        at("the name in another case", "Ada", "phone"),
        decomposed,
    ]
}
