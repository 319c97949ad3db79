//! What travels over the socket: one question, one verdict (docs/keeper.md).
//!
//! A question is four bytes that name the protocol and its version, with the root of the caller and its folder beside them, and
//! four parts; each part is its length, four bytes with the highest first, and its bytes. A verdict on a hook's question is one
//! part: what the hook writes for its host, and its exit code. Whoever reads knows the largest length before it takes any memory.

use std::{
    cmp::Ordering,
    ffi::OsString,
    io::{self, Read},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::PathBuf,
    time::Duration,
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::io::AsyncRead;

use crate::{hosts::output::Output, tool::caller::Caller};

/// The protocol of hooks and its version.
pub const VERSION: [u8; 4] = *b"CSK3";

/// The protocol of commands of the tool, which propose something and wait, and its version.
pub const PROPOSAL: [u8; 4] = *b"CSP1";

/// The largest length of each part of a question: how it was started, folder, environment, message.
pub const LIMITS: [usize; PARTS] = [4 << 10, 4 << 10, 2 << 20, 16 << 20];

/// How many parts a question has.
pub const PARTS: usize = 4;

/// How long a length is.
const HEAD: usize = 4;

/// Most verdicts are smaller.
const USUAL_BYTES: usize = 4 << 10;

/// The largest part of an answer, in bytes.
pub const MAX_VERDICT: usize = 4 << 20;

/// The longest time, in milliseconds: a week.
pub const MAX_TIME: u64 = 7 * 24 * 60 * 60 * 1_000;

/// How a hook was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Start {
    /// The word for its host.
    pub host: String,
    /// The word for its mode.
    pub mode: String,
    /// After how many milliseconds the host stops waiting.
    pub host_timeout: u64,
    /// For how many milliseconds people can answer, where the run ends and is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defer_for: Option<u64>,
    /// The profile to ask with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl Start {
    /// After how long the host stops waiting.
    pub fn host_timeout(&self) -> Duration {
        Duration::from_millis(self.host_timeout.min(MAX_TIME))
    }
}

/// What a hook asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// How the hook was started.
    pub start: Start,
    /// The hook's own process.
    pub caller: Caller,
    /// The host's message, byte for byte.
    pub message: Vec<u8>,
}

/// Why a question can't be sent or read.
#[derive(Debug)]
pub enum FrameError {
    /// A part is larger than the protocol allows.
    TooLarge(usize),
    /// It is not a question of this version.
    Version,
    /// There is no folder beside it to look for files in.
    Root,
    /// A part is not what it should be.
    Malformed(&'static str),
    /// The connection failed, or ended early.
    Io(io::Error),
}

impl std::fmt::Display for FrameError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge(limit) => write!(formatter, "a part is larger than {} KB", limit >> 10),
            Self::Version => formatter.write_str("the hook and the keeper are of different versions"),
            Self::Root => formatter.write_str("it can't be said which files the hook sees"),
            Self::Malformed(what) => write!(formatter, "{what} can't be read"),
            Self::Io(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for FrameError {}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Question {
    /// The bytes that ask it.
    pub fn bytes(start: &Start, caller: &Caller, message: &[u8]) -> Result<Vec<u8>, FrameError> {
        question_bytes(VERSION, start, caller, message)
    }

    /// The question in these parts.
    pub fn from_parts(parts: [Vec<u8>; PARTS]) -> Result<Self, FrameError> {
        let (start, caller, message) = question_of(parts)?;
        Ok(Self { start, caller, message })
    }
}

/// The bytes of a question of either protocol.
pub fn question_bytes(
    version: [u8; 4],
    start: &impl Serialize,
    caller: &Caller,
    message: &[u8],
) -> Result<Vec<u8>, FrameError> {
    let start = serde_json::to_vec(start).map_err(|_| FrameError::Malformed("the start"))?;
    let folder = caller.folder.as_ref().map_or(&[][..], |folder| folder.as_os_str().as_bytes());
    let environment = environment(&caller.variables);
    let parts = [&start[..], folder, &environment, message];
    let mut bytes = version.to_vec();
    for (part, limit) in parts.into_iter().zip(LIMITS) {
        push(&mut bytes, part, limit)?;
    }
    Ok(bytes)
}

/// The start, the caller and the message of a question.
pub fn question_of<T: DeserializeOwned>(
    [start, folder, environment, message]: [Vec<u8>; PARTS],
) -> Result<(T, Caller, Vec<u8>), FrameError> {
    let start = serde_json::from_slice(&start).map_err(|_| FrameError::Malformed("the start"))?;
    let folder = (!folder.is_empty()).then(|| PathBuf::from(OsString::from_vec(folder)));
    Ok((start, Caller { variables: variables(&environment), folder }, message))
}

/// The environment as the system writes it: each variable as `NAME=VALUE` with a zero byte at its end.
fn environment(variables: &[(OsString, OsString)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in variables {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(b'=');
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn variables(environment: &[u8]) -> Vec<(OsString, OsString)> {
    let split = |entry: &[u8]| {
        // As the standard library does: a name may begin with this sign.
        let end = entry.iter().skip(1).position(|byte| *byte == b'=')? + 1;
        let text = |part: &[u8]| OsString::from_vec(part.to_vec());
        Some((text(&entry[..end]), text(&entry[end + 1..])))
    };
    environment.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).filter_map(split).collect()
}

fn push(bytes: &mut Vec<u8>, part: &[u8], limit: usize) -> Result<(), FrameError> {
    let length = u32::try_from(part.len()).ok().filter(|_| part.len() <= limit);
    bytes.extend_from_slice(&length.ok_or(FrameError::TooLarge(limit))?.to_be_bytes());
    bytes.extend_from_slice(part);
    Ok(())
}

/// The length that four bytes say, if it is allowed.
pub fn length(bytes: [u8; 4], limit: usize) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_be_bytes(bytes)).ok().filter(|length| *length <= limit);
    length.ok_or(FrameError::TooLarge(limit))
}

/// The bytes of a part of an answer, such as a verdict.
pub fn part_bytes(said: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let text = serde_json::to_vec(said).map_err(|_| FrameError::Malformed("the verdict"))?;
    let mut bytes = Vec::with_capacity(text.len() + HEAD);
    push(&mut bytes, &text, MAX_VERDICT)?;
    Ok(bytes)
}

/// Reads the parts of a question, each when `room` has made room for as many bytes. Returns what that has given, too.
pub async fn read_parts<R, F>(
    from: &mut (impl AsyncRead + Unpin),
    room: impl Fn(usize) -> F,
) -> Result<([Vec<u8>; PARTS], Vec<R>), FrameError>
where
    F: Future<Output = Result<R, FrameError>>,
{
    use tokio::io::AsyncReadExt as _;
    let mut parts: [Vec<u8>; PARTS] = Default::default();
    let mut rooms = Vec::with_capacity(PARTS);
    for (part, limit) in parts.iter_mut().zip(LIMITS) {
        let mut head = [0; HEAD];
        from.read_exact(&mut head).await?;
        let length = length(head, limit)?;
        rooms.push(room(length).await?);
        part.resize(length, 0);
        from.read_exact(part).await?;
    }
    Ok((parts, rooms))
}

/// Reads a part that is followed by others; `None` at the end.
pub async fn read_part(
    from: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> Result<Option<Vec<u8>>, FrameError> {
    use tokio::io::AsyncReadExt as _;
    let mut head = [0; HEAD];
    if from.read(&mut head[..1]).await? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..]).await?;
    let mut text = vec![0; length(head, limit)?];
    from.read_exact(&mut text).await?;
    Ok(Some(text))
}

/// Reads a verdict, which counts only if it is whole and nothing follows it.
pub fn read_verdict(from: &mut impl Read) -> Result<Output, FrameError> {
    let limit = u64::try_from(MAX_VERDICT + HEAD + 1).unwrap_or(u64::MAX);
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    from.take(limit).read_to_end(&mut bytes)?;
    let Some((head, text)) = bytes.split_first_chunk::<HEAD>() else { return Err(ended()) };
    match text.len().cmp(&length(*head, MAX_VERDICT)?) {
        Ordering::Less => Err(ended()),
        Ordering::Equal => serde_json::from_slice(text).map_err(|_| FrameError::Malformed("the verdict")),
        Ordering::Greater => Err(FrameError::Malformed("what follows the verdict")),
    }
}

fn ended() -> FrameError {
    FrameError::Io(io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn start() -> Start {
        Start {
            host: "claude".to_owned(),
            mode: "gate".to_owned(),
            host_timeout: 600_000,
            defer_for: None,
            profile: None,
        }
    }

    /// The parts of a question, as a keeper reads them.
    fn parts(mut bytes: &[u8]) -> Result<[Vec<u8>; PARTS], FrameError> {
        let mut version = [0; 4];
        bytes.read_exact(&mut version)?;
        assert_eq!(version, VERSION);
        let mut parts: [Vec<u8>; PARTS] = Default::default();
        for (part, limit) in parts.iter_mut().zip(LIMITS) {
            let mut head = [0; 4];
            bytes.read_exact(&mut head)?;
            part.resize(length(head, limit)?, 0);
            bytes.read_exact(part)?;
        }
        assert!(bytes.is_empty());
        Ok(parts)
    }

    fn bytes(question: &Question) -> Vec<u8> {
        Question::bytes(&question.start, &question.caller, &question.message).unwrap()
    }

    proptest! {
        #[test]
        fn a_question_arrives_as_it_was_asked(
            folder in "(/[^\0]{1,20}){0,3}",
            variables in prop::collection::vec(("[^=\0][^=\0]{0,9}", "[^\0]{0,20}"), 0..9),
            message in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
            let folder = Some(PathBuf::from(folder)).filter(|folder| !folder.as_os_str().is_empty());
            let question = Question { start: start(), caller: Caller { variables, folder }, message };
            let read = Question::from_parts(parts(&bytes(&question)).unwrap()).unwrap();
            prop_assert_eq!(read, question);
        }

        #[test]
        fn whatever_a_keeper_says_nothing_but_a_whole_verdict_counts(
            bytes in prop::collection::vec(any::<u8>(), 0..64),
            cut in 0_usize..40,
        ) {
            prop_assert!(read_verdict(&mut &bytes[..]).is_err());
            let whole = part_bytes(&Output::refused("a rule")).unwrap();
            prop_assert!(read_verdict(&mut &whole[..cut.min(whole.len() - 1)]).is_err());
            prop_assert!(read_verdict(&mut &[&whole[..], b"x"].concat()[..]).is_err());
            prop_assert_eq!(read_verdict(&mut &whole[..]).unwrap(), Output::refused("a rule"));
        }
    }

    #[test]
    fn a_part_that_is_too_large_is_neither_sent_nor_read() {
        let message = vec![b' '; LIMITS[3] + 1];
        assert!(matches!(
            Question::bytes(&start(), &Caller::default(), &message),
            Err(FrameError::TooLarge(_))
        ));
        assert!(matches!(length([0xff; 4], LIMITS[3]), Err(FrameError::TooLarge(_))));
    }

    #[test]
    fn bytes_that_are_no_text_stay_as_they_are() {
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let caller = Caller {
            variables: vec![(text(b"A\xff"), text(b"\xfe=")), (text(b"=B"), text(b""))],
            folder: Some(PathBuf::from(text(b"/\xff"))),
        };
        let question = Question { start: start(), caller, message: Vec::new() };
        let read = Question::from_parts(parts(&bytes(&question)).unwrap()).unwrap();
        assert_eq!(read, question);
    }
}
