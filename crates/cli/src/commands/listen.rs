//! `listen` and `devices update`: what approvers say to this machine.

use std::time::Duration;

use clap::Args;
use countersign_agents::{
    asking::{Interruption, bring::bring},
    hearing,
    hook::{desk::Desk as HookDesk, machine, said},
    tool::{
        exit::{Exit, Failure},
        home::{Home, Identity, failed},
        output::{object, say},
    },
};
use countersign_client::{
    channel::{EnforcerEvent, Settings},
    enforcer::Enforcer,
    payload::visible,
    profile::{Pins, Role},
    prompt::{OpenedPrompt, PromptContent},
};
use countersign_wire::{id::RequestId, prompt::AckStatus};
use serde_json::json;
use tokio::time::timeout;

use super::options::Options;

/// How long to wait for more, when only what waits already is wanted.
const QUIET: Duration = Duration::from_secs(2);

/// How long the gateway may take to accept a request.
const SUBMIT_TIME: Duration = Duration::from_secs(10);

/// Receive what approvers send to this machine.
///
/// Words for the agent go to stdout, one object a line; statements about devices are taken; what `ask --detach` asked and has
/// expired is asked again if an approver wants that. Runs until it is interrupted. With --once it ends when nothing more
/// waits.
#[derive(Debug, Args)]
pub(super) struct Listen {
    /// Receive what is waiting, and exit.
    #[arg(long)]
    once: bool,
}

impl Listen {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        listen(options, self.once).await
    }
}

/// Takes what waits for this machine, and goes on listening unless it is only to be updated.
pub(super) async fn listen(options: &Options, once: bool) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
    let enforcer = identity.enforcer()?;
    let capabilities = machine::capabilities(home.hooks_folder());
    let settings = Settings { capabilities, names: identity.names(), ..Settings::default() };
    let mut listener = enforcer.listen(Vec::new(), settings);
    let mut interruption = Interruption::watch()?;
    loop {
        let pins = identity.profile.pins().map_err(failed)?;
        let event = tokio::select! {
            event = timeout(QUIET, listener.next(&pins)) => event,
            () = interruption.happens() => return Ok(()),
        };
        match event {
            Err(_) if once => return Ok(()),
            Ok(Err(error)) => return Err(Failure::new(Exit::Unreachable, error)),
            Ok(Ok(EnforcerEvent::Prompt(prompt))) => take(&home, &identity, &enforcer, &prompt).await?,
            Ok(Ok(EnforcerEvent::PromptRefused { error, .. })) => {
                say(&format!("✗ refused a message: {error}"));
            }
            Ok(Ok(EnforcerEvent::Refresh { request_id, .. })) => {
                ask_again(&enforcer, &pins, &request_id).await;
            }
            Ok(Ok(EnforcerEvent::Disconnected { reason })) if !once => {
                say(&format!("  not connected: {reason}"));
            }
            Ok(Ok(EnforcerEvent::Disconnected { reason })) => {
                return Err(Failure::new(
                    Exit::Unreachable,
                    format!("the gateway can't be reached: {reason}"),
                ));
            }
            Err(_) | Ok(Ok(_)) => {}
        }
    }
}

/// Asks again for what nobody waits for. If a process does, it hears this too.
async fn ask_again(enforcer: &Enforcer, pins: &Pins, request_id: &RequestId) {
    match enforcer.is_detached(request_id).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => return say(&format!("✗ can't ask {request_id} again: {error}")),
    }
    match timeout(SUBMIT_TIME, enforcer.ask_again(request_id, pins)).await {
        Ok(Ok(request)) => {
            say(&format!("✓ {request_id} expired, and is asked again as {}", request.request_id));
        }
        Ok(Err(error)) => say(&format!("✗ can't ask {request_id} again: {error}")),
        Err(_) => say(&format!("✗ {request_id} is not asked again: the gateway does not answer")),
    }
}

async fn take(
    home: &Home,
    identity: &Identity,
    enforcer: &Enforcer,
    prompt: &OpenedPrompt,
) -> Result<(), Failure> {
    let status = match &prompt.content {
        PromptContent::Text(text) => {
            object(&json!({
                "promptId": prompt.request_id, "approver": prompt.approver, "target": prompt.target,
                "session": prompt.session_id, "text": text,
            }))?;
            say(&format!("  {} says: {}", prompt.approver, visible(text)));
            AckStatus::Delivered
        }
        PromptContent::Statement(statement) => match hearing::apply(identity, statement, enforcer) {
            Ok(words) => {
                say(&format!("✓ {} says: {words}", prompt.approver));
                bring(identity, enforcer).await.say("that device");
                AckStatus::Delivered
            }
            Err(error) => {
                say(&format!(
                    "✗ {} says something about a device that is not taken: {error}",
                    prompt.approver
                ));
                AckStatus::Rejected
            }
        },
        PromptContent::Stop { words } => stop(home, enforcer, prompt, words.as_deref()).await?,
    };
    let answered = enforcer.answer_prompt(prompt, status).await;
    answered.map_err(|error| {
        Failure::new(
            Exit::Unreachable,
            format!("it was taken, and {} was not told: {error}", prompt.approver),
        )
    })
}

/// Hooks, `exec` and `ask` do nothing more in the session from now on; whoever reads stdout ends the agent, if they can.
async fn stop(
    home: &Home,
    enforcer: &Enforcer,
    prompt: &OpenedPrompt,
    words: Option<&str>,
) -> Result<AckStatus, Failure> {
    if !said::stop(enforcer, prompt, words, &HookDesk::new(home.hooks_folder())).await {
        say(&format!("✗ {} stops an agent, and that can't be kept here", prompt.approver));
        return Ok(AckStatus::Rejected);
    }
    object(&json!({
        "promptId": prompt.request_id, "approver": prompt.approver, "target": prompt.target,
        "session": prompt.session_id, "stop": true, "text": words,
    }))?;
    let words = words.map(|words| format!(": “{}”", visible(words))).unwrap_or_default();
    say(&format!("✓ {} stopped an agent{words}. Hooks deny everything in its session", prompt.approver));
    Ok(AckStatus::Delivered)
}
