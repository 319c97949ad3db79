//! One code that joins and pairs: shown until a device has used it, renewed before its end, and confirmed by a person on
//! this side too.

use std::time::Duration;

use countersign_agents::{
    asking::bring::bring,
    tool::{
        exit::{Exit, Failure},
        gateway_error::describe_pairing,
        home::{Identity, failed},
        output::{is_live, out, say},
        terminal::Terminal,
    },
};
use countersign_client::{
    clock::{Clock as _, SystemClock},
    enforcer::{Answered, Enforcer, PairError, Paired, StartedPairing},
    join::{ConnectLink, JoinLink, Preview, preview},
    payload::visible,
    profile::{GatewayUrl, Pin},
};
use tokio::time::{Instant, sleep_until};
use zeroize::Zeroizing;

use crate::qr;

/// A code is renewed this long before its end, which is what whoever has just scanned it has left.
const RENEWED_BEFORE: Duration = Duration::from_mins(1);

/// What the code says besides the pairing.
pub struct Invitation {
    /// Leads to the address that the other device reaches.
    pub link: JoinLink,
    /// The same at the address that this machine reaches.
    pub near: JoinLink,
    /// Whom it is for: nobody else is paired by this code.
    pub approver: String,
}

/// A device that may approve from now on.
pub struct Connected {
    /// The keys that were pinned for it.
    pub pin: Pin,
    /// How many requests that waited it can answer too.
    pub brought: usize,
}

/// Shows codes until a device has joined and answered, and a person has said that it may approve. Then it gets what waits.
pub async fn connect(machine: &Identity, invitation: &Invitation) -> Result<Connected, Failure> {
    let enforcer = machine.enforcer()?;
    let mut terminal = Terminal::open("a new device is confirmed in a terminal")?;
    let paired = answered(machine, &enforcer, invitation).await?;
    let pin = paired.pin;
    if pin.party().id() != invitation.approver {
        let who = visible(pin.party().id());
        return Err(Failure::new(
            Exit::Failed,
            format!("{who} answered, and the code is for {}", visible(&invitation.approver)),
        )
        .next("nothing was connected; run it again, and let nobody else see the code"));
    }
    let device = paired.device.map(|device| format!("“{}”", visible(device.as_str())));
    say(&format!(
        "  {} answered as {}. Its key is {}.",
        device.as_deref().unwrap_or("A device"),
        visible(&invitation.approver),
        pin.fingerprint().short()
    ));
    if let Some(lock) = pin.lock() {
        say(&format!(
            "  This device needs its lock (set up at {}) to approve anything dangerous or not examined.",
            visible(lock.origin())
        ));
    }
    say("  Its screen shows the same key. Once connected, it can approve what agents do on this machine.");
    match terminal.ask("Press Enter to connect it, or type no: ")?.as_str() {
        "" => {}
        _ => return Err(Failure::new(Exit::TakenBack, "nothing was connected")),
    }
    machine.profile.update_pins(|pins| pins.insert(pin.clone())).map_err(failed)?;
    let id = visible(pin.party().id());
    say(&format!("✓ connected: {id} can answer on it (key {}{})", pin.fingerprint().short(), lock_of(&pin)));
    let brought = bring(machine, &enforcer).await;
    brought.say(device.as_deref().unwrap_or("it"));
    Ok(Connected { pin, brought: brought.count })
}

/// Waits for the answer to one of the codes. The one before counts until its end.
async fn answered(
    machine: &Identity,
    enforcer: &Enforcer,
    invitation: &Invitation,
) -> Result<Paired, Failure> {
    let mut before: Option<StartedPairing> = None;
    loop {
        let gateway = invitation.link.gateway();
        let started = enforcer.start_pairing_at(gateway, machine.names()).await;
        let started = started.map_err(|error| describe_pairing(&error))?;
        show(&started, invitation, before.is_some()).await?;
        let renewal = renewal(&started);
        let current = async {
            match enforcer.finish_pairing(&started, Answered::Link).await {
                // A clock that is ahead: the next code is on its way.
                Err(PairError::Expired) => std::future::pending().await,
                answered => answered,
            }
        };
        let earlier = async {
            match &before {
                Some(earlier) => match enforcer.finish_pairing(earlier, Answered::Link).await {
                    Ok(paired) => Ok(paired),
                    // It has expired, or was answered wrongly: the current code is the one that counts.
                    Err(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            paired = current => return paired.map_err(|error| describe_pairing(&error)),
            paired = earlier => return paired.map_err(|error: PairError| describe_pairing(&error)),
            () = sleep_until(renewal) => {}
        }
        before = Some(started);
    }
}

fn renewal(started: &StartedPairing) -> Instant {
    let left = started.expires_at.since(SystemClock.now());
    Instant::now() + left.saturating_sub(RENEWED_BEFORE).max(Duration::from_secs(5))
}

async fn show(started: &StartedPairing, invitation: &Invitation, is_renewed: bool) -> Result<(), Failure> {
    // Who has joined with the code before needs a code that only pairs: an invitation is good once.
    let has_joined = preview(&invitation.near).await == Preview::Invalid;
    let link = Zeroizing::new(if has_joined {
        started.link.to_string()
    } else {
        let (invitation, pairing) = (invitation.link.clone(), started.link.clone());
        ConnectLink { invitation, pairing }.to_string()
    });
    if is_renewed {
        say("  The code before ends in a minute. This one takes its place:");
    }
    say(&qr::code(&link, is_live())?);
    match has_joined {
        true => say("  The invitation was used, or has ended. This code pairs a device that has joined:"),
        false => say("  Scan it with your phone, or open this link there. It is a secret, and good once:"),
    }
    out(&link)?;
    say("  Waiting for the device. Ctrl-C ends this.");
    Ok(())
}

/// What follows the key of a device that was just pinned.
pub fn lock_of(pin: &Pin) -> &'static str {
    match pin.lock() {
        Some(_) => ", with its device lock",
        None => "",
    }
}

/// Whether nobody but this machine reaches an address: a gateway is never addressed by plain HTTP elsewhere.
pub fn is_this_machine(gateway: &GatewayUrl) -> bool {
    gateway.as_str().starts_with("http://")
}
