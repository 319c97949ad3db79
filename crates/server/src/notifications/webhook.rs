//! Webhooks as in Standard Webhooks: a fixed text and a link, signed. Nothing in one decides anything.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use countersign_core::random::RandomSource as _;

use crate::random::SystemRandom;

const PREFIX: &str = "whsec_";
const SECRET: usize = 32;

/// A template is a short message.
pub(crate) const MAX_TEMPLATE: usize = 4_096;

/// Makes a secret for a webhook whose person brings none.
pub(crate) fn new_secret() -> String {
    let mut secret = [0; SECRET];
    SystemRandom.fill(&mut secret);
    format!("{PREFIX}{}", STANDARD.encode(secret))
}

/// The bytes of a secret; `None` if it is not one of 24 to 64 bytes.
pub(crate) fn read_secret(secret: &str) -> Option<Vec<u8>> {
    let bytes = STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()?;
    (24..=64).contains(&bytes.len()).then_some(bytes)
}

/// `webhook-signature`: one for each secret, the newest first.
pub(crate) fn signatures(secrets: &[String], id: &str, at: u64, body: &str) -> String {
    let signed = format!("{id}.{at}.{body}");
    let one = |secret: &String| {
        let key = Key::new(HMAC_SHA256, &read_secret(secret)?);
        Some(format!("v1,{}", STANDARD.encode(sign(&key, signed.as_bytes()))))
    };
    secrets.iter().filter_map(one).collect::<Vec<_>>().join(" ")
}

/// What is sent: a template with its two places filled, or the standard form.
pub(crate) fn body(template: Option<&str>, is_json: bool, text: &str, link: &str) -> String {
    let fill = |value: &str| match is_json {
        // As inside of a JSON string.
        true => serde_json::Value::from(value).to_string().trim_matches('"').to_owned(),
        false => value.to_owned(),
    };
    match template {
        Some(template) => template.replace("{{text}}", &fill(text)).replace("{{link}}", &fill(link)),
        None => {
            serde_json::json!({"type": "request.waiting", "data": {"text": text, "link": link}}).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_standard() {
        // The example of the standard's own libraries.
        let secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned()];
        let body = r#"{"test": 2432232314}"#;
        let signature = signatures(&secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        let both = signatures(
            &[new_secret(), secrets[0].clone()],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            body,
        );
        assert!(both.split(' ').count() == 2 && both.ends_with(&signature), "{both}");
    }

    #[test]
    fn secrets_are_of_a_sensible_length() {
        assert_eq!(read_secret(&new_secret()).unwrap().len(), SECRET);
        for wrong in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_???"] {
            assert_eq!(read_secret(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_template_has_two_places_and_stays_json() {
        let slack = r#"{"text":"{{text}} <{{link}}|Open>"}"#;
        let filled = body(Some(slack), true, "A \"request\"\nwaits", "https://x/");
        assert_eq!(filled, r#"{"text":"A \"request\"\nwaits <https://x/|Open>"}"#);
        assert_eq!(body(Some("{{text}} {{link}}"), false, "A \"b\"", "l"), "A \"b\" l");
        assert!(body(None, true, "t", "l").contains(r#""link":"l""#));
    }
}
