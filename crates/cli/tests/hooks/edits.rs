//! A call that an approver changes before they approve it: what runs is what they have approved, and nothing else ever does.

use countersign_client::{
    edit::{Edit, Place},
    reply::Words,
    request::OpenedRequest,
};
use countersign_wire::decision::DecisionOutcome;
use serde_json::{Value, json};

use super::{
    approve, claude, decision, hook,
    keeper::{Keeper, asks},
    propose::{ended, start},
    say,
    support::World,
};

const COMMAND: &str = "/tool_input/command";

fn change(members: &[(&str, &str)]) -> (DecisionOutcome, Words) {
    let members = members.iter().map(|(at, text)| ((*at).to_owned(), (*text).to_owned()));
    (DecisionOutcome::Reject, Words { edit: Some(Edit(members.collect())), ..Words::default() })
}

/// The first time it is changed, and then it is approved.
fn changing_once(
    members: &'static [(&'static str, &'static str)],
) -> impl Fn(&OpenedRequest) -> (DecisionOutcome, Words) {
    move |request| if request.is_edited { approve(request) } else { change(members) }
}

/// The only request that waits, at a device that does not check what it sends.
async fn unchecking(world: &World, pointer: &str) -> OpenedRequest {
    let mut request = world.ada.inbox(&world.adas).await.unwrap().pop().unwrap().opened.unwrap();
    let text = "something else".to_owned();
    request.edits = vec![Place { pointer: pointer.to_owned(), text, is_argv: false }];
    request
}

fn answer(output: &std::process::Output) -> Value {
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer["hookSpecificOutput"].clone()
}

#[tokio::test]
async fn a_changed_command_runs_as_it_was_approved_with_a_keeper_and_without() {
    let world = World::start().await;
    let keeper = Keeper::start(&world).await;
    for with_keeper in [false, true] {
        let child = match with_keeper {
            true => asks(&world, "touch x y"),
            false => hook(&world, &["claude", "--host-timeout", "60"], &claude(&world, "touch x y")),
        };
        let (mut first, seen) = (None, std::cell::RefCell::new(Vec::new()));
        world
            .decide_all(2, |request| {
                seen.borrow_mut().push(request.clone());
                changing_once(&[(COMMAND, "touch x")])(request)
            })
            .await;
        for request in seen.into_inner() {
            match first.take() {
                None => {
                    assert_eq!(request.edits[0].text, "touch x y");
                    assert!(!request.is_edited && request.supersedes.is_none());
                    first = Some(request);
                }
                Some(before) => {
                    assert_eq!(request.supersedes, Some(before.request_id));
                    assert!(request.payload.contains("touch x\""), "{}", request.payload);
                    assert_eq!(request.session, before.session);
                    // Both end with the time of the hook.
                    assert!(request.expires_at <= before.expires_at.plus(std::time::Duration::from_secs(2)));
                }
            }
        }
        let output = child.wait_with_output().unwrap();
        let said = answer(&output);
        assert_eq!(said["permissionDecision"], "allow", "{output:?}");
        assert_eq!(said["updatedInput"], json!({ "command": "touch x" }));
        let note = said["additionalContext"].as_str().unwrap();
        assert!(note.starts_with("ada changed the call") && note.contains("touch x"), "{note}");
    }
    drop(keeper);
}

#[tokio::test]
async fn what_is_changed_again_or_rejected_after_all_is_no_approval_of_what_was_before() {
    let world = World::start().await;
    let child = hook(&world, &["claude"], &claude(&world, "touch a"));
    let round = std::cell::Cell::new(0);
    world
        .decide_all(3, |request| {
            round.set(round.get() + 1);
            match round.get() {
                1 => change(&[(COMMAND, "touch b")]),
                2 => change(&[(COMMAND, "touch c")]),
                _ => approve(request),
            }
        })
        .await;
    assert_eq!(answer(&child.wait_with_output().unwrap())["updatedInput"]["command"], "touch c");
    let child = hook(&world, &["claude"], &claude(&world, "touch a"));
    world
        .decide_all(2, |request| match request.is_edited {
            false => change(&[(COMMAND, "touch b")]),
            true => say(DecisionOutcome::Reject, "neither"),
        })
        .await;
    let (verdict, reason) = decision(&child.wait_with_output().unwrap());
    assert!(verdict == "deny" && reason.contains("neither"), "{reason}");
}

#[tokio::test]
async fn what_rules_deny_is_not_asked_for_and_what_was_not_offered_is_not_made() {
    let world = World::start().await;
    std::fs::write(
        world.home().join("rules.toml"),
        "[[rule]]\nverdict = \"deny\"\ncommand = \"rm **\"\n\n[[rule]]\nverdict = \"allow\"\ncommand = \"touch *\"\n\n\
         [[rule]]\nverdict = \"ask\"\ncommand = \"touch asked\"\n",
    )
    .unwrap();
    let refused = async |members: &[(&str, &str)], why: &str| {
        let child = hook(&world, &["claude"], &claude(&world, "touch asked"));
        world.waiting(1).await;
        let mut request = world.ada.inbox(&world.adas).await.unwrap().pop().unwrap().opened.unwrap();
        // A device that does not check what it sends.
        request.edits = members
            .iter()
            .map(|(at, _)| Place {
                pointer: (*at).to_owned(),
                text: "something else".to_owned(),
                is_argv: false,
            })
            .collect();
        world.decide(&request, change(members)).await.unwrap();
        let (verdict, reason) = decision(&child.wait_with_output().unwrap());
        assert!(verdict == "deny" && reason.contains(why), "{reason}");
    };
    refused(&[(COMMAND, "rm x")], "`rm x` is denied").await;
    refused(&[("/tool_name", "Write")], "can't be changed").await;
    refused(&[(COMMAND, "touch asked")], "changes nothing").await;
    // A rule that allows what it has become does not replace the person's approval of it.
    let child = hook(&world, &["claude"], &claude(&world, "touch asked"));
    world.decide_all(2, changing_once(&[(COMMAND, "touch other")])).await;
    assert_eq!(answer(&child.wait_with_output().unwrap())["updatedInput"]["command"], "touch other");
}

#[tokio::test]
async fn a_file_that_changes_after_a_changed_edit_was_shown_is_not_written() {
    let world = World::start().await;
    let file = world.folder.path().join("a.txt");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let mut message = claude(&world, "");
    message["tool_name"] = "Edit".into();
    message["tool_input"] = json!({ "file_path": file, "old_string": "two", "new_string": "deux" });
    for (changes, expected) in [(false, "allow"), (true, "deny")] {
        let child = hook(&world, &["claude"], &message);
        world
            .decide_all(2, |request| {
                if !request.is_edited {
                    return change(&[("/tool_input/new_string", "zwei")]);
                }
                assert!(request.payload.contains("-two\\n+zwei"), "{}", request.payload);
                if changes {
                    std::fs::write(&file, "zero\ntwo\n").unwrap();
                }
                approve(request)
            })
            .await;
        let said = answer(&child.wait_with_output().unwrap());
        assert_eq!(said["permissionDecision"], expected, "{said}");
        assert_eq!(said["updatedInput"]["new_string"] == "zwei", !changes);
    }
}

#[tokio::test]
async fn a_host_that_may_not_know_other_arguments_is_offered_none() {
    let world = World::start().await;
    let without_id = {
        let mut message = claude(&world, "touch x");
        message.as_object_mut().unwrap().remove("tool_use_id");
        message
    };
    let codex = claude(&world, "touch x");
    let opencode = |takes: bool| {
        let mut message = json!({ "event": "tool.execute.before", "tool": "bash", "sessionID": "s-1", "callID": "call-1",
            "cwd": world.folder.path(), "args": { "command": "touch x" } });
        if takes {
            message["takesArgs"] = true.into();
        }
        message
    };
    for (arguments, message, is_offered) in [
        (&["claude"][..], without_id, false),
        (&["claude"], claude(&world, "touch x"), true),
        (&["claude", "--defer-for", "1h", "--host-timeout", "60"], claude(&world, "touch x"), false),
        (&["codex"], codex, false),
        (&["opencode"], opencode(false), false),
        (&["opencode"], opencode(true), true),
    ] {
        let child = hook(&world, arguments, &message);
        world
            .decide_all(1, |request| {
                assert_eq!(!request.edits.is_empty(), is_offered, "{arguments:?}");
                say(DecisionOutcome::Reject, "no")
            })
            .await;
        drop(child.wait_with_output().unwrap());
    }
    let child = hook(&world, &["opencode"], &opencode(true));
    world.decide_all(2, changing_once(&[("/args/command", "touch y")])).await;
    let answer: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&answer["verdict"], &answer["args"]), (&json!("allow"), &json!({ "command": "touch y" })));
}

#[tokio::test]
async fn exec_runs_the_changed_command_with_a_keeper_and_without() {
    let world = World::start().await;
    let ran = |name: &str| world.folder.path().join(name).exists();
    for number in 0..2 {
        let keeper = if number == 1 { Some(Keeper::start(&world).await) } else { None };
        let (asked, changed) = (format!("asked-{number}"), format!("it's {number}"));
        let child = start(&world, &["exec", "--", "touch", &asked, "more"]);
        world
            .decide_all(2, |request| {
                if request.is_edited {
                    return approve(request);
                }
                assert_eq!(request.edits[0].text, format!("touch {asked} more"));
                change(&[("/argv", &format!("touch \"{changed}\""))])
            })
            .await;
        let (code, _, said) = ended(child);
        assert!(code == 0 && said.contains("changed") && said.contains("by ada"), "{code} {said}");
        assert!(ran(&changed) && !ran(&asked) && !ran("more"), "{said}");
        for (text, why) in [("touch x; touch y", "one program"), ("no-such-program x", "no-such-program")] {
            let child = start(&world, &["exec", "--", "touch", &asked]);
            world.waiting(1).await;
            let request = unchecking(&world, "/argv").await;
            world.decide(&request, change(&[("/argv", text)])).await.unwrap();
            let (code, _, said) = ended(child);
            assert!(code != 0 && said.contains(why) && !ran("x") && !ran(&asked), "{code} {said}");
        }
        drop(keeper);
    }
}
