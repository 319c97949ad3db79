//! `vouch`: a device that is paired already says that another one may approve too.

use std::time::Duration;

use clap::{Args, Subcommand};
use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::describe,
    home::{Home, failed},
    moment,
    output::{object, out, say},
    terminal::Terminal,
};
use countersign_client::{
    approver::Approver,
    http::CallError,
    keys::Fingerprint,
    pairing::statement::Statement,
    profile::{Party, Pin, PinSource, Pins, Role},
    prompt::{PromptContent, PromptDraft},
    vouching::Newcomer,
};
use countersign_wire::{id::EnforcerId, prompt::Target};
use serde_json::json;

use super::{inbox::Desk, options::Options};
use crate::voucher::{Card, Voucher};

/// For how long the gateway may keep a statement for a machine that is away.
const STATEMENT_TIME: Duration = Duration::from_hours(7 * 24);

/// Let a new device approve too, on the word of a paired one.
///
/// For a new phone, or a teammate. On the new device, after `countersign join`: `countersign vouch card`. On the paired one:
/// `countersign vouch sign`, and paste the card. On the new one again: `countersign vouch accept`, and paste the voucher. The
/// machines learn it with `countersign listen` or `countersign devices update`.
#[derive(Debug, Args)]
pub(super) struct Vouch {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// On the new device: show who it is.
    Card,
    /// On a paired device: sign for the new one, for every machine that is paired with this device.
    Sign {
        /// How long the new device may approve, at most 30d; sign again before it ends.
        #[arg(long = "for", value_name = "TIME", default_value = "30d", value_parser = moment::duration)]
        time: Duration,
    },
    /// On the new device: take the voucher.
    Accept,
    /// On a paired device: say to every machine that a device must not approve any more.
    Revoke {
        /// The fingerprint of the device, as `countersign vouch card` or `countersign devices --json` shows it.
        #[arg(value_name = "FINGERPRINT")]
        device: String,
    },
}

impl Vouch {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        match self.command {
            Command::Card => card(options),
            Command::Sign { time } => sign(time, options).await,
            Command::Accept => accept(options).await,
            Command::Revoke { device } => revoke(&device, options).await,
        }
    }
}

fn card(options: &Options) -> Result<(), Failure> {
    let identity = Home::of_user()?.find(Role::Approver, options.profile.as_deref())?;
    let Party::Approver(approver) = identity.profile.facts().party.clone() else {
        return Err(Failure::new(Exit::NotSetUp, "this profile is no approver's"));
    };
    let card = Card { approver, keys: identity.unlock()?.bundle().clone(), lock: None };
    if options.json {
        return object(&json!({ "card": card.to_string(), "fingerprint": card.fingerprint().to_string() }));
    }
    say(&format!("This device is {}", card.digits()));
    say("Paste this into `countersign vouch sign` on a device that is paired, and compare the digits there:");
    out(&card.to_string())
}

/// The machines that this device is paired with.
pub(super) fn machines(pins: &Pins, desk: &Desk) -> Vec<(EnforcerId, Pin)> {
    let now = desk.approver.clock.now();
    let machine = |pin: &Pin| match pin.party() {
        Party::Enforcer(id) => Some((id.clone(), pin.clone())),
        Party::Approver(_) => None,
    };
    pins.active_in_role(Role::Enforcer, now).filter_map(machine).collect()
}

async fn sign(time: Duration, options: &Options) -> Result<(), Failure> {
    let usage = |error: String| Failure::new(Exit::Usage, error);
    let mut terminal = Terminal::open("the card is asked for in a terminal")?;
    let card: Card = terminal.ask("Card of the new device: ")?.parse().map_err(usage)?;
    say(&format!("{}'s device: {}", card.approver, card.digits()));
    let question = format!(
        "Are these the digits on the new device, and may it approve for {}? Type yes: ",
        moment::left(time)
    );
    if terminal.ask(&question)? != "yes" {
        return Err(Failure::new(Exit::TakenBack, "nothing was signed"));
    }
    let desk = Desk::open(options)?;
    let until = desk.approver.clock.now().plus(time);
    let mut texts = Vec::new();
    for (machine, pin) in machines(&desk.pins, &desk) {
        let (approver_id, bundle, lock) = (&card.approver, &card.keys, card.lock.as_ref());
        let newcomer = Newcomer { approver_id, bundle, label: "", until, lock };
        let statement =
            desk.approver.vouch_for(&machine, newcomer).map_err(|error| Failure::new(Exit::Failed, error))?;
        send(&desk, &machine, &statement).await?;
        texts.extend(
            Voucher::new(&machine, pin.bundle(), &statement).map(|voucher| (machine, voucher.text())),
        );
    }
    if texts.is_empty() {
        return Err(Failure::new(Exit::NotSetUp, "this device is paired with no machine")
            .next("only a device that is paired can vouch"));
    }
    if options.json {
        let list: Vec<_> =
            texts.iter().map(|(machine, text)| json!({ "machine": machine, "voucher": text })).collect();
        return object(&json!({ "vouchers": list }));
    }
    for (machine, text) in &texts {
        say(&format!(
            "✓ signed for {machine}, and sent there. Paste this into `countersign vouch accept` on the new device:"
        ));
        out(text)?;
    }
    Ok(())
}

/// Presents a voucher at the gateway, which passes requests on to the device from then on. Only ours takes vouchers: at another
/// one the machine alone decides who counts, and its people see what is in the inbox of their name.
pub(super) async fn present(approver: &Approver, voucher: &Statement) -> Result<(), CallError> {
    match approver.present(voucher).await {
        Err(error) if error.is_no_endpoint() => Ok(()),
        presented => presented.map(drop),
    }
}

/// Sends a statement to the machine, sealed.
pub(super) async fn send(desk: &Desk, machine: &EnforcerId, statement: &Statement) -> Result<(), Failure> {
    let content = PromptContent::Statement(Box::new(statement.clone()));
    let draft = PromptDraft { target: Target::Other, content, session_id: None, valid_for: STATEMENT_TIME };
    let sent = desk.approver.prompt(machine, &draft, &desk.pins).await;
    sent.map(drop)
        .map_err(|error| Failure::new(Exit::Unreachable, format!("{machine} was not told: {error}")))
}

async fn accept(options: &Options) -> Result<(), Failure> {
    let identity = Home::of_user()?.find(Role::Approver, options.profile.as_deref())?;
    let mut terminal = Terminal::open("the voucher is asked for in a terminal")?;
    let text = terminal.ask("Voucher: ")?;
    let (machine, keys, statement) =
        Voucher::read(&text).map_err(|error| Failure::new(Exit::Usage, error))?;
    let approver = identity.approver()?;
    present(&approver, &statement).await.map_err(|error| describe(&error))?;
    let fingerprint = Fingerprint::of(&keys);
    let pin = Pin::new(Party::Enforcer(machine.clone()), &keys, PinSource::Paired, approver.clock.now());
    identity.profile.update_pins(|pins| pins.insert(pin)).map_err(failed)?;
    if options.json {
        return object(&json!({ "machine": machine, "fingerprint": fingerprint.to_string() }));
    }
    say(&format!(
        "✓ this device may approve for {machine} (key {}), as soon as that machine has heard of it",
        fingerprint.short()
    ));
    Ok(())
}

async fn revoke(device: &str, options: &Options) -> Result<(), Failure> {
    let device = Fingerprint::parse(device).ok_or_else(|| {
        Failure::new(Exit::Usage, "this is no fingerprint; `countersign devices --json` shows them whole")
    })?;
    let desk = Desk::open(options)?;
    let mut sent_to = Vec::new();
    for (machine, _) in machines(&desk.pins, &desk) {
        let statement = desk
            .approver
            .revoke_statement(&machine, device)
            .map_err(|error| Failure::new(Exit::Failed, error))?;
        send(&desk, &machine, &statement).await?;
        sent_to.push(machine);
    }
    if options.json {
        return object(&json!({ "revoked": device.to_string(), "pendingAt": sent_to }));
    }
    for machine in &sent_to {
        say(&format!("✓ {machine}: signed and sent. Pending until that machine has taken it."));
    }
    Ok(())
}
