//! Sockets between processes of this machine.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
};

use nix::unistd::getpeereid;
use rustix::{
    io::{FdFlags, fcntl_setfd, ioctl_fionbio},
    net::{AddressFamily, RecvFlags, SendFlags, SocketType, socket, sockopt::set_socket_nosigpipe},
};

/// How bytes are sent with descriptors beside them.
pub const SEND: SendFlags = SendFlags::empty();

/// How they are received.
pub const RECEIVE: RecvFlags = RecvFlags::empty();

/// Descriptors that were received, which no program that is started from now on gets.
pub fn received(descriptors: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    for descriptor in &descriptors {
        fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
    }
    Ok(descriptors)
}

/// A socket that no program that is started from now on gets.
pub fn stream_socket(blocks: bool) -> io::Result<OwnedFd> {
    let made = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    fcntl_setfd(&made, FdFlags::CLOEXEC)?;
    set_socket_nosigpipe(&made, true)?;
    ioctl_fionbio(&made, !blocks)?;
    Ok(made)
}

/// The path to an open folder. Addresses of sockets have at most 103 bytes, and there is no shorter way to it.
pub fn reached(_folder: &OwnedFd, path: &Path) -> PathBuf {
    path.to_owned()
}

/// The user that the process at the other end of a connection runs as.
pub fn peer_user(stream: &impl AsFd) -> Option<u32> {
    getpeereid(stream).ok().map(|(user, _)| user.as_raw())
}

/// The number of the process that made the other end of a connection: nobody needs it here yet.
pub fn peer_process(_stream: &impl AsFd) -> Option<i32> {
    None
}
