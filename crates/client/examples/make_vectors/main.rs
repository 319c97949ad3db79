//! Made `vectors/seal.json` and `vectors/pairing.json`. Sealing is random, so another run makes other sealed objects:
//! the files are kept, and this is run only when the format changes.
//!
//! `cargo run -p countersign-client --example make_vectors -- seal > vectors/seal.json`

#![expect(clippy::unwrap_used, reason = "a mistake in the cases ends the run")]

mod pairing;
mod seal;

use std::io::Write as _;

use countersign_client::keys::DeviceKeys;
use countersign_wire::base64url;
use serde::Serialize as _;
use serde_json::{Value, json};

/// The devices of the cases, by their place in the list.
const NAMES: [&str; 6] = ["robot", "phone", "laptop", "bob", "robot2", "recovery"];

/// Keys for these vectors and for nothing else: 64 bytes that count up from 40 times the place in the list.
fn keys(name: &str) -> DeviceKeys {
    let place = NAMES.iter().position(|known| *known == name).unwrap();
    DeviceKeys::from_secret(&std::array::from_fn(|at| u8::try_from((40 * place + at) % 256).unwrap()))
        .unwrap()
}

fn secret(name: &str) -> String {
    base64url::encode(keys(name).to_secret().as_slice())
}

fn all_keys() -> Value {
    let one = |name: &str| {
        let fingerprint = keys(name).fingerprint().to_string();
        (
            name.to_owned(),
            json!({ "secret": secret(name), "bundle": keys(name).bundle().to_string(), "fingerprint": fingerprint }),
        )
    };
    Value::Object(NAMES.map(one).into_iter().collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document = match std::env::args().nth(1).as_deref() {
        Some("seal") => seal::document(),
        Some("pairing") => pairing::document(),
        _ => return Err("usage: make_vectors seal|pairing".into()),
    };
    let mut out = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut out, indent))?;
    out.push(b'\n');
    Ok(std::io::stdout().lock().write_all(&out)?)
}
