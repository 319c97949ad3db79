//! What a bundle proves, and what it does not.

use countersign_testkit::authenticator::Authenticator;
use serde_json::{Value, json};

use super::*;
use crate::{
    exchange::fixture::{Ends, argv, choice, command, draft_of, now, robot_id},
    reports::receipt::Outcome,
};

fn bundle(ends: &Ends, change: impl FnOnce(&mut Taken)) -> Bundle {
    let (mut taken, _) = ends.exchange(&draft_of(command(&["cargo", "test"]), None), &choice(Scope::Timebox));
    change(&mut taken);
    let outcome = Outcome::Applied { exit_status: Some(0) };
    let receipt = Receipt::sign(&taken, outcome, &robot_id(), &ends.robot, now()).unwrap();
    Bundle::of(&taken, &taken.decision.words, "robot", &ends.robot, receipt)
}

fn claims(report: &Report, certainty: Certainty) -> Vec<Claim> {
    report.findings.iter().filter(|(_, found)| *found == certainty).map(|(claim, _)| *claim).collect()
}

#[test]
fn a_bundle_says_what_is_proven_and_what_is_not() {
    let ends = Ends::new();
    let bundle = bundle(&ends, |_| ());
    let bundle = Bundle::read(&bundle.to_json()).unwrap();
    let alone = bundle.verify(None).unwrap();
    assert_eq!((alone.outcome, alone.scope), (DecisionOutcome::Approve, Scope::Timebox));
    assert!(alone.is_consistent());
    let unproven = [Claim::Approver, Claim::Words, Claim::Enforcer, Claim::Done];
    assert_eq!(
        claims(&alone, Certainty::Unproven),
        unproven,
        "whose keys they are is not known without pins"
    );
    let here = bundle.verify(Some(&ends.robots)).unwrap();
    assert_eq!(here.certainty(Claim::Approver), Certainty::Proven);
    assert_eq!(here.certainty(Claim::Enforcer), Certainty::Unproven);
    let there = bundle.verify(Some(&ends.adas)).unwrap();
    assert_eq!(there.certainty(Claim::Enforcer), Certainty::Proven);
    // Who was revoked since has signed it all the same.
    let mut revoked = ends.robots.clone();
    revoked.revoke(ends.ada.fingerprint(), now()).unwrap();
    assert_eq!(bundle.verify(Some(&revoked)).unwrap().certainty(Claim::Approver), Certainty::Proven);
    assert_eq!(bundle.finished_at(), Some(now()));
    assert!(Claim::ALL.iter().all(|claim| claim.sentence().ends_with('.')));
}

#[test]
fn without_the_artifact_nothing_about_it_is_proven_and_the_rest_is() {
    let ends = Ends::new();
    let bundle = Bundle { artifact: None, ..bundle(&ends, |_| ()) };
    let bundle = Bundle::read(&bundle.to_json()).unwrap();
    let report = bundle.verify(Some(&ends.adas)).unwrap();
    let unproven = [Claim::Artifact, Claim::About, Claim::Approver, Claim::Words, Claim::Effect, Claim::Done];
    assert_eq!(claims(&report, Certainty::Unproven), unproven);
    assert!(report.is_consistent());
    let flipped = Bundle { decision: bundle.decision.replace("\"approve\"", "\"reject\""), ..bundle };
    let wrong = claims(&flipped.verify(None).unwrap(), Certainty::Wrong);
    assert_eq!(wrong, [Claim::Signature, Claim::Decision]);
}

#[test]
fn a_bundle_with_a_verified_person_proves_it() {
    let phone = Authenticator::new("gw.example");
    let mut ends = Ends::new();
    let known = ends.robots.iter().next().unwrap().clone();
    ends.robots.insert(known.with_lock(Some(phone.lock().clone()))).unwrap();
    let locked = |phone: &Authenticator| {
        let draft = draft_of(command(&["cargo", "test"]), None);
        let (taken, _) = ends.exchange_with(&draft, &choice(Scope::Timebox), |asked| phone.confirm(asked));
        let receipt = Receipt::sign(&taken, Outcome::Drifted, &robot_id(), &ends.robot, now()).unwrap();
        Bundle::of(&taken, &taken.decision.words, "robot", &ends.robot, receipt)
    };
    let bundle = locked(&phone);
    let text = bundle.to_json();
    assert!(text.starts_with("{\"version\":2,"), "programs that know no locks do not guess");
    let bundle = Bundle::read(&text).unwrap();
    let certainty = |bundle: &Bundle, pins: Option<&Pins>| {
        let report = bundle.verify(pins).unwrap();
        [Claim::Person, Claim::Lock].map(|claim| report.certainty(claim))
    };
    assert_eq!(certainty(&bundle, None), [Certainty::Proven, Certainty::Unproven]);
    assert_eq!(certainty(&bundle, Some(&ends.robots)), [Certainty::Proven, Certainty::Proven]);
    let other = Authenticator::new("gw.example");
    let mut replaced = bundle.clone();
    replaced.signer.lock = Some(other.lock().to_string());
    assert_eq!(certainty(&replaced, Some(&ends.robots)), [Certainty::Wrong, Certainty::Unproven]);
    assert!(!replaced.verify(None).unwrap().is_consistent());
    // What a device says whose lock nobody has pinned.
    let mut unpinned = bundle.clone();
    (unpinned.signer.lock, unpinned.version) = (None, 1);
    assert_eq!(certainty(&unpinned, Some(&ends.robots)), [Certainty::Unproven; 2]);
    assert!(unpinned.verify(None).unwrap().is_consistent());
    // A request that wants a verified person, and an approval of which somebody has taken the proof.
    let mut demanding = draft_of(command(&["cargo", "test"]), None);
    demanding.to.verify = Verify::Person;
    let (taken, _) = ends.exchange_with(&demanding, &choice(Scope::Timebox), |asked| phone.confirm(asked));
    let receipt = Receipt::sign(&taken, Outcome::Drifted, &robot_id(), &ends.robot, now()).unwrap();
    let mut demanded = Bundle::of(&taken, &taken.decision.words, "robot", &ends.robot, receipt);
    assert_eq!(certainty(&demanded, None), [Certainty::Proven, Certainty::Unproven]);
    let mut decision: Value = serde_json::from_str(&demanded.decision).unwrap();
    decision["policyHints"].as_object_mut().unwrap().remove("lock");
    demanded.decision = decision.to_string();
    let report = demanded.verify(None).unwrap();
    assert_eq!(report.certainty(Claim::Person), Certainty::Wrong);
    assert!(report.findings.iter().all(|(claim, _)| *claim != Claim::Lock), "it names no lock");
    let mut old = bundle;
    old.version = 1;
    assert_eq!(Bundle::read(&old.to_json()).err(), Some(BundleError::Malformed));
}

/// For each claim that can be verified a bundle that is wrong in this alone.
#[test]
fn every_claim_that_is_wrong_is_found() {
    let ends = Ends::new();
    let honest = bundle(&ends, |_| ());
    let other = Ends::new();
    let wrong = |change: &dyn Fn(&mut Bundle), pins: Option<&Pins>| {
        let mut bundle = honest.clone();
        change(&mut bundle);
        claims(&bundle.verify(pins).unwrap(), Certainty::Wrong)
    };
    assert!(wrong(&|_| (), Some(&ends.robots)).is_empty());
    let replaced = |text: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    assert_eq!(
        wrong(
            &|it| {
                let text = it.artifact.as_ref().unwrap();
                it.artifact = Some(replaced(text, "countersign.salt\":\"", "countersign.salt\":\"x").into());
            },
            None
        ),
        [Claim::Artifact]
    );
    let other_bundle = bundle(&ends, |_| ());
    let about = wrong(&|it| it.artifact = other_bundle.artifact.clone(), None);
    assert_eq!(about, [Claim::About]);
    let flipped = wrong(&|it| it.decision = replaced(&it.decision, "\"approve\"", "\"reject\""), None);
    assert_eq!(flipped, [Claim::Signature, Claim::Decision], "the receipt is about what was signed");
    let keys = wrong(&|it| it.signer.keys = other.ada.bundle().to_string(), Some(&ends.robots));
    assert_eq!(keys, [Claim::Signature], "whose the other keys are is not known");
    assert_eq!(wrong(&|it| it.signer.approver_id = "eve".to_owned(), Some(&ends.robots)), [Claim::Approver]);
    let receipt = |it: &mut Bundle| it.receipt.outcome = Outcome::Drifted;
    assert_eq!(wrong(&receipt, None), [Claim::Receipt]);
    assert_eq!(wrong(&|it| it.enforcer.keys = other.robot.bundle().to_string(), None), [Claim::Receipt]);
    assert_eq!(wrong(&|it| it.receipt = other_bundle.receipt.clone(), None), [Claim::Decision]);
    let named = |it: &mut Bundle| it.enforcer.enforcer_id = "robot2".to_owned();
    assert_eq!(wrong(&named, Some(&ends.adas)), [Claim::Receipt, Claim::Enforcer]);
    // What was done is something else.
    let done = bundle(&ends, |taken| taken.effect = countersign_wire::hash::Sha256Hex::digest(b"other"));
    assert_eq!(claims(&done.verify(None).unwrap(), Certainty::Wrong), [Claim::Effect]);
}

#[test]
fn what_a_pattern_covered_is_in_the_bundle_and_not_proven() {
    let ends = Ends::new();
    let other = draft_of(
        crate::content::payload::Command { invocation: argv(&["cargo", "test", "x"]), ..command(&["a"]) },
        None,
    );
    let bundle = bundle(&ends, |taken| {
        taken.effect = crate::exchange::effect_hash::effect_of_draft(&other).unwrap();
        taken.other_payload = Some(other.payload.clone().into());
    });
    assert_eq!(bundle.verify(None).unwrap().certainty(Claim::Effect), Certainty::Unproven);
    let changed = Bundle { payload: Some(other.payload.replace("\"x\"", "\"y\"").into()), ..bundle };
    assert_eq!(changed.verify(None).unwrap().certainty(Claim::Effect), Certainty::Wrong);
}

#[test]
fn a_text_that_is_no_bundle_is_not_read() {
    let ends = Ends::new();
    let text = bundle(&ends, |_| ()).to_json();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut value: Value = serde_json::from_str(&text).unwrap();
        change(&mut value);
        Bundle::read(&value.to_string()).err()
    };
    assert_eq!(changed(&|_| ()), None);
    assert_eq!(changed(&|it| it["version"] = 3.into()), Some(BundleError::NewerVersion(3)));
    assert_eq!(changed(&|it| it["version"] = 2.into()), Some(BundleError::Malformed), "without a lock");
    assert_eq!(changed(&|it| it["more"] = json!(1)), Some(BundleError::Malformed));
    assert_eq!(
        changed(&|it| it["artifact"] = Value::Null),
        Some(BundleError::Malformed),
        "null is not absence"
    );
    assert_eq!(
        changed(&|it| drop(it.as_object_mut().unwrap().remove("words"))),
        Some(BundleError::Malformed)
    );
    assert_eq!(Bundle::read(&text[..text.len() - 1]).err(), Some(BundleError::Malformed));
    let broken = Bundle { artifact: Some("{}".to_owned().into()), ..bundle(&ends, |_| ()) };
    assert_eq!(broken.verify(None), Err(BundleError::Malformed));
}
