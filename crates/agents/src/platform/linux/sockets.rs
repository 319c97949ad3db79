//! Sockets between processes of this machine.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with};

/// How bytes are sent with descriptors beside them.
pub const SEND: SendFlags = SendFlags::NOSIGNAL;

/// How they are received.
pub const RECEIVE: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// Descriptors that were received, which no program that is started gets.
pub fn received(descriptors: Vec<OwnedFd>) -> io::Result<Vec<OwnedFd>> {
    Ok(descriptors)
}

/// A socket that no program that is started gets.
pub fn stream_socket(blocks: bool) -> io::Result<OwnedFd> {
    let flags = if blocks { SocketFlags::CLOEXEC } else { SocketFlags::CLOEXEC | SocketFlags::NONBLOCK };
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// A path to an open folder that is short, whatever its name: addresses of sockets have at most 108 bytes.
pub fn reached(folder: &OwnedFd, _path: &Path) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string())
}

/// The user that the process at the other end of a connection runs as. Its number is 0 where it is outside of this process's
/// namespace, which rustix takes for an error.
pub fn peer_user(stream: &impl AsFd) -> Option<u32> {
    getsockopt(stream, PeerCredentials).ok().map(|peer| peer.uid())
}

/// The number of the process that made the other end of a connection, as far as it can be seen from here.
pub fn peer_process(stream: &impl AsFd) -> Option<i32> {
    getsockopt(stream, PeerCredentials).ok().map(|peer| peer.pid()).filter(|number| *number > 0)
}
