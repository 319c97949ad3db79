//! What this machine says of itself in its presence (docs/protocol.md#what-a-machine-says-of-itself): its policy, its hooks, and what
//! the doctor has found last.
//!
//! What takes long to find out is in a file, which `install` and the doctor write. The policy is read whenever it is said.

use std::{
    io,
    path::{Path, PathBuf},
};

use countersign_client::channel::Capabilities;
use countersign_wire::{
    Verbatim,
    machine::{
        HookMode, KEY, KeeperPlace as SaidPlace, MachineDoctor, MachineHook, MachineHooks, MachinePolicy,
        MachineReport, PolicyState, Word,
    },
    timestamp::Timestamp,
};
use serde_json::{Map, Value};

use super::desk::{Desk, MACHINE};
use crate::{
    hook_line::{keeper::KeeperPlace, mode::Mode},
    install::inspection::Inspection,
    rules::policy,
    tool::{files, finding::Level},
};

/// The largest file that is read. The gateway takes less.
const MAX_BYTES: u64 = 4 << 10;

/// What is said on each connection, by what is kept in this folder of hooks.
pub fn capabilities(folder: PathBuf) -> Capabilities {
    Capabilities::new(move || said(&report(&folder)))
}

fn said(report: &MachineReport) -> Map<String, Value> {
    serde_json::to_value(report).map(|report| Map::from_iter([(KEY.to_owned(), report)])).unwrap_or_default()
}

/// What is said now.
pub fn report(folder: &Path) -> MachineReport {
    let mut report = MachineReport::new(own_version(), policy::report());
    // What is broken or missing is not said.
    if let Some(kept) = kept(folder) {
        (report.hooks, report.doctor) = (kept.hooks, kept.doctor);
    }
    report
}

/// Keeps what somebody has found out about the hooks; `doctor` is `None` if its last result still counts.
pub fn keep(desk: &Desk, hooks: MachineHooks, doctor: Option<MachineDoctor>) -> io::Result<()> {
    let no_policy = MachinePolicy { state: PolicyState::None, id: None, mode: None };
    let mut report = MachineReport::new(own_version(), no_policy);
    report.doctor = doctor.or_else(|| kept(desk.folder())?.doctor);
    report.hooks = Some(hooks);
    desk.replace(MACHINE, &serde_json::to_string(&report)?)
}

fn kept(folder: &Path) -> Option<MachineReport> {
    let text = files::of_this_process(|| files::read_text(&folder.join(MACHINE), MAX_BYTES)).ok()?;
    countersign_wire::parse::<MachineReport>(text.as_bytes()).map(Verbatim::into_view).ok()
}

fn own_version() -> Word {
    Word::cleaned(env!("CARGO_PKG_VERSION"))
}

/// The hooks that were found. `is_armed` says whether nothing keeps those of a host from stopping a call.
pub fn hooks(found: &[Inspection], at: Timestamp, is_armed: impl Fn(&str) -> bool) -> MachineHooks {
    let mut hosts: Vec<MachineHook> = Vec::new();
    // What holds for every user comes first: nobody else can change it.
    let (managed, own): (Vec<&Inspection>, Vec<&Inspection>) = found.iter().partition(|it| it.is_managed);
    for inspection in managed.into_iter().chain(own) {
        let host = Word::cleaned(inspection.host.word);
        if hosts.iter().any(|known| known.host == host) {
            continue;
        }
        let mode = inspection.mode().map(|mode| match mode {
            Mode::Gate => HookMode::Gate,
            Mode::Relay => HookMode::Relay,
        });
        let keeper = inspection.keeper().map(|keeper| match keeper {
            KeeperPlace::User => SaidPlace::User,
            KeeperPlace::System => SaidPlace::System,
        });
        let armed = mode.is_some() && is_armed(inspection.host.word);
        hosts.push(MachineHook { host, mode, keeper, armed });
    }
    MachineHooks { at, hosts }
}

/// Whether an inspection has found nothing wrong with the hooks of a host.
pub fn is_sound(found: &[Inspection], host: &str) -> bool {
    let mut findings = found.iter().filter(|it| it.host.word == host).flat_map(|it| &it.findings);
    findings.all(|finding| finding.level != Level::Problem)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, time::Duration};

    use countersign_wire::{limits::MAX_CAPABILITIES, machine::PolicyId};
    use serde_json::json;

    use super::*;
    use crate::{
        hook_line::{HookLine, place::Place},
        hosts,
        install::inspection::InstalledHook,
        tool::finding::Finding,
    };

    fn at() -> Timestamp {
        "2026-11-19T01:02:03.123456Z".parse().unwrap()
    }

    fn installed(host: hosts::Host, is_managed: bool, mode: Mode, keeper: Option<KeeperPlace>) -> Inspection {
        let line = HookLine {
            program: "/usr/lib/countersign/countersign".to_owned(),
            host: host.names,
            place: Place::default(),
            keeper,
            mode,
            host_timeout: Duration::from_mins(10),
        };
        let hook = InstalledHook { event: "PreToolUse".to_owned(), line: Some(line), limit: None };
        let file = PathBuf::from("/etc/host.json");
        Inspection { host: host.names, is_managed, file, hooks: vec![hook], findings: Vec::new() }
    }

    #[test]
    fn the_longest_report_is_one_that_a_gateway_takes() {
        let all = hosts::ALL.into_iter();
        let found: Vec<Inspection> =
            all.map(|host| installed(host, true, Mode::Relay, Some(KeeperPlace::System))).collect();
        let policy = MachinePolicy {
            state: PolicyState::InForce,
            id: Some(PolicyId::of(b"policy")),
            mode: Some(HookMode::Gate),
        };
        let mut report = MachineReport::new(Word::cleaned("1000.1000.1000-rc.1"), policy);
        report.hooks = Some(hooks(&found, at(), |_| false));
        report.doctor = Some(MachineDoctor::new(at(), usize::MAX));
        assert_eq!(report.hooks.as_ref().unwrap().hosts.len(), found.len());
        let mut said = said(&report);
        said.extend(json!({ "push": true, "sse": true, "poll": true }).as_object().unwrap().clone());
        let text = Value::from(said).to_string();
        // One more host must have its place too.
        assert!(text.len() + 100 < MAX_CAPABILITIES, "{} bytes: {text}", text.len());
        let read = countersign_wire::parse::<countersign_wire::presence::Capabilities>(text.as_bytes());
        assert_eq!(read.unwrap().machine().unwrap().unwrap(), report);
    }

    #[test]
    fn a_hook_for_every_user_counts_first_and_a_changed_line_is_not_armed() {
        let [claude, codex, ..] = hosts::ALL;
        let mut changed = installed(codex, false, Mode::Gate, None);
        changed.hooks[0].line = None;
        let found = [
            installed(claude, false, Mode::Relay, None),
            installed(claude, true, Mode::Gate, Some(KeeperPlace::System)),
            changed,
        ];
        let hosts = hooks(&found, at(), |_| true).hosts;
        let said: Vec<_> = hosts.iter().map(|it| (it.host.as_str(), it.mode, it.keeper, it.armed)).collect();
        let gate = ("claude", Some(HookMode::Gate), Some(SaidPlace::System), true);
        assert_eq!(said, [gate, ("codex", None, None, false)]);
        assert!(!hooks(&found, at(), |host| host != "claude").hosts[0].armed);
        let mut noted = found;
        noted[0].findings = vec![Finding::problem("claude", "what", "why", "remedy").as_note()];
        assert!(is_sound(&noted, "claude"), "a note is no problem");
        noted[0].findings = vec![Finding::problem("claude", "what", "why", "remedy")];
        assert!(!is_sound(&noted, "claude") && is_sound(&noted, "codex"));
    }

    #[test]
    fn what_is_kept_is_private_and_nonsense_is_not_said() {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::new(folder.path().join("hooks"));
        let empty = || MachineHooks { at: at(), hosts: Vec::new() };
        assert_eq!(report(desk.folder()).hooks, None);
        keep(&desk, empty(), Some(MachineDoctor::new(at(), 3))).unwrap();
        keep(&desk, empty(), None).unwrap();
        let file = desk.folder().join(MACHINE);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let said = report(desk.folder());
        assert_eq!((said.tool.as_str(), said.hooks), (env!("CARGO_PKG_VERSION"), Some(empty())));
        assert_eq!(said.doctor.unwrap().problems, 3, "installing leaves the doctor's result");
        let kept = fs::read_to_string(&file).unwrap();
        let longer = kept.replace('{', &format!("{{{}", " ".repeat(5_000)));
        for wrong in ["", "nonsense", "[]", &kept.replace("\"at\"", "\"an\""), &longer] {
            fs::write(&file, wrong).unwrap();
            let said = report(desk.folder());
            assert_eq!((said.hooks, said.doctor), (None, None), "{wrong:.60}");
        }
        // A pipe in its place must not keep a hook waiting.
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(report(desk.folder()).doctor, None);
    }
}
