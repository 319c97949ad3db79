//! Asking a keeper. Nothing is waited for longer than until the deadline, and nothing is started: no runtime, no thread.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::time::Instant;

use super::{
    frames::{self, FrameError, LIMITS, Question, Start},
    place::CallSocket,
    root,
};
use crate::{
    hosts::output::Output,
    tool::{caller::Caller, files::Root},
};

/// Most messages are smaller.
const USUAL_BYTES: usize = 16 << 10;

/// The host's message, as it is on the standard input.
pub fn read_message(deadline: Instant) -> io::Result<Vec<u8>> {
    // Not the buffered one: what is in a buffer is not seen by `poll`.
    let end = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut text = Vec::with_capacity(USUAL_BYTES);
    let limit = LIMITS.iter().max().and_then(|limit| u64::try_from(limit + 1).ok()).unwrap_or(u64::MAX);
    Until { end, deadline }.take(limit).read_to_end(&mut text)?;
    Ok(text)
}

/// What the keeper at a socket answers a hook, or why there is no answer.
pub fn ask(socket: &CallSocket, start: &Start, message: &[u8], deadline: Instant) -> Result<Output, String> {
    let question =
        Question::bytes(start, &Caller::this_process(), message).map_err(|error| unsent(&error))?;
    let mut stream = Until { end: asked(socket, &question, deadline)?, deadline };
    frames::read_verdict(&mut stream).map_err(|error| match error {
        FrameError::Io(error) if error.kind() == io::ErrorKind::TimedOut => LATE.to_owned(),
        FrameError::Io(_) => "The keeper ended without a verdict.".to_owned(),
        error => format!("The keeper's verdict could not be read: {error}."),
    })
}

/// A connection to the keeper at a socket over which a question was asked, or why there is none. It does not block.
pub fn asked(socket: &CallSocket, question: &[u8], deadline: Instant) -> Result<UnixStream, String> {
    let stream = socket.connect(left(deadline)).map_err(|error| match error.kind() {
        // A keeper that was stopped accepts nobody.
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => LATE.to_owned(),
        _ => format!("The keeper does not answer: {error}. Start it with `{}`.", socket.remedy()),
    })?;
    stream.set_nonblocking(true).map_err(|error| unsent(&error.into()))?;
    let mut stream = Until { end: stream, deadline };
    let sent = Root::of_this_process().and_then(|root| {
        // Without a folder of its own, nothing is looked up there.
        let folders = [Some(root), Root::folder_of_this_process().ok()];
        let folders: Vec<BorrowedFd<'_>> = folders.iter().flatten().map(OwnedFd::as_fd).collect();
        stream.send(question, &folders)
    });
    sent.map(|()| stream.end).map_err(|error| unsent(&error.into()))
}

fn unsent(error: &FrameError) -> String {
    format!("The keeper could not be asked: {error}.")
}

const LATE: &str = "Nobody answered in time.";

fn left(deadline: Instant) -> Duration {
    // No time at all would mean for ever to a socket.
    deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
}

/// One end of a conversation that is over at its deadline.
struct Until<T> {
    end: T,
    deadline: Instant,
}

impl<T: AsFd> Until<T> {
    fn ready(&self, flags: PollFlags) -> io::Result<()> {
        loop {
            let now = Instant::now();
            if now >= self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let time = self.deadline.saturating_duration_since(now);
            let time = Timespec::try_from(time).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.end, flags)], Some(&time)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<T: AsFd + Read> Read for Until<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.ready(PollFlags::IN)?;
            match self.end.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl Until<UnixStream> {
    /// Sends a question, with folders of this process beside its first bytes.
    fn send(&mut self, question: &[u8], folders: &[BorrowedFd<'_>]) -> io::Result<()> {
        loop {
            self.ready(PollFlags::OUT)?;
            match root::send(&self.end, question, folders) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return self.write_all(question.get(sent?..).unwrap_or_default()),
            }
        }
    }
}

impl Write for Until<UnixStream> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        loop {
            self.ready(PollFlags::OUT)?;
            match self.end.write(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
