//! A request without an answer, as the journal has it.

use std::time::Duration;

use countersign_wire::id::RequestId;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::{
    exchange::{
        audience::{Audience, Turn},
        request::{Draft, Request, RequestError},
        taken::OPEN_TIME,
    },
    identity::keys::Fingerprint,
    journal::{Change, JournalError, Kind, Record},
};

/// A request in the journal, with what is needed to ask for the same again.
#[derive(Serialize, Deserialize)]
pub(crate) struct OpenRequest {
    artifact: Zeroizing<String>,
    envelope: String,
    /// How it was asked. Earlier programs did not write it.
    #[serde(default, skip_serializing_if = "Manner::is_plain")]
    manner: Manner,
}

/// How a request was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Manner {
    /// Whom it is for; empty for everybody who is paired. It is asked of nobody else when it is asked again.
    pub(crate) people: Vec<Turn>,
    /// Whether nobody waits for the answer: whoever comes later picks it up.
    pub(crate) is_detached: bool,
    /// How many requests before it have expired and asked for the same.
    pub(crate) asked_before: u32,
    /// How many requests before it were taken back because a device was connected that could not open them.
    pub(crate) brought: u32,
    /// Whether this machine has begun to take it back in order to ask anew. If the gateway says that it is taken back, that
    /// was not the end of it.
    pub(crate) is_moving: bool,
    /// The only device that it is for, which has changed another request to this one; `None` for all of the people's.
    pub(crate) device: Option<Fingerprint>,
    /// For how long it was asked at first. `None` if that is its own time; what was brought has what was left of it.
    pub(crate) whole_millis: Option<u64>,
}

impl OpenRequest {
    pub(crate) fn record(request: &Request, manner: Manner) -> Record {
        let open = Self { artifact: request.artifact.clone(), envelope: request.envelope.clone(), manner };
        let Ok(value) = serde_json::to_string(&open) else { unreachable!("texts can be written as JSON") };
        Record {
            kind: Kind::Open,
            key: request.request_id.as_str().to_owned(),
            value: Zeroizing::new(value),
            keep_until: request.expires_at.plus(OPEN_TIME),
        }
    }

    /// The request of a record, and how it was asked.
    pub(crate) fn read(record: &Record) -> Result<(Request, Manner), JournalError> {
        let unknown = || JournalError::Record(record.key.clone());
        let open: Self = serde_json::from_str(&record.value).map_err(|_| unknown())?;
        let request = Request::of_artifact(open.artifact, open.envelope).map_err(|_| unknown())?;
        Ok((request, open.manner))
    }
}

impl Manner {
    /// Whether there is nothing to say: for everybody, somebody waits, and for the first time.
    fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// The draft that a request was made of at first, with its whole time.
    pub(crate) fn draft(&self, request: &Request) -> Result<Draft, RequestError> {
        let draft = request.draft()?;
        let valid_for = self.whole_millis.map_or(draft.valid_for, Duration::from_millis);
        let to = Audience { people: self.people.clone(), ..draft.to.clone() };
        Ok(Draft { valid_for, to, ..draft })
    }
}

/// Removes a request that needs no answer any more.
pub(crate) fn removed(request_id: &RequestId) -> Change {
    Change::Remove(Kind::Open, request_id.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::fixture::{Ends, command, draft_of, now, robot_id};

    #[test]
    fn a_record_of_an_earlier_program_is_read() {
        let ends = Ends::new();
        let draft = draft_of(command(&["ls"]), None);
        let request = Request::build(&draft, &robot_id(), &ends.robot, &ends.robots, now()).unwrap();
        let manner = Manner {
            people: vec![Turn::at_once("ada")],
            is_detached: true,
            asked_before: 3,
            brought: 2,
            is_moving: true,
            device: None,
            whole_millis: Some(600_000),
        };
        let record = OpenRequest::record(&request, manner.clone());
        assert_eq!(manner.draft(&request).unwrap().valid_for, Duration::from_mins(10));
        assert_eq!(OpenRequest::read(&record).unwrap(), (request.clone(), manner));
        let plain = OpenRequest::record(&request, Manner::default());
        let value: serde_json::Value = serde_json::from_str(&plain.value).unwrap();
        let members: Vec<&String> = value.as_object().unwrap().keys().collect();
        assert_eq!(members, ["artifact", "envelope"], "as earlier programs write it");
        assert_eq!(OpenRequest::read(&plain).unwrap(), (request, Manner::default()));
    }
}
