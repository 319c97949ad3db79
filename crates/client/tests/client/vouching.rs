//! Vouching, revoking and recovering over a real gateway, and a man in the middle who never gets a key of his own in.

use std::time::Duration;

use crate::support::{World, pair};
use countersign_client::{
    approver::Approver,
    audience::Audience,
    clock::{Clock as _, SystemClock},
    enforcer::{AskError, Enforcer},
    keys::{DeviceKeys, Fingerprint},
    pairing::{
        PairingError, Transcript, answer_link, answer_typed, new_link,
        recovery::RecoveryCode,
        statement::{Claim, Issue, Statement},
        typed_digits, verify_link,
    },
    profile::{Applied, ApplyError, Party, Pin, PinError, PinSource, Pins, RECOVERY_WAIT},
    progress::Acknowledgement,
    reply::{Choice, Rejected, VerifiedDecision, Words},
    request::{Draft, OpenedRequest, Request},
    vouching::Newcomer,
};
use countersign_wire::{
    artifact::ArtifactType,
    decision::{DecisionOutcome, Scope},
    exchange::ExchangeState,
    failure::Failure,
    keys::KeyBundle,
    lock::{LockAlgorithm, LockKey},
    timestamp::Timestamp,
};
use tokio::time::{Instant, sleep};

fn draft() -> Draft {
    Draft {
        artifact_type: ArtifactType::CommandReview,
        payload: r#"{"argv":["git","push"]}"#.to_owned(),
        repo_name: "repository".to_owned(),
        valid_for: Duration::from_mins(1),
        session: None,
        actions: Vec::new(),
        edits: Vec::new(),
        to: Audience::everybody(),
    }
}

fn approval() -> Choice {
    Choice {
        outcome: DecisionOutcome::Approve,
        scope: Scope::Once,
        valid_until: SystemClock.now().plus(Duration::from_mins(5)),
        words: Words::default(),
    }
}

fn tomorrow() -> Timestamp {
    SystemClock.now().plus(Duration::from_hours(24))
}

/// What waits for an approver under this id, as soon as it is there.
async fn opened(approver: &Approver, pins: &Pins, request: &Request) -> OpenedRequest {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut inbox = approver.inbox(pins).await.unwrap().into_iter();
        if let Some(item) = inbox.find(|item| item.request_id == request.request_id) {
            return item.opened.unwrap();
        }
        assert!(Instant::now() < until, "nothing arrives");
        sleep(Duration::from_millis(20)).await;
    }
}

/// One request of `robot`, which `approver` approves.
async fn decided(
    robot: &Enforcer,
    robots: &Pins,
    approver: &Approver,
    approvers: &Pins,
) -> Result<VerifiedDecision, AskError> {
    let request = Request::build(&draft(), &robot.id, &robot.keys, robots, SystemClock.now()).unwrap();
    robot.submit(&request).await?;
    let opened = opened(approver, approvers, &request).await;
    approver.decide(&opened, &approval()).await.unwrap();
    robot.wait(&request, robots).await
}

/// Another device of the same approver, with a credential of its own.
async fn device(world: &World, of: &Approver) -> Approver {
    world.approver(of.id.as_str()).await
}

fn newcomer(approver: &Approver) -> Newcomer<'_> {
    let bundle = approver.keys.bundle();
    Newcomer { approver_id: &approver.id, bundle, label: "a device", until: tomorrow(), lock: None }
}

/// A device that was vouched for knows the enforcer from whoever vouched.
fn pins_of(robot: &Enforcer) -> Pins {
    let mut pins = Pins::default();
    let party = Party::Enforcer(robot.id.clone());
    pins.insert(Pin::new(party, robot.keys.bundle(), PinSource::Paired, SystemClock.now())).unwrap();
    pins
}

fn apply(pins: &mut Pins, robot: &Enforcer, statement: &Statement) -> Result<Applied, ApplyError> {
    // As it travels.
    let text = serde_json::to_string(statement).unwrap();
    pins.apply(&serde_json::from_str(&text).unwrap(), robot.id.as_str(), SystemClock.now())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_vouches_for_a_laptop_and_for_a_teammate_and_both_decide_until_they_are_revoked() {
    let world = World::start().await;
    let (robot, phone) = (world.enforcer("robot").await, world.approver("ada").await);
    let (mut robots, _) = pair(&robot, &phone, Pins::default()).await;
    let (laptop, bob) = (device(&world, &phone).await, world.approver("bob").await);
    for new in [&laptop, &bob] {
        let voucher = phone.vouch_for(&robot.id, newcomer(new)).unwrap();
        let accepted = new.present(&voucher).await.unwrap();
        assert_eq!(new.present(&voucher).await.unwrap(), accepted, "the same again");
        assert_eq!((&accepted.approver_id, accepted.enforcer_id.as_str()), (&new.id, "robot"));
        assert_eq!(apply(&mut robots, &robot, &voucher), Ok(Applied::Vouched(new.keys.fingerprint())));
        assert_eq!(apply(&mut robots, &robot, &voucher), Ok(Applied::AlreadyKnown));
        let decision = decided(&robot, &robots, new, &pins_of(&robot)).await.unwrap();
        assert_eq!((decision.device, &decision.approver), (new.keys.fingerprint(), &new.id));
    }
    for new in [&laptop, &bob] {
        // It was asked while it counted, and decides when it does not any more: the gateway accepts that.
        let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
        robot.submit(&request).await.unwrap();
        let revoked = phone.revoke_statement(&robot.id, new.keys.fingerprint()).unwrap();
        assert_eq!(apply(&mut robots, &robot, &revoked), Ok(Applied::Revoked(new.keys.fingerprint())));
        let opened = opened(new, &pins_of(&robot), &request).await;
        new.decide(&opened, &approval()).await.unwrap();
        let refused = robot.wait(&request, &robots).await;
        assert!(matches!(refused, Err(AskError::Rejected(Rejected::UnknownSigner))), "{refused:?}");
    }
    let decision = decided(&robot, &robots, &phone, &pins_of(&robot)).await.unwrap();
    assert_eq!(decision.device, phone.keys.fingerprint());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_gateway_refuses_what_nobody_paired_has_signed_and_the_enforcer_too() {
    let world = World::start().await;
    let (robot, phone) = (world.enforcer("robot").await, world.approver("ada").await);
    let (mut robots, _) = pair(&robot, &phone, Pins::default()).await;
    let (laptop, bob) = (device(&world, &phone).await, world.approver("bob").await);
    let of_laptop = phone.vouch_for(&robot.id, newcomer(&laptop)).unwrap();
    laptop.present(&of_laptop).await.unwrap();
    apply(&mut robots, &robot, &of_laptop).unwrap();
    // A vouched device vouches for nobody, and nobody vouches for themselves.
    for (voucher, reason) in [
        (laptop.vouch_for(&robot.id, newcomer(&bob)).unwrap(), PinError::VoucherNotPaired.into()),
        (bob.vouch_for(&robot.id, newcomer(&bob)).unwrap(), ApplyError::UnknownSigner),
    ] {
        let refused = bob.present(&voucher).await.unwrap_err();
        assert!(refused.is(Failure::SignatureInvalid), "{refused:?}");
        assert_eq!(apply(&mut robots, &robot, &voucher), Err(reason));
    }
    let for_bob = phone.vouch_for(&robot.id, newcomer(&bob)).unwrap();
    let stolen = phone.present(&for_bob).await.unwrap_err();
    assert!(stolen.is(Failure::Forbidden), "it is presented by whom it names: {stolen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_code_replaces_a_lost_phone() {
    let world = World::start().await;
    let (robot, phone) = (world.enforcer("robot").await, world.approver("ada").await);
    let (mut robots, _) = pair(&robot, &phone, Pins::default()).await;
    let paper = RecoveryCode::generate().unwrap();
    let code = paper.keys().unwrap();
    let voucher =
        phone.vouch_for_recovery(&robot.id, code.bundle(), tomorrow().plus(RECOVERY_WAIT * 9)).unwrap();
    assert_eq!(phone.present(&voucher).await.unwrap().pair_id, None);
    assert_eq!(apply(&mut robots, &robot, &voucher), Ok(Applied::Vouched(code.fingerprint())));
    assert_eq!(
        robots.active_in_role(countersign_client::profile::Role::Approver, SystemClock.now()).count(),
        1
    );
    // The phone is lost; somebody types the code into a new one.
    let typed: RecoveryCode = paper.to_string().to_lowercase().parse().unwrap();
    let new = device(&world, &phone).await;
    let until = tomorrow().plus(RECOVERY_WAIT * 9);
    let recovered = new.recover(&robot.id, &typed.keys().unwrap(), "new phone", until).unwrap();
    new.present(&recovered).await.unwrap();
    assert_eq!(apply(&mut robots, &robot, &recovered), Err(PinError::RecoveryTooNew.into()));
    let later = SystemClock.now().plus(RECOVERY_WAIT);
    let applied = robots.apply(&recovered, "robot", later);
    let (device, lost) = (new.keys.fingerprint(), phone.keys.fingerprint());
    assert_eq!(applied, Ok(Applied::Recovered { device, lost }));
    let stolen = phone.revoke_statement(&robot.id, device).unwrap();
    assert_eq!(
        apply(&mut robots, &robot, &stolen),
        Err(PinError::MayNotRevoke.into()),
        "the phone of a thief"
    );
    let decision = decided(&robot, &robots, &new, &pins_of(&robot)).await.unwrap();
    assert_eq!(decision.device, new.keys.fingerprint());
    let another = world.approver("ada").await;
    let twice = another.recover(&robot.id, &code, "another", until).unwrap();
    assert!(another.present(&twice).await.unwrap_err().is(Failure::SignatureInvalid));
    assert_eq!(robots.apply(&twice, "robot", later), Err(PinError::RecoverySpent.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_enforcer_learns_that_a_request_has_arrived_and_is_shown() {
    let world = World::start().await;
    let (robot, ada) = (world.enforcer("robot").await, world.approver("ada").await);
    let (robots, adas) = pair(&robot, &ada, Pins::default()).await;
    let request = Request::build(&draft(), &robot.id, &robot.keys, &robots, SystemClock.now()).unwrap();
    robot.submit(&request).await.unwrap();
    let progress = async || robot.progress(&request.request_id).await.unwrap();
    let begun = progress().await;
    assert_eq!((begun.state, begun.approvers.len()), (ExchangeState::PendingApproval, 1));
    let known = &begun.approvers[0];
    assert_eq!((&known.approver_id, known.received, known.seen), (&ada.id, None, None));
    assert!(known.rung.is_some());
    ada.acknowledge(&request.request_id, Acknowledgement::Received).await.unwrap();
    let received = progress().await.approvers[0].clone();
    assert!(received.received >= known.rung && received.seen.is_none());
    ada.acknowledge(&request.request_id, Acknowledgement::Seen).await.unwrap();
    let seen = progress().await.approvers[0].clone();
    assert!(seen.seen >= seen.received && seen.received == received.received);
    let opened = opened(&ada, &adas, &request).await;
    ada.decide(&opened, &approval()).await.unwrap();
    assert_eq!(progress().await.state, ExchangeState::Decided);
    let other = world.enforcer("crane").await;
    assert!(other.progress(&request.request_id).await.unwrap_err().is(Failure::NotFound));
}

/// Reproducible choices for a man in the middle.
struct Dice(u64);

impl Dice {
    fn next(&mut self, sides: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn keys(&mut self) -> DeviceKeys {
        let mut secret = [0; 64];
        secret.fill_with(|| u8::try_from(self.next(256)).unwrap());
        DeviceKeys::from_secret(&secret).unwrap()
    }

    /// The same, with one of its keys or both replaced by the attacker's.
    fn replaced(&mut self, bundle: &KeyBundle, evil: &DeviceKeys) -> KeyBundle {
        let (mut replaced, theirs) = (bundle.clone(), evil.bundle());
        match self.next(3) {
            0 => replaced.signing = theirs.signing,
            1 => replaced.agreement = theirs.agreement,
            _ => (replaced.signing, replaced.agreement) = (theirs.signing, theirs.agreement),
        }
        replaced
    }
}

/// What one end sees of a pairing after the gateway had its way.
struct Relayed {
    enforcer_id: String,
    enforcer: KeyBundle,
    approver_id: String,
    approver: KeyBundle,
    nonce: String,
    /// The lock of the approver's device, which only the enforcer is told of.
    lock: Option<LockKey>,
}

impl Relayed {
    fn transcript(&self) -> Transcript<'_> {
        Transcript {
            enforcer_id: &self.enforcer_id,
            enforcer: &self.enforcer,
            approver_id: &self.approver_id,
            approver: &self.approver,
            nonce: &self.nonce,
            lock: self.lock.as_ref(),
        }
    }

    /// Replaces something on the way to the approver: the enforcer's id or keys, or the nonce.
    fn attack_enforcer(&mut self, dice: &mut Dice, evil: &DeviceKeys) {
        match dice.next(5) {
            0 => self.enforcer_id.push('x'),
            1 => self.nonce.push('x'),
            _ => self.enforcer = dice.replaced(&self.enforcer, evil),
        }
    }

    /// Replaces something on the way back: the approver's id, keys, proof or lock. The enforcer knows the nonce itself.
    fn attack_approver(&mut self, dice: &mut Dice, evil: &DeviceKeys) {
        match dice.next(7) {
            0 => self.approver_id.push('x'),
            3 => self.lock = self.lock.is_none().then(|| lock_of(evil)),
            1 => self.approver.proof = None,
            2 => self.approver.proof = Some([u8::try_from(dice.next(256)).unwrap(); 32]),
            _ => self.approver = dice.replaced(&self.approver, evil),
        }
    }
}

/// A lock whose key is that of a device.
fn lock_of(keys: &DeviceKeys) -> LockKey {
    let frame = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\0";
    let key = [frame, keys.bundle().signing.as_bytes().as_slice()].concat();
    LockKey::new(LockAlgorithm::EdDsa, vec![1], key, "gw.example", "https://gw.example").unwrap()
}

/// Whether an attacked pairing is noticed by somebody before anything is pinned.
fn is_noticed(dice: &mut Dice, by_link: bool) -> bool {
    let (robot, ada, evil) = (dice.keys(), dice.keys(), dice.keys());
    let link = new_link("https://gw.example", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
    let lock = (dice.next(2) == 0).then(|| lock_of(&ada));
    let relayed = |approver: &KeyBundle| Relayed {
        enforcer_id: "robot".to_owned(),
        enforcer: robot.bundle().clone(),
        approver_id: "ada".to_owned(),
        approver: approver.clone(),
        nonce: "nonce".to_owned(),
        lock: lock.clone(),
    };
    // On the way to the approver, on the way back, or both.
    let attacks = 1 + dice.next(3);
    let mut at_approver = relayed(ada.bundle());
    if attacks & 1 != 0 {
        at_approver.attack_enforcer(dice, &evil);
    }
    let answer = match by_link {
        true => answer_link(at_approver.transcript(), &link),
        false => answer_typed(at_approver.transcript()),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            assert_eq!(error, PairingError::EnforcerReplaced);
            return true;
        }
    };
    let mut at_enforcer = relayed(&answer.bundle);
    if attacks & 2 != 0 {
        at_enforcer.attack_approver(dice, &evil);
    }
    match by_link {
        true => verify_link(at_enforcer.transcript(), &link.secret) == Err(PairingError::ApproverUnproven),
        false => typed_digits(at_enforcer.transcript()).ok() != answer.digits,
    }
}

#[test]
fn of_a_thousand_pairings_with_a_man_in_the_middle_none_is_confirmed() {
    let mut dice = Dice(7);
    for by_link in [true, false] {
        for number in 0..1_000 {
            assert!(is_noticed(&mut dice, by_link), "pairing {number}, by link: {by_link}");
        }
    }
}

#[test]
fn of_a_thousand_pairings_without_one_all_are_confirmed() {
    let mut dice = Dice(8);
    for number in 0..1_000 {
        let (robot, ada) = (dice.keys(), dice.keys());
        let link = new_link("https://gw.example", "BCDF-GHJK".parse().unwrap(), "robot", &robot).unwrap();
        let mut seen = Relayed {
            enforcer_id: "robot".to_owned(),
            enforcer: robot.bundle().clone(),
            approver_id: "ada".to_owned(),
            approver: ada.bundle().clone(),
            nonce: format!("nonce-{number}"),
            lock: (number % 2 == 0).then(|| lock_of(&ada)),
        };
        let answer = answer_link(seen.transcript(), &link).unwrap();
        let typed = answer_typed(seen.transcript()).unwrap();
        seen.approver = answer.bundle;
        verify_link(seen.transcript(), &link.secret).unwrap();
        seen.approver = typed.bundle;
        assert_eq!(Some(typed_digits(seen.transcript()).unwrap()), typed.digits);
    }
}

#[test]
fn of_a_thousand_vouchings_with_swapped_keys_none_pins_a_foreign_key() {
    let mut dice = Dice(9);
    let now = SystemClock.now();
    let (ada, mut foreign) = (dice.keys(), Vec::<Fingerprint>::new());
    let mut pins = Pins::default();
    let party = Party::Approver("ada".parse().unwrap());
    pins.insert(Pin::new(party, ada.bundle(), PinSource::Paired, now)).unwrap();
    let untouched = pins.clone();
    for number in 0..1_000 {
        let (new, evil) = (dice.keys(), dice.keys());
        let who = ["ada", "bob"][usize::try_from(dice.next(2)).unwrap()];
        let claim = Claim::vouch(who, new.bundle(), "phone", tomorrow(), dice.next(4) == 0);
        let issue = Issue { enforcer_id: "robot", id: &format!("s-{number}"), by: "ada", at: now };
        let mut statement = serde_json::to_value(ada.sign_statement(issue, claim.clone()).unwrap()).unwrap();
        let swapped = dice.replaced(new.bundle(), &evil);
        // Other keys in the claim; other keys that sign for it; or both, under the name of the paired device.
        match dice.next(4) {
            0 => statement["claim"]["bundle"] = swapped.to_string().into(),
            1 => {
                statement = serde_json::to_value(evil.sign_statement(issue, claim).unwrap()).unwrap();
                statement["claim"]["bundle"] = evil.bundle().to_string().into();
            }
            2 => {
                let claim = Claim::vouch(who, evil.bundle(), "phone", tomorrow(), false);
                statement = serde_json::to_value(evil.sign_statement(issue, claim).unwrap()).unwrap();
            }
            _ => {
                let claim = Claim::vouch(who, evil.bundle(), "phone", tomorrow(), false);
                statement = serde_json::to_value(evil.sign_statement(issue, claim).unwrap()).unwrap();
                statement["byFingerprint"] = ada.fingerprint().to_string().into();
            }
        }
        let statement: Statement = serde_json::from_value(statement).unwrap();
        assert!(pins.apply(&statement, "robot", now).is_err(), "vouching {number}");
        foreign.extend([evil.fingerprint(), Fingerprint::of(&swapped), new.fingerprint()]);
    }
    assert_eq!(pins, untouched);
    assert!(foreign.iter().all(|keys| pins.get(*keys).is_none()));
    assert_eq!(foreign.len(), 3_000);
}
