//! The devices of the cases, and their keys.

use countersign_client::keys::DeviceKeys;
use countersign_wire::base64url;
use serde_json::{Value, json};

/// The devices of the cases, by their place in the list.
const NAMES: [&str; 6] = ["robot", "phone", "laptop", "bob", "robot2", "recovery"];

/// Keys for these vectors and for nothing else: 64 bytes that count up from 40 times the place in the list.
pub(crate) fn keys(name: &str) -> DeviceKeys {
    let place = NAMES.iter().position(|known| *known == name).unwrap();
    DeviceKeys::from_secret(&std::array::from_fn(|at| u8::try_from((40 * place + at) % 256).unwrap()))
        .unwrap()
}

pub(crate) fn secret(name: &str) -> String {
    base64url::encode(keys(name).to_secret().as_slice())
}

pub(crate) fn all_keys() -> Value {
    let one = |name: &str| {
        let fingerprint = keys(name).fingerprint().to_string();
        (
            name.to_owned(),
            json!({ "secret": secret(name), "bundle": keys(name).bundle().to_string(), "fingerprint": fingerprint }),
        )
    };
    Value::Object(NAMES.map(one).into_iter().collect())
}
