//! The nonce in the text of a decision, by which an exchange is recognised.

/// The nonce of a decision.
pub(crate) fn nonce_of(decision: &str) -> String {
    let rest = decision.split_once(r#""nonce":""#).map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or_default().to_owned()
}
