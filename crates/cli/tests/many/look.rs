//! What the tool says to people and programs beside the inbox, at a real gateway.

use std::path::Path;

use serde_json::{Value, json};

use super::again::{ended, tool};
use crate::support::World;

async fn run(world: &World, home: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    ended(tool(world, home, arguments)).await
}

fn desk(world: &World) -> std::path::PathBuf {
    world.folder.path().join("desk")
}

/// The id of what `ask --detach` has asked.
async fn ask(world: &World, words: &str) -> String {
    let (code, said, id) = run(world, &world.home(), &["ask", "--detach", "--checkpoint", words]).await;
    assert_eq!(code, Some(0), "{said}");
    id.trim().to_owned()
}

#[tokio::test]
async fn json_is_one_object_with_what_the_command_wrote() {
    let world = World::start().await;
    let child =
        tool(&world, &world.home(), &["exec", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]);
    world.waiting(1).await;
    world.decide_all(1, super::approve).await;
    let (code, said, printed) = ended(child).await;
    assert_eq!((code, printed.lines().count()), (Some(3), 1), "{said} {printed}");
    let value: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&value["stdout"], &value["exitCode"]), (&json!("out\n"), &json!(3)));
    assert!(value["outcome"] == "approved" && said.contains("err"), "{said}");
}

#[tokio::test]
async fn reject_shows_what_it_rejects_and_history_keeps_it() {
    let world = World::start().await;
    let id = ask(&world, "half done").await;
    let (code, listed, printed) = run(&world, &desk(&world), &["inbox", "--list"]).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        code == Some(0) && lines[0].contains("half done") && lines[1].ends_with(&id[..8]),
        "{printed} {listed}"
    );
    let (code, said, _) = run(&world, &desk(&world), &["reject", &id[..8], "--reason", "not yet"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Rejecting: ") && said.contains("half done") && said.contains("on robot"),
        "{said}"
    );
    let (_, said, kept) = run(&world, &desk(&world), &["history"]).await;
    assert!(
        kept.contains("half done") && kept.contains("rejected ") && kept.contains("“not yet”"),
        "{said} {kept}"
    );
    let (_, _, none) = run(&world, &desk(&world), &["history", "--approved"]).await;
    assert_eq!(none, "");
    let (_, _, kept) = run(&world, &desk(&world), &["history", "--rejected", "--json"]).await;
    let value: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!((&value["answered"][0]["requestId"], &value["asked"]), (&json!(id), &Value::Null));
    // The machine has it after it has picked the answer up.
    let (code, said, _) = run(&world, &world.home(), &["wait", &id[..6]]).await;
    assert!(code == Some(81) && said.contains("not yet"), "{said}");
    let (_, said, kept) = run(&world, &world.home(), &["history"]).await;
    assert!(
        kept.contains("half done") && kept.contains("rejected ") && kept.contains("by ada"),
        "{said} {kept}"
    );
}

#[tokio::test]
async fn wait_takes_the_beginning_of_an_id_and_says_what_is_true() {
    let world = World::start().await;
    let first = ask(&world, "the first").await;
    let (code, said, _) = run(&world, &world.home(), &["wait", "nonsense"]).await;
    assert!(code == Some(86) && said.contains("asked nothing whose id begins with nonsense"), "{said}");
    let (_, _, listed) = run(&world, &world.home(), &["wait"]).await;
    assert!(listed.contains("the first") && listed.trim_end().ends_with(&first[..8]), "{listed}");
    world.decide_all(1, super::approve).await;
    let (code, said, _) = run(&world, &world.home(), &["wait", &first[..8]]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said, _) = run(&world, &world.home(), &["wait", &first[..8]]).await;
    assert!(code == Some(86) && said.contains("It was approved ") && said.contains("the first"), "{said}");
    // Two whose ids begin alike: with an empty beginning, all do.
    ask(&world, "the second").await;
    ask(&world, "the third").await;
    let (code, said, _) = run(&world, &world.home(), &["wait", ""]).await;
    assert!(code == Some(2) && said.contains("everal requests begin with"), "{said}");
}

#[tokio::test]
async fn without_a_gateway_that_is_said_after_a_second_while_it_goes_on() {
    let mut world = World::start().await;
    world.gateway.kill().unwrap();
    world.gateway.wait().unwrap();
    let (code, said, _) = run(&world, &world.home(), &["exec", "--", "ls"]).await;
    assert_eq!(code, Some(83), "{said}");
    let (early, late) = (said.find("Can't connect to the gateway at"), said.find("Nobody was asked"));
    assert!(early.is_some() && early < late, "{said}");
    assert!(said.contains("countersign up"), "{said}");
}

#[tokio::test]
async fn sessions_have_names_and_one_of_them_is_stopped() {
    let world = World::start().await;
    let in_session = ["ask", "--detach", "--session", "7f3a1c2d-94b3", "--checkpoint", "half done"];
    let (code, said, _) = run(&world, &world.home(), &in_session).await;
    assert_eq!(code, Some(0), "{said}");
    let (_, said, listed) = run(&world, &desk(&world), &["sessions"]).await;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("Untitled task"), "{listed} {said}");
    assert!(lines[1].contains("on robot · 1 waiting for you · 7f3a1c2d"), "{listed}");
    let hearing = tool(&world, &world.home(), &["listen", "--once"]);
    let (code, said, _) = run(&world, &desk(&world), &["stop", "7f3a", "--reason", "wrong branch"]).await;
    assert!(code == Some(0) && said.contains("Stopping: Untitled task"), "{said}");
    let (_, _, first) = ended(hearing).await;
    let (_, _, second) = run(&world, &world.home(), &["listen", "--once"]).await;
    let heard: Value = serde_json::from_str(&(first + &second)).unwrap();
    assert_eq!((&heard["stop"], &heard["text"]), (&json!(true), &json!("wrong branch")));
    for arguments in [&in_session[..], &["exec", "--session", "7f3a1c2d-94b3", "--", "ls"]] {
        let (code, said, _) = run(&world, &world.home(), arguments).await;
        assert!(code == Some(81) && said.contains("stopped this agent: “wrong branch”"), "{said}");
    }
    // Another session goes on.
    let (code, said, _) =
        run(&world, &world.home(), &["ask", "--detach", "--session", "other", "--checkpoint", "x"]).await;
    assert_eq!(code, Some(0), "{said}");
}
