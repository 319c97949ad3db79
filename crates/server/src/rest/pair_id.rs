//! The id of a pair as clients see it: opaque, and one segment of a path whatever ids are in it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use countersign_core::model::pairs::PairId;

/// The id in base64url: ids may contain slashes, and a proxy may decode them.
pub(crate) fn text(PairId { enforcer, approver, device }: &PairId) -> String {
    // No id contains a line break.
    URL_SAFE_NO_PAD.encode(format!("{enforcer}\n{approver}\n{device}"))
}

/// The pair that a text names; `None` if it can't be the id of a pair.
pub(crate) fn read(text: &str) -> Option<PairId> {
    let decoded = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let mut parts = decoded.split('\n');
    let enforcer = parts.next()?.parse().ok()?;
    let approver = parts.next()?.parse().ok()?;
    let device = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some(PairId { enforcer, approver, device })
}

#[cfg(test)]
mod tests {
    use countersign_wire::hash::Sha256Hex;

    use super::*;

    #[test]
    fn every_id_survives_and_nothing_else_is_one() {
        let id = PairId {
            enforcer: "a/B é ’😀".parse().unwrap(),
            approver: "%2F?&#".parse().unwrap(),
            device: Sha256Hex::digest(b"phone"),
        };
        let text = text(&id);
        assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
        assert_eq!(read(&text), Some(id));
        let hash = Sha256Hex::digest(b"phone");
        for wrong in ["", "robot", "robot\nada", "robot\nada\nphone", &format!("robot\nada\n{hash}\n")] {
            assert_eq!(read(&URL_SAFE_NO_PAD.encode(wrong)), None, "{wrong}");
        }
        assert_eq!(read("not base64url!"), None);
    }
}
