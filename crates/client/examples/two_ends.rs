//! An enforcer and an approver in one program: they pair, one asks, the other approves.
//!
//! ```text
//! countersign-gateway dev
//! cargo run -p countersign-client --example two_ends -- URL ENFORCER_KEY APPROVER_KEY
//! ```

#![expect(clippy::print_stdout, reason = "an example")]

use std::{env::args, error::Error, sync::Arc, time::Duration};

use countersign_client::{
    approver::Approver,
    audience::Audience,
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, Enforcer},
    http::Http,
    journal::MemoryJournal,
    keys::DeviceKeys,
    payload::{Command, Invocation, Payload},
    profile::{Credential, GatewayUrl, Pins},
    reply::{Choice, Words},
    request::Draft,
};
use countersign_wire::decision::{DecisionOutcome, Scope};

fn http(gateway: &str, key: String) -> Result<Http, Box<dyn Error>> {
    let credential = Credential::new(key.into())?;
    Ok(Http::new(GatewayUrl::new(gateway)?, Some(&credential))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let [gateway, enforcer_key, approver_key] = <[String; 3]>::try_from(args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "URL ENFORCER_KEY APPROVER_KEY")?;
    let clock = Arc::new(SystemClock);
    let robot = Enforcer {
        http: http(&gateway, enforcer_key)?,
        id: "robot".parse()?,
        keys: DeviceKeys::generate()?,
        clock: clock.clone(),
        // A program that acts on decisions uses a FileJournal: it must not act twice after a restart.
        journal: Arc::new(MemoryJournal::default()),
    };
    let ada = Approver {
        http: http(&gateway, approver_key)?,
        id: "ada".parse()?,
        keys: DeviceKeys::generate()?,
        clock: clock.clone(),
    };

    // Pairing: the link goes from screen to camera, past the gateway.
    let started = robot.start_pairing("robot").await?;
    let there = ada.pair_by_link(&started.link.to_string().parse()?).await?;
    let here = robot.finish_pairing(&started, Answered::Link).await?;
    let (mut robots, mut adas) = (Pins::default(), Pins::default());
    robots.insert(here.pin)?;
    adas.insert(there.pin)?;
    println!("paired with {}", ada.keys.fingerprint().short());

    // Asking and answering, at the same time.
    let argv = ["git", "push", "origin", "main"].map(str::to_owned).to_vec();
    let payload = Payload::Command(Command::new(Invocation::Argv(argv), "."));
    let draft = Draft {
        artifact_type: payload.artifact_type(),
        payload: payload.to_json()?,
        repo_name: "acme/widgets".to_owned(),
        valid_for: Duration::from_mins(5),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    };
    let answer = async {
        loop {
            if let Some(item) = ada.inbox(&adas).await?.pop() {
                let request = item.opened?;
                println!("{} asks: {}", request.enforcer, request.payload);
                let choice = Choice {
                    outcome: DecisionOutcome::Approve,
                    scope: Scope::Once,
                    valid_until: clock.now().plus(Duration::from_mins(5)),
                    words: Words { reason: Some("go ahead".to_owned()), ..Words::default() },
                };
                return Ok::<_, Box<dyn Error>>(ada.decide(&request, &choice).await?);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let (decision, answered) = tokio::join!(robot.ask(&draft, &robots), answer);
    answered?;
    let decision = decision?;
    let reason = decision.words.reason.unwrap_or_default();
    println!("{} by {}: {reason}", decision.outcome.as_str(), decision.approver);
    Ok(())
}
