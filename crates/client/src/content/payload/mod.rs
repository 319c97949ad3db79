//! What artifacts say: the payloads that our enforcers write and our approvers show (docs/payloads.md).
//!
//! A payload is marked with a schema and a version. One that is not known here, or breaks the rules of its version, is
//! neither refused nor cut: it is [`Payload::Raw`], and is shown as the JSON that it is, with the reason.

mod call;
mod checkpoint;
mod command;
mod context;
mod effect;
mod found;
mod part;
mod patch;
mod plan;
mod sentence;
mod shown;
mod visible;

#[cfg(test)]
mod call_tests;
#[cfg(test)]
mod tests;

use countersign_wire::{
    Error, FromJson as _, Members, RawObject, artifact::ArtifactType, limits::MAX_ARTIFACT_PAYLOAD,
};
use serde::Serialize;
use serde_json::value::RawValue;

pub(crate) use self::context::ABOUT;
use self::shown::View;
pub use self::{
    call::{BoundFile, BoundRole, Call, EnvironmentVariable, VariableContent},
    checkpoint::{Checkpoint, EarlierExchange},
    command::{Command, CommandFile, FileRole, Input, Invocation, Variable, quoted},
    context::{About, Context, State},
    effect::{Effect, EffectKind},
    found::{Found, Weight},
    patch::{FileStatus, Patch, PatchFile},
    plan::Plan,
    visible::{visible, visible_code, visible_lines, visible_still},
};
use crate::json::Count;

/// The member `schema` of every payload. The namespace is the protocol's and not ours: other programs may write it too.
pub const SCHEMA: &str = "org.proto.payload";

/// The member `version` of every payload that is written. Version 1 is still read.
pub const VERSION: u64 = 2;

/// The payload of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Of `command.review`: what will be executed.
    Command(Command),
    /// Of `patch.review`: which files change, and how.
    Patch(Patch),
    /// Of `plan.review`: what the agent intends.
    Plan(Plan),
    /// Of `task.review`: one part of what it intends.
    Task(Plan),
    /// Of `checkpoint.review`: where the agent is.
    Checkpoint(Checkpoint),
    /// Any other, shown as the JSON that it is.
    Raw(Raw),
}

/// A payload that is shown as the JSON that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The type of its artifact.
    pub artifact_type: ArtifactType,
    /// The whole text. It is untrusted: show it with [`visible_lines`].
    pub text: String,
    /// Why it is not shown otherwise.
    pub reason: RawReason,
}

/// Why a payload is shown as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawReason {
    /// It has no marker, or that of another schema.
    #[error("its format is not known here")]
    UnknownSchema,
    /// It has another version of the schema, which may have members that this version does not show.
    #[error("it has version {0} of its format, which is not known here")]
    UnknownVersion(u64),
    /// It claims to be of this version and is not.
    #[error("it breaks the rules of its format")]
    Broken(#[source] Error),
    /// It is larger than an artifact may be.
    #[error("it has {0} bytes, which is more than a payload may have")]
    TooLarge(usize),
}

/// Why a payload can't be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// It breaks a rule of its type.
    #[error("the payload breaks a rule of its format")]
    Broken(#[source] Error),
    /// It is larger than an artifact may be. Leave out contents whose digest says enough.
    #[error("the payload has {0} bytes; at most {MAX_ARTIFACT_PAYLOAD} are possible")]
    TooLarge(usize),
    /// What was shown raw is not written again.
    #[error("a payload that is not known here can't be written")]
    Raw,
}

/// A payload with its marker.
#[derive(Serialize)]
struct Marked<'a, T> {
    schema: &'static str,
    version: u64,
    #[serde(flatten)]
    content: &'a T,
}

impl Payload {
    /// Reads the payload of an artifact. Whatever it is, there is something to show.
    pub fn read(artifact_type: ArtifactType, payload: &RawObject<'_>) -> Self {
        Self::read_known(artifact_type, payload).unwrap_or_else(|reason| {
            Self::Raw(Raw { artifact_type, text: payload.as_str().to_owned(), reason })
        })
    }

    fn read_known(artifact_type: ArtifactType, payload: &RawObject<'_>) -> Result<Self, RawReason> {
        let size = payload.as_str().len();
        if size > MAX_ARTIFACT_PAYLOAD {
            return Err(RawReason::TooLarge(size));
        }
        let mut members = payload.members().map_err(RawReason::Broken)?;
        let version = take_marker(&mut members)?;
        Self::of_version(version, artifact_type, &mut members).map_err(RawReason::Broken)
    }

    fn of_version(
        version: u64,
        artifact_type: ArtifactType,
        members: &mut Members<'_>,
    ) -> Result<Self, Error> {
        let context = match version {
            VERSION => Context::from_members(members)?,
            _ => Context::default(),
        };
        let mut payload = match artifact_type {
            ArtifactType::CommandReview => Command::from_members(members, context).map(Self::Command),
            ArtifactType::PatchReview => Patch::from_members(members, context).map(Self::Patch),
            ArtifactType::PlanReview => Plan::from_members(members, context).map(Self::Plan),
            ArtifactType::TaskReview => Plan::from_members(members, context).map(Self::Task),
            ArtifactType::CheckpointReview => {
                Checkpoint::from_members(members, context).map(Self::Checkpoint)
            }
        }?;
        members.close()?;
        if version == VERSION {
            payload.check_state()?;
            if let Some((view, call)) = payload.view().zip(payload.call()) {
                shown::check(view, call)?;
            }
            return Ok(payload);
        }
        payload.derive_state();
        if let Self::Task(task) = &mut payload {
            task.context.state = task.effects.is_none().then_some(State::NotExamined);
        }
        Ok(payload)
    }

    /// What runs has a state, and the effects that belong to it.
    fn check_state(&self) -> Result<(), Error> {
        let state = self.context().and_then(|context| context.state);
        match (self.runs(), state, self.effects()) {
            (true, None, _) => Err(Error::missing("state")),
            (false, Some(_), _) => Err(Error::breaks("state", "must not be there: nothing runs")),
            (_, Some(State::NotExamined), Some([])) => {
                Err(Error::breaks("effects", "must not be empty: it was not examined"))
            }
            (_, Some(State::Examined | State::Opaque), None) => Err(Error::missing("effects")),
            _ => Ok(()),
        }
    }

    /// Whether something runs if it is approved, of which a state is known.
    fn runs(&self) -> bool {
        match self {
            Self::Command(_) => true,
            Self::Task(task) => task.context.call.is_some(),
            _ => false,
        }
    }

    /// Before there were states, effects said whether something was examined.
    fn derive_state(&mut self) {
        let state = match self.effects() {
            Some(_) => State::Examined,
            None => State::NotExamined,
        };
        if let Self::Command(Command { context, .. }) = self {
            context.state.get_or_insert(state);
        }
    }

    /// The type of the artifact that the payload belongs to.
    pub fn artifact_type(&self) -> ArtifactType {
        match self {
            Self::Command(_) => ArtifactType::CommandReview,
            Self::Patch(_) => ArtifactType::PatchReview,
            Self::Plan(_) => ArtifactType::PlanReview,
            Self::Task(_) => ArtifactType::TaskReview,
            Self::Checkpoint(_) => ArtifactType::CheckpointReview,
            Self::Raw(raw) => raw.artifact_type,
        }
    }

    /// The payload as the JSON of an artifact. What an approver would not read as this payload is not written.
    pub fn to_json(&self) -> Result<String, PayloadError> {
        let mut whole = self.clone();
        whole.derive_state();
        let json = match &whole {
            Self::Command(command) => marked(command),
            Self::Patch(patch) => marked(patch),
            Self::Plan(plan) | Self::Task(plan) => marked(plan),
            Self::Checkpoint(checkpoint) => marked(checkpoint),
            Self::Raw(_) => return Err(PayloadError::Raw),
        }?;
        let object = RawObject::parse(json.as_bytes()).map_err(PayloadError::Broken)?;
        match Self::read_known(self.artifact_type(), &object) {
            Ok(read) if read == whole => Ok(json),
            Err(RawReason::TooLarge(size)) => Err(PayloadError::TooLarge(size)),
            Err(RawReason::Broken(error)) => Err(PayloadError::Broken(error)),
            _ => Err(PayloadError::Raw),
        }
    }

    /// The effects that the enforcer has derived; `None` if it has not examined the request, or nobody here can read it.
    pub fn effects(&self) -> Option<&[Effect]> {
        match self {
            Self::Command(command) => command.effects.as_deref(),
            Self::Patch(patch) => patch.effects.as_deref(),
            Self::Plan(plan) | Self::Task(plan) => plan.effects.as_deref(),
            Self::Checkpoint(checkpoint) => checkpoint.effects.as_deref(),
            Self::Raw(_) => None,
        }
    }

    /// How much is certain about what runs; `None` for plans, questions and changes of files, which run nothing.
    pub fn state(&self) -> Option<State> {
        match self {
            Self::Raw(_) => Some(State::NotExamined),
            _ => self.context().and_then(|context| context.state),
        }
    }

    /// The state as the words of a chip beside the first line; `None` if there is nothing to say.
    pub fn state_phrase(&self) -> Option<&'static str> {
        match (self, self.state()?) {
            (_, State::Examined) => None,
            (Self::Task(_), State::Opaque) => Some("known tool"),
            (_, State::Opaque) => Some("runs this project's code"),
            (_, State::NotExamined) => Some(State::NOT_EXAMINED),
        }
    }

    /// Whether everything must be read before it is approved, and only once: it is dangerous, or nobody knows what runs.
    pub fn is_serious(&self) -> bool {
        self.alarm() != Weight::Plain
    }

    /// How much care it asks of people. Questions, plans and patches run nothing, so they are never unclear.
    pub fn alarm(&self) -> Weight {
        let effects = self.effects().unwrap_or_default();
        match self.state() {
            _ if effects.iter().any(|effect| effect.kind.is_dangerous()) => Weight::Danger,
            Some(State::NotExamined) => Weight::Unclear,
            _ => Weight::Plain,
        }
    }

    /// What it says beside its view; `None` if nobody here can read it.
    pub fn context(&self) -> Option<&Context> {
        match self {
            Self::Command(command) => Some(&command.context),
            Self::Patch(patch) => Some(&patch.context),
            Self::Plan(plan) | Self::Task(plan) => Some(&plan.context),
            Self::Checkpoint(checkpoint) => Some(&checkpoint.context),
            Self::Raw(_) => None,
        }
    }

    fn view(&self) -> Option<View<'_>> {
        match self {
            Self::Command(command) => Some(View::Command(command)),
            Self::Patch(patch) => Some(View::Patch(patch)),
            Self::Plan(plan) | Self::Task(plan) => Some(View::Plan(plan)),
            Self::Checkpoint(checkpoint) => Some(View::Checkpoint(checkpoint)),
            Self::Raw(_) => None,
        }
    }

    /// The call behind it; `None` if nothing runs.
    pub fn call(&self) -> Option<&Call> {
        self.context().and_then(|context| context.call.as_deref())
    }

    /// The same with a call, which says what the view shows of it.
    #[must_use]
    pub fn with_call(mut self, state: Option<State>, mut call: Call) -> Self {
        call.shown = self.view().map(|view| shown::provable(view, &call)).unwrap_or_default();
        if let Some(context) = self.context_mut() {
            (context.state, context.call) = (state, Some(Box::new(call)));
        }
        self
    }

    /// The same with who asks, and why.
    #[must_use]
    pub fn with_about(mut self, about: About) -> Self {
        if let Some(context) = self.context_mut() {
            context.about = about;
        }
        self
    }

    fn context_mut(&mut self) -> Option<&mut Context> {
        match self {
            Self::Command(command) => Some(&mut command.context),
            Self::Patch(patch) => Some(&mut patch.context),
            Self::Plan(plan) | Self::Task(plan) => Some(&mut plan.context),
            Self::Checkpoint(checkpoint) => Some(&mut checkpoint.context),
            Self::Raw(_) => None,
        }
    }

    /// The members of the call that no view shows, each with its JSON pointer and its value as JSON.
    pub fn not_shown(&self) -> Vec<(String, String)> {
        self.call().map(shown::rest).unwrap_or_default()
    }

    /// The first line that a person reads: what will happen. It is never cut and has nothing invisible.
    pub fn headline(&self) -> String {
        match self {
            Self::Command(command) => command.headline(),
            Self::Patch(patch) => patch.headline(),
            Self::Plan(plan) | Self::Task(plan) => plan.headline(),
            Self::Checkpoint(checkpoint) => checkpoint.headline(),
            Self::Raw(raw) => {
                format!("{}, {} bytes of JSON: {}", raw.artifact_type, raw.text.len(), raw.reason)
            }
        }
    }
}

fn marked<T: Serialize>(content: &T) -> Result<String, PayloadError> {
    // Only a map with keys that are no strings could fail, and there is none.
    serde_json::to_string(&Marked { schema: SCHEMA, version: VERSION, content })
        .map_err(|_| PayloadError::Raw)
}

/// Takes the members `schema` and `version`, and returns the version.
fn take_marker(members: &mut Members<'_>) -> Result<u64, RawReason> {
    let schema = members.optional::<&RawValue>("schema").ok().flatten();
    let schema = schema.and_then(|schema| String::from_json(schema).ok());
    if schema.as_deref() != Some(SCHEMA) {
        return Err(RawReason::UnknownSchema);
    }
    match members.required::<Count>("version").map_err(RawReason::Broken)? {
        Count(version @ (1 | VERSION)) => Ok(version),
        Count(version) => Err(RawReason::UnknownVersion(version)),
    }
}
