//! Why a profile can't be read or changed, in sentences for the person in front of the screen.

use std::{io, path::PathBuf};

use countersign_wire::{Error as WireError, statement::StatementError};

use crate::{identity::lock::LockFault, random::NoRandomness};

/// Why a profile can't be read or changed. Each sentence ends with what to do; none repeats a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There is no folder, or no profile in it.
    #[error("there is no profile in {}. Create one, or name another folder", path.display())]
    Missing {
        /// Where it was expected.
        path: PathBuf,
    },
    /// A new profile never takes the place of another.
    #[error("{} exists already. Choose another name, or remove it first", path.display())]
    Exists {
        /// The folder that is in the way.
        path: PathBuf,
    },
    /// Other users may read or write it.
    #[error("other users have access to {0}. Take it from them with: chmod {mode} '{0}'", path.display())]
    NotPrivate {
        /// The file or folder that others have access to.
        path: PathBuf,
        /// The mode that it must have, as `chmod` takes it.
        mode: &'static str,
    },
    /// It belongs to somebody else, who can read and change it.
    #[error("{} belongs to another user. Use a profile of your own; if it is yours, change its owner", path.display())]
    NotOwned {
        /// The file or folder of another user.
        path: PathBuf,
    },
    /// This system does not say, or this program can't ask it, who else reads or writes it.
    #[error("nobody can say who else has access to {} on this system, so no keys are kept there. Use Linux or macOS", path.display())]
    Unchecked {
        /// The file or folder that nothing can be said about.
        path: PathBuf,
    },
    /// A link could lead anywhere, and be pointed elsewhere later.
    #[error("{} is a symbolic link, which a profile does not follow. Put the real file or folder there", path.display())]
    Symlink {
        /// The link itself, not its target.
        path: PathBuf,
    },
    /// It is a folder instead of a file, or the other way round, or neither.
    #[error("{} is not {expected}. Move it away, or restore it from a backup", path.display())]
    WrongKind {
        /// What is in the place.
        path: PathBuf,
        /// What should be there.
        expected: &'static str,
    },
    /// The content is not in the format of its file.
    #[error("{} is damaged. Restore it from a backup, or create the profile again", path.display())]
    Damaged {
        /// The file that can't be read.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: WireError,
    },
    /// The parts of a profile are those of two profiles.
    #[error("the keys in {} are not those of its profile.json. Restore both from one backup", path.display())]
    Mismatch {
        /// The folder of the profile.
        path: PathBuf,
    },
    /// A newer program wrote it. Nothing of it is guessed.
    #[error("{} has version {version} of its format. Update this program", path.display())]
    NewerVersion {
        /// The file that can't be read.
        path: PathBuf,
        /// The version that it has.
        version: u64,
    },
    /// The cipher can't tell these two apart.
    #[error("wrong passphrase or damaged file: {}. Try again, or restore the file from a backup", path.display())]
    WrongPassphrase {
        /// The file with the locked keys.
        path: PathBuf,
    },
    /// The keys are locked, and no passphrase was given.
    #[error("the keys in {} are locked. Enter their passphrase", path.display())]
    PassphraseNeeded {
        /// The file with the locked keys.
        path: PathBuf,
    },
    /// The parameters of the key derivation are beyond what it supports.
    #[error("the passphrase can't be used: {rule}")]
    Passphrase {
        /// The rule that it violates.
        rule: &'static str,
    },
    /// The key store of the operating system is missing, locked or refuses.
    #[error("the key store of the operating system can't be used: {reason}. Keep the keys in a file instead")]
    SystemKeyStore {
        /// What the key store says.
        reason: String,
    },
    /// The keys were rotated before, and nobody has said what became of it.
    #[error("an earlier rotation of the keys is not finished. Confirm it or revert it first")]
    RotationPending,
    /// There is no rotation to confirm or to revert.
    #[error("no rotation of the keys is under way")]
    NoRotation,
    /// A profile from a secret text has no folder.
    #[error("this profile is in memory only and can't be changed. Create one in a folder")]
    InMemory,
    /// The keys that were passed are not those of this profile.
    #[error("these keys are not those of the profile")]
    ForeignKeys,
    /// A text that should be a whole profile is not.
    #[error("the secret text is not a profile, or was not copied completely. Export it again")]
    SecretText,
    /// A part of a new profile violates a rule.
    #[error("{part} {rule}")]
    Invalid {
        /// The part, as the subject of a sentence.
        part: &'static str,
        /// The rule that it violates.
        rule: &'static str,
    },
    /// The variables that say where profiles are kept are not set.
    #[error("no folder for profiles is known. Set COUNTERSIGN_HOME to the one to use")]
    NoHome,
    /// The rules of pins forbid the change.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// A statement is not taken.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Nothing is generated without randomness.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// The operating system refuses.
    #[error("{} can't be {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was tried, as a participle.
        action: &'static str,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
}

impl ProfileError {
    /// Adds the path to an error of the operating system.
    pub(super) fn io(path: impl Into<PathBuf>, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, action, source }
    }

    /// Adds the path to what is wrong with a file's content.
    pub(super) fn damaged(path: impl Into<PathBuf>) -> impl FnOnce(WireError) -> Self {
        let path = path.into();
        move |source| Self::Damaged { path, source }
    }
}

/// Why a pin can't be added or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The device that vouches is unknown, revoked, itself only vouched for, or its time is over.
    #[error("whoever vouches is not a paired device, or not any more. Pair the new device instead")]
    VoucherNotPaired,
    /// Somebody vouches for a device in the name of a third person, who has or had one.
    #[error("this person has a device already, and only they can add another. Pair the new device instead")]
    OthersDevice,
    /// A recovery code that is made for, or used for, somebody else.
    #[error("a recovery code is for its own person only")]
    OthersRecovery,
    /// It was used for another device.
    #[error("this recovery code was used before. Pair the new device instead")]
    RecoverySpent,
    /// It was made less than a day ago, or less than a day before the device that made it was revoked.
    #[error(
        "this recovery code is not a day old, or the device that made it was revoked within a day. Pair the new device instead"
    )]
    RecoveryTooNew,
    /// The keys of a recovery code, for a device, or the other way round.
    #[error("the keys of a recovery code can't be those of a device. The device needs keys of its own")]
    RecoveryKeys,
    /// The device has vouched for as many others as it may.
    #[error("this device has vouched for as many others as it may. Pair the new device instead")]
    TooMany,
    /// Whoever signed the revocation is neither a paired device of the same party nor the one that vouched for it; or it is
    /// about a recovery code.
    #[error(
        "only a paired device of the same person, or the device that vouched for it, can revoke a device; nobody a recovery code"
    )]
    MayNotRevoke,
    /// It vouches for nothing, or for longer ago than now.
    #[error("it was vouched for until a time that has passed. Vouch for it again, or pair it")]
    VouchEnded,
    /// These keys were revoked once and do not come back.
    #[error("these keys were revoked. The device needs new keys")]
    Revoked,
    /// The same keys, under the name of another party.
    #[error(
        "these keys are pinned for another party. Somebody claims keys that are not theirs: do not go on"
    )]
    OtherParty,
    /// One of the two keys of the bundle is also in another pin.
    #[error("one of these keys belongs to another device. The key has changed: do not go on")]
    SharesAKey,
    /// There is no such pin.
    #[error("there is no device with this fingerprint")]
    Unknown,
}

/// Why a statement is not taken. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The keys that claim to have signed it are not pinned here.
    #[error("the statement is signed by a device that is not paired here")]
    UnknownSigner,
    /// It does not verify, or not here, or not now.
    #[error(transparent)]
    Statement(#[from] StatementError),
    /// It vouches, and what the lock of the device that signed it says does not hold.
    #[error(
        "the device lock does not confirm the voucher: {0}. Sign it again on that device, or pair the new device instead"
    )]
    Lock(LockFault),
    /// It vouches, and the device that signed it has a lock that did not confirm it.
    #[error(
        "whoever vouches has a device lock, and signed without it. Sign it again on that device's page, or pair the new device instead"
    )]
    NotConfirmed,
    /// It verifies, and says what its signer may not say.
    #[error(transparent)]
    Pin(#[from] PinError),
}
