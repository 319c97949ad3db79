//! Lies about whose keys are whose.

use countersign_client::{
    enforcer::{Answered, PairError},
    keys::DeviceKeys,
    pairing::PairingError,
};
use countersign_wire::keys::KeyBundle;
use serde_json::Value;

use super::{Scene, rounds};
use crate::support::evil::{Call, Given};

fn edit(body: &mut Vec<u8>, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(body).unwrap();
    change(&mut value);
    *body = value.to_string().into_bytes();
}

/// Attempts at one gateway: an approver has a bounded number of devices there, and some lies add one.
const AT_ONE_GATEWAY: usize = 36;

/// Where a lie is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// The enforcer's keys, on their way to the gateway.
    Initiate,
    /// The enforcer's keys, on their way to the approver.
    Resolve,
    /// The enforcer's id, on its way to the approver.
    EnforcerId,
    /// Another run of pairing, shown to the approver only.
    Nonce,
    /// The approver's keys, on their way to the gateway, with the approver's proof.
    Complete,
    /// The approver's keys, on their way to the enforcer, with the approver's proof.
    Status,
    /// The approver's keys, without any proof.
    Unproven,
    /// The approver's id, on its way to the enforcer.
    ApproverId,
    /// Both keys at once.
    Both,
}

const LIES: [Lie; 9] = [
    Lie::Initiate,
    Lie::Resolve,
    Lie::EnforcerId,
    Lie::Nonce,
    Lie::Complete,
    Lie::Status,
    Lie::Unproven,
    Lie::ApproverId,
    Lie::Both,
];

impl Lie {
    fn is_about_the_enforcer(self) -> bool {
        matches!(self, Self::Initiate | Self::Resolve | Self::EnforcerId | Self::Both)
    }

    /// Keys of the gateway, with what the true keys were followed by.
    fn keys(self, keys: &KeyBundle, of: &mut Value) {
        let honest: KeyBundle = of.as_str().unwrap().parse().unwrap();
        let proof = if self == Self::Unproven { None } else { honest.proof };
        *of = KeyBundle { proof, ..keys.clone() }.to_string().into();
    }

    fn forth(self, keys: &KeyBundle, asked: &mut Call) -> Option<Given> {
        match (self, asked.path.as_str()) {
            (Self::Initiate, "/v1/pairing/initiate")
            | (Self::Complete | Self::Both, "/v1/pairing/complete") => {
                edit(&mut asked.body, |body| self.keys(keys, &mut body["publicKey"]));
            }
            (Self::Nonce, "/v1/pairing/complete") => edit(&mut asked.body, |body| {
                body["nonce"] = body["nonce"].as_str().unwrap().chars().rev().collect::<String>().into();
            }),
            _ => {}
        }
        None
    }

    fn back(self, keys: &KeyBundle, asked: &Call, mut given: Given) -> Given {
        let (body, is_of) = (&mut given.body, |part: &str| asked.path.contains(part));
        match self {
            Self::Resolve | Self::Both if is_of("/resolve/") => {
                edit(body, |body| self.keys(keys, &mut body["publicKey"]));
            }
            Self::EnforcerId if is_of("/resolve/") => edit(body, |body| body["enforcerId"] = "other".into()),
            Self::Nonce if is_of("/resolve/") => edit(body, |body| {
                body["nonce"] = body["nonce"].as_str().unwrap().chars().rev().collect::<String>().into();
            }),
            Self::Status | Self::Unproven if is_of("/status/") => {
                edit(body, |body| self.keys(keys, &mut body["publicKey"]));
            }
            Self::ApproverId if is_of("/status/") => edit(body, |body| body["approverId"] = "eve".into()),
            _ => {}
        }
        given
    }
}

fn begin(scene: &Scene, lie: Lie) {
    let keys = DeviceKeys::generate().unwrap().bundle().clone();
    let also = keys.clone();
    scene.evil.forth(move |asked| lie.forth(&keys, asked));
    scene.evil.back(move |asked, given| Some(lie.back(&also, asked, given)));
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_swapped_while_a_link_is_answered_are_not_pinned() {
    let mut scene = Scene::start().await;
    let mut attempts = 0;
    for lie in LIES.into_iter().cycle().take(rounds() / 2) {
        if attempts % AT_ONE_GATEWAY == AT_ONE_GATEWAY - 1 {
            scene = Scene::start().await;
        }
        begin(&scene, lie);
        let started = scene.robot.start_pairing("robot").await.unwrap();
        let there = scene.ada.pair_by_link(&started.link).await;
        if lie.is_about_the_enforcer() {
            let is_noticed = matches!(there, Err(PairError::Pairing(PairingError::EnforcerReplaced)));
            assert!(is_noticed, "{lie:?}: {there:?}");
        } else {
            let here = scene.robot.finish_pairing(&started, Answered::Link).await;
            let is_noticed = matches!(here, Err(PairError::Pairing(PairingError::ApproverUnproven)));
            assert!(is_noticed, "{lie:?}: {here:?} {there:?}");
        }
        attempts += 1;
    }
    assert_eq!(attempts, rounds() / 2);
    scene.evil.honest();
    let started = scene.robot.start_pairing("robot").await.unwrap();
    let there = scene.ada.pair_by_link(&started.link).await.unwrap();
    let here = scene.robot.finish_pairing(&started, Answered::Link).await.unwrap();
    assert_eq!(there.pin.fingerprint(), scene.robot.keys.fingerprint());
    assert_eq!(here.pin.fingerprint(), scene.ada.keys.fingerprint());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_are_swapped_after_a_typed_code_show_other_digits() {
    let mut scene = Scene::start().await;
    let mut attempts = 0;
    for lie in LIES.into_iter().cycle().take(rounds() / 2) {
        if attempts % AT_ONE_GATEWAY == AT_ONE_GATEWAY - 1 {
            scene = Scene::start().await;
        }
        begin(&scene, lie);
        let started = scene.robot.start_pairing("robot").await.unwrap();
        let there = scene.ada.pair_by_code(&started.code, None).await.unwrap();
        match scene.robot.finish_pairing(&started, Answered::TypedCode).await {
            Ok(here) => {
                assert!(here.digits.is_some() && there.digits.is_some(), "{lie:?}");
                assert_ne!(here.digits, there.digits, "{lie:?}");
            }
            Err(PairError::Pairing(PairingError::ApproverUnproven)) if lie == Lie::Unproven => {}
            Err(other) => panic!("{lie:?}: {other:?}"),
        }
        attempts += 1;
    }
    assert_eq!(attempts, rounds() / 2);
    scene.evil.honest();
    let started = scene.robot.start_pairing("robot").await.unwrap();
    let there = scene.ada.pair_by_code(&started.code, None).await.unwrap();
    let here = scene.robot.finish_pairing(&started, Answered::TypedCode).await.unwrap();
    assert!(here.digits.is_some());
    assert_eq!(here.digits, there.digits);
}
