//! What people say, and every secret key, looked for in everything that the gateway has.

use std::{io::Write, path::Path, sync::Arc, time::Duration};

use countersign_client::{
    audience::Audience,
    authorize::Answer,
    channel::{ApproverEvent, ApproverListener, EnforcerEvent, Settings},
    clock::{Clock as _, SystemClock},
    enforcer::Answered,
    grant::GrantRules,
    pattern::Pattern,
    prompt::{PromptContent, PromptDraft},
    receipt::Outcome,
    reply::{Choice, SentDecision, Words},
    request::Draft,
};
use countersign_wire::{
    artifact::ArtifactType,
    base64url,
    decision::{DecisionOutcome, Scope},
    prompt::{AckStatus, Target},
};
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

use super::Scene;
use crate::support::listen::{heard, news, shown};

/// Everything that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|half| char::from_digit(half.into(), 16).unwrap())
        .collect()
}

/// Every form in which the bytes could be written: as they are, in hex, in both alphabets of base64 at every offset.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_vec(), hex(secret).into_bytes(), hex(secret).to_uppercase().into_bytes()];
    for before in 0..3 {
        let encoded = base64url::encode(&[&vec![0; before][..], secret].concat());
        // The first and the last characters depend on what stands beside the secret.
        let end = (before + secret.len()) * 4 / 3;
        let inside = &encoded[(before * 4).div_ceil(3)..end];
        forms.push(inside.as_bytes().to_vec());
        forms.push(inside.replace('-', "+").replace('_', "/").into_bytes());
    }
    forms
}

fn contains(place: &[u8], form: &[u8]) -> bool {
    let mut rest = place;
    while let Some(at) = rest.iter().position(|byte| *byte == form[0]) {
        if rest[at..].starts_with(form) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

fn is_found(place: &[u8], secret: &[u8]) -> bool {
    forms(secret).iter().any(|form| contains(place, form))
}

fn read_all(folder: &Path, into: &mut Vec<u8>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_all(&path, into);
        } else {
            into.extend_from_slice(&std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn every_form_of_a_secret_is_found() {
    let secret = b"canary-of-the-search-4711";
    for before in 0..7 {
        let around = [&vec![b'x'; before][..], secret, b"and more"].concat();
        let url = base64url::encode(&around);
        let plain = url.replace('-', "+").replace('_', "/");
        let hex = hex(&around);
        for place in
            [&around[..], url.as_bytes(), plain.as_bytes(), hex.as_bytes(), hex.to_uppercase().as_bytes()]
        {
            assert!(is_found(place, secret), "{}", String::from_utf8_lossy(place));
            assert!(!is_found(place, b"canary-of-the-saerch-4711"));
        }
    }
}

const NAMES: [&str; 8] =
    ["payload", "repository", "reason", "pattern", "action", "shown", "prompt", "receipt"];

fn canary(of: &str) -> String {
    format!("canary-{of}-83b1f6")
}

/// Asks, answers with words of every kind, and says in a receipt what became of it.
async fn exchange(scene: &Scene, at_ada: &mut ApproverListener<'_>) -> SentDecision {
    let Scene { robot, ada, robots, adas, .. } = scene;
    let draft = Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: format!(r#"{{"argv":["git","push","{}"]}}"#, canary("payload")),
        repo_name: canary("repository"),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    };
    let words = Words {
        reason: Some(canary("reason")),
        shown: Some(canary("shown")),
        action: Some(canary("action")),
        pattern: Some(Pattern::new(["git", &canary("pattern")]).unwrap()),
        edit: None,
    };
    let valid_until = SystemClock.now().plus(Duration::from_mins(5));
    let (outcome, scope) = (DecisionOutcome::Approve, Scope::Timebox);
    let choice = Choice { outcome, scope, valid_until, words: words.clone() };
    let rules = GrantRules::default();
    let (answer, sent) = tokio::join!(robot.authorize(&draft, robots, &rules), async {
        let opened = shown(at_ada, adas).await;
        assert!(opened.payload.contains(&canary("payload")));
        assert_eq!(opened.repo_name, Some(canary("repository")));
        ada.decide(&opened, &choice).await.unwrap()
    });
    let Answer::Approved(taken) = answer.unwrap() else { panic!("it was approved") };
    assert_eq!(taken.decision.words, words);
    let refused = Outcome::Refused { reason: canary("receipt") };
    assert!(robot.finish(taken, refused.clone(), robots).await.unwrap().is_sent);
    assert_eq!(ada.receipt(&sent, 1, adas).await.unwrap().unwrap().outcome, refused);
    sent
}

/// Says something to the enforcer, and hears that it was delivered.
async fn prompt(scene: &Scene, at_ada: &mut ApproverListener<'_>) {
    let Scene { robot, ada, robots, adas, .. } = scene;
    let prompt = PromptDraft {
        target: Target::Composer,
        content: PromptContent::Text(canary("prompt")),
        session_id: None,
        valid_for: Duration::from_mins(5),
    };
    let mut at_robot = robot.listen(Vec::new(), Settings::default());
    ada.prompt(&robot.id, &prompt, adas).await.unwrap();
    let EnforcerEvent::Prompt(opened) = news(&mut at_robot, robots).await else { panic!("no prompt") };
    assert_eq!(opened.content, prompt.content);
    robot.answer_prompt(&opened, AckStatus::Delivered).await.unwrap();
    heard(at_ada, adas, |event| matches!(event, ApproverEvent::PromptAck { .. }).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_people_say_is_found_in_what_the_gateway_stores_logs_or_hears() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_writer(log.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let scene = Scene::start().await;
    let mut secrets: Vec<(String, Vec<u8>)> =
        NAMES.iter().map(|name| ((*name).to_owned(), canary(name).into_bytes())).collect();
    // One more pairing by link, whose secret must not travel either.
    let started = scene.robot.start_pairing("robot").await.unwrap();
    scene.ada.pair_by_link(&started.link).await.unwrap();
    scene.robot.finish_pairing(&started, Answered::Link).await.unwrap();
    secrets.push(("link".to_owned(), started.link.secret.to_vec()));
    for (name, keys) in [("robot", &scene.robot.keys), ("ada", &scene.ada.keys)] {
        let secret = keys.to_secret();
        secrets.push((format!("signing key of {name}"), secret[..32].to_vec()));
        secrets.push((format!("agreement key of {name}"), secret[32..].to_vec()));
    }
    let mut at_ada = scene.ada.listen(Settings::default());
    let sent = exchange(&scene, &mut at_ada).await;
    prompt(&scene, &mut at_ada).await;

    let mut stored = Vec::new();
    read_all(&scene.world.data.path().join("data"), &mut stored);
    let (logged, said) = (log.0.lock().clone(), scene.evil.heard());
    // The places are the right ones: they have what the gateway may know.
    let id = sent.request_id.as_str().as_bytes();
    assert!(contains(&stored, id) && contains(&said, id), "the exchange is there");
    assert!(
        contains(&said, b"prompt.send") && contains(&said, b"approval.request"),
        "both directions are there"
    );
    assert!(contains(&logged, b"/v1/decisions") && contains(&logged, b"served"), "calls are logged");
    for (place, content) in [("stored", &stored), ("logged", &logged), ("said", &said)] {
        for (name, secret) in &secrets {
            assert!(!is_found(content, secret), "{name} is in what was {place}");
        }
    }
}
