//! A host is three files and a line: `quill`, which does not exist, is asked about a call, installed, inspected, switched off
//! and uninstalled by code that has never heard of it. The fourth file of a real host is `hosts/mod.rs`, which lists it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod quill;

use std::{fs, path::Path, time::Duration};

use countersign_agents::{
    calls::{
        call::Action,
        event::{Kind, Moment},
        verdict::Verdict,
    },
    hook_line::{HookLine, mode::Mode, place::Place},
    install::{
        places::Places,
        plan::{Plan, Wish},
    },
    tool::{caller::Caller, finding::Finding},
};
use countersign_client::clock::{Clock as _, SystemClock};
use serde_json::json;

use crate::quill::HOST;

fn apply(plan: &Plan) {
    for change in &plan.changes {
        change.apply(SystemClock.now()).unwrap();
    }
}

fn findings(places: &Places) -> Vec<Finding> {
    let found = HOST.inspect(places, Path::new("/nowhere"));
    // The line names another program than the one that runs these tests.
    let is_about_program = |finding: &Finding| finding.what.contains("/opt/countersign");
    found.into_iter().flat_map(|it| it.findings).filter(|it| !is_about_program(it)).collect()
}

#[test]
fn its_messages_are_read_and_answered() {
    let message = json!({ "event": "before", "cwd": "/srv", "run": "git push", "chat": "s-1" });
    let event = HOST.read(&message, &Caller::default()).unwrap();
    let Kind::Call { call, moment: Moment::EveryCall, .. } = &event.kind else { panic!("{event:?}") };
    assert_eq!(call.action, Action::Shell("git push".to_owned()));
    assert!(HOST.decides(HOST.event_name(&message)) && !HOST.decides("after"));
    let answer = |verdict: &Verdict| HOST.write("before", &message, verdict);
    assert_eq!(answer(&Verdict::allow("by rule")).stdout, "{\"go\":true}\n");
    assert_eq!(answer(&Verdict::failed("no gateway")).code, 2);
    assert!(HOST.read(&json!({}), &Caller::default()).is_err());
}

#[test]
fn its_hook_is_installed_inspected_and_gone_to_the_byte() {
    let root = tempfile::tempdir().unwrap();
    let places = Places::under(root.path());
    let settings = (HOST.files.folder)(&places).join("settings.json");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let before = "{ \"theme\": \"dark\" }\n";
    fs::write(&settings, before).unwrap();
    assert!(HOST.inspect(&places, Path::new("/nowhere")).is_empty());
    let line = HookLine {
        program: "/opt/countersign".to_owned(),
        host: HOST.names,
        place: Place::default(),
        keeper: None,
        mode: Mode::Gate,
        host_timeout: Duration::from_mins(10),
    };
    let plan = (HOST.files.install)(&places, &Wish { line, is_managed: false }).unwrap();
    apply(&plan);
    assert_eq!(findings(&places), []);

    let installed = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, installed.replacen('{', "{ \"quiet\": true,", 1)).unwrap();
    let off = findings(&places);
    assert!(off.len() == 1 && off[0].why == "Quill does not run the hook at all", "{off:?}");
    fs::write(&settings, installed.replace("gate", "relay")).unwrap();
    assert!(findings(&places).iter().any(|it| it.what.contains("not as it was installed")));

    fs::write(&settings, installed).unwrap();
    apply(&(HOST.files.uninstall)(&places, false).unwrap());
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
}
