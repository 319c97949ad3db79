//! `countersign`: ask, approve, execute and verify from the terminal.
//!
//! Each line imports only from the lines above it.
//!
//! | to find | look in |
//! |---|---|
//! | exit codes, messages; what the gateway answered, in words | [`exit`], [`gateway_error`] |
//! | stdout and stderr; the controlling terminal; times | [`output`], [`terminal`], [`moment`] |
//! | profiles on this machine, the recovery code of one | [`home`], [`recovery`] |
//! | what a command does | [`effects`], [`repository`] |
//! | running exactly what was approved | [`execution`] |
//! | the hook in the settings of agents' hosts; what is not as it should be | [`install`], [`finding`] |
//! | texts that people carry from device to device | [`voucher`], [`qr`] |
//! | the gateway of `countersign up` | [`local_gateway`] |
//! | asking, with what the person who waits sees | [`asking`] |
//! | what approvers say about devices | [`hearing`] |
//! | which calls of an agent are allowed, asked about and denied | [`rules`] |
//! | coding agents: their hosts, what they want to do, and the verdict | [`agent`] |
//! | what the person who answers sees | [`review`], [`danger`] |
//! | where requests come from | [`source`] |
//! | whether hooks work | [`doctor`] |
//! | the full-screen interface of `inbox` | [`tui`] |
//! | the commands | [`commands`] |

pub mod exit;

pub mod finding;
pub mod moment;
pub mod output;
pub mod repository;

pub mod effects;
pub mod gateway_error;
pub mod qr;
pub mod terminal;
pub mod voucher;

pub mod execution;
pub mod home;
pub mod recovery;

pub mod agent;
pub mod asking;
pub mod danger;
pub mod hearing;
pub mod install;
pub mod local_gateway;
pub mod review;
pub mod rules;
pub mod source;

pub mod doctor;
pub mod tui;

pub mod commands;

use std::process::ExitCode;

use clap::Parser as _;

use self::{commands::Cli, exit::Failure};

/// Runs the tool with the arguments of this process.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let json = cli.options.json;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&Failure::new(exit::Exit::Failed, error), json),
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
