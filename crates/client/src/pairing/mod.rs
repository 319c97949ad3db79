//! Pairing that a gateway can't subvert: what is compared, proven and signed (docs/pairing.md). No I/O.
//!
//! The gateway relays both public keys, so it could replace them. Whoever scans the enforcer's [`link::PairingLink`] has
//! its fingerprint and a secret from another channel than the gateway: the approver compares the fingerprint, and proves
//! the secret over the [`Transcript`]. Whoever types a code has neither; then people compare thirty digits that both
//! screens derive from the transcript and from random bytes of the approver.

pub mod link;
pub mod recovery;
pub mod statement;

use countersign_wire::{canonical, fingerprint, keys::KeyBundle};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    keys::{DeviceKeys, Fingerprint},
    random::{self, NoRandomness},
};

/// Why two ends are not paired. Each is a reason to stop and to tell a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PairingError {
    /// The gateway relays other keys than those of the enforcer that shows the link.
    #[error(
        "the keys that the gateway relays are not those of the machine that shows the link: do not pair over this gateway"
    )]
    EnforcerReplaced,
    /// The approver's proof is missing or wrong.
    #[error(
        "whoever answered did not see the link, or the gateway replaced their keys; if the code was typed, start again with a typed code"
    )]
    ApproverUnproven,
    /// The relayed key is not a bundle of this format.
    #[error("the other side has no keys of a known format")]
    UnknownKeys,
    /// Not a pairing link.
    #[error("this is not a pairing link")]
    NotALink,
    /// Without randomness there is no pairing.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// What both ends must agree on: who pairs with whom, with which keys, in which run.
#[derive(Debug, Clone, Copy)]
pub struct Transcript<'a> {
    /// Who asks, by its id at the gateway.
    pub enforcer_id: &'a str,
    /// Who asks, by its keys; a proof in it is ignored.
    pub enforcer: &'a KeyBundle,
    /// Who answers, by their id at the gateway.
    pub approver_id: &'a str,
    /// Who answers, by their keys; the proof in it is what is checked.
    pub approver: &'a KeyBundle,
    /// The gateway's nonce of this pairing.
    pub nonce: &'a str,
}

impl Transcript<'_> {
    /// One text for one transcript, whatever the ids contain.
    fn form(&self, purpose: &str) -> Result<Vec<u8>, PairingError> {
        let without_proof = |bundle: &KeyBundle| KeyBundle { proof: None, ..bundle.clone() }.to_string();
        let object = json!({
            "purpose": purpose,
            "v": 1,
            "enforcerId": self.enforcer_id,
            "enforcer": without_proof(self.enforcer),
            "approverId": self.approver_id,
            "approver": without_proof(self.approver),
            "nonce": self.nonce,
        });
        canonical::form(object.to_string().as_bytes()).map_err(|_| PairingError::UnknownKeys)
    }

    fn hmac(&self, secret: &[u8; link::SECRET_BYTES]) -> Result<Hmac<Sha256>, PairingError> {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else {
            unreachable!("HMAC takes a key of any length")
        };
        mac.update(&self.form("countersign pairing proof")?);
        Ok(mac)
    }

    /// The approver's proof that it saw the link: HMAC-SHA-256 under the link's secret.
    fn proof(&self, secret: &[u8; link::SECRET_BYTES]) -> Result<[u8; 32], PairingError> {
        Ok(self.hmac(secret)?.finalize().into_bytes().into())
    }

    /// Whether it is the proof of this transcript, in constant time.
    fn proves(&self, secret: &[u8; link::SECRET_BYTES], proof: &[u8; 32]) -> bool {
        self.hmac(secret).is_ok_and(|mac| mac.verify_slice(proof).is_ok())
    }

    /// The thirty digits that both screens show after a typed code. `fresh` are the approver's random bytes, which it
    /// makes after it has seen the enforcer's keys; without them a gateway could search for keys with the same digits.
    fn digits(&self, fresh: &[u8; 32]) -> Result<String, PairingError> {
        let mut hash = Sha256::new_with_prefix(self.form("countersign pairing digits")?);
        hash.update(fresh);
        Ok(fingerprint::digits(&hash.finalize().into()))
    }
}

/// The approver's side after a code was resolved: what to send, and what to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The `publicKey` of `complete`: the approver's bundle with the proof, or with the random bytes.
    pub bundle: KeyBundle,
    /// The digits to compare; `None` if the link has proven everything.
    pub digits: Option<String>,
}

/// A check of a pairing by link. The tests take each out once, to show that nothing else catches what it catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    EnforcerKeys,
    EnforcerId,
    Proof,
}

/// Answers a scanned link: compares the enforcer's keys with the link's fingerprint, and proves the secret.
pub fn answer_link(transcript: Transcript<'_>, link: &link::PairingLink) -> Result<Answer, PairingError> {
    answer_link_except(transcript, link, None)
}

fn answer_link_except(
    transcript: Transcript<'_>,
    link: &link::PairingLink,
    except: Option<Check>,
) -> Result<Answer, PairingError> {
    let fails = |check: Check, is_wrong: bool| is_wrong && except != Some(check);
    if fails(Check::EnforcerKeys, Fingerprint::of(transcript.enforcer) != link.fingerprint)
        || fails(Check::EnforcerId, transcript.enforcer_id != link.enforcer_id)
    {
        return Err(PairingError::EnforcerReplaced);
    }
    let proof = transcript.proof(&link.secret)?;
    Ok(Answer { bundle: KeyBundle { proof: Some(proof), ..transcript.approver.clone() }, digits: None })
}

/// Answers a typed code. Nothing may be sealed or accepted before people have compared the digits.
pub fn answer_typed(transcript: Transcript<'_>) -> Result<Answer, PairingError> {
    let fresh = random::bytes()?;
    let bundle = KeyBundle { proof: Some(fresh), ..transcript.approver.clone() };
    Ok(Answer { bundle, digits: Some(transcript.digits(&fresh)?) })
}

/// The enforcer's check of an answer to its link.
pub fn verify_link(
    transcript: Transcript<'_>,
    secret: &[u8; link::SECRET_BYTES],
) -> Result<(), PairingError> {
    verify_link_except(transcript, secret, None)
}

fn verify_link_except(
    transcript: Transcript<'_>,
    secret: &[u8; link::SECRET_BYTES],
    except: Option<Check>,
) -> Result<(), PairingError> {
    match transcript.approver.proof {
        Some(proof) if transcript.proves(secret, &proof) => Ok(()),
        _ if except == Some(Check::Proof) => Ok(()),
        _ => Err(PairingError::ApproverUnproven),
    }
}

/// The digits that the enforcer shows after a typed code was answered.
pub fn typed_digits(transcript: Transcript<'_>) -> Result<String, PairingError> {
    let fresh = transcript.approver.proof.ok_or(PairingError::ApproverUnproven)?;
    transcript.digits(&fresh)
}

/// The link that an enforcer shows, with a new secret.
pub fn new_link(
    gateway: &str,
    code: countersign_wire::pairing::PairingCode,
    enforcer_id: &str,
    keys: &DeviceKeys,
) -> Result<link::PairingLink, PairingError> {
    Ok(link::PairingLink {
        gateway: gateway.trim_end_matches('/').to_owned(),
        code,
        enforcer_id: enforcer_id.to_owned(),
        fingerprint: keys.fingerprint(),
        secret: random::secret()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(number: u8) -> DeviceKeys {
        DeviceKeys::from_secret(&[number; 64]).unwrap()
    }

    fn transcript<'a>(enforcer: &'a KeyBundle, approver: &'a KeyBundle) -> Transcript<'a> {
        Transcript { enforcer_id: "robot", enforcer, approver_id: "ada", approver, nonce: "n1" }
    }

    #[test]
    fn a_scanned_link_proves_both_sides() {
        let (robot, ada) = (keys(1), keys(2));
        let link = new_link("https://gw.example/", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        let scanned: link::PairingLink = link.to_string().parse().unwrap();
        let answer = answer_link(transcript(robot.bundle(), ada.bundle()), &scanned).unwrap();
        assert_eq!(answer.digits, None);
        verify_link(transcript(robot.bundle(), &answer.bundle), &link.secret).unwrap();
    }

    #[test]
    fn a_gateway_that_replaces_either_key_is_noticed() {
        let (robot, ada, evil) = (keys(1), keys(2), keys(3));
        let link = new_link("https://gw", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        let replaced = answer_link(transcript(evil.bundle(), ada.bundle()), &link);
        assert_eq!(replaced, Err(PairingError::EnforcerReplaced));
        // Only one of the two keys.
        let half = KeyBundle { signing: evil.bundle().signing, ..robot.bundle().clone() };
        assert_eq!(answer_link(transcript(&half, ada.bundle()), &link), Err(PairingError::EnforcerReplaced));
        let mut renamed = transcript(robot.bundle(), ada.bundle());
        renamed.enforcer_id = "other";
        assert_eq!(answer_link(renamed, &link), Err(PairingError::EnforcerReplaced));
        let answer = answer_link(transcript(robot.bundle(), ada.bundle()), &link).unwrap();
        // The approver's keys, id or nonce differ from what was proven.
        let with_evil_keys = KeyBundle { proof: answer.bundle.proof, ..evil.bundle().clone() };
        let mut other_id = transcript(robot.bundle(), &answer.bundle);
        other_id.approver_id = "mallory";
        let mut other_run = transcript(robot.bundle(), &answer.bundle);
        other_run.nonce = "n2";
        for forged in [
            transcript(robot.bundle(), &with_evil_keys),
            other_id,
            other_run,
            transcript(robot.bundle(), ada.bundle()),
        ] {
            assert_eq!(verify_link(forged, &link.secret), Err(PairingError::ApproverUnproven));
        }
        assert_eq!(
            verify_link(transcript(robot.bundle(), &answer.bundle), &[0; link::SECRET_BYTES]),
            Err(PairingError::ApproverUnproven)
        );
    }

    #[test]
    fn both_screens_show_the_same_digits_unless_something_was_replaced() {
        let (robot, ada, evil) = (keys(1), keys(2), keys(3));
        let answer = answer_typed(transcript(robot.bundle(), ada.bundle())).unwrap();
        let shown = answer.digits.unwrap();
        assert_eq!(typed_digits(transcript(robot.bundle(), &answer.bundle)).unwrap(), shown);
        let with_evil_keys = KeyBundle { proof: answer.bundle.proof, ..evil.bundle().clone() };
        let other_bytes = KeyBundle { proof: Some([9; 32]), ..answer.bundle.clone() };
        let mut other_id = transcript(robot.bundle(), &answer.bundle);
        other_id.enforcer_id = "robot2";
        for replaced in [
            transcript(evil.bundle(), &answer.bundle),
            transcript(robot.bundle(), &with_evil_keys),
            transcript(robot.bundle(), &other_bytes),
            other_id,
        ] {
            assert_ne!(typed_digits(replaced).unwrap(), shown);
        }
        assert_eq!(
            typed_digits(transcript(robot.bundle(), ada.bundle())),
            Err(PairingError::ApproverUnproven),
            "an answer without random bytes could have been searched for"
        );
    }

    #[test]
    fn every_check_catches_what_no_other_catches() {
        let (robot, ada, evil) = (keys(1), keys(2), keys(3));
        let link = new_link("https://gw", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        // The approver would pin the attacker's keys, or the right keys under another name.
        let other_keys = transcript(evil.bundle(), ada.bundle());
        let other_id = Transcript { enforcer_id: "other", ..transcript(robot.bundle(), ada.bundle()) };
        for (check, replaced) in [(Check::EnforcerKeys, other_keys), (Check::EnforcerId, other_id)] {
            let answered = |except| answer_link_except(replaced, &link, except).map(drop);
            assert_eq!(answered(None), Err(PairingError::EnforcerReplaced), "{check:?}");
            assert_eq!(answered(Some(check)), Ok(()), "without {check:?} the attack succeeds");
        }
        // The enforcer would pin the attacker's keys.
        let answer = answer_link(transcript(robot.bundle(), ada.bundle()), &link).unwrap();
        let forged = KeyBundle { proof: answer.bundle.proof, ..evil.bundle().clone() };
        let verified = |except| verify_link_except(transcript(robot.bundle(), &forged), &link.secret, except);
        assert_eq!(verified(None), Err(PairingError::ApproverUnproven));
        assert_eq!(verified(Some(Check::Proof)), Ok(()), "without the proof the attack succeeds");
    }

    #[test]
    fn a_proof_is_never_digits_and_the_other_way_round() {
        let (robot, ada) = (keys(1), keys(2));
        let link = new_link("https://gw", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        let typed = answer_typed(transcript(robot.bundle(), ada.bundle())).unwrap();
        assert_eq!(
            verify_link(transcript(robot.bundle(), &typed.bundle), &link.secret),
            Err(PairingError::ApproverUnproven)
        );
    }
}
