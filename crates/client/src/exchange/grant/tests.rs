//! What a grant covers, what it does not, and when it ends.

use countersign_wire::artifact::ArtifactType;

use super::*;
use crate::{
    content::{
        pattern::Pattern,
        payload::{CommandFile, Effect, EffectKind, FileRole, Variable},
    },
    exchange::{
        audience::Audience,
        fixture::{Ends, argv, choice, command, draft_of, now},
        lock::Gesture,
        reply::Choice,
        taken::Taken,
    },
    identity::profile::Pins,
    journal::MemoryJournal,
};

fn later(minutes: u64) -> Timestamp {
    now().plus(Duration::from_mins(minutes))
}

fn read_with(ends: &Ends, taken: &Taken, pins: &Pins, rules: GrantRules, at: Timestamp) -> Option<Grant> {
    let journal = MemoryJournal::default();
    let verifier = Verifier { pins, ..ends.verifier(&journal) };
    let settled = Settled::Decided(Box::new(taken.decided.clone()));
    Grant::read(&settled.record(&taken.request_id, at), &verifier, &rules, at)
}

/// The grant that follows from an approval.
fn grant(ends: &Ends, draft: &Draft, choice: &Choice) -> Option<Grant> {
    let (taken, _) = ends.exchange(draft, choice);
    read_with(ends, &taken, &ends.robots, GrantRules::default(), now())
}

fn with_pattern(words: &[&str]) -> Choice {
    let mut choice = choice(Scope::Timebox);
    choice.words.pattern = Some(Pattern::new(words.iter().copied()).unwrap());
    choice
}

#[test]
fn once_is_no_grant_and_neither_is_a_rejection() {
    let ends = Ends::new();
    let draft = draft_of(command(&["cargo", "test"]), Some("s"));
    assert!(grant(&ends, &draft, &choice(Scope::Once)).is_none());
    let rejection = Choice { outcome: DecisionOutcome::Reject, ..choice(Scope::Timebox) };
    assert!(grant(&ends, &draft, &rejection).is_none());
    assert!(grant(&ends, &draft, &choice(Scope::Timebox)).is_some());
}

#[test]
fn where_a_person_must_be_verified_a_grant_without_that_covers_nothing() {
    let ends = Ends::new();
    let shown = draft_of(command(&["cargo", "test"]), None);
    let grant = grant(&ends, &shown, &choice(Scope::Timebox)).unwrap();
    let to = Audience { verify: Verify::Person, ..Audience::everybody() };
    let verified = Draft { to, ..shown.clone() };
    assert!(grant.covers(&shown, later(1)));
    assert!(!grant.covers(&verified, later(1)));
    let decision = VerifiedDecision { gesture: Some(Gesture), ..grant.decision.clone() };
    assert!(Grant { decision, ..grant }.covers(&verified, later(1)));
}

#[test]
fn who_would_not_be_asked_has_not_approved_it_either() {
    let ends = Ends::new();
    let shown = draft_of(command(&["cargo", "test"]), None);
    let grant = grant(&ends, &shown, &choice(Scope::Timebox)).unwrap();
    let to = |people: &[&str]| Draft { to: Audience::only(people.iter().copied()), ..shown.clone() };
    assert!(grant.covers(&to(&["ada"]), later(1)));
    assert!(grant.covers(&to(&["kim", "ada"]), later(1)));
    assert!(!grant.covers(&to(&["kim"]), later(1)));
}

#[test]
fn without_a_pattern_the_same_effect_is_covered_and_nothing_else() {
    let ends = Ends::new();
    let shown = draft_of(command(&["cargo", "test"]), None);
    let grant = grant(&ends, &shown, &choice(Scope::Timebox)).unwrap();
    assert!(grant.covers(&shown, later(1)));
    assert_eq!(grant.headline, "cargo test");
    // Another time, another session and other spacing are the same effect.
    let mut same =
        Draft { session: Some("s".to_owned()), valid_for: Duration::from_mins(1), ..shown.clone() };
    same.payload = same.payload.replace(':', " : ");
    assert!(grant.covers(&same, later(1)));
    let elsewhere = Draft { repo_name: "acme/other".to_owned(), ..shown.clone() };
    let as_plan = Draft { artifact_type: ArtifactType::PlanReview, ..shown.clone() };
    for other in [
        elsewhere,
        as_plan,
        draft_of(command(&["cargo", "test", "x"]), None),
        draft_of(Command { cwd: "/tmp".to_owned(), ..command(&["cargo", "test"]) }, None),
        draft_of(Command { effects: None, ..command(&["cargo", "test"]) }, None),
        Draft { payload: "[]".to_owned(), ..shown.clone() },
    ] {
        assert!(!grant.covers(&other, later(1)), "{}", other.payload);
    }
}

#[test]
fn a_grant_for_a_session_covers_that_session() {
    let ends = Ends::new();
    let shown = draft_of(command(&["cargo", "test"]), Some("s1"));
    let grant = grant(&ends, &shown, &choice(Scope::Session)).unwrap();
    assert!(grant.covers(&shown, later(1)));
    for session in [None, Some("s2".to_owned())] {
        assert!(!grant.covers(&Draft { session, ..shown.clone() }, later(1)));
    }
}

#[test]
fn a_grant_ends_at_its_time_at_the_enforcers_and_with_its_signer() {
    let ends = Ends::new();
    let shown = draft_of(command(&["cargo", "test"]), None);
    let (taken, _) = ends.exchange(&shown, &choice(Scope::Timebox));
    let read = |pins: &Pins, rules, at| read_with(&ends, &taken, pins, rules, at);
    let (pins, rules) = (&ends.robots, GrantRules::default());
    let grant = read(pins, rules, later(29)).unwrap();
    assert!(grant.covers(&shown, later(29)) && !grant.covers(&shown, later(30)));
    assert!(read(pins, rules, later(30)).is_none(), "there is no minute for clocks that differ");
    let short = GrantRules { longest: Duration::from_mins(5) };
    assert_eq!(read(pins, short, later(4)).unwrap().ends_at, later(5));
    assert!(read(pins, short, later(5)).is_none());
    assert!(read(pins, GrantRules { longest: Duration::ZERO }, now()).is_none());
    let mut revoked = pins.clone();
    revoked.revoke(ends.ada.fingerprint(), now()).unwrap();
    assert!(read(&revoked, rules, later(1)).is_none());
    assert!(read(&Pins::default(), rules, later(1)).is_none());
    // What was changed on the disk is no grant.
    let mut changed = taken.clone();
    changed.decided.decision = changed.decided.decision.replace("12:30:00", "22:30:00");
    assert_ne!(changed.decided.decision, taken.decided.decision);
    assert!(read_with(&ends, &changed, pins, rules, later(1)).is_none());
    let mut changed = taken.clone();
    changed.decided.artifact = changed.decided.artifact.replace("cargo", "curl").into();
    assert!(read_with(&ends, &changed, pins, rules, later(1)).is_none());
}

#[test]
fn what_is_dangerous_is_never_covered() {
    let ends = Ends::new();
    for kind in EffectKind::ALL {
        let effects = Some(vec![Effect::new(*kind)]);
        let risky = Command { effects, ..command(&["cargo", "test", "a"]) };
        let same = draft_of(risky.clone(), None);
        let exact = grant(&ends, &same, &choice(Scope::Timebox)).unwrap();
        assert_eq!(exact.covers(&same, later(1)), !kind.is_dangerous(), "{kind}");
        let harmless = draft_of(command(&["cargo", "test", "b"]), None);
        let pattern = grant(&ends, &harmless, &with_pattern(&["cargo", "test", "*"])).unwrap();
        assert_eq!(pattern.covers(&same, later(1)), !kind.is_dangerous(), "{kind}");
    }
}

#[test]
fn a_pattern_covers_other_arguments_and_nothing_else() {
    let ends = Ends::new();
    let file = |path: &str, role, content: &str| CommandFile::with_content(path, role, content);
    let base = Command {
        env: vec![Variable { name: "CI".to_owned(), value: Some("1".to_owned()) }],
        files: vec![file("/bin/cargo", FileRole::Executable, "elf"), file("a.sh", FileRole::Script, "one")],
        ..command(&["cargo", "test", "a"])
    };
    let shown = draft_of(base.clone(), None);
    let pattern = with_pattern(&["cargo", "test", "*"]);
    let granted = grant(&ends, &shown, &pattern).unwrap();
    let covers = |change: &dyn Fn(&mut Command)| {
        let mut other = Command { invocation: argv(&["cargo", "test", "b"]), ..base.clone() };
        change(&mut other);
        granted.covers(&draft_of(other, None), later(1))
    };
    assert!(granted.covers(&shown, later(1)) && covers(&|_| ()));
    assert!(covers(&|it| it.files.truncate(1)), "a script that is not used any more");
    type Change<'a> = &'a dyn Fn(&mut Command);
    let not_covered: [(&str, Change<'_>); 11] = [
        ("an option", &|it| it.invocation = argv(&["cargo", "test", "--all"])),
        ("another program", &|it| it.invocation = argv(&["npm", "test", "b"])),
        ("a shell that is not understood", &|it| {
            it.invocation = Invocation::Shell("cargo test $X".to_owned());
        }),
        ("another folder", &|it| it.cwd = "/tmp".to_owned()),
        ("another variable", &|it| it.env[0].value = Some("0".to_owned())),
        ("no variable", &|it| it.env.clear()),
        ("an input", &|it| {
            it.stdin = Some(crate::content::payload::Input { digest: Sha256Hex::digest(b"x"), size: 1 });
        }),
        ("another executable", &|it| it.files[0] = file("/bin/cargo", FileRole::Executable, "evil")),
        ("another script", &|it| it.files[1] = file("a.sh", FileRole::Script, "two")),
        ("an executable that is not known", &|it| drop(it.files.remove(0))),
        ("not examined", &|it| it.effects = None),
    ];
    for (what, change) in not_covered {
        assert!(!covers(change), "{what}");
    }
    let elsewhere = Draft {
        repo_name: "acme/other".to_owned(),
        ..draft_of(Command { invocation: argv(&["cargo", "test", "b"]), ..base.clone() }, None)
    };
    assert!(!granted.covers(&elsewhere, later(1)));
    // A pattern that does not cover what was shown covers nothing else.
    let stray = with_pattern(&["rm", "**"]);
    let stray = grant(&ends, &shown, &stray).unwrap();
    let other = draft_of(Command { invocation: argv(&["rm", "b"]), ..base }, None);
    assert!(stray.covers(&shown, later(1)) && !stray.covers(&other, later(1)));
}

#[test]
fn a_pattern_covers_the_text_of_a_shell_if_it_covers_every_command_in_it() {
    let ends = Ends::new();
    let shell = |text: &str| Command {
        cwd: "/work".to_owned(),
        invocation: Invocation::Shell(text.to_owned()),
        ..command(&["x"])
    };
    let shown = draft_of(shell("cd /work && cargo test a"), None);
    let granted = grant(&ends, &shown, &with_pattern(&["cargo", "test", "*"])).unwrap();
    let covers = |command: Command| granted.covers(&draft_of(command, None), later(1));
    for text in
        ["cargo test b", "cargo test b 2>&1", "cargo test b && cargo test c > /dev/null", "cargo 'test' b"]
    {
        assert!(covers(shell(text)), "{text}");
    }
    assert!(covers(Command { cwd: "/work".to_owned(), ..command(&["cargo", "test", "b"]) }));
    for text in [
        "cargo test b; ls",
        "cargo test b | sh",
        "cargo test --all",
        "cargo test $X",
        "cargo test $(id)",
        "cargo test b > log",
        "cargo test b < in",
        "A=1 cargo test b",
        "cd /tmp && cargo test b",
        "cd .. && cargo test b",
        "cargo test b &",
        "cargo test b\ncargo publish",
        "cd /work",
        " ",
    ] {
        assert!(!covers(shell(text)), "{text}");
    }
    assert!(!covers(Command { effects: None, ..shell("cargo test b") }), "not examined");
    let deletes = Some(vec![Effect::new(EffectKind::Deletes)]);
    assert!(!covers(Command { effects: deletes, ..shell("cargo test b") }), "dangerous");
    let script = CommandFile::with_content("a.sh", FileRole::Script, "evil");
    assert!(!covers(Command { files: vec![script], ..shell("cargo test b") }), "a script that was not shown");
    // A text that is not understood is covered as it was shown and not otherwise.
    let shown = draft_of(shell("cargo test a $X"), None);
    let granted = grant(&ends, &shown, &with_pattern(&["cargo", "test", "*"])).unwrap();
    assert!(granted.covers(&shown, later(1)));
    assert!(!granted.covers(&draft_of(shell("cargo test b"), None), later(1)));
}
