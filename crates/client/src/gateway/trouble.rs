//! What goes wrong with a connection, as a closed list of our own sentences. A gateway, or whoever answers in its place,
//! chooses reasons of closing, names in certificates and texts of errors; none of them is kept, so none can reach a
//! terminal, a log or an agent.

use std::{error::Error as StdError, io};

use countersign_wire::failure::Code;

/// Why there is no connection to the gateway, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Trouble {
    /// Nothing came within the time for it.
    #[error("no answer in time")]
    Late,
    /// Nothing listens at the address.
    #[error("connection refused")]
    ConnectionRefused,
    /// It ended while something was sent or awaited.
    #[error("the connection broke")]
    Broken,
    /// The name of the gateway has no address.
    #[error("its name is not known")]
    NameUnknown,
    /// There is no way to its network.
    #[error("there is no route to it")]
    NoRoute,
    /// The certificate is not one for this name, has expired, or is of an authority that this machine does not trust.
    #[error("its certificate is not trusted here")]
    Certificate,
    /// TLS failed otherwise: perhaps nothing there speaks TLS.
    #[error("TLS failed")]
    Tls,
    /// What answers does not speak HTTP.
    #[error("what answers there does not speak HTTP")]
    NotHttp,
    /// The gateway has closed a connection that was open.
    #[error("the gateway has closed the connection")]
    Closed,
    /// Not even a sign of life came.
    #[error("nothing was heard for too long")]
    Silent,
    /// What came is not of the protocol.
    #[error("the gateway sends what is not understood")]
    NotUnderstood,
    /// An upgrade was asked for and not made.
    #[error("the gateway does not open a WebSocket")]
    NoWebSocket,
    /// A stream of events was asked for and something else came.
    #[error("the gateway does not open a stream")]
    NoStream,
    /// The gateway, or something before it, said no.
    #[error("the gateway refused: {code} ({status})")]
    Refused {
        /// The HTTP status of the answer.
        status: u16,
        /// The code of the error.
        code: Code,
    },
    /// This end can't make a connection at all: its own settings, or no randomness.
    #[error("this machine can't open a connection")]
    Unusable,
    /// Something else than these.
    #[error("the connection failed")]
    Other,
}

impl Trouble {
    /// What an error of the HTTP client is. Its causes are compared and not repeated.
    pub(crate) fn of_http(error: &reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Late;
        }
        let first: &dyn StdError = error;
        let causes = std::iter::successors(Some(first), |cause| (*cause).source());
        let mut found = None;
        for cause in causes {
            let text = cause.to_string();
            if text == "dns error" {
                return Self::NameUnknown;
            }
            if text.contains("invalid peer certificate") {
                return Self::Certificate;
            }
            if text.contains("certificate") || text.contains("TLS") || text.contains("tls") {
                found = Some(Self::Tls);
            } else if text.starts_with("invalid HTTP") {
                found = Some(Self::NotHttp);
            } else if let Some(error) = cause.downcast_ref::<io::Error>() {
                found = found.or(Self::of_kind(error.kind()));
            }
        }
        found.unwrap_or(if error.is_connect() { Self::Other } else { Self::Broken })
    }

    /// What an error of the system is; `None` if it says nothing more.
    pub(crate) fn of_kind(kind: io::ErrorKind) -> Option<Self> {
        match kind {
            io::ErrorKind::ConnectionRefused => Some(Self::ConnectionRefused),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Some(Self::NoRoute),
            io::ErrorKind::TimedOut => Some(Self::Late),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Some(Self::Broken),
            _ => None,
        }
    }
}
