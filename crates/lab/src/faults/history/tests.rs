use super::*;

fn caller() -> Caller {
    Caller { client: "e1".into(), tenant: "t1".into(), node: "http://n".into(), credential: "k".into() }
}

#[test]
fn a_history_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let recorder = Recorder::create(&path).unwrap();
    let status = || Call::Status { request: "r".into() };
    recorder.invoke(&caller(), status()).ok(Answer { status: 200, ..Answer::default() });
    recorder.invoke(&caller(), status()).fail(Answer { status: 404, ..Answer::default() });
    recorder.invoke(&caller(), status()).unknown(Answer::none("no answer in time"));
    drop(recorder.invoke(&caller(), status()));
    let fault = recorder.fault_begins("kill", "node 1");
    recorder.fault_ends(fault);
    recorder.quiet();
    let counts = recorder.counts();
    recorder.finish().unwrap();
    let history = History::read(&path).unwrap();
    let ends: Vec<(Outcome, u16)> =
        history.operations.iter().map(|operation| (operation.outcome, operation.answer.status)).collect();
    assert_eq!(
        ends,
        [(Outcome::Ok, 200), (Outcome::Fail, 404), (Outcome::Unknown, 0), (Outcome::Unknown, 0)]
    );
    assert_eq!(history.operations[3].answer.reason, "the client was stopped");
    assert_eq!((counts.acknowledged(), counts.operations["status"].unknown, counts.faults), (1, 2, 1));
    assert_eq!((history.faults[0].kind.as_str(), history.faults[0].ends <= history.end), ("kill", true));
    assert!(history.quiet_at.is_some());
}

#[test]
fn an_operation_without_an_end_is_unknown() {
    let invoke = What::Invoke { op: 1, by: caller(), call: Call::Presence };
    let history = History::of([Event { at: 5, what: invoke }]).unwrap();
    assert_eq!((history.operations[0].outcome, history.operations[0].ended), (Outcome::Unknown, u64::MAX));
}

#[test]
fn an_end_without_a_begin_is_an_error() {
    let ok = What::Ok { op: 1, answer: Answer::default() };
    assert!(History::of([Event { at: 5, what: ok }]).is_err());
}

#[test]
fn faults_that_overlap_count_once() {
    let fault = |begins, ends| Fault { kind: String::new(), target: String::new(), begins, ends };
    let history =
        History { faults: vec![fault(0, 10), fault(5, 20), fault(30, u64::MAX)], ..History::default() };
    assert_eq!(history.faulty_time(0, 25), 20);
    assert_eq!(history.faulty_time(8, 40), 22);
    assert_eq!(history.faulty_time(21, 29), 0);
}

#[test]
fn the_tenants_in_a_text_are_found() {
    let text = format!("{{\"a\":\"{}\",\"b\":\"{}\"}} mk:", marked("t-1", "e"), marked("t2", ""));
    assert_eq!(tenants_in(text.as_bytes()).into_iter().collect::<Vec<_>>(), ["t-1", "t2"]);
    assert!(tenants_in(b"nothing").is_empty());
}
