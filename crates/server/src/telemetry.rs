//! Logs, to stderr: stdout is for programs.

use tracing::Level;
use tracing_subscriber::fmt;

use crate::config::{Log, LogFormat, LogLevel};

/// Starts logging to stderr.
pub fn start(log: Log) {
    let level = match log.level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    let builder = fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    // Fails only where a log was started before, which then goes on.
    match log.format {
        LogFormat::Json => drop(builder.json().flatten_event(true).try_init()),
        LogFormat::Text => drop(builder.with_ansi(false).try_init()),
    }
}
