//! Time and memory of reading a 2 MB envelope: our reader compared with `serde_json::Value`, in one run.
//!
//! `cargo run --release -p countersign-wire --example parse_cost`

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "this is a stop watch that prints what it measured"
)]

use std::{fs, process::Command, time::Instant};

use countersign_wire::{artifact::ArtifactSubmit, envelope::Envelope, parse};
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 41;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => compare(),
        ["--memory-of", reader, file] => memory_of(reader, file),
        _ => Err("usage: parse_cost".into()),
    }
}

fn compare() -> Outcome<()> {
    println!("{:<8} {:>9} {:>22} {:>22}", "body", "bytes", "time ours / Value", "memory ours / Value");
    for (name, text) in [("sealed", sealed()), ("open", open())] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(micros(|| read_ours(text.as_bytes()))?);
            theirs.push(micros(|| read_value(text.as_bytes()))?);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let file = std::env::temp_dir().join(format!("countersign-parse-cost-{}", std::process::id()));
        fs::write(&file, &text)?;
        let memory = |reader: &str| -> Outcome<f64> {
            let child =
                Command::new(std::env::current_exe()?).arg("--memory-of").arg(reader).arg(&file).output()?;
            Ok(String::from_utf8(child.stdout)?.trim().parse()?)
        };
        let (our_memory, their_memory) = (memory("ours")?, memory("value")?);
        fs::remove_file(file)?;
        println!(
            "{name:<8} {:>9} {:>6.2} / {:>6.2} ms {:.2} {:>6.1} / {:>5.1} MB {:.2}",
            text.len(),
            ours / 1e3,
            theirs / 1e3,
            ours / theirs,
            our_memory / 1e6,
            their_memory / 1e6,
            our_memory / their_memory,
        );
    }
    Ok(())
}

fn read_ours(text: &[u8]) -> Outcome<usize> {
    let envelope = parse::<Envelope<'_>>(text)?;
    let artifact = envelope.body.view::<ArtifactSubmit<'_>>()?;
    Ok(artifact.raw().as_str().len())
}

fn read_value(text: &[u8]) -> Outcome<usize> {
    let value: Value = serde_json::from_slice(text)?;
    Ok(value["body"].as_object().map_or(0, serde_json::Map::len))
}

fn micros(read: impl FnOnce() -> Outcome<usize>) -> Outcome<f64> {
    let start = Instant::now();
    std::hint::black_box(read()?);
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// In a separate process: by how much the peak of resident memory grows while `reader` reads.
fn memory_of(reader: &str, file: &str) -> Outcome<()> {
    let text = fs::read(file)?;
    let before = peak_resident_bytes()?;
    std::hint::black_box(if reader == "ours" { read_ours(&text)? } else { read_value(&text)? });
    println!("{}", peak_resident_bytes()? - before);
    Ok(())
}

fn peak_resident_bytes() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM on this system")?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes * 1024)
}

fn envelope(body: &str) -> String {
    format!(
        r#"{{"msgType":"artifact.submit","requestId":"r","createdAt":"2026-02-21T12:00:00Z","sender":{{"enforcerId":"e"}},"body":{body}}}"#
    )
}

fn sealed() -> String {
    let ciphertext = "Zm9vYmFy".repeat(1 << 18);
    envelope(&format!(
        r#"{{"artifactType":"patch.review","artifactHash":"{}","ciphertext":"{ciphertext}"}}"#,
        "0".repeat(64)
    ))
}

fn open() -> String {
    let files: Vec<String> = (0..12_000)
        .map(|index| {
            format!(
                r#"{{"path":"src/module_{index}.rs","added":[{index},{}],"line":"let value_{index} = compute(\"{index}\")?;","binary":false,"moved":null}}"#,
                index * 3
            )
        })
        .collect();
    envelope(&format!(
        r#"{{"requestId":"r","artifactType":"patch.review","repoRef":"repo","createdAt":"2026-02-21T12:00:00Z","expiresAt":"2026-02-21T12:10:00Z","payload":{{"files":[{}]}},"artifactHashAlg":"SHA-256","artifactHash":"{}"}}"#,
        files.join(","),
        "0".repeat(64)
    ))
}
