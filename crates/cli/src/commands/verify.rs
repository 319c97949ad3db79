//! `verify`: finished exchanges, checked without a gateway.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};
use countersign_agents::tool::{
    exit::{Exit, Failure},
    home::{Home, failed},
    output::{columns, object, out, say},
};
use countersign_client::{
    bundle::{Bundle, Certainty, Claim, Report},
    profile::{Pins, Role},
};
use countersign_wire::{decision::DecisionOutcome, timestamp::Timestamp};
use serde_json::{Value, json};

use super::options::Options;

/// Check a saved request offline: what was asked, decided and done.
///
/// Takes a file, or a folder of files, that `countersign export` has written. Says of each claim whether it is proven, only
/// said, or wrong. Keys are compared with those that are paired on this machine, where there are any. Ends with 86 if
/// anything is wrong.
#[derive(Debug, Args)]
pub(super) struct Verify {
    /// A bundle, or a folder of bundles.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Of a folder, only what was finished at this time or later: a day such as 2026-11-15, or a time in RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = time_or_day)]
    since: Option<Timestamp>,
    /// A table for a spreadsheet, instead of sentences.
    #[arg(long, value_name = "FORMAT")]
    report: Option<Format>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// One line for each exchange, with a heading.
    Csv,
}

fn time_or_day(text: &str) -> Result<Timestamp, String> {
    let time = text.parse().or_else(|_| format!("{text}T00:00:00Z").parse());
    time.map_err(|_| "must be a day such as 2026-11-15, or a time such as 2026-11-15T12:00:00Z".to_owned())
}

/// One file and what it proves.
struct Checked {
    path: PathBuf,
    result: Result<(Bundle, Report), String>,
}

impl Verify {
    pub(super) fn run(self, options: &Options) -> Result<(), Failure> {
        let pins = pins(options)?;
        let mut all = Vec::new();
        for path in files(&self.path)? {
            let checked = check(&path, pins.as_ref());
            let finished = checked.result.as_ref().ok().and_then(|(bundle, _)| bundle.finished_at());
            if self.since.is_none() || finished.is_none() || finished >= self.since {
                all.push(checked);
            }
        }
        if all.is_empty() {
            return Err(Failure::new(Exit::Failed, format!("there is no bundle in {}", self.path.display())));
        }
        if options.json {
            object(&json!({ "bundles": all.iter().map(json_of).collect::<Vec<_>>() }))?;
        } else if self.report.is_some() {
            out(&csv(&all))?;
        } else {
            all.iter().try_for_each(explain)?;
        }
        let wrong = all.iter().filter(|checked| !is_good(checked)).count();
        match wrong {
            0 => Ok(()),
            _ => Err(Failure::new(Exit::Failed, format!("{wrong} of {} do not hold", all.len()))),
        }
    }
}

/// The pins of whoever is set up here; `None` if nobody is.
fn pins(options: &Options) -> Result<Option<Pins>, Failure> {
    let home = Home::of_user()?;
    let found = [Role::Enforcer, Role::Approver]
        .into_iter()
        .find_map(|role| home.find(role, options.profile.as_deref()).ok());
    found.map(|identity| identity.profile.pins().map_err(failed)).transpose()
}

fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(Exit::Failed, format!("{} can't be read: {error}", path.display()))
    };
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn check(path: &Path, pins: Option<&Pins>) -> Checked {
    let verified = fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| {
        let bundle = Bundle::read(&text).map_err(|error| error.to_string())?;
        let report = bundle.verify(pins).map_err(|error| error.to_string())?;
        Ok((bundle, report))
    });
    Checked { path: path.to_owned(), result: verified }
}

fn is_good(checked: &Checked) -> bool {
    checked.result.as_ref().is_ok_and(|(_, report)| report.is_consistent())
}

fn word(outcome: DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Approve => "approved",
        DecisionOutcome::Reject => "rejected",
    }
}

fn explain(checked: &Checked) -> Result<(), Failure> {
    let (bundle, report) = match &checked.result {
        Ok(verified) => verified,
        Err(reason) => return out(&format!("✗ {}: {reason}", checked.path.display())),
    };
    let receipt = &bundle.receipt;
    out(&format!(
        "{}: request {}, {} by {}",
        checked.path.display(),
        receipt.request_id,
        word(report.outcome),
        bundle.signer.approver_id
    ))?;
    let row = |(claim, certainty): &(Claim, Certainty)| {
        let mark = match certainty {
            Certainty::Proven => "✓ proven",
            Certainty::Unproven => "· only said",
            Certainty::Wrong => "✗ WRONG",
        };
        vec![format!("  {mark}"), claim.sentence().to_owned()]
    };
    out(&columns(&report.findings.iter().map(row).collect::<Vec<_>>()))?;
    if bundle.artifact.is_none() {
        say("  What was asked is not in this bundle; the decision names it by its hash.");
    }
    if report.certainty(Claim::Approver) == Certainty::Unproven {
        say("  Whose keys these are is proven only on a machine that is paired with them.");
    }
    Ok(())
}

fn json_of(checked: &Checked) -> Value {
    match &checked.result {
        Ok((bundle, report)) => {
            let claims: serde_json::Map<String, Value> = report
                .findings
                .iter()
                .map(|(claim, certainty)| (claim.as_str().to_owned(), certainty.as_str().into()))
                .collect();
            json!({
                "file": checked.path, "requestId": bundle.receipt.request_id, "outcome": word(report.outcome),
                "approver": bundle.signer.approver_id, "enforcer": bundle.enforcer.enforcer_id, "scope": report.scope,
                "use": bundle.receipt.number, "finishedAt": bundle.finished_at(), "consistent": report.is_consistent(),
                "claims": claims,
            })
        }
        Err(reason) => json!({ "file": checked.path, "error": reason, "consistent": false }),
    }
}

fn csv(all: &[Checked]) -> String {
    let mut lines =
        vec!["file,request,outcome,approver,enforcer,use,finished,consistent,unproven".to_owned()];
    for checked in all {
        let cells = match &checked.result {
            Ok((bundle, report)) => {
                let unproven =
                    report.findings.iter().filter(|(_, certainty)| *certainty == Certainty::Unproven);
                let unproven: Vec<&str> = unproven.map(|(claim, _)| claim.as_str()).collect();
                vec![
                    checked.path.display().to_string(),
                    bundle.receipt.request_id.clone(),
                    word(report.outcome).to_owned(),
                    bundle.signer.approver_id.clone(),
                    bundle.enforcer.enforcer_id.clone(),
                    bundle.receipt.number.to_string(),
                    bundle.finished_at().map(|at| at.to_string()).unwrap_or_default(),
                    report.is_consistent().to_string(),
                    unproven.join(" "),
                ]
            }
            Err(reason) => vec![checked.path.display().to_string(), String::new(), reason.clone()],
        };
        lines.push(cells.iter().map(|cell| cell_of(cell)).collect::<Vec<_>>().join(","));
    }
    lines.join("\n")
}

/// A cell that no spreadsheet takes for a formula, and no reader for two cells.
fn cell_of(text: &str) -> String {
    let text = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_texts_and_no_formulas() {
        for (text, cell) in
            [("a", "a"), ("a,b", "\"a,b\""), ("=1+1", "'=1+1"), ("say \"x\"", "\"say \"\"x\"\"\"")]
        {
            assert_eq!(cell_of(text), cell);
        }
        assert!(time_or_day("2026-11-15").unwrap() < time_or_day("2026-11-15T00:00:01Z").unwrap());
        time_or_day("yesterday").unwrap_err();
    }
}
