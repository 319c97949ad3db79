//! Where the socket is, and who is at its other end.

use std::{
    fs, io,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::{
            fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
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

use crate::{
    hook_line::{keeper::KeeperPlace, place::Place},
    tool::home::{ACCOUNTS, Home},
};

/// The folder that has the socket and nothing else: a sandbox sees this one and no other of ours.
const FOLDER: &str = "call";
const SOCKET: &str = "call.sock";
/// Whoever has this file locked is the keeper.
const LOCK: &str = "keeper.lock";

/// The folder of the socket of a keeper under an account of its own. Nobody but root puts anything beside it.
pub const SYSTEM_FOLDER: &str = "/run/countersign";

/// How many hooks may wait to be accepted.
const BACKLOG: i32 = 4096;

/// The socket of a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSocket {
    folder: PathBuf,
    /// The folder that has the lock of whoever is the keeper.
    home: PathBuf,
    of: KeeperPlace,
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
        Self { folder: home.join(FOLDER), home: home.to_owned(), of: KeeperPlace::User }
    }

    /// The one of the machine, which no line and no variable moves.
    pub fn of_system() -> Self {
        Self { folder: SYSTEM_FOLDER.into(), home: ACCOUNTS.into(), of: KeeperPlace::System }
    }

    /// The one that a hook's line means.
    pub fn of_line(keeper: KeeperPlace, place: &Place) -> Result<Self, String> {
        match keeper {
            KeeperPlace::User => Ok(Self::in_folder(&place.folder().map_err(|failure| failure.to_string())?)),
            KeeperPlace::System if *place == Place::default() => Ok(Self::of_system()),
            KeeperPlace::System => {
                Err("The keeper of this machine has rules and keys of its own: --home and --profile-file \
                     do not go with --keeper system."
                    .to_owned())
            }
        }
    }

    /// What starts the keeper.
    pub fn remedy(&self) -> &'static str {
        match self.of {
            KeeperPlace::User => "countersign keeper start",
            KeeperPlace::System => "sudo systemctl start countersign-keeper",
        }
    }

    /// The path of the socket, as people know it.
    pub fn path(&self) -> PathBuf {
        self.folder.join(SOCKET)
    }

    /// Calls the keeper. Nobody else's word counts: it has to be the same user, or whoever owns the folder of the machine's
    /// socket and is somebody else.
    pub fn connect(&self, within: Duration) -> io::Result<UnixStream> {
        let (folder, owner) = self.open_folder()?;
        if self.of == KeeperPlace::System && owner == own_user() {
            return Err(io::Error::other("its folder belongs to this account, and not to one of its own"));
        }
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // A keeper that was stopped accepts nobody; without this, nor would it refuse anybody.
        set_socket_timeout(&socket, Timeout::Send, Some(within))?;
        connect(&socket, &address(&folder)?)?;
        match peer_user(&socket) == Some(owner) {
            true => Ok(socket.into()),
            false => Err(io::Error::other("somebody else answers there")),
        }
    }

    /// Becomes the keeper. `None` if another process is it.
    pub fn listen(&self) -> io::Result<Option<KeeperSocket>> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        if self.of == KeeperPlace::User {
            builder.create(&self.home)?;
        }
        let mut options = fs::OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).mode(0o600).open(self.home.join(LOCK))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        if self.of == KeeperPlace::User {
            builder.create(&self.folder)?;
            fs::set_permissions(&self.folder, fs::Permissions::from_mode(0o700))?;
        }
        let (folder, owner) = self.open_folder()?;
        if owner != own_user() {
            return Err(io::Error::other(format!("{} belongs to another account", self.folder.display())));
        }
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &address(&folder)?)?;
        let mode = if self.of == KeeperPlace::System { 0o666 } else { 0o600 };
        fs::set_permissions(self.path(), fs::Permissions::from_mode(mode))?;
        listen(&socket, BACKLOG)?;
        Ok(Some(KeeperSocket { listener: socket.into(), lock }))
    }

    /// The folder, if nobody but its owner can put a socket there, and its owner: for a user's keeper, the user.
    fn open_folder(&self) -> io::Result<(OwnedFd, u32)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = rustix::fs::open(&self.folder, flags, Mode::empty())?;
        let found = fs::metadata(reached(&folder))?;
        let may_own = self.of == KeeperPlace::System || found.uid() == own_user();
        match may_own && found.mode() & 0o022 == 0 {
            true => Ok((folder, found.uid())),
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

/// The user that the process at the other end of a connection runs as. Its number is 0 where it is outside of this process's
/// namespace, which rustix takes for an error.
pub fn peer_user(stream: &impl AsFd) -> Option<u32> {
    getsockopt(stream, PeerCredentials).ok().map(|peer| peer.uid())
}

/// The user that this process runs as.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
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
        fs::set_permissions(&socket.folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(socket.connect(SOON).is_err());
        fs::set_permissions(&socket.folder, fs::Permissions::from_mode(0o700)).unwrap();
        socket.connect(SOON).unwrap();
        fs::rename(&socket.folder, folder.path().join("moved")).unwrap();
        std::os::unix::fs::symlink("moved", &socket.folder).unwrap();
        assert!(socket.connect(SOON).is_err(), "a link leads elsewhere");
    }
}
