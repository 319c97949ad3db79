//! Submissions whose bytes are prepared once: only the id of the exchange changes from one to the next.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::json;

use super::{keep_alive::KeepAlive, messages};
use crate::{Failure, workload::scattered};

/// Size of a request's id: a prefix and 16 hexadecimal digits.
const ID_BYTES: usize = 8 + 16;

/// Placeholder of the id while the request is written.
const NO_ID: &str = "request-0000000000000000";

/// A submission to one approver, as the bytes of an HTTP request.
#[derive(Debug, Clone)]
pub(crate) struct Submission {
    bytes: Vec<u8>,
    id: usize,
}

/// The id of exchange number `number`. Neighbours are far apart, so that writes hit an index at random places.
pub(crate) fn scattered_id(number: u64) -> String {
    format!("request-{:016x}", scattered(number))
}

impl Submission {
    /// With a ciphertext of so many bytes.
    pub(crate) fn new(key: &str, enforcer: &str, approver: &str, ciphertext_bytes: usize) -> Self {
        let body = json!({
            "msgType": "artifact.submit", "requestId": NO_ID, "createdAt": messages::CREATED_AT,
            "sender": { "enforcerId": enforcer }, "recipient": { "approverId": approver },
            "body": {
                "ciphertext": filling(ciphertext_bytes), "artifactType": "command.review",
                "artifactHash": messages::HASH, "expiresAt": *messages::LATER,
            },
        });
        let bytes = messages::post("/v1/artifacts", Some(key), &body.to_string());
        let id = bytes.windows(ID_BYTES).position(|bytes| bytes == NO_ID.as_bytes()).unwrap_or_default();
        Self { bytes, id }
    }

    /// The request that submits exchange number `number`.
    pub(crate) fn with_number(&mut self, number: u64) -> &[u8] {
        self.bytes[self.id..self.id + ID_BYTES].copy_from_slice(scattered_id(number).as_bytes());
        &self.bytes
    }
}

/// A caller that submits over a connection of its own. `next` is the number of the next exchange, for all callers.
pub(crate) async fn submitter(
    address: SocketAddr,
    mut submission: Submission,
    next: &Arc<AtomicU64>,
) -> Result<impl AsyncFnMut() -> Result<(), Failure> + use<>, Failure> {
    let (mut connection, next) = (KeepAlive::open(address).await?, Arc::clone(next));
    Ok(async move || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        connection.call_successfully(submission.with_number(number)).await?;
        Ok(())
    })
}

/// Text that looks like base64, and does not compress.
pub(crate) fn filling(bytes: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits = (0..).flat_map(|number| scattered(number).to_le_bytes());
    digits.take(bytes).map(|byte| char::from(DIGITS[usize::from(byte % 64)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_changes() {
        let mut submission = Submission::new("key", "enforcer-1", "approver-1", 100);
        let first = String::from_utf8(submission.with_number(1).to_vec()).unwrap();
        let second = String::from_utf8(submission.with_number(2).to_vec()).unwrap();
        assert_ne!(first, second);
        assert_eq!(first.replace(&scattered_id(1), ""), second.replace(&scattered_id(2), ""));
        assert_eq!(first.matches(&scattered_id(1)).count(), 1);
    }
}
