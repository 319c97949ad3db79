//! `mcp`: a permission tool for headless agents.

use std::{sync::Arc, time::Duration};

use clap::Args;
use countersign_agents::{
    calls::{message::Message, verdict::Verdict},
    hook::{
        engine,
        mcp::{self, Step},
        settings::Settings,
    },
    hook_line::{mode::Mode, place::Place},
    hosts::claude,
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::Home,
        moment,
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    sync::Mutex,
    task::JoinSet,
    time::Instant,
};

use super::options::Options;

/// Serve a permission tool over MCP, for agents that support one.
///
/// For Claude Code without a person: name the command `countersign mcp` as the server countersign in its MCP configuration, and
/// start it with `--permission-prompt-tool mcp__countersign__approve` (docs/agents/unattended.md). Every call that Claude Code
/// would ask about needs a rule, a grant or a person; whatever fails, the answer is no.
#[derive(Debug, Args)]
pub(super) struct Mcp {
    /// How long people have to answer.
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = moment::duration)]
    valid_for: Duration,
    #[command(flatten)]
    place: Place,
}

impl Mcp {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let home = self.place.home()?;
        let failed = |error: std::io::Error| Failure::new(Exit::Failed, error);
        let output = Arc::new(Mutex::new(tokio::io::stdout()));
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let mut calls = JoinSet::new();
        while let Some(line) = lines.next_line().await.map_err(failed)? {
            match mcp::take(&line) {
                Step::Nothing => {}
                Step::Answer(answer) => write(&output, &answer).await.map_err(failed)?,
                Step::Decide(id, arguments) => {
                    let settings = self.settings(home.clone(), options);
                    let output = Arc::clone(&output);
                    calls.spawn(async move {
                        let verdict = decide(&settings, &arguments).await;
                        // Without a reader nobody acts on it.
                        drop(write(&output, &mcp::verdict(&id, &verdict)).await);
                    });
                }
            }
        }
        // The agent is gone: what still waits is taken back when its task ends.
        calls.shutdown().await;
        Ok(())
    }

    fn settings(&self, home: Home, options: &Options) -> Settings {
        Settings {
            host: claude::HOST,
            mode: Mode::Gate,
            attended: false,
            deadline: Instant::now() + self.valid_for,
            defer_for: None,
            home,
            profile: options.typed_profile(),
            caller: Caller::this_process(),
            hung_up: None,
        }
    }
}

async fn write(output: &Mutex<tokio::io::Stdout>, message: &Value) -> std::io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(format!("{message}\n").as_bytes()).await?;
    output.flush().await
}

/// The verdict on a call, in the format of the permission tool. It is an event like any other.
async fn decide(settings: &Settings, arguments: &Value) -> Value {
    let cwd = std::env::current_dir().unwrap_or_default();
    let event = json!({
        "hook_event_name": "PreToolUse", "cwd": cwd, "tool_name": arguments["tool_name"],
        "tool_input": arguments["input"], "tool_use_id": arguments["tool_use_id"],
    });
    match engine::verdict(settings, &Message::of(event)).await {
        Verdict::Allow { answers, .. } => {
            let mut input = arguments["input"].clone();
            if !answers.is_empty() {
                input["answers"] = Value::Object(answers);
            }
            json!({ "behavior": "allow", "updatedInput": input })
        }
        Verdict::Deny { reason, .. } => json!({ "behavior": "deny", "message": reason }),
        _ => json!({ "behavior": "deny", "message": "there is no verdict" }),
    }
}
