//! The cryptography below TLS.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// aws-lc-rs, as everywhere in the process.
pub(super) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
