//! The steps of a pairing, for the cases that need a pair.

use countersign_core::{Error, model::pairing::CodeKey};
use countersign_wire::{
    keys::{AgreementKey, KeyBundle, PublicKey, SigningKey},
    pairing::{CompleteRequest, CompleteResponse, InitiateRequest, InitiateResponse},
};

use super::world::{World, approver, robot};

pub(super) fn codes() -> CodeKey {
    CodeKey::from([7; 32])
}

pub(super) fn bundle(seed: u8) -> PublicKey {
    let mut agreement = [0; 32];
    (agreement[0], agreement[1]) = (9, seed);
    PublicKey::Bundle(Box::new(KeyBundle {
        signing: SigningKey::from_seed(&[seed; 32]).verifying_key(),
        agreement: AgreementKey::from_bytes(agreement).unwrap(),
        proof: None,
    }))
}

pub(super) async fn initiate(world: &World) -> InitiateResponse {
    let request = InitiateRequest {
        enforcer_id: robot(),
        enforcer_label: Some("Robot".parse().unwrap()),
        workspace_name: None,
        public_key: bundle(1),
    };
    world.gateway.initiate_pairing(&world.tenant, request, &codes()).await.unwrap()
}

pub(super) async fn complete(
    world: &World,
    begun: &InitiateResponse,
    who: &str,
    seed: u8,
) -> Result<CompleteResponse, Error> {
    let request = CompleteRequest {
        nonce: begun.nonce.clone(),
        approver_id: approver(who),
        public_key: bundle(seed),
        device_label: Some("Ada's phone".parse().unwrap()),
        lock: Some("v9.unread".parse().unwrap()),
    };
    world.gateway.complete_pairing(&world.tenant, &request).await
}

pub(super) async fn pair(world: &World, who: &str, seed: u8) -> CompleteResponse {
    let begun = initiate(world).await;
    complete(world, &begun, who, seed).await.unwrap()
}
