//! `export`: finished exchanges of this machine, for others to verify.

use std::{fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::PathBuf};

use clap::Args;
use countersign_client::profile::Role;
use serde_json::json;

use super::Options;
use crate::{
    exit::{Exit, Failure},
    home::Home,
    output::{object, say},
};

/// Write finished exchanges of this machine into a folder, for `countersign verify`.
///
/// Each file has what was asked, in the clear, what was decided, by whose key, and what was done.
#[derive(Debug, Args)]
pub(super) struct Export {
    /// The folder to write to. It is made if it is missing; files that are there are not replaced.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Export {
    pub(super) async fn run(self, options: &Options) -> Result<(), Failure> {
        let enforcer = Home::of_user()?.find(Role::Enforcer, options.profile.as_deref())?.enforcer()?;
        let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failed, error);
        fs::create_dir_all(&self.folder).map_err(|error| failed(&error))?;
        let mut written = 0;
        for name in enforcer.bundles().await.map_err(|error| failed(&error))? {
            let Some(bundle) = enforcer.bundle(&name).await.map_err(|error| failed(&error))? else {
                continue;
            };
            let path = self.folder.join(format!("{}.json", name.trim_end_matches(".json")));
            // What was asked may be private.
            let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            match file.and_then(|mut file| file.write_all(bundle.to_json().as_bytes())) {
                Ok(()) => written += 1,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&format!("{} can't be written: {error}", path.display()))),
            }
        }
        if options.json {
            return object(&json!({ "written": written, "folder": self.folder }));
        }
        say(&format!("✓ {written} new in {}", self.folder.display()));
        Ok(())
    }
}
