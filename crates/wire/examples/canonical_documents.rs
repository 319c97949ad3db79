//! Writes random documents and our canonical form of each, for other implementations to compare.
//!
//! `canonical_documents COUNT [SEED]` writes `COUNT` pairs of lines: the document, then its canonical
//! form. `tests/differential` reads them.

#[path = "../tests/support/documents.rs"]
mod documents;

use std::io::Write as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().ok_or("usage: canonical_documents COUNT [SEED]")?.parse()?;
    let seed: u64 = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let mut random = documents::SeededRandom::new(seed);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for _ in 0..count {
        let document = documents::object(&mut random);
        let canonical = countersign_wire::canonical::form(document.as_bytes())?;
        // A carriage return is the only line break that documents have between tokens.
        writeln!(out, "{}", document.replace('\r', " "))?;
        out.write_all(&canonical)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
