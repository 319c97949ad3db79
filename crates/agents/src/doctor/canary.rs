//! A host, started as its person starts it, is made to try something harmless. A refusal must stop it.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use super::model::{Model, Wish};
use crate::{hook::canary, hosts::Host};

/// How long a host may take to start and to end.
const RUN_TIME: Duration = Duration::from_mins(1);

/// What was seen of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Our hook was asked, and the host obeyed it.
    Stopped,
    /// The command ran, and our hook was never asked.
    RanUnasked,
    /// The command ran although our hook said no.
    RanDespite,
    /// The host did not try it, so nothing is known: how it ended, and what it said.
    NotTried(String),
}

/// Starts the host with the settings of this user and looks at the disk.
pub async fn try_host(host: Host, program: &Path, hooks: &Path) -> std::io::Result<Seen> {
    let folder = tempfile::tempdir()?;
    let proof = folder.path().join("ran");
    let record = Record::make(hooks)?;
    let project = folder.path().join("project");
    std::fs::create_dir(&project)?;
    let touch = format!("touch {}", proof.display());
    let wish = Wish { tool: host.canary.tool, arguments: (host.canary.arguments)(&touch) };
    let model = Model::start(wish).await?;
    let mut command = Command::new(program);
    (host.canary.start)(&mut command, &model.url(), folder.path())?;
    command.envs(host.without_updates.iter().copied());
    command.current_dir(&project).env(canary::VARIABLE, record.run.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let ended = timeout(RUN_TIME, command.output()).await;
    let said = match ended {
        Ok(Ok(output)) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
            format!("{}; {} {}", output.status, text(&output.stdout), text(&output.stderr))
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it did not end in {} s", RUN_TIME.as_secs()),
    };
    let was_asked = record.has_lines();
    Ok(match (proof.exists(), was_asked) {
        (true, true) => Seen::RanDespite,
        (true, false) => Seen::RanUnasked,
        (false, true) => Seen::Stopped,
        (false, false) => Seen::NotTried(said.chars().take(300).collect()),
    })
}

/// The file to which hooks add a line when they are asked. It is gone when the run has ended.
struct Record {
    run: u32,
    file: PathBuf,
}

impl Record {
    fn make(hooks: &Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(hooks)?;
        let run = std::process::id();
        let file = canary::record(hooks, run);
        std::fs::write(&file, "")?;
        Ok(Self { run, file })
    }

    fn has_lines(&self) -> bool {
        std::fs::read(&self.file).is_ok_and(|text| !text.is_empty())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.file));
    }
}

/// The host's program, by a search path. Its relative parts mean the working directory, whose programs are not run.
pub fn program(host: Host, path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(host.word())).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::hosts::claude;

    #[test]
    fn a_program_of_the_working_directory_is_no_host() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("claude");
        fs::write(&file, "").unwrap();
        let found = |path: String| program(claude::HOST, Some(OsStr::new(&path)));
        let absolute = folder.path().display().to_string();
        assert_eq!(found(format!("/nowhere:{absolute}")), Some(file));
        // The same folder by a relative name.
        let up = "../".repeat(std::env::current_dir().unwrap().components().count());
        let relative = format!("{up}{}", absolute.trim_start_matches('/'));
        assert!(Path::new(&relative).join("claude").is_file());
        assert_eq!(found(relative), None);
        assert_eq!(program(claude::HOST, None), None);
    }
}
