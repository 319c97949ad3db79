//! How a caller's root and folder travel: as descriptors beside the first bytes of a question.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage, recvmsg, sendmsg,
};

use crate::platform::{RECEIVE, SEND, received};

/// A caller's root, and its own folder if it has one.
pub const MAX_FOLDERS: usize = 2;

/// Sends bytes with descriptors, and says how many.
pub fn send(socket: impl AsFd, bytes: &[u8], folders: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FOLDERS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    match beside.push(SendAncillaryMessage::ScmRights(folders)) {
        true => Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut beside, SEND)?),
        false => Err(io::Error::other("there is no room for the descriptors")),
    }
}

/// Receives bytes, and the descriptors beside them. There may be more than [`MAX_FOLDERS`]: the
/// system counts in steps.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FOLDERS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let read = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut beside, RECEIVE)?;
    let folders = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(folders) => Some(folders),
        _ => None,
    });
    Ok((read.bytes, received(folders.flatten().collect())?))
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;
    use crate::tool::files::Root;

    #[test]
    fn folders_arrive_with_the_first_bytes_and_nothing_else_does() {
        let root = Root::of_this_process().unwrap();
        let (mut one, other) = UnixStream::pair().unwrap();
        let mut bytes = [0; 8];
        for count in 1..=MAX_FOLDERS {
            assert_eq!(send(&one, b"CSK3", &vec![root.as_fd(); count]).unwrap(), 4);
            let (read, received) = receive(&other, &mut bytes).unwrap();
            assert_eq!((&bytes[..read], received.len()), (&b"CSK3"[..], count));
            for folder in received {
                Root::new(folder).unwrap();
            }
        }
        one.write_all(b"CSK3").unwrap();
        assert!(receive(&other, &mut bytes).unwrap().1.is_empty());
    }
}
