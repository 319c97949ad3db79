//! How a caller's root travels: as a descriptor beside the first bytes of a question.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Sends bytes with a descriptor, and says how many.
pub fn send(socket: impl AsFd, bytes: &[u8], root: BorrowedFd<'_>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let roots = [root];
    match beside.push(SendAncillaryMessage::ScmRights(&roots)) {
        true => Ok(sendmsg(socket, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL)?),
        false => Err(io::Error::other("there is no room for a descriptor")),
    }
}

/// Receives bytes, and the descriptor beside them if there is exactly one. The system closes any more.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let roots = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(roots) => Some(roots),
        _ => None,
    });
    let mut roots: Vec<OwnedFd> = roots.flatten().collect();
    let root = roots.pop().filter(|_| roots.is_empty());
    Ok((received.bytes, root))
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;
    use crate::tool::files::Root;

    #[test]
    fn a_root_arrives_with_the_first_bytes_and_nothing_else_does() {
        let root = Root::of_this_process().unwrap();
        let (mut one, other) = UnixStream::pair().unwrap();
        let mut bytes = [0; 8];
        assert_eq!(send(&one, b"CSK2", root.as_fd()).unwrap(), 4);
        let (count, received) = receive(&other, &mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"CSK2");
        Root::new(received.unwrap()).unwrap();
        one.write_all(b"CSK2").unwrap();
        assert!(receive(&other, &mut bytes).unwrap().1.is_none());
    }
}
