//! What approvers say to this machine while a hook runs: words for an agent, that it must stop, and statements about devices.
//! It is kept for the session that it is for, also another one of this machine.

use std::time::Duration;

use countersign_client::{
    channel::{EnforcerEvent, Settings as ChannelSettings},
    enforcer::Enforcer,
    profile::Pins,
    prompt::{OpenedPrompt, PromptContent},
};
use countersign_wire::{id::SessionId, prompt::AckStatus, session::EndReason};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    desk::Desk,
    machine,
    stopped::{self, Stopped},
};
use crate::{
    asking::bring::bring,
    hearing,
    tool::{
        exit::Failure,
        home::{Identity, failed},
    },
};

/// For how long words wait for their session.
pub(super) const WORDS_TIME: Duration = Duration::from_hours(24);

/// How long the gateway may take to hear that a session has ended.
const REPORT_TIME: Duration = Duration::from_secs(1);

/// How long who has heard that it must stop may take to confirm it.
pub(super) const CONFIRMATION_TIME: Duration = Duration::from_millis(1_500);

/// After this time without a message, everything that has waited is there.
const QUIET: Duration = Duration::from_millis(250);

/// How old the pins may be that what arrives is checked with.
const PINS_TIME: Duration = Duration::from_secs(1);

/// How often a hook that waits looks whether its session was stopped, perhaps by what another hook has heard.
const LOOK_TIME: Duration = Duration::from_millis(250);

/// Listens for as long as it is polled. `Ok` never comes.
pub(super) async fn listen(
    identity: &Identity,
    enforcer: &Enforcer,
    pins: &Pins,
    desk: &Desk,
) -> Result<(), Failure> {
    hear(identity, enforcer, pins, desk, None).await
}

/// Takes what waits already, and ends when nothing more comes.
pub(super) async fn take_waiting(identity: &Identity, desk: &Desk) -> Result<(), Failure> {
    let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
    hear(identity, &enforcer, &pins, desk, Some(QUIET)).await
}

/// Keeps everything that is said for as long as it is polled, and notes whether everything that waited is kept.
pub(super) async fn attend(
    identity: &Identity,
    desk: &Desk,
    is_up_to_date: &watch::Sender<bool>,
) -> Result<(), Failure> {
    let enforcer = identity.enforcer()?;
    let mut listener = enforcer.listen(Vec::new(), channel_settings(identity, desk));
    let mut is_connected = false;
    loop {
        // Who was paired when this began may not be any more.
        let pins = identity.profile.pins().map_err(failed)?;
        let is_catching_up = is_connected && !*is_up_to_date.borrow();
        let wait = if is_catching_up { QUIET } else { PINS_TIME };
        match timeout(wait, listener.next(&pins)).await {
            Ok(event) => match event.map_err(failed)? {
                EnforcerEvent::Connected { .. } => is_connected = true,
                EnforcerEvent::Disconnected { .. } => {
                    is_connected = false;
                    is_up_to_date.send_replace(false);
                }
                EnforcerEvent::Prompt(prompt) => take(identity, &enforcer, &prompt, desk).await?,
                _ => {}
            },
            Err(_) if is_catching_up => {
                is_up_to_date.send_replace(true);
            }
            Err(_) => {}
        }
    }
}

fn channel_settings(identity: &Identity, desk: &Desk) -> ChannelSettings {
    let capabilities = machine::capabilities(desk.folder().to_owned());
    ChannelSettings { capabilities, names: identity.names(), ..ChannelSettings::default() }
}

async fn hear(
    identity: &Identity,
    enforcer: &Enforcer,
    pins: &Pins,
    desk: &Desk,
    quiet: Option<Duration>,
) -> Result<(), Failure> {
    let mut listener = enforcer.listen(Vec::new(), channel_settings(identity, desk));
    let mut is_connected = false;
    loop {
        let event = match quiet.filter(|_| is_connected) {
            Some(quiet) => match timeout(quiet, listener.next(pins)).await {
                Ok(event) => event,
                Err(_) => return Ok(()),
            },
            None => listener.next(pins).await,
        };
        match event.map_err(failed)? {
            EnforcerEvent::Connected { .. } => is_connected = true,
            EnforcerEvent::Prompt(prompt) => take(identity, enforcer, &prompt, desk).await?,
            _ => {}
        }
    }
}

async fn take(
    identity: &Identity,
    enforcer: &Enforcer,
    prompt: &OpenedPrompt,
    desk: &Desk,
) -> Result<(), Failure> {
    let session = prompt.session_id.as_ref().map(SessionId::as_str).unwrap_or_default();
    let is_kept = match &prompt.content {
        PromptContent::Text(text) => {
            let earlier = desk.take("words", &[session], WORDS_TIME);
            let text = format!("{} says: {text}", prompt.approver);
            let text = earlier.into_iter().chain([text]).collect::<Vec<_>>().join("\n");
            desk.keep("words", &[session], &text).is_ok()
        }
        PromptContent::Statement(statement) => {
            let is_taken = hearing::apply(identity, statement, enforcer).is_ok();
            if is_taken {
                // What is left over is brought by `countersign devices update`.
                drop(bring(identity, enforcer).await);
            }
            is_taken
        }
        PromptContent::Stop { words } => stop(enforcer, prompt, words.as_deref(), desk).await,
    };
    let status = if is_kept { AckStatus::Delivered } else { AckStatus::Rejected };
    enforcer.answer_prompt(prompt, status).await.map_err(failed)
}

/// Stops the session that a prompt names: first here, so that nothing more is done, then for everybody who watches it.
pub async fn stop(enforcer: &Enforcer, prompt: &OpenedPrompt, words: Option<&str>, desk: &Desk) -> bool {
    let Some(session) = &prompt.session_id else { return false };
    if Stopped::by(prompt, words).keep(desk, session.as_str()).is_err() {
        return false;
    }
    report_end(enforcer, session, desk).await;
    true
}

/// Reports the end of a session that was stopped, unless that is done. A later event tries again.
pub(super) async fn report_end(enforcer: &Enforcer, session: &SessionId, desk: &Desk) {
    let Some(mut stopped) = stopped::find(desk, session.as_str()).filter(|it| !it.is_told) else { return };
    let reported = timeout(REPORT_TIME, enforcer.session_end(session, EndReason::PolicyKill)).await;
    if matches!(reported, Ok(Ok(()))) {
        // Otherwise it is said again, which changes nothing.
        stopped.is_told = true;
        drop(stopped.keep(desk, session.as_str()));
    }
}

/// Waits until a session is stopped, and returns why nothing more is done.
pub(super) async fn stopped(desk: &Desk, session: Option<&str>) -> String {
    let Some(session) = session else { return std::future::pending().await };
    loop {
        if let Some(reason) = stopped::reason(desk, session) {
            return reason;
        }
        sleep(LOOK_TIME).await;
    }
}
