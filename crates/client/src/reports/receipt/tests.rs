//! Every check of a receipt.

use countersign_wire::decision::Scope;

use super::*;
use crate::exchange::fixture::{Ends, choice, command, draft_of, now, robot_id};

fn opened(ends: &Ends, receipt: &Receipt, taken: &Taken) -> OpenedSnapshot {
    let recipient = Recipient { id: "ada", bundle: ends.ada.bundle() };
    let event = receipt.to_event(taken, &robot_id(), &ends.robot, &[recipient], now()).unwrap();
    OpenedSnapshot::open(&event, "ada", &ends.ada, &ends.adas, now()).unwrap()
}

fn signed(ends: &Ends, taken: &Taken) -> Receipt {
    let outcome = Outcome::Applied { exit_status: Some(0) };
    Receipt::sign(taken, outcome, &robot_id(), &ends.robot, now()).unwrap()
}

/// For each check an attack that is refused because of it, and succeeds without it.
#[test]
fn every_check_catches_what_no_other_catches() {
    let ends = Ends::new();
    let draft = draft_of(command(&["cargo", "test"]), None);
    let (taken, sent) = ends.exchange(&draft, &choice(Scope::Once));
    let honest = opened(&ends, &signed(&ends, &taken), &taken);
    assert_eq!(Receipt::open(&honest, &sent, 1).unwrap().outcome, Outcome::Applied { exit_status: Some(0) });
    // Another enforcer that the approver has paired says that it has done it.
    let other_enforcer = {
        let receipt =
            Receipt::sign(&taken, Outcome::Drifted, &"robot2".parse().unwrap(), &ends.robot, now()).unwrap();
        opened(&ends, &receipt, &taken)
    };
    // Whoever has only the key that seals changes what was signed.
    let changed = {
        let mut receipt = signed(&ends, &taken);
        receipt.outcome = Outcome::Applied { exit_status: Some(1) };
        opened(&ends, &receipt, &taken)
    };
    let other_request = {
        let (other, _) = ends.exchange(&draft, &choice(Scope::Once));
        let decision = taken.decision.clone();
        opened(&ends, &signed(&ends, &Taken { decision, ..other }), &taken)
    };
    let other_use = opened(&ends, &signed(&ends, &Taken { number: 2, ..taken.clone() }), &taken);
    let other_decision = {
        let (other, _) = ends.exchange(&draft, &choice(Scope::Once));
        opened(&ends, &signed(&ends, &Taken { decision: other.decision, ..taken.clone() }), &taken)
    };
    let attacks = [
        ("enforcer", &other_enforcer, ReceiptError::OtherEnforcer),
        ("signature", &changed, ReceiptError::Signature),
        ("request", &other_request, ReceiptError::OtherRequest),
        ("use", &other_use, ReceiptError::OtherUse),
        ("decision", &other_decision, ReceiptError::OtherDecision),
    ];
    assert_eq!(attacks.each_ref().map(|(check, ..)| *check).as_slice(), checks::names(&Received::CHECKS));
    for (check, snapshot, error) in attacks {
        assert_eq!(Receipt::open(snapshot, &sent, 1), Err(error), "{check}");
        let received = Received::read(snapshot, &sent, 1).unwrap();
        let won = checks::all_but(check, &Received::CHECKS, &received);
        assert_eq!(won, Ok(()), "without {check} the attack succeeds");
    }
}

#[test]
fn a_signature_of_a_receipt_is_no_other_signature_of_ours() {
    let ends = Ends::new();
    let (taken, _) = ends.exchange(&draft_of(command(&["ls"]), None), &choice(Scope::Once));
    let receipt = signed(&ends, &taken);
    let key = &ends.robot.bundle().signing;
    assert!(receipt.is_signed_by(key) && !receipt.is_signed_by(&ends.ada.bundle().signing));
    let text = serde_json::to_vec(&receipt).unwrap();
    let form = canonical::form_without(RawObject::parse(&text).unwrap(), "signature").unwrap();
    assert!(key.verify(&form, &receipt.signature).is_err(), "without its prefix it is not signed");
    assert!(!Receipt { v: 2, ..receipt }.is_signed_by(key));
}

#[test]
fn a_receipt_has_a_session_of_its_own() {
    let request_id: RequestId = "r".parse().unwrap();
    // Python: uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "countersign receipt v1"), "r/1")
    assert_eq!(receipt_session(&request_id, 1).as_str(), "01475652-9ae3-58c6-af7d-5a78cc1dd58b");
    assert_ne!(receipt_session(&request_id, 1), receipt_session(&request_id, 2));
    for (outcome, text) in [
        (Outcome::Applied { exit_status: None }, r#"{"outcome":"applied"}"#),
        (Outcome::Applied { exit_status: Some(-1) }, r#"{"outcome":"applied","exitStatus":-1}"#),
        (Outcome::Refused { reason: "no".to_owned() }, r#"{"outcome":"refused","reason":"no"}"#),
        (Outcome::Drifted, r#"{"outcome":"drifted"}"#),
        (Outcome::TooLate, r#"{"outcome":"tooLate"}"#),
    ] {
        assert_eq!(serde_json::to_string(&outcome).unwrap(), text);
        assert_eq!(serde_json::from_str::<Outcome>(text).unwrap(), outcome);
    }
}
