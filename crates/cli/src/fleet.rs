//! What the machines of a tenant say of themselves, and what in it has to be put right. Pure.

use std::time::Duration;

use countersign_agents::tool::output::columns;
use countersign_client::{payload::visible, presence::Presence};
use countersign_wire::{
    machine::{HookMode, KeeperPlace, MachineDoctor, MachineHook, MachineReport, PolicyId, PolicyState},
    presence::{Capabilities, Status},
    timestamp::Timestamp,
};
use serde_json::{Value, json};

/// Characters of a line.
const WIDTH: usize = 80;

/// The fewest that the names of machines get.
const MIN_NAME: usize = 12;

/// Characters of a version.
const VERSION: usize = 7;

/// One enforcer, and what was found in its words.
#[derive(Debug)]
pub(crate) struct Machine {
    presence: Presence,
    says: Says,
    pub(crate) wrong: Vec<Wrong>,
}

/// What an enforcer says of its machine.
#[derive(Debug)]
enum Says {
    /// It is an older program, or another one.
    Nothing,
    NotUnderstood,
    Report(Box<MachineReport>),
}

/// What has to be put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    NotUnderstood,
    /// It is not the one that is wanted, or it is not said which one it is.
    OtherPolicy,
    UnusablePolicy,
    NotArmed,
    Doctor,
}

impl Wrong {
    fn word(self) -> &'static str {
        match self {
            Self::NotUnderstood => "notUnderstood",
            Self::OtherPolicy => "otherPolicy",
            Self::UnusablePolicy => "unusablePolicy",
            Self::NotArmed => "notArmed",
            Self::Doctor => "doctor",
        }
    }
}

impl Machine {
    /// What an enforcer says, compared with the policy that is wanted.
    pub(crate) fn new(presence: Presence, wanted: Option<&PolicyId>) -> Self {
        let says = match presence.capabilities.as_ref().and_then(Capabilities::machine) {
            None => Says::Nothing,
            Some(Err(_)) => Says::NotUnderstood,
            Some(Ok(report)) => Says::Report(Box::new(report)),
        };
        let mut wrong = Vec::new();
        let report = match &says {
            Says::Report(report) => Some(report),
            Says::NotUnderstood => {
                wrong.push(Wrong::NotUnderstood);
                None
            }
            Says::Nothing => None,
        };
        let policy = report.map(|report| &report.policy);
        let in_force = policy.filter(|it| it.state == PolicyState::InForce).and_then(|it| it.id.as_ref());
        let hooks = report.and_then(|report| report.hooks.as_ref()).map(|hooks| &hooks.hosts[..]);
        let doctor = report.and_then(|report| report.doctor.as_ref());
        let finds = [
            (Wrong::OtherPolicy, wanted.is_some_and(|wanted| in_force != Some(wanted))),
            (Wrong::UnusablePolicy, policy.is_some_and(|it| it.state == PolicyState::Unusable)),
            (Wrong::NotArmed, hooks.unwrap_or_default().iter().any(|hook| !hook.armed)),
            (Wrong::Doctor, doctor.is_some_and(|doctor| doctor.problems > 0)),
        ];
        wrong.extend(finds.into_iter().filter(|(_, is_so)| *is_so).map(|(wrong, _)| wrong));
        Self { presence, says, wrong }
    }

    /// Whether it was heard of within some time.
    pub(crate) fn seen_within(&self, time: Duration, now: Timestamp) -> bool {
        self.is_online() || self.presence.last_seen_at.is_some_and(|at| now.since(at) <= time)
    }

    fn is_online(&self) -> bool {
        self.presence.status == Some(Status::Online)
    }

    pub(crate) fn json(&self) -> Value {
        let presence = &self.presence;
        let (says, report) = match &self.says {
            Says::Nothing => ("nothing", None),
            Says::NotUnderstood => ("notUnderstood", None),
            Says::Report(report) => ("report", Some(report)),
        };
        json!({
            "enforcer": presence.enforcer_id, "label": presence.enforcer_label, "profile": presence.workspace_name,
            "status": presence.status.map(Status::as_str), "lastSeenAt": presence.last_seen_at,
            "says": says, "machine": report,
            "findings": self.wrong.iter().map(|wrong| wrong.word()).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn has(&self, wrong: &[Wrong]) -> bool {
        self.wrong.iter().any(|it| wrong.contains(it))
    }

    /// Its names: the one that its credential is for, and what it calls itself.
    fn names(&self, width: usize) -> Vec<String> {
        let id = self.presence.enforcer_id.as_str();
        let label = self.presence.enforcer_label.as_ref().map(countersign_wire::Label::as_str);
        let label = label.filter(|label| !label.is_empty() && *label != id).map(|label| format!("“{label}”"));
        [Some(id.to_owned()), label].into_iter().flatten().map(|name| cut(&visible(&name), width)).collect()
    }

    /// Everything but the names. Further hooks have a row each.
    fn rows(&self, now: Timestamp) -> Vec<Vec<String>> {
        let seen = match self.presence.last_seen_at {
            _ if self.is_online() => "now".to_owned(),
            Some(at) => age(now.since(at)),
            None => "–".to_owned(),
        };
        let is_policy_wrong = self.has(&[Wrong::OtherPolicy, Wrong::UnusablePolicy]);
        let dash = || "–".to_owned();
        let nothing =
            |hooks: String| vec![vec![seen.clone(), dash(), marked("–", is_policy_wrong), dash(), hooks]];
        let report = match &self.says {
            Says::Nothing => return nothing("says nothing".to_owned()),
            Says::NotUnderstood => return nothing(marked("not understood", true)),
            Says::Report(report) => report,
        };
        let policy = match (report.policy.state, &report.policy.id) {
            (PolicyState::None, _) => "none",
            (PolicyState::Unusable, _) => "unusable",
            (PolicyState::InForce, Some(id)) => id.as_str(),
            (PolicyState::InForce, None) => "not said",
        };
        let doctor = report.doctor.as_ref().map_or_else(|| "never".to_owned(), |doctor| said(doctor, now));
        let hooks = match &report.hooks {
            None => vec!["not looked at".to_owned()],
            Some(hooks) if hooks.hosts.is_empty() => vec!["none".to_owned()],
            Some(hooks) => hooks.hosts.iter().map(|hook| of_hook(hook, report.policy.mode)).collect(),
        };
        let version = cut(report.tool.as_str(), VERSION);
        let cells = [seen, version, marked(policy, is_policy_wrong), doctor];
        let row = |(index, hook): (usize, String)| -> Vec<String> {
            let cells = cells.iter().map(|cell| if index == 0 { cell.clone() } else { String::new() });
            cells.chain([hook]).collect()
        };
        hooks.into_iter().enumerate().map(row).collect()
    }
}

fn marked(text: &str, is_wrong: bool) -> String {
    if is_wrong { format!("{text} ✗") } else { text.to_owned() }
}

fn said(doctor: &MachineDoctor, now: Timestamp) -> String {
    let result = match doctor.problems {
        0 => "ok".to_owned(),
        many @ 1..100 => format!("{many} ✗"),
        _ => "99+ ✗".to_owned(),
    };
    format!("{result} {}", age(now.since(doctor.at)))
}

/// A hook, with the mode that it has under the policy.
fn of_hook(hook: &MachineHook, required: Option<HookMode>) -> String {
    let host = cut(hook.host.as_str(), MIN_NAME);
    if !hook.armed {
        return marked(&format!("{host} not armed"), true);
    }
    let mode = required.or(hook.mode).map(HookMode::as_str);
    let keeper = hook.keeper.map(KeeperPlace::as_str);
    [Some(host.as_str()), mode, keeper].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// How long ago, in its largest unit.
fn age(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds @ 86_400..86_400_000 => format!("{}d", seconds / 86_400),
        _ => "long".to_owned(),
    }
}

/// At most so many characters.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The machines as a table that fits on a terminal.
pub(crate) fn table(machines: &[Machine], now: Timestamp) -> String {
    let heads = ["seen", "version", "policy", "doctor", "hooks"].map(str::to_owned).to_vec();
    let blocks: Vec<Vec<Vec<String>>> = machines.iter().map(|machine| machine.rows(now)).collect();
    let unnamed: Vec<Vec<String>> =
        [heads.clone()].into_iter().chain(blocks.iter().flatten().cloned()).collect();
    let taken = columns(&unnamed).lines().map(|line| line.chars().count()).max().unwrap_or_default();
    let width = WIDTH.saturating_sub(taken + 2).max(MIN_NAME);
    let mut lines = vec![named("machine".to_owned(), heads)];
    for (machine, rows) in machines.iter().zip(blocks) {
        let names = machine.names(width);
        for line in 0..names.len().max(rows.len()) {
            let (name, row) = (names.get(line).cloned(), rows.get(line).cloned());
            lines.push(named(name.unwrap_or_default(), row.unwrap_or_default()));
        }
    }
    columns(&lines)
}

fn named(name: String, row: Vec<String>) -> Vec<String> {
    [name].into_iter().chain(row).collect()
}

#[cfg(test)]
mod tests {
    use countersign_wire::parse;

    use super::*;

    const NOW: &str = "2026-11-19T12:00:00Z";

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    fn presence(id: &str, seen: &str, said: Option<&Value>) -> Presence {
        let capabilities = match said {
            Some(said) => json!({ "push": true, "org.countersign.machine": said }),
            None => json!({ "push": true }),
        };
        let record = json!({
            "enforcerDeviceId": id, "status": if seen == NOW { "online" } else { "offline" },
            "lastSeenAt": seen, "enforcerLabel": format!("{id}'s desk"), "capabilities": capabilities,
        });
        parse::<Presence>(record.to_string().as_bytes()).unwrap().into_view()
    }

    fn report() -> Value {
        json!({
            "version": 1, "tool": "0.1.0", "policy": { "state": "inForce", "id": "3f2a9c01b7de" },
            "hooks": { "at": NOW, "hosts": [
                { "host": "claude", "mode": "relay", "armed": true },
                { "host": "opencode", "mode": "gate", "keeper": "system", "armed": true },
            ] },
            "doctor": { "at": "2026-11-19T10:00:00Z", "problems": 0 },
        })
    }

    fn with(path: &str, value: Value) -> Value {
        let mut said = report();
        *said.pointer_mut(path).unwrap() = value;
        said
    }

    fn findings(said: Option<&Value>, wanted: Option<&str>) -> Vec<Wrong> {
        let wanted = wanted.map(|wanted| wanted.parse().unwrap());
        Machine::new(presence("robot", NOW, said), wanted.as_ref()).wrong
    }

    #[test]
    fn each_thing_to_put_right_is_found() {
        let (right, other) = (Some("3f2a9c01b7de"), Some("000000000000"));
        assert_eq!(findings(Some(&report()), None), []);
        assert_eq!(findings(Some(&report()), right), []);
        assert_eq!(findings(Some(&report()), other), [Wrong::OtherPolicy]);
        assert_eq!(findings(None, None), [], "an older program");
        assert_eq!(findings(None, right), [Wrong::OtherPolicy]);
        assert_eq!(findings(Some(&json!(7)), right), [Wrong::NotUnderstood, Wrong::OtherPolicy]);
        let said = with("/policy/state", "unusable".into());
        assert_eq!(findings(Some(&said), right), [Wrong::OtherPolicy, Wrong::UnusablePolicy]);
        assert_eq!(findings(Some(&with("/policy", json!({ "state": "none" }))), right), [Wrong::OtherPolicy]);
        assert_eq!(findings(Some(&with("/hooks/hosts/1/armed", false.into())), None), [Wrong::NotArmed]);
        assert_eq!(findings(Some(&with("/doctor/problems", 2.into())), None), [Wrong::Doctor]);
        let ago = Machine::new(presence("robot", "2026-11-17T12:00:00Z", None), None);
        assert!(ago.seen_within(Duration::from_hours(48), now()));
        assert!(!ago.seen_within(Duration::from_hours(47), now()));
        assert!(Machine::new(presence("robot", NOW, None), None).seen_within(Duration::ZERO, now()));
    }

    #[test]
    fn the_table_fits_on_a_terminal() {
        let mut broken = with("/policy", json!({ "state": "unusable", "mode": "gate" }));
        broken["doctor"] = json!({ "at": "2026-10-25T10:00:00Z", "problems": 120 });
        broken["tool"] = "10.20.30-rc.1".into();
        broken["hooks"]["hosts"][0]["armed"] = false.into();
        let required = with("/policy", json!({ "state": "inForce", "id": "3f2a9c01b7de", "mode": "gate" }));
        let machines = [
            ("build-machine-of-the-release-team", NOW, Some(&broken)),
            ("ada", "2026-11-19T11:01:00Z", Some(&required)),
            ("kim\u{202e}", "2026-11-01T11:01:00Z", None),
            ("x", NOW, Some(&json!({}))),
        ];
        let wanted = "3f2a9c01b7de".parse().unwrap();
        let machines: Vec<Machine> =
            machines.map(|(id, seen, said)| Machine::new(presence(id, seen, said), Some(&wanted))).into();
        let table = table(&machines, now());
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        insta::assert_snapshot!(table, @r"
        machine             seen  version  policy        doctor     hooks
        build-machine-of-…  now   10.20.…  unusable ✗    99+ ✗ 25d  claude not armed ✗
        “build-machine-of…                                          opencode gate system
        ada                 59m   0.1.0    3f2a9c01b7de  ok 2h      claude gate
        “ada's desk”                                                opencode gate system
        kim⟨U+202E⟩         18d   –        – ✗           –          says nothing
        “kim�'s desk”
        x                   now   –        – ✗           –          not understood ✗
        “x's desk”
        ");
    }
}
