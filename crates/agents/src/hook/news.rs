//! What an agent is doing, for the people who watch it; and what they say to it, where its host has a place for that.
//!
//! Nothing here decides anything: whatever fails, the agent goes on.

use std::{path::Path, time::Duration};

use countersign_client::{enforcer::Enforcer, profile::Pins, session::SnapshotDraft};
use countersign_wire::{
    id::SessionId,
    session::{EndReason, SessionState, SnapshotType},
};
use serde_json::json;
use tokio::time::timeout;

use super::{
    about,
    desk::Desk,
    said::{self, WORDS_TIME},
    settings::Settings,
    stopped,
};
use crate::{
    calls::{
        event::{Event, News},
        verdict::Verdict,
    },
    examine::repository,
    tool::{
        exit::Failure,
        home::{Identity, failed},
    },
};

/// How long one event may take. Hosts wait for it, some only for a second and a half.
const NEWS_TIME: Duration = Duration::from_millis(1_200);

/// How long to listen for what was said to the agent, when it has finished a turn.
const LISTEN_TIME: Duration = Duration::from_millis(800);

/// How often it is looked after a call whether somebody has stopped the agent: so soon when a turn has begun, then after twice the time
/// each, up to the second. A hook that asks hears it at once, and so does a keeper.
const LOOK_EVERY: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];
const LOOKED: &str = "looked";

/// Under which name the state is kept that was reported last.
const STATE: &str = "state";

/// The longest text of a snapshot.
const MAX_TEXT: usize = 4_000;

/// Takes a piece of news, and returns what people have said to the agent meanwhile.
pub(super) async fn take(settings: &Settings, event: &Event, news: &News, desk: &Desk) -> Verdict {
    let Some(session) = event.session.as_deref() else { return Verdict::silent() };
    note_at_desk(desk, session, news);
    if let News::Prompted(prompt) = news {
        about::keep_task(desk, session, prompt);
    }
    let Ok(identity) = settings.identity() else { return Verdict::silent() };
    if stopped::find(desk, session).is_some() {
        drop(timeout(NEWS_TIME, report_stopped(&identity, session, desk)).await);
        return Verdict::silent();
    }
    // It is only news: the next event tries again.
    drop(timeout(NEWS_TIME, report(&identity, settings, session, news, desk)).await);
    let takes_words = matches!(news, News::SessionStarted | News::Prompted(_) | News::Finished(_));
    let is_time_to_look = match news {
        News::SessionStarted | News::Prompted(_) => {
            desk.is_due_soon(LOOKED);
            false
        }
        News::ToolUsed(_) => desk.is_due(LOOKED, LOOK_EVERY),
        News::Finished(_) => true,
        News::Waiting(_) | News::SessionEnded => false,
    };
    match &settings.ears {
        Some(ears) if is_time_to_look => drop(timeout(LISTEN_TIME, ears.hear(identity, desk)).await),
        Some(ears) => ears.listen(identity, desk),
        None if is_time_to_look => drop(timeout(LISTEN_TIME, said::take_waiting(&identity, desk)).await),
        None => {}
    }
    let kept = takes_words.then(|| desk.take("words", &[session], WORDS_TIME)).flatten();
    match kept.or_else(|| takes_words.then(|| desk.take("words", &[""], WORDS_TIME)).flatten()) {
        Some(text) => Verdict::Words { text },
        None => Verdict::silent(),
    }
}

/// Nothing is reported of a session that was stopped but that it has ended.
async fn report_stopped(identity: &Identity, session: &str, desk: &Desk) -> Result<(), Failure> {
    if let Ok(session) = session.parse::<SessionId>() {
        said::report_end(&identity.enforcer()?, &session, desk).await;
    }
    Ok(())
}

/// A prompt of the host does not wait any more when its session goes on.
fn note_at_desk(desk: &Desk, session: &str, news: &News) {
    let noted = match news {
        News::ToolUsed(Some(key)) => desk.moved_on(session, Some(key)),
        News::SessionStarted => {
            desk.tidy();
            Ok(())
        }
        News::Prompted(_) | News::Finished(_) | News::SessionEnded => desk.moved_on(session, None),
        News::ToolUsed(None) | News::Waiting(_) => Ok(()),
    };
    // Then the phone goes on asking, which is harmless.
    drop(noted);
}

async fn report(
    identity: &Identity,
    settings: &Settings,
    session: &str,
    news: &News,
    desk: &Desk,
) -> Result<(), Failure> {
    let Ok(session) = session.parse::<SessionId>() else { return Ok(()) };
    let (enforcer, pins) = (identity.enforcer()?, identity.profile.pins().map_err(failed)?);
    let reports = Reports { enforcer: &enforcer, pins: &pins, session: &session, desk };
    match news {
        News::SessionStarted => {
            let repository = repository::name_of(settings.caller.folder.as_deref().unwrap_or(Path::new("/")));
            let started = enforcer.session_start(&session, settings.host.name(), Some(&repository));
            started.await.map_err(failed)?;
            reports.forget_state();
            reports.state(SessionState::Idle).await
        }
        News::Prompted(text) => {
            reports.state(SessionState::Planning).await?;
            reports.snapshot(SnapshotType::Context, &json!({ "task": cut(text) })).await
        }
        News::ToolUsed(_) => Ok(()),
        News::Finished(words) => {
            reports.state(SessionState::Idle).await?;
            let words = words.as_deref().unwrap_or("The agent has finished its turn.");
            reports.snapshot(SnapshotType::Summary, &json!({ "summary": cut(words) })).await
        }
        News::Waiting(words) => {
            reports.state(SessionState::WaitingApproval).await?;
            reports.snapshot(SnapshotType::Summary, &json!({ "summary": cut(words), "waiting": true })).await
        }
        News::SessionEnded => enforcer.session_end(&session, EndReason::UserEnd).await.map_err(failed),
    }
}

/// Where events of one session go.
struct Reports<'a> {
    enforcer: &'a Enforcer,
    pins: &'a Pins,
    session: &'a SessionId,
    desk: &'a Desk,
}

impl Reports<'_> {
    /// Reports what the agent does now, unless that was reported last.
    async fn state(&self, state: SessionState) -> Result<(), Failure> {
        let of = [self.session.as_str()];
        if self.desk.read(STATE, &of).as_deref() == Some(state.as_str()) {
            return Ok(());
        }
        // Of two that report at once, neither is known to be the last.
        self.forget_state();
        self.enforcer.session_status(self.session, state).await.map_err(failed)?;
        // Without it the same is said again.
        drop(self.desk.keep(STATE, &of, state.as_str()));
        Ok(())
    }

    fn forget_state(&self) {
        self.desk.forget(STATE, &[self.session.as_str()]);
    }

    async fn snapshot(
        &self,
        snapshot_type: SnapshotType,
        payload: &serde_json::Value,
    ) -> Result<(), Failure> {
        let id = format!("{}-{}", snapshot_type.as_str(), self.enforcer.clock.now());
        let payload = payload.to_string();
        let draft =
            SnapshotDraft { session_id: self.session, snapshot_id: &id, snapshot_type, payload: &payload };
        self.enforcer.session_snapshot(draft, self.pins).await.map_err(failed)
    }
}

/// The beginning of a text, which says how much is missing.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            format!("{} … and {missing} characters more", &text[..end])
        }
    }
}
