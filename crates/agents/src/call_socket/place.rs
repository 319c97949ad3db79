//! Where the socket is, and who is at its other end.

use std::{
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    net::{
        SocketAddrUnix, bind, connect, listen,
        sockopt::{Timeout, set_socket_timeout},
    },
};

use crate::{
    hook_line::{keeper::KeeperPlace, place::Place},
    platform::{LOOK, peer_user, reached, stream_socket},
    tool::home::{ACCOUNTS, Home},
};

/// The folder that has the socket and nothing else: a sandbox sees this one and no other of ours.
const FOLDER: &str = "call";
const SOCKET: &str = "call.sock";
const ADMIN_SOCKET: &str = "admin.sock";
/// Whoever has this file locked is the keeper.
const LOCK: &str = "keeper.lock";

/// The folder of the socket of a keeper under an account of its own. Nobody but root puts anything beside it.
pub const SYSTEM_FOLDER: &str = "/run/countersign-keeper";

/// The folder of the socket over which people administer what that keeper keeps for them. Sandboxes never see it.
pub const ADMIN_FOLDER: &str = "/run/countersign-keeper-admin";

/// How many hooks may wait to be accepted.
const BACKLOG: i32 = 4096;

/// The socket of a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSocket {
    folder: PathBuf,
    /// The folder that has the lock of whoever is the keeper.
    home: PathBuf,
    of: KeeperPlace,
    /// The name of the socket in its folder.
    name: &'static str,
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
        Self { folder: home.join(FOLDER), home: home.to_owned(), of: KeeperPlace::User, name: SOCKET }
    }

    /// The one of the machine, which no line and no variable moves.
    pub fn of_system() -> Self {
        Self::in_system(SYSTEM_FOLDER, SOCKET)
    }

    /// The one of the machine for people, who administer what its keeper keeps for them.
    pub fn admin_of_system() -> Self {
        Self::in_system(ADMIN_FOLDER, ADMIN_SOCKET)
    }

    fn in_system(folder: &str, name: &'static str) -> Self {
        Self { folder: folder.into(), home: ACCOUNTS.into(), of: KeeperPlace::System, name }
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
        self.folder.join(self.name)
    }

    /// Calls the keeper. Nobody else's word counts: it has to be the same user, or whoever owns the folder of the machine's
    /// socket and is somebody else.
    pub fn connect(&self, within: Duration) -> io::Result<UnixStream> {
        let (folder, owner) = self.open_folder()?;
        if self.of == KeeperPlace::System && owner == own_user() {
            return Err(io::Error::other("its folder belongs to this account, and not to one of its own"));
        }
        let socket = stream_socket(true)?;
        // A keeper that was stopped accepts nobody; without this, nor would it refuse anybody.
        set_socket_timeout(&socket, Timeout::Send, Some(within))?;
        connect(&socket, &self.address(&folder)?)?;
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
        Ok(Some(KeeperSocket { listener: self.bind()?, lock }))
    }

    /// Listens in its folder, in the place of whatever was there. Only the keeper may; it does not block.
    pub fn bind(&self) -> io::Result<UnixListener> {
        let (folder, owner) = self.open_folder()?;
        if owner != own_user() {
            return Err(io::Error::other(format!("{} belongs to another account", self.folder.display())));
        }
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = stream_socket(false)?;
        bind(&socket, &self.address(&folder)?)?;
        let mode = if self.of == KeeperPlace::System { 0o666 } else { 0o600 };
        fs::set_permissions(self.path(), fs::Permissions::from_mode(mode))?;
        listen(&socket, BACKLOG)?;
        Ok(socket.into())
    }

    fn address(&self, folder: &OwnedFd) -> io::Result<SocketAddrUnix> {
        Ok(SocketAddrUnix::new(reached(folder, &self.folder).join(self.name))?)
    }

    /// The folder, if nobody but its owner can put a socket there, and its owner: for a user's keeper, the user.
    fn open_folder(&self) -> io::Result<(OwnedFd, u32)> {
        let flags = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = fs::File::from(rustix::fs::open(&self.folder, flags, Mode::empty())?);
        let found = folder.metadata()?;
        let may_own = self.of == KeeperPlace::System || found.uid() == own_user();
        match may_own && found.mode() & 0o022 == 0 {
            true => Ok((folder.into(), found.uid())),
            false => Err(io::Error::other("others can write to its folder")),
        }
    }
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
