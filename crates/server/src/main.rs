//! `countersign-gateway`.

use std::process::ExitCode;

use clap::Parser as _;
use countersign_server::commands::Command;

#[tokio::main]
async fn main() -> ExitCode {
    match Command::parse().run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the message for people")]
            {
                eprintln!("countersign-gateway: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}
