//! `countersign`.

use std::process::ExitCode;

fn main() -> ExitCode {
    countersign_cli::run()
}
