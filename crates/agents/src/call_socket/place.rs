//! Where the socket is, and who is at its other end.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use crate::tool::home::Home;

/// The folder that has the socket and nothing else: a sandbox sees this one and no other of ours.
const FOLDER: &str = "call";
const SOCKET: &str = "call.sock";
/// Whoever has this file locked is the keeper.
const LOCK: &str = "keeper.lock";

/// How many hooks may wait to be accepted.
const BACKLOG: i32 = 4096;

/// The socket of a keeper that runs as a service of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSocket {
    home: PathBuf,
}

/// The other end of a socket as it is heard, and the lock that goes with it.
#[derive(Debug)]
pub struct KeeperSocket {
    /// Where hooks call; it does not block.
    pub listener: UnixListener,
    /// Held for as long as hooks are heard.
    pub lock: fs::File,
}

impl CallSocket {
    /// The one of a home.
    pub fn of(home: &Home) -> Self {
        Self::in_folder(home.folder())
    }

    /// The one in the folder of a home.
    pub fn in_folder(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// The path of the socket, as people know it.
    pub fn path(&self) -> PathBuf {
        self.folder().join(SOCKET)
    }

    fn folder(&self) -> PathBuf {
        self.home.join(FOLDER)
    }

    /// Calls the keeper, which has to run as the same user: nobody else's word counts.
    pub fn connect(&self, within: Duration) -> io::Result<UnixStream> {
        let folder = self.open_folder()?;
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // A keeper that was stopped accepts nobody; without this, nor would it refuse anybody.
        set_socket_timeout(&socket, Timeout::Send, Some(within))?;
        connect(&socket, &address(&folder)?)?;
        match is_same_user(&socket) {
            true => Ok(socket.into()),
            false => Err(io::Error::other("somebody else answers there")),
        }
    }

    /// Becomes the keeper. `None` if another process is it.
    pub fn listen(&self) -> io::Result<Option<KeeperSocket>> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.home)?;
        let lock =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(self.home.join(LOCK))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        builder.create(self.folder())?;
        fs::set_permissions(self.folder(), fs::Permissions::from_mode(0o700))?;
        let folder = self.open_folder()?;
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &address(&folder)?)?;
        fs::set_permissions(self.path(), fs::Permissions::from_mode(0o600))?;
        listen(&socket, BACKLOG)?;
        Ok(Some(KeeperSocket { listener: socket.into(), lock }))
    }

    /// The folder, if nobody else can put a socket there.
    fn open_folder(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(self.folder(), flags, Mode::empty())?;
        let found = fs::metadata(reached(&folder))?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
        match is_ours {
            true => Ok(folder),
            false => Err(io::Error::other("others can write to its folder")),
        }
    }
}

/// A path to an open folder that is short, whatever its name: addresses of sockets have at most 108 bytes.
fn reached(folder: &OwnedFd) -> PathBuf {
    Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string())
}

fn address(folder: &OwnedFd) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(reached(folder).join(SOCKET))?)
}

/// Whether the process at the other end of a connection runs as this user. Its number is 0 where it is outside of this
/// process's namespace, which rustix takes for an error.
pub fn is_same_user(stream: &impl AsFd) -> bool {
    let peer = getsockopt(stream, PeerCredentials);
    peer.is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(200);

    #[test]
    fn one_keeper_at_a_time_and_the_next_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("a-folder-whose-name-is-long/".repeat(8));
        let socket = CallSocket::of(&Home::at(&home));
        assert!(socket.connect(SOON).is_err());
        let first = socket.listen().unwrap().unwrap();
        socket.connect(SOON).unwrap();
        assert!(socket.listen().unwrap().is_none());
        drop(first);
        assert!(socket.connect(SOON).is_err(), "what a dead keeper has left answers nobody");
        let _second = socket.listen().unwrap().unwrap();
        socket.connect(SOON).unwrap();
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let socket = CallSocket::of(&Home::at(folder.path()));
        let _listening = socket.listen().unwrap().unwrap();
        fs::set_permissions(socket.folder(), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(socket.connect(SOON).is_err());
        fs::set_permissions(socket.folder(), fs::Permissions::from_mode(0o700)).unwrap();
        socket.connect(SOON).unwrap();
        fs::rename(socket.folder(), folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", socket.folder()).unwrap();
        assert!(socket.connect(SOON).is_err(), "a link leads elsewhere");
    }
}
