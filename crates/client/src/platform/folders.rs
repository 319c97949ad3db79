//! Where programs of a system keep a user's data.

/// Whose habits apply to folders of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Folders {
    /// Linux, and other systems with the folders of the XDG specification.
    Xdg,
    MacOs,
    Windows,
}

impl Folders {
    pub(crate) const CURRENT: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Xdg
    };
}
