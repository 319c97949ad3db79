//! `devices`.

use clap::{Args, Subcommand};
use countersign_agents::{
    asking::bring::bring,
    hearing::recovery_times,
    tool::{
        exit::{Exit, Failure},
        home::{Home, Identity, failed, word},
        moment::date_and_time,
        output::{columns, object, out, say},
        terminal::Terminal,
    },
};
use countersign_client::{
    clock::{Clock as _, SystemClock},
    keys::Fingerprint,
    profile::{Pin, PinSource, Pins, Role},
};
use serde_json::{Value, json};

use super::options::Options;

/// List paired devices, or revoke one.
///
/// A revoked device counts for nothing on this machine from then on, whatever the gateway says.
#[derive(Debug, Args)]
pub(super) struct Devices {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List them. This is the default.
    List,
    /// Fetch what approvers have said about devices, vouchers and revocations, and bring what waits to new ones.
    Update,
    /// Stop trusting a device, for good.
    Revoke {
        /// The short key of the device as `list` shows it, such as 9F3C-41AA.
        #[arg(value_name = "KEY")]
        device: String,
    },
}

impl Devices {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        if let Some(Command::Update) = self.command {
            super::listen::listen(options, true).await?;
            let identity = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?;
            bring(&identity, &identity.enforcer()?).await.say("the devices that were connected since");
        }
        let home = Home::of_user()?;
        let identities: Vec<Identity> = [Role::Enforcer, Role::Approver]
            .into_iter()
            .filter_map(|role| home.find(role, options.profile.as_deref()).ok())
            .collect();
        if identities.is_empty() {
            home.find(Role::Enforcer, options.profile.as_deref())?;
        }
        match self.command {
            None | Some(Command::List | Command::Update) => list(&identities, options),
            Some(Command::Revoke { device }) => revoke(&identities, &device, options),
        }
    }
}

fn list(identities: &[Identity], options: &Options) -> Result<(), Failure> {
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    for identity in identities {
        let pins = identity.profile.pins().map_err(failed)?;
        for pin in pins.iter() {
            rows.push(row(&identity.name, pin, &pins));
            objects.push(json_of(&identity.name, pin, &pins));
        }
    }
    if options.json {
        return object(&json!({ "devices": objects }));
    }
    match rows.is_empty() {
        true => say("No device is paired yet. Run `countersign pair`."),
        false => out(&columns(&rows))?,
    }
    Ok(())
}

fn state(pin: &Pin, pins: &Pins) -> String {
    match pin.revoked_at() {
        Some(at) => format!("revoked {}", date_and_time(at)),
        // It never decides; when it works stands beside it.
        None if matches!(pin.source(), PinSource::Recovery { .. }) => String::new(),
        None if !pins.is_active(pin.fingerprint(), SystemClock.now()) => "ended".to_owned(),
        None => "counts".to_owned(),
    }
}

fn source(pin: &Pin) -> String {
    match pin.source() {
        PinSource::Paired => format!("paired {}", date_and_time(pin.since())),
        PinSource::Vouched { by, until } => {
            format!("vouched for by {} until {}", by.short(), date_and_time(until))
        }
        PinSource::Recovery { by, .. } => {
            let times = recovery_times(pin).unwrap_or_default();
            format!("recovery code of {}, works {times}", by.short())
        }
        PinSource::Recovered { until, .. } => format!("by a recovery code, until {}", date_and_time(until)),
    }
}

fn row(profile: &str, pin: &Pin, pins: &Pins) -> Vec<String> {
    let party = pin.party();
    let lock = if pin.lock().is_some() { ", device lock" } else { "" };
    vec![
        profile.to_owned(),
        format!("{} {}", word(party.role()), party.id()),
        pin.fingerprint().short(),
        format!("{}{lock}", source(pin)),
        state(pin, pins),
    ]
}

fn json_of(profile: &str, pin: &Pin, pins: &Pins) -> Value {
    json!({
        "profile": profile, "role": word(pin.party().role()), "id": pin.party().id(),
        "fingerprint": pin.fingerprint().to_string(), "digits": pin.fingerprint().digits(),
        "source": source(pin), "state": state(pin, pins),
        "lock": pin.lock().map(|lock| json!({ "algorithm": lock.algorithm(), "origin": lock.origin() })),
    })
}

fn revoke(identities: &[Identity], device: &str, options: &Options) -> Result<(), Failure> {
    let wanted = device.to_uppercase();
    let mut found: Vec<(&Identity, Fingerprint, String)> = Vec::new();
    for identity in identities {
        let pins = identity.profile.pins().map_err(failed)?;
        let fits =
            |pin: &&Pin| pin.fingerprint().short() == wanted || pin.fingerprint().to_string() == device;
        found.extend(
            pins.iter().filter(fits).map(|pin| (identity, pin.fingerprint(), pin.party().id().to_owned())),
        );
    }
    let [(identity, fingerprint, id)] = &found[..] else {
        let what = match found.len() {
            0 => format!("no paired device has the key {device}"),
            _ => format!("several devices have the key {device}"),
        };
        return Err(
            Failure::new(Exit::Failed, what).next("`countersign devices --json` shows whole fingerprints")
        );
    };
    let mut terminal = Terminal::open("a revocation is confirmed in a terminal")?;
    let answer =
        terminal.ask(&format!("Revoke the device {} of {id}, for good? Type yes: ", fingerprint.short()))?;
    if answer != "yes" {
        return Err(Failure::new(Exit::TakenBack, "nothing was changed"));
    }
    identity.profile.update_pins(|pins| pins.revoke(*fingerprint, SystemClock.now())).map_err(failed)?;
    if options.json {
        return object(&json!({ "revoked": fingerprint.to_string() }));
    }
    say(&format!("✓ {} of {id} is revoked on this machine", fingerprint.short()));
    Ok(())
}
