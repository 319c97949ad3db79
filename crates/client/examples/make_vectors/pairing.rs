//! The cases of pairing.

use countersign_client::{
    keys::Fingerprint,
    pairing::{
        Transcript, answer_link,
        link::PairingLink,
        recovery::RecoveryCode,
        statement::{Claim, Issue},
        typed_digits,
    },
};
use countersign_wire::{
    RawObject, base64url, canonical,
    keys::KeyBundle,
    lock::{LockAlgorithm, LockKey},
};
use serde_json::{Value, json};

use crate::devices::{all_keys, keys};

const UNUSUAL: &str = "robot \"1\" \\ / \u{2028}\u{feff} ✓ 𝄞 e\u{301} .#%00";

pub(crate) fn document() -> Value {
    json!({
        "about": "docs/pairing.md. TEST KEYS: every secret here is public; use none of them for anything else. Bytes are base64url. `refused` is the reason why a case is not accepted.",
        "keys": all_keys(),
        "bundles": bundles(),
        "links": links(),
        "transcripts": transcripts(),
        "statements": statements(),
        "recoveryCodes": recovery_codes(),
    })
}

fn bundles() -> Vec<Value> {
    let robot = keys("robot").bundle().clone();
    let with_proof = KeyBundle { proof: Some([9; 32]), ..robot.clone() };
    let mut cases: Vec<Value> = ["robot", "phone", "laptop", "bob"]
        .map(|name| keys(name).bundle().clone())
        .into_iter()
        .chain([with_proof])
        .map(|bundle| {
            let fingerprint = Fingerprint::of(&bundle);
            let (short, digits) = (fingerprint.short(), fingerprint.digits());
            let name = if bundle.proof.is_some() { "with a proof" } else { "without a proof" };
            json!({ "name": name, "bundle": bundle.to_string(), "fingerprint": fingerprint.to_string(), "short": short, "digits": digits })
        })
        .collect();
    let text = robot.to_string();
    let [_, signing, agreement] = <[&str; 3]>::try_from(text.split('.').collect::<Vec<_>>()).unwrap();
    let mut identity = [0; 32];
    identity[0] = 1;
    let bad = [
        ("another version", format!("v2.{signing}.{agreement}")),
        ("one key", format!("v1.{signing}")),
        ("padding", format!("v1.{signing}=.{agreement}")),
        ("one key for two purposes", format!("v1.{agreement}.{agreement}")),
        ("a weak signing key", format!("v1.{}.{agreement}", base64url::encode(&identity))),
        ("a weak agreement key", format!("v1.{signing}.{}", base64url::encode(&[0; 32]))),
        ("an agreement key that is not reduced", format!("v1.{signing}.{}", base64url::encode(&[0xff; 32]))),
        ("a proof of 31 bytes", format!("{text}.{}", base64url::encode(&[9; 31]))),
        ("an empty proof", format!("{text}.")),
        ("a fifth part", format!("{with_proof}.x", with_proof = KeyBundle { proof: Some([9; 32]), ..robot })),
    ];
    cases.extend(
        bad.map(|(name, bundle)| json!({ "name": name, "bundle": bundle, "refused": "unknown-keys" })),
    );
    cases
}

fn link_text(gateway: &str, code: &str, enforcer_id: &str) -> String {
    let id = base64url::encode(enforcer_id.as_bytes());
    let secret = base64url::encode(&[7; 16]);
    format!("{gateway}/pair#v1.{code}.{id}.{}.{secret}", keys("robot").fingerprint())
}

fn links() -> Vec<Value> {
    let plain = link_text("https://gw.example", "BCDFGHJK", "robot");
    let good = [
        ("plain", plain.clone()),
        ("with a path", link_text("https://gw.example/countersign/v1", "ZXWVTSRQ", "robot")),
        ("without TLS, with a port", link_text("http://127.0.0.1:8080", "BCDFGHJK", "robot")),
        ("an address of version 6", link_text("https://[::1]:8443", "BCDFGHJK", "robot")),
        ("a dash in the code, in lower case", link_text("https://gw.example", "bcdf-ghjk", "robot")),
        ("slashes at the end", link_text("https://gw.example//", "BCDFGHJK", "robot")),
        ("white space around it", format!(" \t{plain}\r\n")),
        ("an unusual id", link_text("https://gw.example", "BCDFGHJK", UNUSUAL)),
    ];
    let read = |(name, text): (&str, String)| {
        let link: PairingLink = text.parse().unwrap();
        json!({
            "name": name,
            "text": text,
            "written": link.to_string(),
            "gateway": link.gateway,
            "code": link.code.to_string(),
            "enforcerId": link.enforcer_id,
            "fingerprint": link.fingerprint.to_string(),
            "secret": base64url::encode(link.secret.as_slice()),
        })
    };
    let mut cases: Vec<Value> = good.into_iter().map(read).collect();
    let bad = |(name, text): (&str, String)| {
        assert!(text.parse::<PairingLink>().is_err(), "{name}");
        json!({ "name": name, "text": text, "refused": "not-a-link" })
    };
    cases.extend(no_links(&plain).into_iter().map(bad));
    cases
}

fn no_links(plain: &str) -> Vec<(&'static str, String)> {
    let host = |host: &str| plain.replace("gw.example", host);
    let id = base64url::encode(b"robot");
    let secret = base64url::encode(&[7; 16]);
    vec![
        ("nothing", String::new()),
        ("a URL", "https://gw.example/pair".to_owned()),
        ("a code", "BCDF-GHJK".to_owned()),
        ("another version", plain.replace("#v1.", "#v2.")),
        ("another scheme", plain.replace("https", "ftp")),
        ("a scheme in upper case", plain.replace("https", "HTTPS")),
        ("no scheme", plain.replace("https://", "")),
        ("a query in place of the fragment", plain.replace('#', "?")),
        ("no host", host("")),
        ("a slash in place of the host", host("/gw.example")),
        ("a name before the host", host("gw.example@evil.example")),
        ("a query", host("gw.example?x=")),
        ("a fragment before the fragment", host("gw.example#")),
        ("a backslash", host("gw.example\\")),
        ("white space in the URL", host("gw.example ")),
        ("a host that is not ASCII", host("gẃ.example")),
        ("a code with a vowel", plain.replace("BCDF", "ACDF")),
        ("a code of seven letters", plain.replace("BCDF", "BCD")),
        ("no enforcer", plain.replace(&format!(".{id}."), "..")),
        ("an enforcer with a line break", plain.replace(&id, &base64url::encode(b"ro\nbot"))),
        ("an enforcer that is not UTF-8", plain.replace(&id, &base64url::encode(&[0xff]))),
        ("an enforcer of 257 bytes", plain.replace(&id, &base64url::encode(&[b'a'; 257]))),
        ("a secret of 15 bytes", plain.replace(&secret, &base64url::encode(&[7; 15]))),
        ("a secret with padding", format!("{plain}==")),
        ("one part less", plain.rsplit_once('.').unwrap().0.to_owned()),
        ("one part more", format!("{plain}.x")),
        ("one character less", plain[..plain.len() - 1].to_owned()),
    ]
}

fn transcripts() -> Vec<Value> {
    let lock = lock();
    let ids = [
        ("plain", "robot", "ada", "n-1", None),
        ("unusual characters", UNUSUAL, "ren\u{e9} 清", "n \"2\"", None),
        ("with a lock", "robot", "ada", "n-1", Some(&lock)),
    ];
    let (robot, phone) = (keys("robot"), keys("phone"));
    ids.map(|(name, enforcer_id, approver_id, nonce, lock)| {
        let (enforcer, approver) = (robot.bundle(), phone.bundle());
        let transcript = Transcript { enforcer_id, enforcer, approver_id, approver, nonce, lock };
        let link: PairingLink = link_text("https://gw.example", "BCDFGHJK", enforcer_id).parse().unwrap();
        let answer = answer_link(transcript, &link).unwrap();
        let digits =
            [[0; 32], [0xff; 32], std::array::from_fn(|at| u8::try_from(at).unwrap())].map(|fresh| {
                let bundle = KeyBundle { proof: Some(fresh), ..approver.clone() };
                let shown = typed_digits(Transcript { approver: &bundle, ..transcript }).unwrap();
                json!({ "fresh": base64url::encode(&fresh), "answer": bundle.to_string(), "digits": shown })
            });
        let mut case = json!({
            "name": name,
            "enforcerId": enforcer_id,
            "enforcer": robot.bundle().to_string(),
            "approverId": approver_id,
            "approver": phone.bundle().to_string(),
            "nonce": nonce,
            "secret": base64url::encode(&[7; 16]),
            "proof": base64url::encode(&answer.bundle.proof.unwrap()),
            "answer": answer.bundle.to_string(),
            "typed": digits,
        });
        if let Some(lock) = lock {
            case["lock"] = json!(lock);
        }
        case
    })
    .to_vec()
}

/// A lock whose key is bob's, for these vectors.
fn lock() -> LockKey {
    let frame = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0";
    let key = [frame, keys("bob").bundle().signing.as_bytes().as_slice()].concat();
    LockKey::new(LockAlgorithm::EdDsa, (0..16).collect(), key, "gw.example", "https://gw.example").unwrap()
}

const NOW: &str = "2026-11-15T12:00:00Z";
const PREFIX: &[u8] = b"countersign statement v1\0";

fn signed(claim: Claim) -> Value {
    let issue = Issue { enforcer_id: "robot", id: "st-1", by: "ada", at: NOW.parse().unwrap() };
    serde_json::to_value(keys("phone").sign_statement(issue, claim).unwrap()).unwrap()
}

/// Signs it again with `prefix` before the canonical form.
fn signed_again(mut statement: Value, signer: &str, prefix: &[u8]) -> Value {
    let text = statement.to_string();
    let form = canonical::form_without(RawObject::parse(text.as_bytes()).unwrap(), "signature").unwrap();
    statement["signature"] = keys(signer).signing_key().sign(&[prefix, form.as_slice()].concat()).into();
    statement
}

fn statement_case(name: &str, statement: &str, refused: Option<&str>) -> Value {
    let signer = keys("phone").bundle().to_string();
    let mut case =
        json!({ "name": name, "statement": statement, "signer": signer, "enforcerId": "robot", "now": NOW });
    if let Some(reason) = refused {
        case["refused"] = reason.into();
    }
    case
}

fn statements() -> Vec<Value> {
    let vouch = |until: &str| {
        Claim::vouch("bob", keys("bob").bundle(), "bob’s phone 📱", until.parse().unwrap(), false)
    };
    let month = signed(vouch("2026-12-15T12:00:00Z"));
    let recovery =
        Claim::vouch("ada", keys("recovery").bundle(), "", "2027-11-15T12:00:00Z".parse().unwrap(), true);
    let revoke = signed(Claim::revoke(keys("laptop").fingerprint()));
    let good = [
        ("vouches for a month", month.clone()),
        ("vouches for a recovery code, for a year", signed(recovery)),
        ("revokes", revoke.clone()),
    ];
    let mut cases: Vec<Value> =
        good.iter().map(|(name, statement)| statement_case(name, &statement.to_string(), None)).collect();
    let at = |name: &str, statement: &Value, now: &str, refused: Option<&str>| {
        let mut case = statement_case(name, &statement.to_string(), refused);
        case["now"] = now.into();
        case
    };
    let ten_years = {
        let mut statement = month.clone();
        statement["issuedAt"] = "2016-12-15T12:00:00Z".into();
        signed_again(statement, "phone", PREFIX)
    };
    let too_long = signed(vouch("2027-11-15T12:00:01Z"));
    cases.extend([
        at("signed a minute ahead", &month, "2026-11-15T11:59:00Z", None),
        at("a revocation from a clock far ahead", &revoke, "2016-11-15T12:00:00Z", None),
        at("a second before its end", &month, "2026-12-15T11:59:59Z", None),
        at("at its end", &month, "2026-12-15T12:00:00Z", Some("time")),
        at("signed more than a minute ahead", &month, "2026-11-15T11:58:59Z", Some("time")),
        at("a second longer than a year", &too_long, NOW, Some("time")),
        at("for ten years, in its last", &ten_years, NOW, Some("time")),
    ]);
    let mut other_signer = statement_case("another signer", &month.to_string(), Some("signature"));
    other_signer["signer"] = keys("bob").bundle().to_string().into();
    let mut other_enforcer =
        statement_case("for another enforcer", &month.to_string(), Some("other-enforcer"));
    other_enforcer["enforcerId"] = "robot2".into();
    cases.extend([other_signer, other_enforcer]);
    cases.extend(changed_statements(&month, &revoke));
    cases.extend(written_statements(&month));
    cases.extend(locked_statements(&month));
    cases.extend(confirmed_statements(&month));
    cases
}

/// Statements about a device with a lock.
fn locked_statements(vouch: &Value) -> Vec<Value> {
    let lock = lock().to_string();
    let with = |claim: &str, lock: Value, is_signed: bool| {
        let mut statement = vouch.clone();
        if claim == "recovery" {
            statement["claim"]["approverId"] = "ada".into();
            statement["claim"]["bundle"] = keys("recovery").bundle().to_string().into();
            statement["claim"]["label"] = "".into();
            statement["claim"]["until"] = "2027-11-15T12:00:00Z".into();
            statement["claim"]["recovery"] = true.into();
        }
        statement["claim"]["lock"] = lock;
        let statement = if is_signed { signed_again(statement, "phone", PREFIX) } else { statement };
        statement.to_string()
    };
    let other = lock.replacen("v1", "v2", 1);
    vec![
        statement_case("vouches for a device with a lock", &with("vouch", lock.clone().into(), true), None),
        statement_case("a lock of another version", &with("vouch", other.into(), true), Some("malformed")),
        statement_case("a lock that is no text", &with("vouch", Value::Null, true), Some("malformed")),
        statement_case(
            "a recovery code with a lock",
            &with("recovery", lock.clone().into(), true),
            Some("malformed"),
        ),
        statement_case("changed: a lock was added", &with("vouch", lock.into(), false), Some("signature")),
    ]
}

/// Statements with what a lock has signed. Whether that holds is in `lock.json`.
fn confirmed_statements(vouch: &Value) -> Vec<Value> {
    let parts = ["credentialId", "authenticatorData", "clientDataJSON", "signature"];
    let confirmation: Value = parts.iter().map(|part| ((*part).to_owned(), json!("AQID"))).collect();
    let with = |confirmed: Value| {
        let mut statement = vouch.clone();
        statement["confirmed"] = confirmed;
        signed_again(statement, "phone", PREFIX)
    };
    let edited = |part: &str, value: Value| {
        let mut confirmed = confirmation.clone();
        confirmed[part] = value;
        with(confirmed).to_string()
    };
    let good = with(confirmation.clone());
    let mut without = confirmation.clone();
    without.as_object_mut().unwrap().remove("signature");
    let mut stripped = good.clone();
    stripped.as_object_mut().unwrap().remove("confirmed");
    let mut added = vouch.clone();
    added["confirmed"] = confirmation.clone();
    vec![
        statement_case("confirmed by a lock", &good.to_string(), None),
        statement_case("changed: the confirmation was removed", &stripped.to_string(), Some("signature")),
        statement_case("changed: a confirmation was added", &added.to_string(), Some("signature")),
        statement_case("a confirmation that is null", &with(Value::Null).to_string(), Some("malformed")),
        statement_case("a confirmation that is a text", &with(json!("AQID")).to_string(), Some("malformed")),
        statement_case("a confirmation without a part", &with(without).to_string(), Some("malformed")),
        statement_case("a confirmation with a part more", &edited("more", json!("AQID")), Some("malformed")),
        statement_case(
            "a confirmation with an empty part",
            &edited("signature", json!("")),
            Some("malformed"),
        ),
        statement_case(
            "a confirmation that is no base64url",
            &edited("signature", json!("AQI=")),
            Some("malformed"),
        ),
    ]
}

/// Changes after the signature, and signatures of something that is no statement.
fn changed_statements(vouch: &Value, revoke: &Value) -> Vec<Value> {
    let mut cases = Vec::new();
    let changes = [
        ("/enforcerId", json!("robot2")),
        ("/id", json!("st-2")),
        ("/issuedAt", json!("2026-11-15T12:00:00.0Z")),
        ("/by", json!("bob")),
        ("/byFingerprint", keys("bob").fingerprint().to_string().into()),
        ("/claim/approverId", json!("eve")),
        ("/claim/bundle", keys("laptop").bundle().to_string().into()),
        ("/claim/label", json!("")),
        ("/claim/until", json!("2026-12-16T12:00:00Z")),
        ("/claim/recovery", json!(true)),
        ("/signature", base64url::encode(&[0; 64]).into()),
    ];
    let edited = |base: &Value, pointer: &str, value: Value| {
        let mut statement = base.clone();
        *statement.pointer_mut(pointer).unwrap() = value;
        statement
    };
    for (pointer, value) in changes {
        let after = edited(vouch, pointer, value).to_string();
        cases.push(statement_case(&format!("changed: {pointer}"), &after, Some("signature")));
    }
    let other = keys("bob").fingerprint().to_string();
    let after = edited(revoke, "/claim/fingerprint", other.into()).to_string();
    cases.push(statement_case("changed: /claim/fingerprint", &after, Some("signature")));
    let plain = signed_again(vouch.clone(), "phone", b"");
    cases.push(statement_case("signed without the prefix", &plain.to_string(), Some("signature")));
    let by_bob = signed_again(vouch.clone(), "bob", PREFIX);
    cases.push(statement_case("signed by another", &by_bob.to_string(), Some("signature")));
    let with_proof = KeyBundle { proof: Some([9; 32]), ..keys("bob").bundle().clone() };
    let nonsense = [
        ("version 2", "/v", json!(2)),
        ("no time of signing", "/issuedAt", json!("today")),
        ("a bundle with a proof", "/claim/bundle", with_proof.to_string().into()),
        ("a bundle that is none", "/claim/bundle", json!("v1.x.y")),
        ("an end that is no time", "/claim/until", json!("2026-12-15")),
    ];
    for (name, pointer, value) in nonsense {
        let statement = signed_again(edited(vouch, pointer, value), "phone", PREFIX);
        cases.push(statement_case(name, &statement.to_string(), Some("malformed")));
    }
    let nobody = signed_again(edited(revoke, "/claim/fingerprint", json!("9F3C-41AA")), "phone", PREFIX);
    cases.push(statement_case("revokes a short fingerprint", &nobody.to_string(), Some("malformed")));
    cases
}

/// Other texts for the same statement.
fn written_statements(vouch: &Value) -> Vec<Value> {
    let text = vouch.to_string();
    let signature = vouch["signature"].as_str().unwrap();
    let array: Vec<Value> =
        ["v", "enforcerId", "id", "issuedAt", "by", "byFingerprint", "claim", "signature"]
            .iter()
            .map(|name| vouch[*name].clone())
            .collect();
    let mut pretty = statement_case("white space", &serde_json::to_string_pretty(vouch).unwrap(), None);
    pretty["statement"] = serde_json::to_string_pretty(vouch).unwrap().into();
    let bad = [
        ("a signature with padding", text.replace(signature, &format!("{signature}==")), "signature", false),
        ("a signature of 63 bytes", text.replace(signature, &signature[..84]), "signature", false),
        ("no signature", text.replace(&format!(",\"signature\":\"{signature}\""), ""), "malformed", false),
        ("an unknown member", text.replacen('{', "{\"more\":1,", 1), "malformed", false),
        (
            "an unknown member of the claim",
            text.replacen("\"claim\":{", "\"claim\":{\"more\":1,", 1),
            "malformed",
            false,
        ),
        ("an unknown claim", text.replace("\"vouch\"", "\"praise\""), "malformed", false),
        ("a wrong type", text.replace("\"recovery\":false", "\"recovery\":0"), "malformed", false),
        ("an array of the values", Value::from(array).to_string(), "malformed", false),
        ("a duplicate member", text.replacen('{', "{\"v\":1,", 1), "malformed", true),
        (
            "a duplicate member of the claim",
            text.replacen("\"claim\":{", "\"claim\":{\"recovery\":false,", 1),
            "malformed",
            true,
        ),
    ];
    let cases = bad.map(|(name, text, reason, textual)| {
        let mut case = statement_case(name, &text, Some(reason));
        if textual {
            case["textual"] = true.into();
        }
        case
    });
    [pretty].into_iter().chain(cases).collect()
}

fn recovery_codes() -> Vec<Value> {
    // 16 bytes of 00, of ff, and from 00 to 0f; worked out in Python, apart from our code.
    let good = [
        "0000-0000-0000-0000-0000-0000-00VM",
        "ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZZZZ-ZXDC",
        "000G-40R4-0M30-E209-185G-R38E-1YZ4",
        "oooo oooo OOOO oooo 0000 0000 00vm\r\n",
        "000g40r40m30e209L85gr38eiyz4",
    ];
    let read = |text: &str| {
        let code: RecoveryCode = text.parse().unwrap();
        let keys = code.keys().unwrap();
        let secret = base64url::encode(keys.to_secret().as_slice());
        json!({ "text": text, "written": code.to_string(), "secret": secret, "bundle": keys.bundle().to_string(), "fingerprint": keys.fingerprint().to_string() })
    };
    let bad = [
        ("nothing", ""),
        ("a wrong character", "000G-40R4-0M30-E209-185G-R38E-1YZ5"),
        ("a wrong character in front", "100G-40R4-0M30-E209-185G-R38E-1YZ4"),
        ("two groups swapped", "40R4-000G-0M30-E209-185G-R38E-1YZ4"),
        ("one character less", "000G-40R4-0M30-E209-185G-R38E-1YZ"),
        ("one character more", "000G-40R4-0M30-E209-185G-R38E-1YZ40"),
        ("a letter that is not in the alphabet", "000U-40R4-0M30-E209-185G-R38E-1YZ4"),
        ("a sign that is no dash", "000G_40R4_0M30_E209_185G_R38E_1YZ4"),
        ("digits of another script", "٠00G-40R4-0M30-E209-185G-R38E-1YZ4"),
    ];
    let refused = bad.map(|(name, text)| {
        assert!(text.parse::<RecoveryCode>().is_err(), "{name}");
        json!({ "name": name, "text": text, "refused": "not-a-recovery-code" })
    });
    good.into_iter().map(read).chain(refused).collect()
}
