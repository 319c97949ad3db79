//! `inbox` and `show`: what waits for an answer.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    sync::Arc,
};

use clap::Args;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::{describe, too_late},
    home::{Home, Identity, failed},
    moment,
    output::{object, out, say, short},
};
use countersign_client::{
    approver::{Approver, InboxItem},
    profile::{Pins, Role},
    progress::Acknowledgement,
    request::OpenedRequest,
};
use serde_json::{Value, json};

use super::{
    Options,
    export::export_one,
    follow::{Manner, follow},
};
use crate::{answers::Answers, review, source::Live, tui};

/// Read and answer what is waiting for you.
///
/// In a terminal it opens full-screen: Enter opens a request, a and then y approves it, r rejects it, ? explains the rest.
/// Your passphrase is asked for once, and the unlocked keys stay in this process. Without a terminal, with --list or with
/// --json, what waits is listed.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct Inbox {
    /// Print the list and exit, even in a terminal.
    #[arg(long, conflicts_with = "follow")]
    list: bool,
    /// Print a line for each request that arrives or ends, until Ctrl-C.
    #[arg(long)]
    follow: bool,
    /// Ring the terminal's bell when a request arrives.
    #[arg(long, requires = "follow")]
    bell: bool,
    /// Show a desktop notification when a request arrives, through notify-send. It says who asks, and not for what.
    #[arg(long, requires = "follow")]
    notify: bool,
}

impl Inbox {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        if self.follow || (is_terminal && !self.list && !options.json) {
            let home = Home::of_user()?;
            let identity = home.find(Role::Approver, options.profile.as_deref())?;
            let answers = Answers::of(&home.folder_named(&identity.name)?);
            let approver = Arc::new(identity.approver()?);
            let source = Live::new(Arc::clone(&approver), identity.profile);
            if self.follow {
                let manner = Manner { bell: self.bell, notify: self.notify };
                return follow(&approver, source, manner, options).await;
            }
            return tui::run::run(approver, source, answers);
        }
        list(options).await
    }
}

async fn list(options: &Options) -> Result<(), Failure> {
    let desk = Desk::open(options)?;
    let items = desk.items().await?;
    if options.json {
        let items: Vec<Value> = items.iter().map(json_of).collect();
        return object(&json!({ "items": items }));
    }
    if items.is_empty() {
        say("Nothing is waiting for you.");
        return Ok(());
    }
    let now = desk.approver.clock.now();
    let row = |item: &InboxItem| match &item.opened {
        Ok(request) => {
            let payload = review::payload(request);
            let chips = review::chips(&payload);
            let left = moment::left(request.expires_at.since(now));
            let who = review::who(request, &payload);
            let chips = if chips.is_empty() { chips } else { format!("  {chips}\n") };
            format!(
                "{}\n{chips}  {who} · {left} left · {}",
                review::title(&payload),
                short(&request.request_id)
            )
        }
        Err(error) => {
            format!("A request that can't be shown\n  {error} · {}", short(&item.request_id))
        }
    };
    out(&items.iter().map(row).collect::<Vec<_>>().join("\n"))?;
    say(
        "\nAnswer with `countersign approve ID` or `countersign reject ID`; the id is at the end of each entry.",
    );
    Ok(())
}

/// Show a request that is waiting for you, in full.
///
/// With --export, writes what can be proven about a request that was decided and done.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// The id of the request, or the beginning of it. Not needed if only one is waiting.
    #[arg(value_name = "ID")]
    request: Option<String>,
    /// Write a bundle for `countersign verify` into a new file. Needs the whole id.
    ///
    /// On a machine that asks it has everything. On an approver's device it has the decision and the receipt; and what was
    /// asked, if it is among its newest 200 answers.
    #[arg(long, value_name = "FILE", requires = "request")]
    export: Option<PathBuf>,
}

impl Show {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        if let (Some(path), Some(id)) = (&self.export, &self.request) {
            return export_one(id, path, options).await;
        }
        let desk = Desk::open(options)?;
        let request = desk.request(self.request.as_deref()).await?;
        match options.json {
            true => object(&request_json(&request)),
            false => out(&review::lines(&request, desk.approver.clock.now()).join("\n")),
        }
    }
}

/// What the person has answered on this device.
pub(super) fn answers(options: &Options) -> Result<Answers, Failure> {
    let home = Home::of_user()?;
    let identity = home.find(Role::Approver, options.profile.as_deref())?;
    Ok(Answers::of(&home.folder_named(&identity.name)?))
}

/// An unlocked approver with the pins of its profile.
pub(super) struct Desk {
    /// The person's device, with its unlocked keys.
    pub approver: Approver,
    /// The machines that it is paired with.
    pub pins: Pins,
}

impl Desk {
    /// Asks for the passphrase.
    pub(super) fn open(options: &Options) -> Result<Self, Failure> {
        Self::of(&Home::of_user()?.find(Role::Approver, options.profile.as_deref())?)
    }

    /// Asks for the passphrase of this profile.
    pub(super) fn of(identity: &Identity) -> Result<Self, Failure> {
        Ok(Self { pins: identity.profile.pins().map_err(failed)?, approver: identity.approver()? })
    }

    /// Every request that waits, as it was opened.
    pub(super) async fn items(&self) -> Result<Vec<InboxItem>, Failure> {
        self.approver.inbox(&self.pins).await.map_err(|error| describe(&error))
    }

    /// The request whose id begins like this; without a beginning, the only one that waits.
    pub(super) async fn request(&self, start: Option<&str>) -> Result<OpenedRequest, Failure> {
        let begins = |item: &InboxItem| item.request_id.as_str().starts_with(start.unwrap_or_default());
        let mut found: Vec<InboxItem> = self.items().await?.into_iter().filter(begins).collect();
        match (found.pop(), found.len(), start) {
            (Some(item), 0, _) => {
                // The machine that asks tells its user that somebody looks at it. Nothing depends on it.
                let _ = self.approver.acknowledge(&item.request_id, Acknowledgement::Seen).await;
                item.opened.map_err(|error| {
                    Failure::new(
                        Exit::Failed,
                        format!("the request can't be shown, so it can't be answered: {error}"),
                    )
                    .detail(format!("request {}", item.request_id))
                })
            }
            (None, _, None) => Err(Failure::new(Exit::Failed, "nothing is waiting for you")),
            (None, _, Some(start)) => Err(self.not_waiting(start).await),
            (_, more, None) => {
                Err(Failure::new(Exit::Usage, format!("{} requests are waiting for you", more + 1))
                    .next("say which one; `countersign inbox --list` shows their ids"))
            }
            (_, _, Some(start)) => {
                Err(Failure::new(Exit::Usage, format!("several requests begin with {start}"))
                    .next("type more of the id"))
            }
        }
    }
}

impl Desk {
    /// Why a request that somebody names does not wait. Whoever comes too late can ask for it again.
    async fn not_waiting(&self, start: &str) -> Failure {
        let expired = self.approver.expired(&self.pins).await.unwrap_or_default();
        let is_named = |item: &InboxItem| item.request_id.as_str().starts_with(start);
        let mut named: Vec<InboxItem> = expired.into_iter().filter(is_named).collect();
        match (named.pop(), named.is_empty()) {
            (Some(InboxItem { opened: Ok(request), .. }), true) => too_late(&request),
            _ => Failure::new(Exit::Failed, format!("no request whose id begins with {start} is waiting for you"))
                .next("it may have been answered or taken back; `countersign inbox` lists what is waiting, `countersign ask-again` what expired"),
        }
    }
}

fn json_of(item: &InboxItem) -> Value {
    match &item.opened {
        Ok(request) => request_json(request),
        Err(error) => json!({ "requestId": item.request_id, "error": error.to_string() }),
    }
}

fn request_json(request: &OpenedRequest) -> Value {
    let payload: Value = serde_json::from_str(&request.payload).unwrap_or_default();
    let read = review::payload(request);
    let found = read.found().into_iter().map(|it| json!({ "text": it.text, "weight": it.weight.as_str() }));
    json!({
        "requestId": request.request_id, "enforcer": request.enforcer, "artifactType": request.artifact_type,
        "artifactHash": request.artifact_hash, "repository": request.repo_name, "createdAt": request.created_at,
        "expiresAt": request.expires_at, "supersedes": request.supersedes, "isEdited": request.is_edited,
        "edits": request.edits.iter().map(|place| &place.pointer).collect::<Vec<_>>(), "headline": read.headline(),
        "sentence": read.sentence(), "found": found.collect::<Vec<_>>(), "payload": payload,
    })
}
