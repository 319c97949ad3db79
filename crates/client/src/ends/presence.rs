//! Whether enforcers can be reached and what they say of themselves, by the gateway's word.

use std::fmt;

use countersign_wire::{
    Error, FromMembers, Label, Members,
    id::EnforcerId,
    presence::{Capabilities, Status, Transport},
    timestamp::Timestamp,
};
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    ends::approver::Approver,
    gateway::{
        answers::loose,
        http::{Call, CallError, Http, segment},
    },
};

/// What a gateway says of an enforcer. The specification does not show the record, so it may say less than ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence {
    /// The enforcer that was asked about.
    pub enforcer_id: EnforcerId,
    /// Whether it can be reached; `None` if that is not said.
    pub status: Option<Status>,
    /// When it was last heard of; `None` if that is not said.
    pub last_seen_at: Option<Timestamp>,
    /// How it is connected; `None` if that is not said.
    pub transport: Option<Transport>,
    /// The workspace that it reported; `None` if it reported none.
    pub workspace_name: Option<Label>,
    /// The name for people that it reported; `None` if it reported none.
    pub enforcer_label: Option<Label>,
    /// The capabilities that it reported; `None` if it reported none.
    pub capabilities: Option<Capabilities>,
}

impl FromMembers<'_> for Presence {
    fn from_members(members: &mut Members<'_>) -> Result<Self, Error> {
        Ok(Self {
            enforcer_id: members.required("enforcerDeviceId")?,
            status: loose(members, "status"),
            last_seen_at: loose(members, "lastSeenAt"),
            transport: loose(members, "transport"),
            workspace_name: loose(members, "workspaceName"),
            enforcer_label: loose(members, "enforcerLabel"),
            capabilities: loose(members, "capabilities"),
        })
    }
}

impl Approver {
    /// What an enforcer says of itself, and whether it can be reached. It is the gateway's word.
    pub async fn presence(&self, enforcer: &EnforcerId) -> Result<Presence, CallError> {
        let call = Call::get(format!("/v1/presence/enforcers/{}", segment(enforcer.as_str())));
        let presence: Presence = self.http.send(&call).await?.object()?;
        if presence.enforcer_id == *enforcer { Ok(presence) } else { Err(CallError::NotUnderstood) }
    }
}

/// The enforcers of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enforcers {
    /// Those that are understood, as the gateway lists them.
    pub list: Vec<Presence>,
    /// How many records are no presence.
    pub not_understood: usize,
}

/// The most enforcers that are read.
pub const MAX_ENFORCERS: usize = 10_000;

impl Enforcers {
    /// All that were seen within thirty days. Any role may ask. It is the gateway's word, and more than [`MAX_ENFORCERS`] are
    /// not understood.
    pub async fn seen_by(gateway: &Http) -> Result<Self, CallError> {
        let answer = gateway.send(&Call::get("/v1/presence/enforcers")).await?;
        Self::read(&answer.body).ok_or(CallError::NotUnderstood)
    }

    /// Record by record: one that is wrong must not hide the others.
    fn read(text: &[u8]) -> Option<Self> {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let read = reader.deserialize_seq(Records).ok()?;
        reader.end().ok()?;
        Some(read)
    }
}

/// Reads an array of records.
struct Records;

impl<'de> Visitor<'de> for Records {
    type Value = Enforcers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an array of at most {MAX_ENFORCERS} records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut records: A) -> Result<Enforcers, A::Error> {
        let mut read = Enforcers::default();
        while let Some(record) = records.next_element::<&RawValue>()? {
            if read.list.len() + read.not_understood == MAX_ENFORCERS {
                return Err(A::Error::invalid_length(MAX_ENFORCERS, &self));
            }
            match countersign_wire::parse::<Presence>(record.get().as_bytes()) {
                Ok(presence) => read.list.push(presence.into_view()),
                Err(_) => read.not_understood += 1,
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use countersign_wire::Verbatim;

    use super::*;

    #[test]
    fn a_record_that_says_less_or_other_things_is_read() {
        let read = |text: &str| countersign_wire::parse::<Presence>(text.as_bytes()).map(Verbatim::into_view);
        let said =
            read(r#"{"enforcerDeviceId":"robot","online":true,"status":1,"lastSeenAt":null}"#).unwrap();
        assert_eq!((said.enforcer_id.as_str(), said.status, said.last_seen_at), ("robot", None, None));
        let ours = r#"{"enforcerDeviceId":"robot","status":"online","lastSeenAt":"2026-11-15T12:00:00Z"}"#;
        assert_eq!(read(ours).unwrap().status, Some(Status::Online));
        assert!(read(r#"{"online":true}"#).is_err());
    }

    #[test]
    fn a_record_that_is_wrong_hides_no_other_and_too_many_are_refused() {
        let wrong = [r#"{"online":true}"#, "7", r#"{"enforcerDeviceId":"x","enforcerDeviceId":"x"}"#];
        let nested = format!(
            r#"{{"enforcerDeviceId":"y","capabilities":{{"a.b":{}{}}}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        let record = |id: &str| format!(r#"{{"enforcerDeviceId":"{id}","capabilities":{{"push":7}}}}"#);
        let list = |records: &[String]| format!("[{}]", records.join(","));
        let records: Vec<String> =
            wrong.map(str::to_owned).into_iter().chain([record("a"), nested, record("b")]).collect();
        let read = Enforcers::read(list(&records).as_bytes()).unwrap();
        let ids: Vec<&str> = read.list.iter().map(|record| record.enforcer_id.as_str()).collect();
        assert_eq!((ids, read.not_understood), (vec!["a", "b"], 4));
        assert_eq!(Enforcers::read(b"[]"), Some(Enforcers::default()));
        for wrong in ["", "{}", "[1", "[] []", "[1,]"] {
            assert_eq!(Enforcers::read(wrong.as_bytes()), None, "{wrong}");
        }
        let many = |count| list(&vec![record("a"); count]);
        assert!(Enforcers::read(many(MAX_ENFORCERS).as_bytes()).is_some());
        assert_eq!(Enforcers::read(many(MAX_ENFORCERS + 1).as_bytes()), None);
    }
}
