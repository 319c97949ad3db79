//! `install` and `uninstall`.

use std::{env, path::Path, time::Duration};

use clap::Args;
use countersign_agents::{
    call_socket::place::CallSocket,
    hook::{desk::Desk, machine},
    hook_line::{HookLine, keeper::KeeperPlace, mode::Mode, place::Place},
    hosts::{self, Host},
    install::{
        inspection::Inspection,
        places::Places,
        plan::{Plan, Wish},
        program::{self, Trusted},
        settings_file::Change,
    },
    tool::{
        exit::{Exit, Failure},
        home::Home,
        moment,
        output::{object, say},
        terminal::Terminal,
    },
};
use countersign_client::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use super::{keeper, options::Options};

/// The shortest time in which a person can be asked at all.
const MIN_TIMEOUT: Duration = Duration::from_mins(1);

/// The longest time that a host is made to wait.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// Add Countersign to an agent's settings.
///
/// Shows what would change in which file, asks, keeps a backup, and changes nothing else. `countersign uninstall` gives
/// back the bytes that were there before.
///
/// For example:  countersign install claude
#[derive(Debug, Args)]
pub(super) struct Install {
    /// The program that runs the agent.
    host: Host,
    /// When a person is asked. gate: every call needs a rule, a grant or a person. relay: only what the host would ask
    /// about itself; your rules can still deny any call. Without it: as it is installed already, else relay.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "relay|gate")]
    mode: Option<Mode>,
    /// How long the host waits for an answer, from 1m to 24h. Nobody's answer counts as no.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = moment::duration)]
    timeout: Duration,
    /// Let a keeper decide instead of each hook by itself. user: yours, which must be running (`countersign keeper start`);
    /// system: the one under an account of its own, with --managed only (docs/keeper.md).
    #[arg(
        long, value_enum, hide_possible_values = true, value_name = "user|system", num_args = 0..=1,
        default_missing_value = "user"
    )]
    keeper: Option<KeeperPlace>,
    #[command(flatten)]
    how: How,
}

/// Remove Countersign from an agent's settings.
///
/// What was there before is there again, byte for byte; what was changed meanwhile stays.
#[derive(Debug, Args)]
pub(super) struct Uninstall {
    /// The program that runs the agent.
    host: Host,
    #[command(flatten)]
    how: How,
}

/// What `install` and `uninstall` have in common.
#[derive(Debug, Args)]
struct How {
    /// For every user of this machine, where only its administrator can change it.
    #[arg(long)]
    managed: bool,
    /// Only show what would change.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Do not ask. Without a terminal it is needed.
    #[arg(long)]
    yes: bool,
}

impl Install {
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        if !(MIN_TIMEOUT..=MAX_TIMEOUT).contains(&self.timeout) {
            return Err(Failure::new(Exit::Usage, "--timeout must be from 1m to 24h"));
        }
        program::lasting()?;
        let places = Places::of_user()?;
        let place = Place::of(&Home::of_user()?, self.how.managed)?;
        let keeper = self.keeper(&places)?;
        if keeper == Some(KeeperPlace::System) && place != Place::default() {
            return Err(Failure::new(Exit::Usage, "the keeper of this machine takes no profile from a file")
                .next("unset COUNTERSIGN_PROFILE_FILE, and run this again"));
        }
        let line = HookLine {
            program: program::for_hooks(keeper.is_some())?,
            host: self.host.names,
            place,
            keeper,
            mode: self.mode.or_else(|| self.installed(&places)?.mode()).unwrap_or(Mode::Relay),
            host_timeout: self.timeout,
        };
        if self.how.managed {
            check_program(&line.program)?;
        }
        let wish = Wish { line, is_managed: self.how.managed };
        let plan = (self.host.files.install)(&places, &wish)?;
        let words = Words {
            done: format!(
                "{} asks Countersign from its next session on, in mode {}.",
                self.host.name(),
                wish.line.mode
            ),
            nothing: format!("It is installed for {} already; nothing changes.", self.host.name()),
        };
        carry_out(&plan, self.host, &self.how, options, &words)
    }

    /// Who decides: a keeper that answers, or the one that is installed already.
    fn keeper(&self, places: &Places) -> Result<Option<KeeperPlace>, Failure> {
        let Some(keeper) = self.keeper else {
            return Ok(self.installed(places).and_then(|found| found.keeper()));
        };
        let socket = match keeper {
            KeeperPlace::User => CallSocket::of(&Home::of_user()?),
            KeeperPlace::System if self.how.managed => CallSocket::of_system(),
            KeeperPlace::System => {
                let what = "an agent could remove a hook from your own settings, and ask no keeper";
                return Err(Failure::new(Exit::Usage, what)
                    .next("run this as root with --managed, for every user of this machine"));
            }
        };
        match keeper::answers(&socket) {
            true => Ok(Some(keeper)),
            false => Err(Failure::new(Exit::NotSetUp, "no keeper runs here, so every call would be denied")
                .next(format!("start it with `{}`, then run this again", socket.remedy()))),
        }
    }

    /// What is installed. Installing again to repair something must not make it into less.
    fn installed(&self, places: &Places) -> Option<Inspection> {
        let found = self.host.inspect(places, Path::new("."));
        found.into_iter().find(|place| place.is_managed == self.how.managed)
    }
}

impl Uninstall {
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        let plan = (self.host.files.uninstall)(&Places::of_user()?, self.how.managed)?;
        let words = Words {
            done: format!("{} does not ask Countersign any more.", self.host.name()),
            nothing: format!("It is not installed for {}; nothing changes.", self.host.name()),
        };
        carry_out(&plan, self.host, &self.how, options, &words)
    }
}

/// What is said at the end.
struct Words {
    done: String,
    nothing: String,
}

/// A policy that holds against the agent must not rest on a program that the agent can replace.
fn check_program(program: &str) -> Result<(), Failure> {
    let part = program::changeable_by_others(Path::new(program), Trusted::Root).unwrap_or_default();
    match part {
        None => Ok(()),
        Some(part) => Err(Failure::new(
            Exit::Failed,
            format!(
                "for every user, hosts would run {program}, and others than the administrator can change {}; nothing was changed",
                part.display()
            ),
        )
        .next("install the program as root in /usr/local/bin, and run it from there")),
    }
}

fn carry_out(plan: &Plan, host: Host, how: &How, options: &Options, words: &Words) -> Result<(), Failure> {
    if plan.changes.is_empty() {
        say(&words.nothing);
        return report(options, host, how, &[]);
    }
    say(plan.difference().trim_end());
    for note in &plan.notes {
        say(&format!("Note: {note}"));
    }
    if how.dry_run {
        say("Nothing was changed: this is what would be.");
        let files: Vec<Value> = plan.changes.iter().map(|change| of_file(change, None)).collect();
        return report(options, host, how, &files);
    }
    if !how.yes {
        confirm()?;
    }
    let now = SystemClock.now();
    let mut files = Vec::new();
    for change in &plan.changes {
        let backup = change.apply(now).map_err(|failure| match files.is_empty() {
            true => failure,
            false => failure.detail("the files before it in the list are changed"),
        })?;
        if let Some(backup) = &backup {
            say(&format!("What was there is kept in {}", backup.display()));
        }
        files.push(of_file(change, backup.as_deref()));
    }
    say(&format!("✓ {}", words.done));
    note_hooks(how);
    report(options, host, how, &files)
}

/// Keeps what is installed now, to be said with the presence of this machine. What is for every user their doctors say.
fn note_hooks(how: &How) {
    let (Ok(home), Ok(places), false) = (Home::of_user(), Places::of_user(), how.managed) else { return };
    let project = env::current_dir().unwrap_or_default();
    let found: Vec<Inspection> = hosts::ALL.iter().flat_map(|host| host.inspect(&places, &project)).collect();
    let hooks = machine::hooks(&found, SystemClock.now(), |host| machine::is_sound(&found, host));
    // Otherwise the next doctor says it.
    drop(machine::keep(&Desk::new(home.hooks_folder()), hooks, None));
}

fn of_file(change: &Change, backup: Option<&Path>) -> Value {
    let what = match (change.file.text(), &change.after) {
        (None, _) => "created",
        (Some(_), Some(_)) => "changed",
        (Some(_), None) => "removed",
    };
    json!({ "path": change.file.path(), "change": what, "backup": backup })
}

fn report(options: &Options, host: Host, how: &How, files: &[Value]) -> Result<(), Failure> {
    match options.json {
        true => object(&json!({ "host": host.word(), "dryRun": how.dry_run, "files": files })),
        false => Ok(()),
    }
}

fn confirm() -> Result<(), Failure> {
    let purpose = "whether to change these files is asked in a terminal";
    let mut terminal = Terminal::open(purpose).map_err(|failure| {
        failure.next("look at what would change with --dry-run, and say --yes if you agree")
    })?;
    match terminal.ask("Change it? [y/N] ")?.to_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::new(Exit::TakenBack, "nothing was changed")),
    }
}
