//! `countersign-hook`: what hosts start before every call of an agent where a keeper decides.

use std::process::ExitCode;

fn main() -> ExitCode {
    countersign_agents::hook::thin::run()
}
