//! Whether an enforcer can be reached, by the gateway's word.

use countersign_wire::{
    Error, FromMembers, Label, Members,
    id::EnforcerId,
    presence::{Capabilities, Status, Transport},
    timestamp::Timestamp,
};

use crate::{
    ends::approver::Approver,
    gateway::{
        answers::loose,
        http::{Call, CallError, segment},
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
}
