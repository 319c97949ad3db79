//! A picture of a history, for people who have to understand a violation: one HTML file that needs nothing else.
//!
//! On top the whole run, then each violation with a swimlane for the exchange and one for each client involved.

mod lanes;
mod overview;
mod svg;

use std::{fmt::Write as _, fs, io, path::Path};

use super::{checker::Violation, history::History};
use svg::{escaped, seconds};

/// More violations than these have no picture of their own.
const MAX_PICTURES: usize = 30;

const STYLE: &str = "body { font: 14px sans-serif; margin: 1em } svg { display: block; margin: 0.5em 0 2em; background: #fafafa }
text { font: 11px monospace } .axis { fill: #666; text-anchor: middle } .name { fill: #333 } .involved { font-weight: bold }
.exchange { fill: #036 } .swimlane { stroke: #ddd } .fault { fill: #f5b041; opacity: 0.25 } .fault-name { fill: #a04000 }
.violation { stroke: #c00; stroke-width: 2 } .quiet { stroke: #06c; stroke-dasharray: 4 } .ok { fill: #2e8b57 }
.fail { fill: #999 } .unknown { fill: #d35400 } .named { stroke: #c00; stroke-width: 2 } .push { fill: #2471a3 }
.act { fill: #7d3c98 } .state-pending { fill: #d6dbdf } .state-decided { fill: #82e0aa } .state-delivered { fill: #239b56 }
.state-expired { fill: #f1948a } .state-withdrawn { fill: #bb8fce } .state-cancelled { fill: #bb8fce }";

pub(crate) fn write(history: &History, violations: &[Violation], path: &Path) -> io::Result<()> {
    fs::write(path, page(history, violations))
}

fn page(history: &History, violations: &[Violation]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Timeline</title><style>{STYLE}</style></head><body>\n\
         <h1>{} operations, {} pushed messages, {} faults, {} violations in {}</h1>\n\
         <p>Green: acknowledged. Grey: refused. Orange: outcome unknown. Blue dots: pushed messages. Purple dots: acts. \
         Yellow bands: faults. Red lines: violations. Point at anything to read all of it.</p>\n",
        history.operations.len(),
        history.pushes.len(),
        history.faults.len(),
        violations.len(),
        seconds(history.end)
    );
    page.push_str(&overview::draw(history, violations));
    for violation in violations.iter().take(MAX_PICTURES) {
        let request = violation.request.as_deref().unwrap_or("no exchange");
        let _ = write!(
            page,
            "<h2>{}</h2>\n<p>At {}, {}, {}: {}</p>\n",
            escaped(violation.invariant.sentence()),
            seconds(violation.at),
            escaped(&violation.tenant),
            escaped(request),
            escaped(&violation.text)
        );
        page.push_str(&lanes::draw(history, violation));
    }
    if violations.len() > MAX_PICTURES {
        let _ = writeln!(page, "<p>{} more violations are not shown.</p>", violations.len() - MAX_PICTURES);
    }
    page.push_str("</body></html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            checker::{Invariant, check},
            history::{Answer, Call, Caller, Event, ExchangeState, What},
        },
        *,
    };

    /// A decision that is acknowledged, and later gone, by a client with a hostile name.
    fn lost_decision() -> History {
        let by = |client: &str| Caller { client: client.into(), tenant: "t".into(), ..Caller::default() };
        let decide =
            Call::Decide { request: "<r>".into(), approver: "a".into(), decision: None, approves: true };
        let pending =
            Answer { status: 200, state: Some(ExchangeState::PendingApproval), ..Answer::default() };
        let fault = What::FaultBegins { fault: 9, kind: "stop".into(), target: "node 1".into() };
        let events = [
            (0, What::Invoke { op: 1, by: by("a & b"), call: decide }),
            (10, What::Ok { op: 1, answer: Answer { status: 200, ..Answer::default() } }),
            (15, fault),
            (20, What::FaultEnds { fault: 9 }),
            (30, What::Invoke { op: 2, by: by("e"), call: Call::Status { request: "<r>".into() } }),
            (40, What::Ok { op: 2, answer: pending }),
            (50, What::Invoke { op: 3, by: by("stranger"), call: Call::Presence }),
        ];
        let at = |seconds: u64| seconds * 100_000;
        History::of(events.map(|(seconds, what)| Event { at: at(seconds), what })).unwrap()
    }

    #[test]
    fn a_violation_is_shown_with_its_clients_and_faults() {
        let history = lost_decision();
        let violations = check(&history);
        assert!(violations.iter().any(|violation| violation.invariant == Invariant::DecisionKept));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.html");
        write(&history, &violations, &path).unwrap();
        let page = fs::read_to_string(path).unwrap();
        assert!(page.contains("stop node 1") && page.contains(r#"class="violation""#));
        assert!(page.contains("a &amp; b") && page.contains("&lt;r&gt;"));
        assert!(!page.contains("<r>") && !page.contains(">stranger<"), "escaped, and only what is involved");
        let all = [page.matches("<svg").count(), page.matches("</svg>").count()];
        assert_eq!(all, [violations.len() + 1; 2]);
    }

    #[test]
    fn thousands_of_violations_do_not_make_thousands_of_pictures() {
        let history = lost_decision();
        let many = vec![check(&history).remove(0); 1_000];
        let page = page(&history, &many);
        assert_eq!(page.matches("<svg").count(), MAX_PICTURES + 1);
        assert!(page.contains("970 more violations"));
    }

    #[test]
    fn every_character_is_escaped() {
        assert_eq!(
            escaped("<a href='x' b=\"&\">\u{1b}"),
            "&lt;a href=&#39;x&#39; b=&quot;&amp;&quot;&gt;\u{fffd}"
        );
    }
}
