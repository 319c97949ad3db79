//! One agent: its host's messages, each to a hook of its own, as the host starts it.

use std::{
    env, fs,
    io::Write as _,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use super::{
    place::Place,
    script::{BETWEEN_CALLS, Recorded, Script, asks},
};
use crate::{Failure, servers::ends_with_us, stopwatch::Stopwatch};

const START_TIMEOUT: Duration = Duration::from_secs(10);

/// The tool, and the small program that asks a keeper.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    tool: PathBuf,
    hook: PathBuf,
}

impl Programs {
    /// In this folder, or else in ours.
    pub(super) fn find(folder: Option<&Path>) -> Result<Self, Failure> {
        let folder = match folder {
            Some(folder) => folder.canonicalize()?,
            None => env::current_exe()?.parent().ok_or("no folder")?.to_owned(),
        };
        let [tool, hook] = ["countersign", "countersign-hook"].map(|name| folder.join(name));
        for program in [&tool, &hook] {
            if !program.is_file() {
                let program = program.display();
                return Err(
                    format!("there is no {program}: build it, or name its folder with --programs").into()
                );
            }
        }
        Ok(Self { tool, hook })
    }
}

/// A keeper that runs until this is dropped.
#[derive(Debug)]
pub(super) struct Keeper(Child);

impl Keeper {
    pub(super) fn start(programs: &Programs, home: &Path) -> Result<Self, Failure> {
        let mut command = ends_with_us("KILL", &programs.tool);
        command.args(["keeper", "serve", "--home"]).arg(home);
        let keeper = Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let watch = Stopwatch::start();
        // A hook without a keeper says no; until there is one, nothing is played.
        while !is_served(home) {
            if watch.elapsed() > START_TIMEOUT {
                return Err("the keeper does not start".into());
            }
            thread::park_timeout(Duration::from_millis(20));
        }
        Ok(keeper)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn is_served(home: &Path) -> bool {
    UnixStream::connect(home.join("call/call.sock")).is_ok()
}

pub(super) struct Player {
    pub(super) programs: Programs,
    pub(super) script: &'static Script,
    pub(super) place: Place,
    pub(super) keeper: Option<Keeper>,
}

impl Player {
    /// An hour, as fast as it goes.
    pub(super) fn play(&self, turns: u32, tools: u32) -> Result<(), Failure> {
        self.say(self.script.starts)?;
        for turn in 0..turns {
            self.say(self.script.prompted)?;
            for call in 0..tools {
                self.pass(BETWEEN_CALLS)?;
                if call == 0 && asks(turn) {
                    self.say(self.script.asks)?;
                }
                self.say(self.script.used)?;
            }
            self.say(self.script.finished)?;
        }
        self.script.ends.map_or(Ok(()), |ends| self.say(ends))
    }

    /// Lets so much time pass for what hooks do now and then.
    fn pass(&self, time: Duration) -> Result<(), Failure> {
        let noted = self.place.last_look();
        if let Ok(found) = fs::metadata(&noted) {
            fs::File::options().append(true).open(&noted)?.set_modified(found.modified()? - time)?;
        }
        Ok(())
    }

    /// Gives a hook a message, and waits for what it says.
    fn say(&self, recorded: Recorded) -> Result<(), Failure> {
        let message = self.script.message(recorded, &self.place.work.display().to_string())?;
        let program = if self.keeper.is_some() { &self.programs.hook } else { &self.programs.tool };
        let mut command = Command::new(program);
        command.args(["hook", self.script.host, "--mode", "gate", "--host-timeout", "60", "--home"]);
        command.arg(&self.place.home);
        if self.keeper.is_some() {
            command.args(["--keeper", "user"]);
        }
        command
            .current_dir(&self.place.work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        child.stdin.take().ok_or("no stdin")?.write_all(message.as_bytes())?;
        let output = child.wait_with_output()?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("{}: {output:?}", self.script.host).into()),
        }
    }
}
