//! Whom a request is for, who of them is asked later than the others, and how loudly. No I/O.

use std::time::Duration;

use countersign_wire::{
    artifact::{Artifact, Loudness, Turns},
    extension::VERIFY,
    timestamp::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use crate::identity::profile::{Pin, Pins, Role};

/// Whom to ask, and how loudly. Nobody else's answer counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Audience {
    /// Whom to ask, in which turns; empty for everybody who is paired.
    pub people: Vec<Turn>,
    /// Whether their phones ring.
    pub ring: Loudness,
    /// Whether an approval needs a person whom their device has verified.
    pub verify: Verify,
}

/// When an approval needs a person whom the lock of their device has verified ([`crate::lock`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verify {
    /// For what is dangerous and for what was not examined, by devices whose lock is pinned.
    #[default]
    Usual,
    /// Always. An approval of a device without a pinned lock does not count.
    Person,
}

/// The word in the extension of an artifact.
const PERSON: &str = "person";

impl Verify {
    /// What an artifact says. Whatever it is that is not known here, a person is needed.
    pub(crate) fn of(artifact: &Artifact<'_>) -> Self {
        let said = artifact.extensions.map(|extensions| VERIFY.read::<&RawValue>(&mut extensions.members()?));
        match said {
            None | Some(Ok(None)) => Self::Usual,
            Some(_) => Self::Person,
        }
    }

    /// The value of the extension; `None` if nothing is said.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::Usual => None,
            Self::Person => Some(PERSON),
        }
    }
}

impl Audience {
    /// Everybody who is paired, at once.
    pub fn everybody() -> Self {
        Self::default()
    }

    /// These people and nobody else, at once.
    pub fn only<P: Into<String>>(people: impl IntoIterator<Item = P>) -> Self {
        Self { people: people.into_iter().map(Turn::at_once).collect(), ..Self::default() }
    }

    /// Whether the answer of this person counts.
    pub(crate) fn includes(&self, person: &str) -> bool {
        self.people.is_empty() || self.people.iter().any(|turn| turn.person == person)
    }
}

/// A person to ask, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", from = "Written")]
pub struct Turn {
    /// The id of the approver.
    pub person: String,
    /// How long nobody must have answered before this person is asked; zero for those who are asked at once.
    pub after: Duration,
}

impl Turn {
    /// Of somebody who is asked at once.
    pub fn at_once(person: impl Into<String>) -> Self {
        Self { person: person.into(), after: Duration::ZERO }
    }
}

/// Somebody who was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addressee {
    /// The id of the approver.
    pub person: String,
    /// How many of their devices can answer.
    pub devices: usize,
    /// When it is their turn; `None` if they were asked at once.
    pub at: Option<Timestamp>,
}

/// A turn as the journal has it. Earlier programs wrote the id alone.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    AtOnce(String),
    #[serde(rename_all = "camelCase")]
    Later {
        person: String,
        after_millis: u64,
    },
}

impl From<Turn> for Written {
    fn from(Turn { person, after }: Turn) -> Self {
        match u64::try_from(after.as_millis()).unwrap_or(u64::MAX) {
            0 => Self::AtOnce(person),
            after_millis => Self::Later { person, after_millis },
        }
    }
}

impl From<Written> for Turn {
    fn from(written: Written) -> Self {
        match written {
            Written::AtOnce(person) => Self::at_once(person),
            Written::Later { person, after_millis } => {
                Self { person, after: Duration::from_millis(after_millis) }
            }
        }
    }
}

/// Those whose turn comes before a request expires. Nobody else is asked. Whoever is first always stays: nobody in the list would
/// mean everybody.
pub(crate) fn in_time(people: &[Turn], valid_for: Duration) -> Vec<Turn> {
    let first = people.iter().map(|turn| turn.after).min().unwrap_or_default();
    people.iter().filter(|turn| turn.after < valid_for || turn.after == first).cloned().collect()
}

/// The turns of those who are asked the same again, when so much of the time has passed.
pub(crate) fn later(people: &[Turn], passed: Duration) -> Vec<Turn> {
    let turn = |turn: &Turn| Turn { after: turn.after.saturating_sub(passed), ..turn.clone() };
    people.iter().map(turn).collect()
}

/// The devices that are asked: those of these people, or of everybody.
pub(crate) fn asked<'a>(people: &[Turn], pins: &'a Pins, now: Timestamp) -> Vec<&'a Pin> {
    let is_asked =
        |pin: &&Pin| people.is_empty() || people.iter().any(|turn| turn.person == pin.party().id());
    pins.active_in_role(Role::Approver, now).filter(is_asked).collect()
}

/// What the gateway is told: whom to ask when, unless it finds them by itself, and how loudly. `None` if that is nothing.
pub(crate) fn for_gateway(people: &[Turn], ring: Loudness, asked: &[&Pin], now: Timestamp) -> Option<Value> {
    let mut metadata = Map::new();
    let is_one = asked.iter().all(|pin| pin.party() == asked[0].party());
    if let Some(turns) = turns(people, asked, now).filter(|_| !is_one) {
        metadata.insert(Turns::KEY.to_owned(), turns);
    }
    if ring != Loudness::default() {
        metadata.insert(Loudness::KEY.to_owned(), ring.as_str().into());
    }
    (!metadata.is_empty()).then_some(metadata.into())
}

/// Whoever is not paired is left out, and then the first of the others is asked at once.
fn turns(people: &[Turn], asked: &[&Pin], now: Timestamp) -> Option<Value> {
    let is_paired = |turn: &&Turn| asked.iter().any(|pin| pin.party().id() == turn.person);
    let paired: Vec<&Turn> = people.iter().filter(is_paired).collect();
    let first = paired.iter().map(|turn| turn.after).min()?;
    let turn = |turn: &&Turn| match turn.after.saturating_sub(first) {
        Duration::ZERO => json!({ "approverId": turn.person }),
        after => json!({ "approverId": turn.person, "at": now.plus(after) }),
    };
    Some(paired.iter().map(turn).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        exchange::fixture::{Ends, command, draft_of, now, robot_id},
        exchange::request::{Draft, Request},
        identity::{
            keys::DeviceKeys,
            profile::{Party, PinSource},
        },
    };

    fn turn(person: &str, minutes: u64) -> Turn {
        Turn { person: person.to_owned(), after: Duration::from_mins(minutes) }
    }

    /// A request to these people, of whom ada, bob and cy are paired.
    fn request(to: Audience) -> (Request, Pins) {
        let ends = Ends::new();
        let mut pins = ends.robots.clone();
        for person in ["bob", "cy"] {
            let party = Party::Approver(person.parse().unwrap());
            let keys = DeviceKeys::generate().unwrap();
            pins.insert(Pin::new(party, keys.bundle(), PinSource::Paired, now())).unwrap();
        }
        let draft = Draft { to, ..draft_of(command(&["ls"]), None) };
        (Request::build(&draft, &robot_id(), &ends.robot, &pins, now()).unwrap(), pins)
    }

    fn metadata(request: &Request) -> Value {
        serde_json::from_str::<Value>(&request.envelope).unwrap()["body"]["metadata"].clone()
    }

    #[test]
    fn the_gateway_is_told_who_is_asked_when_and_who_is_not_asked_at_all_can_not_open_it() {
        let people = vec![turn("ada", 0), turn("bob", 5), turn("cy", 10)];
        // It is valid for ten minutes, so it would never be the turn of cy.
        let (asked, pins) = request(Audience { people, ring: Loudness::Loud, ..Audience::default() });
        let at = now().plus(Duration::from_mins(5));
        assert_eq!(
            metadata(&asked),
            json!({
                "org.countersign.turns": [{ "approverId": "ada" }, { "approverId": "bob", "at": at }],
                "org.countersign.ring": "loud",
            })
        );
        let who = |person: &str, at| Addressee { person: person.to_owned(), devices: 1, at };
        assert_eq!(asked.addressees(&pins), [who("ada", None), who("bob", Some(at))]);
        assert_eq!(asked.draft().unwrap().to.ring, Loudness::Loud, "it is as loud when it is asked again");
    }

    #[test]
    fn the_first_who_is_paired_is_asked_at_once() {
        let (asked, _) = request(Audience {
            people: vec![turn("zoe", 0), turn("bob", 3), turn("ada", 5)],
            ..Audience::default()
        });
        let at = now().plus(Duration::from_mins(2));
        let expected = json!([{ "approverId": "bob" }, { "approverId": "ada", "at": at }]);
        assert_eq!(metadata(&asked)["org.countersign.turns"], expected);
    }

    /// Their turns would all come too late. They are asked all the same, and nobody else is.
    #[test]
    fn whoever_is_named_never_becomes_everybody() {
        let people = vec![turn("bob", 30), turn("cy", 60)];
        let (asked, pins) = request(Audience { people, ..Audience::default() });
        let asked: Vec<String> = asked.addressees(&pins).into_iter().map(|it| it.person).collect();
        assert_eq!(asked, ["bob"]);
    }

    #[test]
    fn with_nothing_to_say_nothing_is_said() {
        assert_eq!(metadata(&request(Audience::everybody()).0), Value::Null);
        assert_eq!(metadata(&request(Audience::only(["bob"])).0), Value::Null, "the envelope names him");
    }

    #[test]
    fn the_journal_keeps_turns_and_reads_those_of_earlier_programs() {
        let turns = [turn("ada", 0), turn("bob", 5)];
        let text = serde_json::to_string(&turns).unwrap();
        assert_eq!(text, r#"["ada",{"person":"bob","afterMillis":300000}]"#);
        assert_eq!(serde_json::from_str::<Vec<Turn>>(&text).unwrap(), turns);
        assert_eq!(later(&turns, Duration::from_mins(2)), [turn("ada", 0), turn("bob", 3)]);
    }
}
