//! Why a doorbell can't be opened.

use std::{error::Error as StdError, path::PathBuf};

use crate::options::MAX_CELL;

/// None of these repeats a credential.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("no NATS server is named")]
    NoServer,
    #[error(
        "NATS server {position} is not an address; write it like \"nats://nats.example.org:4222\", without a path, a user \
         and a password"
    )]
    Address { position: usize },
    #[error(
        "NATS server {position} is not this machine, and the connection would not be encrypted: everybody on the network \
         between could see which nodes talk when, and stop it. Set root_certificates to the PEM file of the authority that \
         signs the server's certificate; or, if the network is protected by other means, set allow_plain = true"
    )]
    Plain { position: usize },
    #[error(
        "NATS server {position} is to be used with TLS, and there is nothing to check its certificate with; set \
         root_certificates to the PEM file of the authority that signs it"
    )]
    NoRootCertificates { position: usize },
    #[error("a client certificate is used with TLS only; set root_certificates, too")]
    ClientCertificateWithoutTls,
    #[error("{file} can't be used as a certificate")]
    Certificate {
        file: PathBuf,
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    #[error(
        "the credentials of NATS can't be read from {file}: one line is a token, two lines are a user and a password"
    )]
    Credentials {
        file: PathBuf,
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    #[error("the cell must have 1 to {MAX_CELL} characters, each a-z, 0-9, - or _")]
    Cell,
    #[error("NATS does not answer as it must: {reason}")]
    Probe {
        reason: &'static str,
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
    #[error(
        "NATS does not let this user do what the doorbell needs, to publish and subscribe to {subjects}: {said}"
    )]
    Permission { subjects: String, said: String },
}
