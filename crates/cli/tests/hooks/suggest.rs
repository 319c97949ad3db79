//! Rules that a person's own answers suggest: from what hooks have asked to what is not asked any longer.

use countersign_client::profile::Profile;

use super::*;

fn suggest(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_countersign"));
    command.args(["rules", "suggest"]).args(arguments);
    command.env("COUNTERSIGN_HOME", world.home()).current_dir(world.folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn suggested(world: &World, arguments: &[&str]) -> Value {
    let output = suggest(world, &[&["--json"][..], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn runs(world: &World, command: &str) -> Child {
    let mut hook = Command::new(env!("CARGO_BIN_EXE_countersign"));
    hook.args(["hook", "claude", "--home"]).arg(world.home());
    // Cargo sets it, and what loads other code is dangerous.
    hook.env_remove("LD_LIBRARY_PATH");
    started(world, hook, &claude(world, command))
}

/// What nobody has approved, and copies of what was, beside what was approved: as a program of the agent's account could write them.
fn forge_history(folder: &Path) -> usize {
    let mut forged = 0;
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            forged += forge_history(&entry.path());
            continue;
        }
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let name = entry.file_name().into_string().unwrap();
        if text.contains("mkdir -p") && text.contains("\"receipt\"") {
            for (end, to) in [("x", "git add"), ("y", "mkdir -p")] {
                let name = format!("{}{end}.json", name.trim_end_matches(".json"));
                // With the mode of the file, as the journal wants it.
                fs::copy(entry.path(), folder.join(&name)).unwrap();
                fs::write(folder.join(name), text.replace("mkdir -p", to)).unwrap();
                forged += 1;
            }
        }
    }
    forged
}

#[tokio::test]
async fn what_was_always_approved_becomes_a_rule_that_a_person_adds() {
    let world = World::start().await;
    fs::create_dir(world.folder.path().join(".git")).unwrap();
    for folder in ["one", "two", "three", "one", "two"] {
        let child = runs(&world, &format!("mkdir -p {folder}"));
        world.decide_all(1, approve).await;
        assert_eq!(decision(&child.wait_with_output().unwrap()).0, "allow");
    }
    let found = suggested(&world, &[]);
    let [rule] = found["rules"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!((&rule["what"], &rule["times"]), (&json!("mkdir -p *"), &json!(5)));
    assert_eq!((&found["asked"], &found["answered"]), (&json!(5), &json!(5)));
    // Nobody who is paired has signed these.
    assert!(forge_history(&world.home()) >= 10);
    let again = suggested(&world, &["--times", "2"]);
    assert_eq!((again["rules"].as_array().unwrap().len(), &again["rules"][0]["times"]), (1, &json!(5)));

    let shown = suggest(&world, &[]).output().unwrap();
    let (text, said) = (String::from_utf8_lossy(&shown.stdout), String::from_utf8_lossy(&shown.stderr));
    assert!(text.contains("mkdir -p *") && text.contains("always approved"), "{text}");
    let id = rule["id"].as_str().unwrap();
    assert!(said.contains(&format!("--add {id}")), "{said}");

    let typo = suggest(&world, &["--add", "nothing"]).output().unwrap();
    let said = String::from_utf8_lossy(&typo.stderr);
    assert!(!typo.status.success() && said.contains("nothing was changed"), "{said}");
    let file = world.home().join("rules.toml");
    for (outcome, is_there) in [(DecisionOutcome::Reject, false), (DecisionOutcome::Approve, true)] {
        let child = suggest(&world, &["--add", id, "--ask"]).spawn().unwrap();
        world
            .decide_all(1, |request| {
                assert!(request.payload.contains("mkdir -p *"), "{}", request.payload);
                (outcome, Words::default())
            })
            .await;
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.success(), file.exists()), (is_there, is_there), "{output:?}");
    }
    assert!(fs::read_to_string(&file).unwrap().starts_with("# Asked 5 times on one day until "));
    assert_eq!(decision(&runs(&world, "mkdir -p four").wait_with_output().unwrap()).0, "allow");
    assert!(world.ada.inbox(&world.adas).await.unwrap().is_empty(), "nobody is asked");
    // What it answers is not suggested again.
    assert_eq!(suggested(&world, &[]), json!({ "rules": [], "asked": 0, "answered": 0 }));

    // Approvals of a device that is not trusted any longer count for nothing.
    fs::remove_file(&file).unwrap();
    assert_eq!(suggested(&world, &[])["rules"].as_array().unwrap().len(), 1);
    let profile = Profile::open(&world.home().join("profiles/agent")).unwrap();
    profile.update_pins(|pins| pins.revoke(world.ada.keys.fingerprint(), world.ada.clock.now())).unwrap();
    assert_eq!(suggested(&world, &[])["rules"], json!([]));
}
