//! Who was asked, and how loudly: what the envelope of a request says.

use countersign_wire::{
    artifact::{Loudness, Turns},
    timestamp::Timestamp,
};
use serde_json::Value;

use super::Request;
use crate::{
    exchange::{
        audience::{self, Addressee, Turn},
        seal::Sealed,
    },
    identity::{keys::Fingerprint, profile::Pins},
};

impl Request {
    /// Whether some device that would be asked now can't open it: it was connected later.
    pub(crate) fn misses_device(&self, people: &[Turn], pins: &Pins, now: Timestamp) -> bool {
        let Some(opens) = self.devices() else { return false };
        audience::asked(people, pins, now).iter().any(|pin| !opens.contains(&pin.fingerprint()))
    }

    /// The devices that were asked; `None` if the envelope is none of ours.
    pub(crate) fn devices(&self) -> Option<Vec<Fingerprint>> {
        devices_of(&mut self.body()?)
    }

    /// Who was asked, in the order of their turns, by the envelope and these pins.
    pub fn addressees(&self, pins: &Pins) -> Vec<Addressee> {
        let Some(mut body) = self.body() else { return Vec::new() };
        let devices = devices_of(&mut body).unwrap_or_default();
        let turns = body["metadata"][Turns::KEY].as_array().map_or(&[][..], Vec::as_slice);
        let at = |person: &str| {
            let turn = turns.iter().find(|turn| turn["approverId"] == person)?;
            turn["at"].as_str()?.parse().ok()
        };
        let mut all: Vec<Addressee> = Vec::new();
        for person in devices.iter().filter_map(|device| pins.get(*device)).map(|pin| pin.party().id()) {
            match all.iter_mut().find(|asked| asked.person == person) {
                Some(asked) => asked.devices += 1,
                None => all.push(Addressee { person: person.to_owned(), devices: 1, at: at(person) }),
            }
        }
        all.sort_by_key(|asked| asked.at);
        all
    }

    /// How loudly it was asked.
    pub(super) fn ring(&self) -> Loudness {
        let body = self.body().unwrap_or_default();
        body["metadata"][Loudness::KEY].as_str().and_then(Loudness::of_word).unwrap_or_default()
    }

    fn body(&self) -> Option<Value> {
        let mut envelope: Value = serde_json::from_str(&self.envelope).ok()?;
        Some(envelope["body"].take())
    }
}

fn devices_of(body: &mut Value) -> Option<Vec<Fingerprint>> {
    let sealed: Sealed = serde_json::from_value(body["ciphertext"].take()).ok()?;
    Some(sealed.devices().collect())
}
