//! What the benches start that load gateways on PostgreSQL.

use std::path::PathBuf;

use countersign_testkit::postgres::Postgres;
use tempfile::TempDir;

use super::gateway::{self, Gateway};
use crate::{Failure, args::GatewayArgs, report_progress};

/// PostgreSQL's defaults, in place of the settings that tests use.
const DEFAULTS: &[&str] = &["max_connections=100", "shared_buffers=128MB"];

/// A private PostgreSQL with its default settings, and the program and the folder of its gateways.
pub(crate) struct OnPostgres {
    pub(crate) program: PathBuf,
    pub(crate) folder: TempDir,
    pub(crate) postgres: Postgres,
}

impl OnPostgres {
    pub(crate) fn start(args: &GatewayArgs) -> Result<Self, Failure> {
        let program = gateway::program(args.path())?;
        report_progress("starting a private PostgreSQL with its default settings");
        Ok(Self { program, folder: TempDir::new()?, postgres: Postgres::start_with(DEFAULTS) })
    }

    pub(crate) fn gateway(&self) -> Result<Gateway, Failure> {
        Gateway::on_postgres(&self.program, self.folder.path(), &self.postgres)
    }

    /// The processes to meter, by name.
    pub(crate) fn servers(&self, gateways: &[Gateway]) -> Vec<(&'static str, u32)> {
        let mut servers: Vec<_> = gateways.iter().map(|gateway| ("gateway", gateway.pid())).collect();
        servers.push(("postgres", self.postgres.pid()));
        servers
    }
}
