//! `recovery`: a code on paper, for the day when every device is lost.

use std::time::Duration;

use clap::{Args, Subcommand};
use countersign_agents::{
    asking::bring::bring,
    hearing::apply,
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe,
        home::{Home, failed},
        moment,
        output::{object, out, say},
        terminal::Terminal,
    },
};
use countersign_client::{
    clock::{Clock as _, SystemClock},
    http::CallError,
    keys::Fingerprint,
    pairing::recovery::RecoveryCode,
    profile::{Party, Pin, PinSource, RECOVERY_WAIT, Role},
};
use countersign_wire::{
    failure::Failure as WireFailure, id::EnforcerId, keys::KeyBundle, timestamp::Timestamp,
};
use serde_json::json;

use super::{inbox::Desk, options::Options, vouch};
use crate::{
    recovery,
    voucher::{MachineCard, Voucher},
};

/// For how long a machine takes a code, and a device that came by one: the longest that a machine accepts.
const YEAR: Duration = Duration::from_hours(365 * 24);

/// Make a recovery code, or use it if you lose every device.
///
/// The code is shown once, when you join, and is on paper after that. It is typed in the terminal and never given as an
/// argument. Whoever has it can put one device in the place of yours, once; a machine takes it from a day after it has
/// learned of it.
#[derive(Debug, Args)]
pub(super) struct Recovery {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// On a paired device: make a new code, and say so to every machine that you are paired with.
    New,
    /// On a paired device: let every machine take the code that you have for another year.
    Renew,
    /// On a new device that has joined in your name: type the code, and get a text for the machine.
    Use,
    /// On the agent's machine: show its card, and take the text of the new device.
    Accept,
}

impl Recovery {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        match self.command {
            Command::New => new(options).await,
            Command::Renew => renew(options).await,
            Command::Use => use_code(options).await,
            Command::Accept => accept(options).await,
        }
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error)
}

async fn new(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let identity = home.find(Role::Approver, options.profile.as_deref())?;
    let desk = Desk::of(&identity)?;
    let mut terminal = Terminal::open("a recovery code is shown in a terminal")?;
    let code = recovery::show_new(&mut terminal, desk.approver.id.as_str())?;
    recovery::keep(&home.folder_named(&identity.name)?, &code, &desk.approver.keys)?;
    register_everywhere(&desk, &code, options).await
}

async fn renew(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let identity = home.find(Role::Approver, options.profile.as_deref())?;
    let desk = Desk::of(&identity)?;
    let code =
        recovery::kept(&home.folder_named(&identity.name)?, &desk.approver.keys)?.ok_or_else(|| {
            Failure::new(Exit::NotSetUp, "this device has made no recovery code")
                .next("make one with `countersign recovery new`")
        })?;
    register_everywhere(&desk, &code, options).await
}

async fn register_everywhere(desk: &Desk, code: &KeyBundle, options: &Options) -> Result<(), Failure> {
    let mut machines = Vec::new();
    for (machine, _) in vouch::machines(&desk.pins, desk) {
        register(desk, &machine, code).await?;
        machines.push(machine);
    }
    if options.json {
        let (from, until) = validity(desk.approver.clock.now());
        let code = Fingerprint::of(code).to_string();
        return object(&json!({ "code": code, "pendingAt": machines, "from": from, "until": until }));
    }
    if machines.is_empty() {
        say("  No machine is paired with this device yet. Each learns of the code when you pair it.");
    }
    machines.iter().for_each(say_registered);
    Ok(())
}

/// From when a machine takes a code that it learns of now, and until when.
fn validity(now: Timestamp) -> (Timestamp, Timestamp) {
    (now.plus(RECOVERY_WAIT), now.plus(YEAR))
}

/// Says to a machine and to the gateway that the code may be used, for a year.
pub(super) async fn register(desk: &Desk, machine: &EnforcerId, code: &KeyBundle) -> Result<(), Failure> {
    let until = desk.approver.clock.now().plus(YEAR);
    let statement = desk.approver.vouch_for_recovery(machine, code, until).map_err(broken)?;
    vouch::present(&desk.approver, &statement).await.map_err(|error| {
        match error.is(WireFailure::SignatureInvalid) {
            true => broken(format!("{machine} takes no recovery code of this device"))
                .next("only a device that was paired with the machine itself makes one, and eight at most"),
            false => describe(&error),
        }
    })?;
    vouch::send(desk, machine, &statement).await
}

pub(super) fn say_registered(machine: &EnforcerId) {
    let (from, until) = validity(SystemClock.now());
    say(&format!(
        "✓ {machine}: your recovery code is signed and sent.\n  It works there from {} until {} (UTC).\n  The day of delay begins when {machine} has it, so run `countersign devices update` there now.",
        moment::date_and_time(from),
        moment::date_and_time(until)
    ));
}

async fn use_code(options: &Options) -> Result<(), Failure> {
    let identity = Home::of_user()?.find(Role::Approver, options.profile.as_deref())?;
    let mut terminal = Terminal::open("the recovery code is asked for in a terminal")?;
    let code: RecoveryCode = terminal
        .ask_secret("Recovery code: ")?
        .parse()
        .map_err(|error| Failure::new(Exit::Usage, error).next("nothing was done; try again"))?;
    let code = code.keys().ok_or_else(|| broken("the recovery code has no keys"))?;
    say("Run `countersign recovery accept` on the agent's machine, which shows its card.");
    let card: MachineCard =
        terminal.ask("Card of the machine: ")?.parse().map_err(|error| Failure::new(Exit::Usage, error))?;
    say(&format!("{}: {}", card.machine, Fingerprint::of(&card.keys).digits()));
    if terminal.ask("Are these the digits on the machine? Type yes: ")? != "yes" {
        return Err(Failure::new(Exit::TakenBack, "nothing was signed, and the code was not used"));
    }
    let approver = identity.approver()?;
    let label = identity.profile.facts().label.as_str();
    let until = approver.clock.now().plus(YEAR);
    let statement = approver.recover(&card.machine, &code, label, until).map_err(broken)?;
    vouch::present(&approver, &statement).await.map_err(|error| not_presented(&error))?;
    let pin =
        Pin::new(Party::Enforcer(card.machine.clone()), &card.keys, PinSource::Paired, approver.clock.now());
    identity.profile.update_pins(|pins| pins.insert(pin)).map_err(failed)?;
    let text = Voucher::new(&card.machine, &card.keys, &statement)
        .ok_or_else(|| broken("the statement can't be written"))?
        .text();
    if options.json {
        return object(&json!({ "machine": card.machine, "voucher": text, "until": until }));
    }
    say(&format!(
        "✓ signed with the code, which is used up. Paste this on {}; after that this device approves there for {}, and the lost one does not:",
        card.machine,
        moment::whole(YEAR)
    ));
    out(&text)?;
    say(
        "Then run `countersign recovery renew` here: the machine takes the code that this device got when it joined.",
    );
    Ok(())
}

fn not_presented(error: &CallError) -> Failure {
    match error.is(WireFailure::SignatureInvalid) {
        true => broken(
            "the gateway does not know this code for that machine, or it was used, or its time is over",
        )
        .next("check that you joined in the same name; else pair this device again, at the machine"),
        false => describe(error),
    }
}

async fn accept(options: &Options) -> Result<(), Failure> {
    let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
    let enforcer = identity.enforcer()?;
    let card = MachineCard { machine: enforcer.id.clone(), keys: enforcer.keys.bundle().clone() };
    let fingerprint = Fingerprint::of(&card.keys);
    let mut terminal = Terminal::open("the text of the new device is asked for in a terminal")?;
    say(&format!("This machine is {}", fingerprint.digits()));
    say("Paste its card into `countersign recovery use` on the new device, and compare the digits there:");
    out(&card.to_string())?;
    let text = terminal.ask("What the new device shows: ")?;
    let (machine, keys, statement) =
        Voucher::read(&text).map_err(|error| Failure::new(Exit::Usage, error))?;
    if machine != card.machine || Fingerprint::of(&keys) != fingerprint {
        return Err(Failure::new(Exit::Failed, format!("this is for another machine, {machine}"))
            .next("paste the card of this machine into `countersign recovery use`"));
    }
    let words = apply(&identity, &statement, &enforcer)
        .map_err(|error| broken(format!("it is not taken, and nothing has changed: {error}")))?;
    say(&format!("✓ {words}"));
    bring(&identity, &enforcer).await.say("the new device");
    if options.json {
        return object(&json!({ "taken": words }));
    }
    Ok(())
}
