//! Who is asked, how loudly, and who of them must be verified.

use std::time::Duration;

use countersign_client::audience::{Audience, Turn, Verify};
use countersign_wire::artifact::Loudness;

use super::*;

#[test]
fn people_are_those_of_the_rule_that_asks_else_of_the_file() {
    let text = [
        rule(&["verdict = \"ask\"", "path = \"migrations/**\"", "ask = [{ person = \"dana\" }]"]),
        rule(&["verdict = \"ask\"", "command = \"make **\"", "ring = \"quiet\""]),
        rule(&["verdict = \"ask\"", "command = \"make deploy\"", "ring = \"loud\""]),
        "[ask]\npeople = [{ person = \"lee\" }, { person = \"kim\", after = \"5m\" }]\n".to_owned(),
    ];
    let world = World::new(&text.concat(), "");
    let audience = |text: &str| {
        let call =
            Call { tool: "Bash".to_owned(), cwd: world.root(), action: Action::Shell(text.to_owned()) };
        world.load().unwrap().audience(&call)
    };
    let (people, ring) =
        (|text: &str| audience(text).unwrap().people, |text: &str| audience(text).unwrap().ring);
    let turn =
        |person: &str, minutes| Turn { person: person.to_owned(), after: Duration::from_mins(minutes) };
    assert_eq!(people("rm migrations/1.sql"), [turn("dana", 0)]);
    assert_eq!(people("make x"), [turn("lee", 0), turn("kim", 5)]);
    assert_eq!(people("other"), [turn("lee", 0), turn("kim", 5)]);
    let nobody = World::new("", "").load().unwrap();
    let call = Call { tool: "Bash".to_owned(), cwd: world.root(), action: Action::Shell("x".to_owned()) };
    assert_eq!(nobody.audience(&call), Ok(Audience::everybody()));
    assert_eq!(ring("make x"), Loudness::Quiet);
    assert_eq!(ring("make deploy"), Loudness::Loud, "the loudest rule counts");
    assert_eq!(ring("other"), Loudness::Normal);
}

#[test]
fn who_must_be_verified_is_what_the_strictest_rule_says() {
    let verify = |user: &str, repository: &str, text: &str| {
        let world = World::new(user, repository);
        let action = Action::Shell(text.to_owned());
        let call = Call { tool: "Bash".to_owned(), cwd: world.root(), action };
        let rules = world.load().unwrap();
        (rules.audience(&call).unwrap().verify, rules.usual_audience().unwrap().verify)
    };
    let person = rule(&["verdict = \"ask\"", "command = \"make release\"", "verify = \"person\""]);
    let others = rule(&["verdict = \"ask\"", "command = \"make **\""]) + &person;
    let (usual, needed) = ((Verify::Usual, Verify::Usual), (Verify::Person, Verify::Usual));
    assert_eq!(verify(&others, "", "make x"), usual);
    assert_eq!(verify(&others, "", "make release"), needed, "also behind a rule that says nothing of it");
    assert_eq!(verify(&others, "", "ls; make release"), needed);
    assert_eq!(verify("", &person, "make release"), needed, "a repository can make it harder");
    let all = "[ask]\nverify = \"person\"\n";
    assert_eq!(verify(all, "", "make x"), (Verify::Person, Verify::Person));
    for wrong in ["verify = \"device\"", "verify = true"] {
        World::new(&rule(&["verdict = \"ask\"", wrong]), "").load().unwrap_err();
    }
    let allowed = rule(&["verdict = \"allow\"", "command = \"ls\"", "verify = \"person\""]);
    World::new(&allowed, "").load().unwrap_err();
    assert!(World::new("", all).load().is_err(), "a repository says nothing of people");
}

#[test]
fn what_the_user_wants_of_every_approval_is_among_the_rules() {
    let line = |text: &str| {
        let lines = World::new(text, "").load().unwrap().lines();
        lines.into_iter().find(|line| line.what.contains("need the device lock"))
    };
    let found = line("# mine\n[ask]\nring = \"loud\"\nverify = \"person\"\n").unwrap();
    assert_eq!(found.verdict, Verdict::Ask);
    assert!(found.place.ends_with("tool/rules.toml:2"), "{}", found.place);
    assert_eq!(line("[ask]\nring = \"loud\"\n"), None);
}
