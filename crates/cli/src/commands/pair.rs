//! `pair`: one command for both sides.

use clap::Args;
use countersign_agents::{
    asking::bring::bring,
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_pairing,
        home::{Home, Identity, failed},
        output::{is_live, object, out, say},
        terminal::Terminal,
    },
};
use countersign_client::{
    approver::Approver,
    enforcer::{Answered, PairError, Paired},
    join::{ConnectLink, Invited, JoinError, JoinLink, Preview, preview},
    keys::Fingerprint,
    pairing::{PairingError, code::GivenCode, link::PairingLink},
    payload::visible,
    profile::{GatewayUrl, Party, Role},
};
use countersign_wire::{Label, id::EnforcerId};
use serde_json::json;
use zeroize::Zeroizing;

use super::{
    Options,
    inbox::Desk,
    recovery::{register, say_registered},
    up,
};
use crate::{
    connect::{Connected, Invitation, connect, is_this_machine, lock_of},
    local_gateway::LocalGateway,
    qr, recovery,
};

/// Pair an agent's machine with a person's device.
///
/// On the agent's machine, `countersign pair` shows a link, a QR code and a typed code. On the person's device, scan the QR
/// code, or run `countersign pair --answer` and paste the link or type the code. With the link everything is checked by
/// itself; with the typed code both sides show thirty digits, which a person compares.
///
/// A device that has not joined yet needs an invitation too. With `--invite` one code has both, and is renewed until the device
/// has answered.
#[derive(Debug, Args)]
pub(super) struct Pair {
    /// Answer, on the person's device: asks for the link or the code.
    #[arg(long)]
    answer: bool,
    /// The person types the code on their device instead of using the link.
    #[arg(long, conflicts_with = "answer")]
    typed: bool,
    /// Show one code that joins and pairs, for a device that has not joined.
    ///
    /// Where this machine runs the gateway, the invitation is made here; otherwise the operator's invitation is asked for.
    #[arg(long, conflicts_with_all = ["answer", "typed"])]
    invite: bool,
    /// Whose device it is. Without this it is the person who approves on this machine.
    #[arg(long, value_name = "NAME", requires = "invite")]
    approver: Option<String>,
    /// What the person sees as the name of this machine. Without this it is the label of the profile.
    #[arg(long, default_value = "")]
    label: String,
}

impl Pair {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        match (self.answer, self.invite) {
            (true, _) => answer(options).await,
            (_, true) => self.invite(options).await,
            _ => self.start(options).await,
        }
    }

    async fn start(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        confirm(&home)?;
        let enforcer = identity.enforcer()?;
        let mut names = identity.names();
        if !self.label.is_empty() {
            names.enforcer_label = Label::new(&self.label);
        }
        let near = &identity.profile.facts().gateway;
        let public = LocalGateway::of(&home).public_url_of(near);
        let address = public.as_ref().unwrap_or(near);
        let started =
            enforcer.start_pairing_at(address, names).await.map_err(|error| describe_pairing(&error))?;
        let link = started.link.to_string();
        if self.typed {
            say(&format!("This machine is {}.", enforcer.id));
            say(
                "On the person's device run `countersign pair --answer`, and type this code within ten minutes:",
            );
            out(&started.code.to_string())?;
        } else {
            say(&qr::code(&link, is_live())?);
            if is_this_machine(address) {
                say("This code works on this machine only. For your phone, run `countersign up --phone`.");
            }
            say(
                "Scan it, or paste this link into `countersign pair --answer` on the person's device, within ten minutes.",
            );
            say("It is a secret until it is answered:");
            out(&link)?;
        }
        let by = if self.typed { Answered::TypedCode } else { Answered::Link };
        let paired = enforcer.finish_pairing(&started, by).await.map_err(|error| describe_pairing(&error))?;
        let (id, fingerprint) = keep(&identity, paired)?;
        let brought = bring(&identity, &enforcer).await;
        brought.say("it");
        if options.json {
            let fingerprint = fingerprint.to_string();
            return object(&json!({ "paired": id, "fingerprint": fingerprint, "brought": brought.count }));
        }
        Ok(())
    }

    async fn invite(self, options: &Options) -> Result<(), Failure> {
        let home = Home::of_user()?;
        let identity = home.find(Role::Enforcer, options.profile.as_deref())?;
        confirm(&home)?;
        let near = identity.profile.facts().gateway.clone();
        let gateway = LocalGateway::of(&home);
        let invitation = match gateway.is_at(&near) {
            true => up::invite(&gateway, &near, &self.whose(&home)?)?,
            false => given(&near).await?,
        };
        if is_this_machine(invitation.link.gateway()) {
            say("  This code works on this machine only. For your phone, run `countersign up --phone`.");
        }
        let Connected { pin, brought } = connect(&identity, &invitation).await?;
        if options.json {
            return object(&json!({
                "paired": pin.party().id(), "fingerprint": pin.fingerprint().to_string(), "brought": brought,
            }));
        }
        Ok(())
    }

    /// Whose device is invited.
    fn whose(&self, home: &Home) -> Result<String, Failure> {
        if let Some(approver) = &self.approver {
            return Ok(approver.clone());
        }
        match home.find(Role::Approver, None) {
            Ok(person) => Ok(person.profile.facts().party.id().to_owned()),
            Err(_) => Terminal::open("whose device it is is asked for in a terminal")?
                .ask("Whose device is it? Name: "),
        }
    }
}

/// The operator's invitation: a machine's credential makes none, or an agent could admit approvers.
async fn given(near: &GatewayUrl) -> Result<Invitation, Failure> {
    let text = Terminal::open("the invitation is asked for in a terminal")?
        .ask_secret("Invitation link (from `countersign-gateway invite --role approver`): ")?;
    let link: JoinLink = text.parse().map_err(|error| Failure::new(Exit::Usage, error))?;
    let near = link.at(near.clone());
    match preview(&near).await {
        Preview::Invited(Invited { party: Party::Approver(approver), .. }) => {
            Ok(Invitation { link, near, approver: approver.to_string() })
        }
        Preview::Invited(_) => {
            Err(Failure::new(Exit::Usage, "this invitation is for a machine, and not for a person")
                .next("ask the operator for one with `--role approver`"))
        }
        Preview::Invalid => Err(Failure::new(Exit::Failed, JoinError::Invalid)),
        Preview::Unsaid => {
            Err(Failure::new(Exit::Failed, "the gateway does not say whom the invitation is for")
                .next("let the device join with the invitation, then run `countersign pair`"))
        }
    }
}

/// Who is paired can approve, so a person says that somebody may be. Where a person's keys are on this machine, their
/// passphrase says so: an agent could answer a question in a terminal.
fn confirm(home: &Home) -> Result<(), Failure> {
    for (name, profile) in home.all()? {
        let profile = profile.map_err(failed)?;
        if profile.facts().party.role() == Role::Approver {
            Identity::new(name.to_string(), profile).unlock()?;
            return Ok(());
        }
    }
    let mut terminal = Terminal::open("a pairing is confirmed in a terminal")?;
    let question =
        "A device that is paired can approve what agents on this machine do. Type yes to pair one: ";
    match terminal.ask(question)?.as_str() {
        "yes" => Ok(()),
        _ => Err(Failure::new(Exit::TakenBack, "nothing was paired")),
    }
}

async fn answer(options: &Options) -> Result<(), Failure> {
    let home = Home::of_user()?;
    let identity = home.find(Role::Approver, options.profile.as_deref())?;
    let text =
        Terminal::open("the pairing link or code is asked for in a terminal")?.ask("Link or code: ")?;
    let approver = identity.approver()?;
    let device = identity.names().enforcer_label;
    // Of a code that joins and pairs, who has joined needs the second half alone.
    let text = match text.parse::<ConnectLink>() {
        Ok(both) => Zeroizing::new(both.pairing.to_string()),
        Err(_) => Zeroizing::new(text),
    };
    let paired = match (text.parse::<PairingLink>(), text.parse::<GivenCode>()) {
        (Ok(link), _) => {
            approver.pair_by_link_as(&link, &device).await.map_err(|error| describe_pairing(&error))?
        }
        // What looks like a link is one that was not copied as a whole.
        (_, Ok(code)) if !text.contains("://") => answer_code(&approver, &code).await?,
        _ => {
            return Err(Failure::new(Exit::Usage, "this is neither a pairing link nor a code")
                .next("copy the whole link that `countersign pair` shows, with everything after the #"));
        }
    };
    let party = paired.pin.party().clone();
    let (id, fingerprint) = keep(&identity, paired)?;
    if options.json {
        object(&json!({ "paired": id, "fingerprint": fingerprint.to_string() }))?;
    }
    if let Party::Enforcer(machine) = party
        && let Err(failure) = register_code(&home, &identity, approver, &machine).await
    {
        // The pairing stands all the same.
        say(&format!("  {machine} does not know your recovery code: {failure}"));
    }
    Ok(())
}

/// Answers a typed code. Where the gateway does not say whose it is, the person does: a wrong name shows other digits.
async fn answer_code(approver: &Approver, code: &GivenCode) -> Result<Paired, Failure> {
    match approver.pair_by_code(code, None).await {
        Err(PairError::Pairing(PairingError::MachineNotNamed)) => {}
        paired => return paired.map_err(|error| describe_pairing(&error)),
    }
    say("This gateway does not say which machine the code is of; the screen that shows the code does.");
    let machine = Terminal::open("the name of the machine is asked for in a terminal")?.ask("Machine: ")?;
    let machine: EnforcerId = machine
        .parse()
        .map_err(|rule| Failure::new(Exit::Usage, format!("the name of the machine {rule}")))?;
    approver.pair_by_code(code, Some(&machine)).await.map_err(|error| describe_pairing(&error))
}

/// Lets the machine know of the recovery code, if there is one.
async fn register_code(
    home: &Home,
    identity: &Identity,
    approver: Approver,
    machine: &EnforcerId,
) -> Result<(), Failure> {
    let Some(code) = recovery::kept(&home.folder_named(&identity.name)?, &approver.keys)? else {
        return Ok(());
    };
    let desk = Desk { pins: identity.profile.pins().map_err(failed)?, approver };
    register(&desk, machine, &code).await?;
    say_registered(machine);
    Ok(())
}

/// Keeps the pin, after a person has compared the digits where there are any. Returns whose device it is, and which.
fn keep(identity: &Identity, paired: Paired) -> Result<(String, Fingerprint), Failure> {
    let pin = paired.pin;
    if let Some(digits) = &paired.digits {
        say("Compare these thirty digits with those on the other screen:");
        say(&format!("\n    {digits}\n"));
        if let Some(lock) = pin.lock() {
            say(&format!(
                "  This device needs its lock (set up at {}) to approve anything dangerous or not examined.",
                visible(lock.origin())
            ));
        }
        let answer = Terminal::open("the digits are compared by a person in a terminal")?
            .ask("Are they the same on both screens? Type yes: ")?;
        if answer != "yes" {
            return Err(Failure::new(Exit::Failed, "not paired: the digits were not confirmed")
                .next("if they differ, somebody between the two machines has replaced a key; do not try again over this gateway"));
        }
    }
    let (id, fingerprint, lock) = (pin.party().id().to_owned(), pin.fingerprint(), lock_of(&pin));
    identity.profile.update_pins(|pins| pins.insert(pin)).map_err(failed)?;
    say(&format!("✓ paired with {id} (key {}{lock})", fingerprint.short()));
    Ok((id, fingerprint))
}
