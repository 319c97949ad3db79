//! What a machine remembers of a person's answers, and what a device believes of it.

use super::*;
use crate::{
    exchange::fixture::{Ends, choice, command, draft_of, now, robot_id},
    journal::{Change, Commit, Journal as _, MemoryJournal},
};

fn ada() -> ApproverId {
    "ada".parse().unwrap()
}

fn applied() -> Outcome {
    Outcome::Applied { exit_status: Some(0) }
}

fn taken(ends: &Ends, words: &[&str]) -> Taken {
    ends.exchange(&draft_of(command(words), None), &choice(Scope::Once)).0
}

fn opened(ends: &Ends, event: &str) -> OpenedSnapshot {
    OpenedSnapshot::open(event, "ada", &ends.ada, &ends.adas, now()).unwrap()
}

fn snapshot_of(ends: &Ends, records: &[Record]) -> OpenedSnapshot {
    let recipient = Recipient { id: "ada", bundle: ends.ada.bundle() };
    opened(ends, &event(records, &ada(), (&robot_id(), &ends.robot), &[recipient], now()).unwrap())
}

#[test]
fn an_answer_is_remembered_with_what_was_asked_and_done() {
    let ends = Ends::new();
    let taken = taken(&ends, &["cargo", "test"]);
    let record = record(&taken, &applied(), now()).unwrap();
    assert_eq!(record.keep_until, now().plus(KEPT_FOR));
    let machine = ends.adas.iter().next().unwrap();
    let answers = open(&snapshot_of(&ends, std::slice::from_ref(&record)), machine, &ada()).unwrap();
    let [answer] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!(
        (&answer.request_id, answer.at, answer.decision),
        (&taken.request_id, now(), DecisionOutcome::Approve)
    );
    assert_eq!(answer.device, ends.ada.fingerprint().to_string());
    assert!(answer.headline.contains("cargo test") && !answer.sentence.is_empty(), "{answer:?}");
    assert_eq!(answer.outcome, applied());
    assert!(answer.change.is_none() && answer.reason.is_none() && answer.action.is_none());
    let again = Taken { number: 2, ..taken };
    assert_eq!(super::record(&again, &applied(), now()), None, "a further use is no further answer");
}

#[test]
fn the_newest_come_first_and_long_texts_are_cut() {
    let ends = Ends::new();
    let long = "x".repeat(1_000);
    let journal = MemoryJournal::default();
    for minute in 0..3 {
        let mut taken = taken(&ends, &["echo", &long]);
        taken.decision.words.reason = Some("go\non".to_owned());
        let at = now().plus(Duration::from_mins(minute));
        let change = Change::Put(record(&taken, &applied(), at).unwrap());
        assert_eq!(journal.commit(&[change], now()).unwrap(), Commit::Done);
    }
    let records = of_person(journal.list(Kind::Answered).unwrap(), &ada(), now());
    let machine = ends.adas.iter().next().unwrap();
    let answers = open(&snapshot_of(&ends, &records), machine, &ada()).unwrap();
    assert!(answers.len() == 3 && answers.is_sorted_by(|one, other| one.at > other.at));
    for answer in answers {
        assert!(answer.headline.chars().count() == MAX_TEXT + 1 && answer.headline.ends_with('…'));
        assert_eq!(answer.reason.as_deref(), Some("go\non"), "whoever shows it makes it visible");
    }
    let later = now().plus(KEPT_FOR + Duration::from_mins(1));
    assert_eq!(of_person(records.clone(), &ada(), later).len(), 1, "two are older than thirty days");
    assert_eq!(of_person(records, &"ad".parse().unwrap(), now()), [], "somebody whose name begins alike");
}

#[test]
fn what_is_told_is_bounded_in_number_and_bytes() {
    let ends = Ends::new();
    let one = record(&taken(&ends, &["ls"]), &applied(), now()).unwrap();
    let machine = ends.adas.iter().next().unwrap();
    let count = |records: &[Record]| open(&snapshot_of(&ends, records), machine, &ada()).unwrap().len();
    assert_eq!(count(&vec![one.clone(); MAX_ANSWERS + 9]), MAX_ANSWERS);
    let mut long = serde_json::from_str::<Answer>(&one.value).unwrap();
    let text = "𝄞".repeat(MAX_TEXT);
    [long.sentence, long.headline] = [text.clone(), text.clone()];
    [long.reason, long.change] = [Some(text.clone()), Some(text.clone())];
    let written = |answer: &Answer| Zeroizing::new(serde_json::to_string(answer).unwrap());
    let found = count(&vec![Record { value: written(&long), ..one.clone() }; MAX_ANSWERS]);
    assert!((10..MAX_ANSWERS).contains(&found), "{found}");
    // A machine that writes more than that is not believed.
    long.sentence.push_str("xx");
    let recipient = Recipient { id: "ada", bundle: ends.ada.bundle() };
    let more = [Record { value: written(&long), ..one }];
    let event = event(&more, &ada(), (&robot_id(), &ends.robot), &[recipient], now()).unwrap();
    assert_eq!(open(&opened(&ends, &event), machine, &ada()), Err(HistoryError::Malformed));
}

#[test]
fn a_history_of_another_machine_or_person_or_form_is_not_believed() {
    let ends = Ends::new();
    let records = [record(&taken(&ends, &["ls"]), &applied(), now()).unwrap()];
    let machine = ends.adas.iter().next().unwrap();
    let honest = snapshot_of(&ends, &records);
    assert!(open(&honest, machine, &ada()).is_ok());
    assert_eq!(open(&honest, machine, &"eve".parse().unwrap()), Err(HistoryError::Malformed));
    let other = Ends::new();
    assert_eq!(open(&honest, other.adas.iter().next().unwrap(), &ada()), Err(HistoryError::Malformed));
    // In the session of somebody else, in the name of somebody else, of another version, with more than is known.
    let moved = OpenedSnapshot { session_id: "s".parse().unwrap(), ..honest.clone() };
    assert_eq!(open(&moved, machine, &ada()), Err(HistoryError::Malformed));
    let whole = honest.payload.as_str();
    for (from, to) in [
        (r#""approverId":"ada""#, r#""approverId":"eve""#),
        (r#""v":1"#, r#""v":2"#),
        (r#""v":1"#, r#""v":1,"more":1"#),
        (r#""scope":"once""#, r#""scope":"once","more":1"#),
    ] {
        let payload = Zeroizing::new(whole.replacen(from, to, 1));
        assert_ne!(payload.as_str(), whole);
        let changed = OpenedSnapshot { payload, ..honest.clone() };
        assert_eq!(open(&changed, machine, &ada()), Err(HistoryError::Malformed), "{to}");
    }
}

#[test]
fn both_ends_know_the_session() {
    // Python: uuid.uuid5(uuid.uuid5(uuid.NAMESPACE_URL, "countersign history v1"), "AAAA/ada")
    assert_eq!(named_session(NAMESPACE, "AAAA/ada").as_str(), "7ecde22f-110c-5de5-a626-01369f840d5f");
    let ends = Ends::new();
    let own = history_session(ends.robot.fingerprint(), &ada());
    assert_eq!(own, named_session(NAMESPACE, &format!("{}/ada", ends.robot.fingerprint())));
    assert_ne!(own, history_session(ends.ada.fingerprint(), &ada()));
}
