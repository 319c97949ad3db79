//! An answer to a pairing code: made by the approver, verified by the enforcer.

use countersign_wire::keys::KeyBundle;

use super::{
    code::GivenCode,
    error::PairingError,
    link::{PairingLink, SECRET_BYTES},
    transcript::Transcript,
};
use crate::{
    checks::{self, Check, ensure},
    identity::keys::{DeviceKeys, Fingerprint},
    random,
};

/// The approver's side after a code was resolved: what to send, and what to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The `publicKey` of `complete`: the approver's bundle with the proof, or with the random bytes.
    pub bundle: KeyBundle,
    /// The digits to compare; `None` if the link has proven everything.
    pub digits: Option<String>,
}

/// Answers a scanned link: compares the enforcer's keys with the link's fingerprint, and proves the secret.
pub fn answer_link(transcript: Transcript<'_>, link: &PairingLink) -> Result<Answer, PairingError> {
    let scanned = Scanned { transcript, link };
    checks::all(&Scanned::CHECKS, &scanned)?;
    scanned.answer()
}

/// What the gateway relays, beside the link that was scanned.
struct Scanned<'a> {
    transcript: Transcript<'a>,
    link: &'a PairingLink,
}

impl Scanned<'_> {
    const CHECKS: [Check<Self, PairingError>; 2] = [
        ("enforcer's keys", |it| {
            let is_own = Fingerprint::of(it.transcript.enforcer) == it.link.fingerprint;
            ensure(is_own, PairingError::EnforcerReplaced)
        }),
        ("enforcer's id", |it| {
            ensure(it.transcript.enforcer_id == it.link.enforcer_id, PairingError::EnforcerReplaced)
        }),
    ];

    fn answer(&self) -> Result<Answer, PairingError> {
        let proof = Some(self.transcript.proof(&self.link.secret)?);
        Ok(Answer { bundle: KeyBundle { proof, ..self.transcript.approver.clone() }, digits: None })
    }
}

/// Answers a typed code. Nothing may be sealed or accepted before people have compared the digits.
pub fn answer_typed(transcript: Transcript<'_>) -> Result<Answer, PairingError> {
    let fresh = random::bytes()?;
    let bundle = KeyBundle { proof: Some(fresh), ..transcript.approver.clone() };
    Ok(Answer { bundle, digits: Some(transcript.digits(&fresh)?) })
}

/// The enforcer's check of an answer to its link.
pub fn verify_link(transcript: Transcript<'_>, secret: &[u8; SECRET_BYTES]) -> Result<(), PairingError> {
    checks::all(&Answered::CHECKS, &Answered { transcript, secret })
}

/// What the gateway relays as the approver's answer, beside the secret of the link.
struct Answered<'a> {
    transcript: Transcript<'a>,
    secret: &'a [u8; SECRET_BYTES],
}

impl Answered<'_> {
    const CHECKS: [Check<Self, PairingError>; 1] = [("proof", |it| {
        let is_proven =
            it.transcript.approver.proof.is_some_and(|proof| it.transcript.proves(it.secret, &proof));
        ensure(is_proven, PairingError::ApproverUnproven)
    })];
}

/// The digits that the enforcer shows after a typed code was answered.
pub fn typed_digits(transcript: Transcript<'_>) -> Result<String, PairingError> {
    let fresh = transcript.approver.proof.ok_or(PairingError::ApproverUnproven)?;
    transcript.digits(&fresh)
}

/// The link that an enforcer shows, with a new secret.
pub fn new_link(
    gateway: &str,
    code: GivenCode,
    enforcer_id: &str,
    keys: &DeviceKeys,
) -> Result<PairingLink, PairingError> {
    Ok(PairingLink {
        gateway: gateway.trim_end_matches('/').to_owned(),
        code,
        enforcer_id: enforcer_id.to_owned(),
        fingerprint: keys.fingerprint(),
        secret: random::secret()?,
    })
}

#[cfg(test)]
mod tests {
    use countersign_wire::lock::{LockAlgorithm, LockKey};

    use super::*;

    fn keys(number: u8) -> DeviceKeys {
        DeviceKeys::from_secret(&[number; 64]).unwrap()
    }

    fn transcript<'a>(enforcer: &'a KeyBundle, approver: &'a KeyBundle) -> Transcript<'a> {
        Transcript { enforcer_id: "robot", enforcer, approver_id: "ada", approver, nonce: "n1", lock: None }
    }

    #[test]
    fn a_scanned_link_proves_both_sides() {
        let (robot, ada) = (keys(1), keys(2));
        let link = new_link("https://gw.example/", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        let scanned: PairingLink = link.to_string().parse().unwrap();
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
            verify_link(transcript(robot.bundle(), &answer.bundle), &[0; SECRET_BYTES]),
            Err(PairingError::ApproverUnproven)
        );
    }

    #[test]
    fn a_lock_is_proven_and_compared_like_the_keys() {
        let (robot, ada) = (keys(1), keys(2));
        let frame = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0";
        let key = [frame, ada.bundle().signing.as_bytes().as_slice()].concat();
        let lock =
            |id| LockKey::new(LockAlgorithm::EdDsa, vec![id], key.clone(), "localhost", "http://localhost");
        let (own, evil) = (lock(1).unwrap(), lock(2).unwrap());
        let link = new_link("https://gw", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        let with = |bundle, lock| Transcript { lock, ..transcript(robot.bundle(), bundle) };
        let answer = answer_link(with(ada.bundle(), Some(&own)), &link).unwrap();
        verify_link(with(&answer.bundle, Some(&own)), &link.secret).unwrap();
        let typed = answer_typed(with(ada.bundle(), Some(&own))).unwrap();
        assert_eq!(typed_digits(with(&typed.bundle, Some(&own))).ok(), typed.digits);
        // Taken away, replaced, or added to an answer of version 1.
        for relayed in [None, Some(&evil)] {
            let verified = verify_link(with(&answer.bundle, relayed), &link.secret);
            assert_eq!(verified, Err(PairingError::ApproverUnproven));
            assert_ne!(typed_digits(with(&typed.bundle, relayed)).ok(), typed.digits);
        }
        let former = answer_link(with(ada.bundle(), None), &link).unwrap();
        let added = verify_link(with(&former.bundle, Some(&evil)), &link.secret);
        assert_eq!(added, Err(PairingError::ApproverUnproven));
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
        let attacks = [("enforcer's keys", other_keys), ("enforcer's id", other_id)];
        assert_eq!(attacks.map(|(check, _)| check).as_slice(), checks::names(&Scanned::CHECKS));
        for (check, transcript) in attacks {
            assert_eq!(answer_link(transcript, &link), Err(PairingError::EnforcerReplaced), "{check}");
            let scanned = Scanned { transcript, link: &link };
            let won = checks::all_but(check, &Scanned::CHECKS, &scanned).and_then(|()| scanned.answer());
            assert!(won.is_ok(), "without {check} the attack succeeds");
        }
        // The enforcer would pin the attacker's keys.
        let answer = answer_link(transcript(robot.bundle(), ada.bundle()), &link).unwrap();
        let forged = KeyBundle { proof: answer.bundle.proof, ..evil.bundle().clone() };
        let answered = Answered { transcript: transcript(robot.bundle(), &forged), secret: &link.secret };
        assert_eq!(checks::names(&Answered::CHECKS), ["proof"]);
        assert_eq!(verify_link(answered.transcript, &link.secret), Err(PairingError::ApproverUnproven));
        let won = checks::all_but("proof", &Answered::CHECKS, &answered);
        assert_eq!(won, Ok(()), "without the proof the attack succeeds");
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
