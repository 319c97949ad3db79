use countersign_wire::{
    decision::{DecisionOutcome, Scope},
    timestamp::Timestamp,
};
use serde_json::json;

use super::*;
use crate::{
    content::payload::{Call, Command, Invocation},
    exchange::{
        fixture::{Ends, choice, draft_of, now, robot_id},
        reply::{Choice, ChoiceError, Rejected, VerifiedDecision, Words, decide, decide_unchecked},
        request::{Before, Draft, OpenedRequest, Request},
    },
    identity::{
        keys::DeviceKeys,
        profile::{Party, Pin, PinSource, Pins},
    },
    journal::MemoryJournal,
};

const COMMAND: &str = "/tool_input/command";
const ARGV: &str = "/argv";

fn edit(members: &[(&str, &str)]) -> Edit {
    Edit(members.iter().map(|(at, text)| ((*at).to_owned(), (*text).to_owned())).collect())
}

fn message() -> Value {
    json!({ "tool_name": "Bash", "tool_input": { "command": "git push --force", "n": 1 }, "argv": ["git", "push", "a b"] })
}

/// The draft of a call of an agent, which offers these places.
fn draft(message: &Value, offered: &[&str]) -> Draft {
    let mut command = Command::new(Invocation::Shell("git push --force".to_owned()), "/work");
    let members = message.as_object().unwrap().clone();
    command.context.call = Some(Box::new(Call::new("hook.claude", "PreToolUse", "Bash", "/work", members)));
    let edits = offered.iter().map(|at| (*at).to_owned()).collect();
    Draft { edits, ..draft_of(command, Some("s1")) }
}

fn opened(ends: &Ends, request: &Request) -> OpenedRequest {
    let pushed = request.envelope.replace("artifact.submit", "approval.request");
    let envelope = countersign_wire::parse(pushed.as_bytes()).unwrap();
    OpenedRequest::open(&envelope, "ada", &ends.ada, &ends.adas, now()).unwrap()
}

fn asked(ends: &Ends, draft: &Draft) -> (Request, OpenedRequest) {
    let request = Request::build(draft, &robot_id(), &ends.robot, &ends.robots, now()).unwrap();
    let opened = opened(ends, &request);
    (request, opened)
}

fn rejecting(edit: Edit) -> Choice {
    let words = Words { edit: Some(edit), ..Words::default() };
    Choice { outcome: DecisionOutcome::Reject, words, ..choice(Scope::Once) }
}

fn decided(ends: &Ends, request: &OpenedRequest, choice: &Choice) -> Result<String, ChoiceError> {
    decide(request, choice, &"ada".parse().unwrap(), &ends.ada, now())
}

fn verified(ends: &Ends, request: &Request, text: &str) -> Result<VerifiedDecision, Rejected> {
    ends.verifier(&MemoryJournal::default()).check(text.as_bytes(), request, now())
}

#[test]
fn what_may_be_changed_is_shown_as_it_stands() {
    let ends = Ends::new();
    let (request, opened) = asked(&ends, &draft(&message(), &[COMMAND, ARGV]));
    let place = |pointer: &str, text: &str, is_argv| Place {
        pointer: pointer.to_owned(),
        text: text.to_owned(),
        is_argv,
    };
    let expected = [place(COMMAND, "git push --force", false), place(ARGV, "git push 'a b'", true)];
    assert_eq!(opened.edits, expected);
    assert_eq!(request.draft().unwrap().edits, [COMMAND, ARGV], "also when it is asked again");
    assert!(!opened.is_edited);
    // A list of which a part can't be used offers nothing.
    let nine: Vec<String> = (0..9).map(|number| format!("/texts/{number}")).collect();
    let mut many = message();
    many["texts"] = json!(nine);
    let nine: Vec<&str> = nine.iter().map(String::as_str).collect();
    for (message, offered) in [
        (message(), &[COMMAND, "/tool_input/n"][..]),
        (message(), &[COMMAND, "/nothing"]),
        (message(), &["/tool_input"]),
        (message(), &[COMMAND, COMMAND]),
        (message(), &[ARGV, "/argv/0"]),
        (message(), &["tool_name"]),
        (many.clone(), &nine),
        (json!({ "argv": [] }), &[ARGV]),
        (json!({ "argv": ["a", 1] }), &[ARGV]),
    ] {
        assert_eq!(asked(&ends, &draft(&message, offered)).1.edits, [], "{offered:?}");
    }
    assert_eq!(asked(&ends, &draft(&many, &nine[..MAX_PLACES])).1.edits.len(), MAX_PLACES);
}

#[test]
fn a_change_replaces_its_texts_and_nothing_else() {
    let (message, offered) = (message(), [COMMAND.to_owned(), ARGV.to_owned()]);
    let apply = |members: &[(&str, &str)]| edit(members).apply(&message, &offered);
    let changed = apply(&[(COMMAND, "git push; \"ls\"\n"), (ARGV, r"git 'push' it\'s")]).unwrap();
    let mut expected = message.clone();
    expected["tool_input"]["command"] = json!("git push; \"ls\"\n");
    expected["argv"] = json!(["git", "push", "it's"]);
    assert_eq!(changed, expected);
    assert_eq!(apply(&[(COMMAND, "")]).unwrap()["tool_input"]["command"], "");
    let not_offered = |at: &str| EditError::NotOffered(at.to_owned());
    let long = "x".repeat(MAX_EDIT);
    for (members, error) in [
        (&[][..], EditError::Nothing),
        (&[(COMMAND, "git push --force")], EditError::Nothing),
        (&[(ARGV, "git  push \"a b\"")], EditError::Nothing),
        (&[(COMMAND, "ls"), ("/tool_name", "Write")], not_offered("/tool_name")),
        (&[("/tool_input/other", "x")], not_offered("/tool_input/other")),
        (&[("", "x")], not_offered("")),
        (&[(COMMAND, &long)], EditError::TooLong),
        (&[(ARGV, "git push; rm x")], EditError::NotWords),
        (&[(ARGV, "git $A")], EditError::NotWords),
        (&[(ARGV, "")], EditError::NotWords),
        (&[(ARGV, "A=1 git push")], EditError::NotWords),
    ] {
        assert_eq!(apply(members), Err(error), "{members:?}");
    }
}

#[test]
fn a_change_is_no_approval_and_what_it_makes_is_approved_once_by_its_device_alone() {
    let mut ends = Ends::new();
    let bob = DeviceKeys::generate().unwrap();
    let party = Party::Approver("bob".parse().unwrap());
    ends.robots.insert(Pin::new(party, bob.bundle(), PinSource::Paired, now())).unwrap();
    let draft = draft(&message(), &[COMMAND]);
    let (request, shown) = asked(&ends, &draft);
    let words = edit(&[(COMMAND, "git push")]);
    let text = decided(&ends, &shown, &rejecting(words.clone())).unwrap();
    let rejected = verified(&ends, &request, &text).unwrap();
    assert_eq!(rejected.words.edit, Some(words.clone()));
    // Neither end lets an approval change what it approves.
    let approving = Choice { outcome: DecisionOutcome::Approve, ..rejecting(words) };
    assert_eq!(decided(&ends, &shown, &approving), Err(ChoiceError::EditApproved));
    let forged = decide_unchecked(&shown, &approving, &"ada".parse().unwrap(), &ends.ada, |_| None).unwrap();
    assert!(matches!(verified(&ends, &request, &forged), Err(Rejected::EditApproved)));
    // What it makes of the call.
    let before = Before { request_id: &request.request_id, edited_by: Some(rejected.device) };
    let build =
        |pins: &Pins| Request::build_after(Some(before), &draft, &robot_id(), &ends.robot, pins, now());
    let made = build(&ends.robots).unwrap();
    assert_eq!(made.devices().unwrap(), [ends.ada.fingerprint()], "bob is not asked");
    assert!(made.is_edited() && !request.is_edited());
    let shown = opened(&ends, &made);
    assert!(shown.is_edited);
    assert_eq!(shown.supersedes.as_ref(), Some(&request.request_id));
    let once = decided(&ends, &shown, &choice(Scope::Once)).unwrap();
    verified(&ends, &made, &once).unwrap();
    for scope in [Scope::Timebox, Scope::Session] {
        assert_eq!(decided(&ends, &shown, &choice(scope)), Err(ChoiceError::OnlyOnce));
        let unaware = OpenedRequest { is_edited: false, ..shown.clone() };
        let text = decided(&ends, &unaware, &choice(scope)).unwrap();
        assert!(matches!(verified(&ends, &made, &text), Err(Rejected::OnlyOnce)), "{scope:?}");
    }
    // A device that was revoked meanwhile is not asked, and nobody in its place.
    let mut revoked = ends.robots.clone();
    revoked.revoke(ends.ada.fingerprint(), now()).unwrap();
    assert!(build(&revoked).is_err());
}

/// A small generator, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn text(&mut self) -> String {
        const PARTS: [&str; 16] = [
            "git", " ", "push", "'", "\"", "\\", "\n", "$A", ";", "ä", "\u{202e}", "a b", "--force", "{}",
            "\0", "*",
        ];
        (0..self.below(8)).map(|_| PARTS[self.below(PARTS.len())]).collect()
    }
}

/// Edits of any kind, signed by the one end and made by the other: either the call is exactly what was signed, or none is made.
#[test]
fn ten_thousand_random_edits_are_made_exactly_or_refused() {
    let (mut random, ends) = (Random(0x9e37_79b9_7f4a_7c15), Ends::new());
    let (mut made, mut refused) = (0, 0);
    let offers: [&[&str]; 4] = [&[COMMAND], &[ARGV], &[COMMAND, ARGV], &[]];
    let asked: Vec<_> = offers.map(|offered| (offered, asked(&ends, &draft(&message(), offered)))).into();
    let names = [COMMAND, ARGV, "/tool_name", "/tool_input/n", "/argv/0", "", "/nothing"];
    for round in 0..10_000 {
        let (offered, (request, shown)) = &asked[random.below(asked.len())];
        let members = (0..random.below(3)).map(|_| {
            // Mostly what may be changed.
            let at = if random.below(4) > 0 { random.below(2) } else { random.below(names.len()) };
            (names[at].to_owned(), random.text())
        });
        let edit = Edit(members.collect());
        let offered: Vec<String> = offered.iter().map(|at| (*at).to_owned()).collect();
        let applied = edit.apply(&message(), &offered);
        match decided(&ends, shown, &rejecting(edit.clone())) {
            // The approver's end refuses nothing that could be made.
            Err(error) => assert!(applied.is_err(), "{round}: {error} {edit:?}"),
            Ok(text) if round % 10 == 0 => {
                let decision = verified(&ends, request, &text).unwrap();
                assert_eq!(decision.words.edit.as_ref(), Some(&edit), "{round}");
            }
            Ok(_) => {}
        }
        let Ok(mut changed) = applied else {
            refused += 1;
            continue;
        };
        made += 1;
        for (at, text) in &edit.0 {
            assert!(offered.contains(at), "{round}");
            let place = changed.pointer_mut(at).unwrap();
            match at.as_str() {
                ARGV => assert_eq!(json!(shell::words(text).unwrap()), *place, "{round}"),
                _ => assert_eq!(json!(text), *place, "{round}"),
            }
            *place = message().pointer(at).unwrap().clone();
        }
        assert_eq!(changed, message(), "{round}: nothing else has changed");
    }
    assert!(made > 1_000 && refused > 1_000, "{made} made, {refused} refused");
}

#[test]
fn a_request_that_says_less_than_true_is_none_that_was_changed() {
    let at: Timestamp = now();
    let ends = Ends::new();
    let mut plain = draft(&message(), &[]);
    plain.payload = r#"{"argv":["ls"]}"#.to_owned();
    let request = Request::build(&plain, &robot_id(), &ends.robot, &ends.robots, at).unwrap();
    let with = |value: &str| {
        let artifact = request.artifact.replace(
            r#""extensions":{"#,
            &format!(r#""extensions":{{"org.countersign.edited":{value},"org.countersign.edits":["/argv"],"#),
        );
        let read: Artifact<'_> =
            countersign_wire::parse::<Artifact<'_>>(artifact.as_bytes()).unwrap().into_view();
        (is_edited(&read), offered(&read).len())
    };
    assert_eq!(with("true"), (true, 0), "without a call nothing can be changed");
    for value in ["false", "1", r#""true""#, "null", "[]"] {
        assert!(!with(value).0, "{value}");
    }
}
