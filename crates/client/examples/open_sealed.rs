//! Opens what other implementations have sealed, for `tests/interop`.
//!
//! Reads cases of the form of `vectors/seal.json` from stdin, one a line, and writes one line for each of their devices:
//! the `plaintext` in base64url, or why it is `refused`.

#[path = "../tests/client/support/seal_cases.rs"]
mod seal_cases;

use std::io::{BufRead as _, Write as _};

use serde_json::json;

fn main() -> seal_cases::Readable<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        for opened in seal_cases::open(&serde_json::from_str(&line?)?)? {
            let result = match opened {
                Ok(plaintext) => json!({ "plaintext": plaintext }),
                Err(reason) => json!({ "refused": reason }),
            };
            writeln!(out, "{result}")?;
        }
    }
    Ok(out.flush()?)
}
