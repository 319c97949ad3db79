//! Every cell of the state table, and `docs/states.md`, which is generated from the state machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use countersign_core::{
    model::exchange::{
        Command, Decided, Exchange, State, Transition, TransitionError, TransitionResult, evaluate,
    },
    store::{Mailbox, PayloadId},
};
use countersign_wire::{artifact::ArtifactType, hash::Sha256Hex, id::EnforcerId, timestamp::Timestamp};

const COLUMNS: [&str; 8] = ["none", "P", "P!", "D", "V", "X", "W", "C"];

/// The table as it was decided: a row per operation, a cell per state. `→` names the state after it.
const DECIDED: &[(&str, [&str; 8])] = &[
    ("submit, same hash and enforcer", ["202 →P", "202", "202", "202", "202", "202", "202", "202"]),
    ("submit, already past", ["422", "202", "202", "202", "202", "202", "202", "202"]),
    ("submit, other hash", ["202 →P", "409", "409", "409", "409", "409", "409", "409"]),
    ("submit, other enforcer", ["202 →P", "409", "409", "409", "409", "409", "409", "409"]),
    ("decide", ["404", "200 →D", "409", "409", "409", "409", "404", "409"]),
    ("decide, the same again", ["404", "200 →D", "409", "200", "200", "409", "404", "409"]),
    ("decide, signature fails", ["404", "403", "409", "409", "409", "409", "404", "409"]),
    ("decide, other artifact", ["404", "400", "409", "409", "409", "409", "404", "409"]),
    ("decide, expired decision", ["404", "400", "409", "409", "409", "409", "404", "409"]),
    ("withdraw", ["404", "200 →W", "409", "409", "409", "409", "409", "409"]),
    ("cancel", ["404", "200 →C", "409", "409", "409", "409", "409", "200"]),
    ("ack of the decision by its enforcer", ["404", "200", "200", "200 →V", "200", "200", "200", "200"]),
    ("wait", ["404", "hold", "204", "200", "200", "204", "204", "204"]),
    ("refresh", ["404", "202", "202", "202", "202", "202", "202", "202"]),
    ("status", ["404", "200", "200", "200", "200", "200", "200", "200"]),
    ("delete from inbox", ["404", "200", "200", "404", "404", "200", "404", "404"]),
];

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn created_at() -> Timestamp {
    at("2026-11-15T12:00:00Z")
}

fn expires_at() -> Timestamp {
    at("2026-11-15T12:10:00Z")
}

/// While the exchange can be decided, and when its time is up.
fn now(column: &str) -> Timestamp {
    if column == "P!" { expires_at() } else { at("2026-11-15T12:05:00Z") }
}

fn hash(of: &str) -> Sha256Hex {
    Sha256Hex::digest(of.as_bytes())
}

fn enforcer(name: &str) -> EnforcerId {
    name.parse().unwrap()
}

fn exchange(column: &str) -> Option<Exchange> {
    let decided = || Decided {
        decision: Some(PayloadId(2)),
        msg_id: "m".parse().unwrap(),
        digest: hash("the decision"),
        by: "ada".parse().unwrap(),
        at: created_at(),
        expires_at: expires_at(),
    };
    let state = match column {
        "none" => return None,
        "P" | "P!" => State::Pending,
        "D" => State::Decided(decided()),
        "V" => State::Delivered { decided: decided(), at: created_at() },
        "X" => State::Expired { at: created_at() },
        "W" => State::Withdrawn { at: created_at() },
        "C" => State::Cancelled { at: created_at() },
        other => unreachable!("no column {other}"),
    };
    Some(Exchange {
        enforcer: enforcer("robot"),
        artifact_type: ArtifactType::PlanReview,
        artifact_hash: hash("the artifact"),
        created_at: created_at(),
        expires_at: expires_at(),
        mailboxes: vec![Mailbox::Shared],
        request: "m".parse().unwrap(),
        artifact: Some(PayloadId(1)),
        trace: None,
        size: 2,
        refreshed_at: None,
        refresh: None,
        turns: Vec::new(),
        hidden_by: Vec::new(),
        seen: Vec::new(),
        notifying: None,
        state,
    })
}

/// What the state machine says, in the words of the table.
fn cell(operation: &str, column: &str) -> String {
    let (robot, stranger) = (enforcer("robot"), enforcer("stranger"));
    let later = expires_at().plus(std::time::Duration::from_hours(1));
    let submit =
        |enforcer, of: &str, expires_at| Command::Submit { enforcer, artifact_hash: hash(of), expires_at };
    let decide = |decision: &str, of: &str, expires_at, signature_valid| Command::Decide {
        digest: hash(decision),
        artifact_hash: hash(of),
        expires_at,
        signature_valid,
    };
    let (success, command) = match operation {
        "submit, same hash and enforcer" => ("202", submit(&robot, "the artifact", later)),
        "submit, already past" => ("202", submit(&robot, "the artifact", created_at())),
        "submit, other hash" => ("202", submit(&robot, "another artifact", later)),
        "submit, other enforcer" => ("202", submit(&stranger, "the artifact", later)),
        "decide" => ("200", decide("another decision", "the artifact", later, true)),
        "decide, the same again" => ("200", decide("the decision", "the artifact", later, true)),
        "decide, signature fails" => ("200", decide("another decision", "the artifact", later, false)),
        "decide, other artifact" => ("200", decide("another decision", "another artifact", later, true)),
        "decide, expired decision" => ("200", decide("another decision", "the artifact", created_at(), true)),
        "withdraw" => ("200", Command::Withdraw),
        "cancel" => ("200", Command::Cancel),
        "ack of the decision by its enforcer" => ("200", Command::Acknowledge),
        "wait" => ("200", Command::Wait),
        "refresh" => ("202", Command::Refresh),
        "status" => ("200", Command::Status),
        "delete from inbox" => ("200", Command::Hide),
        other => unreachable!("no operation {other}"),
    };
    match evaluate(exchange(column).as_ref(), command, now(column)) {
        TransitionResult::Unchanged => success.to_owned(),
        TransitionResult::NotYet => "hold".to_owned(),
        TransitionResult::EndedWithout => "204".to_owned(),
        TransitionResult::Rejected(error) => error.failure().status().to_string(),
        TransitionResult::Apply(transition) => {
            let state = match transition {
                Transition::Submit => "P",
                Transition::Decide => "D",
                Transition::Deliver => "V",
                Transition::Expire => "X",
                Transition::Withdraw => "W",
                Transition::Cancel => "C",
            };
            format!("{success} →{state}")
        }
    }
}

#[test]
fn every_cell_of_the_table_is_as_decided() {
    for (operation, cells) in DECIDED {
        for (column, decided) in COLUMNS.iter().zip(cells) {
            assert_eq!(cell(operation, column), *decided, "{operation} in {column}");
        }
    }
}

#[test]
fn only_pending_and_decided_exchanges_ever_change() {
    let changing: Vec<(&str, &str)> = DECIDED
        .iter()
        .flat_map(|(operation, _)| COLUMNS.map(|column| (*operation, column)))
        .filter(|(operation, column)| cell(operation, column).contains('→'))
        .collect();
    assert!(changing.iter().all(|(_, column)| ["none", "P", "D"].contains(column)), "{changing:?}");
}

#[test]
fn a_tombstone_keeps_its_id_and_nothing_else() {
    let robot = enforcer("robot");
    for column in ["D", "V", "X", "W", "C"] {
        let tombstone = Exchange { artifact: None, ..exchange(column).unwrap() };
        let result = |command| evaluate(Some(&tombstone), command, now(column));
        let submit = |of: &str| Command::Submit {
            enforcer: &robot,
            artifact_hash: hash(of),
            expires_at: expires_at(),
        };
        assert_eq!(result(submit("the artifact")), TransitionResult::Unchanged, "{column}");
        assert_eq!(
            result(submit("another artifact")),
            TransitionResult::Rejected(TransitionError::AlreadyExists),
            "{column}"
        );
        for command in [Command::Status, Command::Wait, Command::Withdraw, Command::Refresh, Command::Hide] {
            assert_eq!(
                result(command),
                TransitionResult::Rejected(TransitionError::NotFound),
                "{column} {command:?}"
            );
        }
    }
}

/// `UPDATE_DOCS=1 cargo nextest run -p countersign-core docs` regenerates the page.
#[test]
fn docs_states_md_is_what_the_state_machine_says() {
    let mut page = String::from(
        "# States of an exchange\n\n\
         Generated from `crates/core/src/model/exchange.rs` by `crates/core/tests/states.rs`.\n\n\
         P pending, P! pending in the store but past its `expiresAt`, D decided, V delivered, X expired, \
         W withdrawn, C cancelled. A number is the HTTP status; → is the state after it; hold is a wait that \
         goes on. Whoever meets P!, reader or writer, first writes X, so that nobody is told of an \
         expiry that a decision could still overtake.\n\n",
    );
    writeln!(page, "| operation | {} |", COLUMNS.join(" | ")).unwrap();
    writeln!(page, "|---|{}", "---|".repeat(COLUMNS.len())).unwrap();
    for (operation, _) in DECIDED {
        let cells = COLUMNS.map(|column| cell(operation, column));
        writeln!(page, "| {operation} | {} |", cells.join(" | ")).unwrap();
    }
    page.push_str(
        "\nThe first committed transition wins every race; the others get an error that names the winner. A decision, once \
         stored, never changes. Deleting from an inbox hides the request from that approver only, who may \
         still decide it; doing it again is 404.\n",
    );
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/states.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "run again with UPDATE_DOCS=1");
}
