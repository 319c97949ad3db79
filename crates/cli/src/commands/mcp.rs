//! `mcp`: a permission tool for headless agents.

use std::{sync::Arc, time::Duration};

use clap::Args;
use countersign_agents::{
    asking::Interruption,
    call_socket::{
        client,
        frames::{self, FrameError, MAX_VERDICT, Question},
        place::CallSocket,
    },
    calls::{message::Message, verdict::Verdict},
    hook::{
        engine,
        mcp::{self, Step},
        settings::Settings,
    },
    hook_line::{mode::Mode, place::Place},
    hosts::{claude, output::Output},
    proposals::decider::keeper_of,
    tool::{
        caller::Caller,
        exit::{Exit, Failure},
        home::Home,
        moment,
    },
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    sync::{Mutex, watch},
    task::JoinSet,
    time::{Instant, timeout, timeout_at},
};

use super::options::{Options, milliseconds};

/// How long a keeper may take to accept a call.
const CALL_TIME: Duration = Duration::from_secs(5);

/// How long taking back may take when the agent is gone.
const END_TIME: Duration = Duration::from_secs(6);

/// More than a whole verdict with its length.
const MAX_ANSWER: u64 = MAX_VERDICT as u64 + 8;

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
        let keeper = home.profile_file().is_none().then(|| keeper_of(&home)).flatten();
        let failed = |error: std::io::Error| Failure::new(Exit::Failed, error);
        let output = Arc::new(Mutex::new(tokio::io::stdout()));
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let (waiting, hung_up) = watch::channel(());
        let mut calls = JoinSet::new();
        while let Some(line) = lines.next_line().await.map_err(failed)? {
            match mcp::take(&line) {
                Step::Nothing => {}
                Step::Answer(answer) => write(&output, &answer).await.map_err(failed)?,
                Step::Decide(id, arguments) => {
                    let (settings, keeper) = (self.settings(home.clone(), options, &hung_up), keeper.clone());
                    let output = Arc::clone(&output);
                    calls.spawn(async move {
                        let verdict = match keeper {
                            None => decide(&settings, &arguments).await,
                            Some(keeper) => ask(keeper, settings, arguments).await,
                        };
                        // Without a reader nobody acts on it.
                        drop(write(&output, &mcp::verdict(&id, &verdict)).await);
                    });
                }
            }
        }
        // The agent is gone: what still waits is taken back.
        drop(waiting);
        let ending = async { while calls.join_next().await.is_some() {} };
        drop(timeout(END_TIME, ending).await);
        Ok(())
    }

    fn settings(&self, home: Home, options: &Options, hung_up: &watch::Receiver<()>) -> Settings {
        Settings {
            host: claude::HOST,
            mode: Mode::Gate,
            attended: false,
            deadline: Instant::now() + self.valid_for,
            defer_for: None,
            home,
            profile: options.typed_profile(),
            caller: Caller::this_process(),
            hung_up: Some(hung_up.clone()),
            ears: None,
        }
    }
}

async fn write(output: &Mutex<tokio::io::Stdout>, message: &Value) -> std::io::Result<()> {
    let mut output = output.lock().await;
    output.write_all(format!("{message}\n").as_bytes()).await?;
    output.flush().await
}

/// The event of a call: it is one like any other.
fn event(arguments: &Value) -> Value {
    let cwd = std::env::current_dir().unwrap_or_default();
    json!({
        "hook_event_name": "PreToolUse", "cwd": cwd, "tool_name": arguments["tool_name"],
        "tool_input": arguments["input"], "tool_use_id": arguments["tool_use_id"],
    })
}

/// The verdict on a call, in the format of the permission tool.
async fn decide(settings: &Settings, arguments: &Value) -> Value {
    match engine::verdict(settings, &Message::of(event(arguments))).await {
        Verdict::Allow { answers, input, .. } => {
            let mut input = input.unwrap_or_else(|| arguments["input"].clone());
            if !answers.is_empty() {
                input["answers"] = Value::Object(answers);
            }
            json!({ "behavior": "allow", "updatedInput": input })
        }
        Verdict::Deny { reason, .. } => denied(&reason),
        _ => denied("there is no verdict"),
    }
}

/// The same, by a keeper: it answers as it would answer a hook.
async fn ask(keeper: CallSocket, settings: Settings, arguments: Value) -> Value {
    let start = frames::Start {
        host: settings.host.word().to_owned(),
        mode: settings.mode.word().to_owned(),
        host_timeout: milliseconds(settings.deadline.saturating_duration_since(Instant::now())),
        defer_for: None,
        profile: settings.profile.clone(),
    };
    let message = event(&arguments).to_string();
    let unread = |error: FrameError| format!("The keeper's verdict could not be read: {error}.");
    // Ended when the agent is gone: the keeper then takes the request back.
    let asked = async {
        let question = Question::bytes(&start, &settings.caller, message.as_bytes()).map_err(unread)?;
        let stream = client::asked(&keeper, &question, Instant::now() + CALL_TIME)?;
        let mut stream = UnixStream::from_std(stream).map_err(|error| unread(error.into()))?.take(MAX_ANSWER);
        let mut answer = Vec::new();
        match timeout_at(settings.deadline, stream.read_to_end(&mut answer)).await {
            Ok(Ok(_)) => frames::read_verdict(&mut &answer[..]).map_err(unread),
            Ok(Err(error)) => Err(unread(error.into())),
            Err(_) => Err("Nobody answered in time.".to_owned()),
        }
    };
    let gone = async {
        match &settings.hung_up {
            Some(hung_up) => Interruption::by_caller(hung_up.clone()).happens().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        asked = asked => match asked {
            Ok(output) => said(&output, arguments["input"].clone()),
            Err(words) => denied(&words),
        },
        () = gone => denied("nobody waits for the verdict"),
    }
}

/// What a keeper has said to a hook of Claude Code. Nothing but a plain consent allows.
fn said(output: &Output, input: Value) -> Value {
    let said: Value = serde_json::from_str(&output.stdout).unwrap_or_default();
    let said = &said["hookSpecificOutput"];
    let reason = said["permissionDecisionReason"].as_str().unwrap_or_else(|| output.stderr.trim());
    match (output.code, said["permissionDecision"].as_str()) {
        (0, Some("allow")) => {
            let updated = said.get("updatedInput").cloned().unwrap_or(input);
            json!({ "behavior": "allow", "updatedInput": updated })
        }
        _ if reason.is_empty() => denied("there is no verdict"),
        _ => denied(reason),
    }
}

fn denied(reason: &str) -> Value {
    json!({ "behavior": "deny", "message": reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_a_plain_consent_of_a_keeper_allows() {
        let answer = |decision: &str| json!({ "hookSpecificOutput": { "permissionDecision": decision, "permissionDecisionReason": "so" } });
        let output =
            |stdout: &Value, code: u8| Output { stdout: stdout.to_string(), code, ..Output::default() };
        let input = json!({ "command": "ls" });
        let allowed = said(&output(&answer("allow"), 0), input.clone());
        assert_eq!(allowed, json!({ "behavior": "allow", "updatedInput": input }));
        for refused in [
            output(&answer("allow"), 2),
            output(&answer("deny"), 0),
            output(&answer("ask"), 0),
            output(&json!("allow"), 0),
            Output::default(),
            Output::refused("so"),
        ] {
            assert_eq!(said(&refused, input.clone())["behavior"], "deny", "{refused:?}");
        }
    }
}
