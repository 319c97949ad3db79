//! Made `vectors/seal.json` and `vectors/pairing.json`. Sealing is random, so another run makes other sealed objects:
//! the files are kept, and this is run only when the format changes. In `vectors/sentences.json` it writes anew what is said.
//!
//! `cargo run -p countersign-client --example make_vectors -- seal > vectors/seal.json`

#![expect(clippy::unwrap_used, reason = "a mistake in the cases ends the run")]

mod devices;
mod pairing;
mod seal;
mod sentences;

use std::io::Write as _;

use serde::Serialize as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document = match std::env::args().nth(1).as_deref() {
        Some("seal") => seal::document(),
        Some("pairing") => pairing::document(),
        Some("sentences") => sentences::document(),
        _ => return Err("usage: make_vectors seal|pairing|sentences".into()),
    };
    let mut out = Vec::new();
    let indent = serde_json::ser::PrettyFormatter::with_indent(b" ");
    document.serialize(&mut serde_json::Serializer::with_formatter(&mut out, indent))?;
    out.push(b'\n');
    Ok(std::io::stdout().lock().write_all(&out)?)
}
