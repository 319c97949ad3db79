//! `countersign`: ask, approve, execute and verify from the terminal.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | what differs by operating system | `platform` |
//! | the recovery code of a profile | [`recovery`] |
//! | texts that people carry from device to device | [`voucher`], [`qr`] |
//! | what runs without a terminal | [`background`] |
//! | the gateway of `countersign up` | [`local_gateway`] |
//! | one code that joins and pairs | [`connect`] |
//! | what the person who answers sees, and has answered | [`review`], [`danger`], [`answers`] |
//! | what the machines of a team say of themselves | `fleet` |
//! | where requests come from | [`source`] |
//! | the full-screen interface of `inbox` | [`tui`] |
//! | the commands | [`commands`] |
//!
//! What stands between an agent and its host, and what both ways of asking share, is in `countersign_agents`.

mod platform;

pub mod background;

pub mod answers;
pub mod connect;
pub mod danger;
mod fleet;
pub mod local_gateway;
pub mod qr;
pub mod recovery;
pub mod review;
pub mod source;
pub mod voucher;

pub mod tui;

pub mod commands;

use std::process::ExitCode;

use clap::Parser as _;
use countersign_agents::tool::{
    exit::{Exit, Failure},
    output,
};
use tokio::runtime::Builder;

use self::commands::Cli;

/// Runs the tool with the arguments of this process.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.options.json;
    let mut builder = match cli.is_service() {
        true => Builder::new_multi_thread(),
        false => Builder::new_current_thread(),
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&Failure::new(Exit::Failed, error), json),
    };
    match runtime.block_on(cli.run()) {
        Ok(code) => code,
        Err(failure) => failed(&failure, json),
    }
}

fn failed(failure: &Failure, json: bool) -> ExitCode {
    if json {
        let text = serde_json::json!({
            "outcome": failure.exit.word(), "message": failure.what, "next": failure.next, "detail": failure.detail,
        });
        drop(output::out(&text.to_string()));
    }
    output::say(&format!("✗ {failure}"));
    ExitCode::from(failure.exit.code())
}
