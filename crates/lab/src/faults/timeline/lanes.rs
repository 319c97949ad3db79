//! One violation: the exchange and the clients involved, each with a swimlane.

use std::collections::BTreeMap;

use super::{
    super::{
        checker::Violation,
        history::{History, Operation, Outcome, Push},
    },
    svg::{Picture, Scale, seconds},
};

const LABEL_WIDTH: u64 = 260;
const WIDTH: u64 = 1_000;
const LANE_HEIGHT: u64 = 26;
const TOP: u64 = 40;

/// More clients than these are left out, apart from those that the violation names.
const MAX_LANES: usize = 40;

/// What is shown before and after, in microseconds.
const AROUND: u64 = 1_000_000;

/// What happened to one client.
#[derive(Default)]
struct Swimlane<'a> {
    operations: Vec<&'a Operation>,
    pushes: Vec<(u64, &'a Push)>,
    acts: Vec<u64>,
}

/// The picture of one violation.
pub(super) fn draw(history: &History, violation: &Violation) -> String {
    let lanes = lanes(history, violation);
    let scale = scale(&lanes, violation, history);
    let height = TOP + LANE_HEIGHT * (lanes.len() as u64 + 1) + 30;
    let mut picture = Picture::new(LABEL_WIDTH + WIDTH + 20, height);
    faults(&mut picture, history, scale, height);
    exchange(&mut picture, &lanes, violation, scale);
    for (row, (client, swimlane)) in (1..).zip(&lanes) {
        let y = TOP + LANE_HEIGHT * row;
        let class = if violation.clients.iter().any(|it| it == client) { "name involved" } else { "name" };
        picture.text(class, (4, y + 15), client);
        picture.line("swimlane", (LABEL_WIDTH, y + 11), (LABEL_WIDTH + WIDTH, y + 11));
        draw_lane(&mut picture, swimlane, violation, scale, y);
    }
    let x = scale.x(violation.at);
    picture.line("violation", (x, TOP - 10), (x, height - 20));
    axis(&mut picture, scale, height - 6);
    picture.finish()
}

/// The clients that have to do with it, by name.
fn lanes<'a>(history: &'a History, violation: &Violation) -> BTreeMap<&'a str, Swimlane<'a>> {
    let mut lanes: BTreeMap<&str, Swimlane<'_>> = BTreeMap::new();
    let is_of_exchange = |tenant: &str, request: Option<&str>| {
        violation.request.is_some() && tenant == violation.tenant && request == violation.request.as_deref()
    };
    // Without an exchange, what the clients did around that time.
    let is_of_client = |client: &str, from: u64, to: u64| {
        let near = from <= violation.at + 5 * AROUND && to >= violation.at.saturating_sub(20 * AROUND);
        violation.request.is_none() && near && violation.clients.iter().any(|it| it == client)
    };
    for operation in &history.operations {
        let lists = operation
            .answer
            .messages
            .iter()
            .any(|item| is_of_exchange(&operation.by.tenant, Some(&item.request)));
        if lists
            || is_of_exchange(&operation.by.tenant, operation.request())
            || violation.operations.contains(&operation.number)
            || is_of_client(&operation.by.client, operation.invoked, operation.ended)
        {
            lanes.entry(&operation.by.client).or_default().operations.push(operation);
        }
    }
    for (at, push) in &history.pushes {
        if is_of_exchange(&push.by.tenant, Some(&push.message.request))
            || is_of_client(&push.by.client, *at, *at)
        {
            lanes.entry(&push.by.client).or_default().pushes.push((*at, push));
        }
    }
    for (at, act) in &history.acts {
        if is_of_exchange(&act.tenant, Some(&act.request)) {
            lanes.entry(&act.client).or_default().acts.push(*at);
        }
    }
    let extra = lanes.len().saturating_sub(MAX_LANES);
    let is_named = |client: &str| violation.clients.iter().any(|it| it == client);
    let dropped: Vec<&str> = lanes.keys().copied().filter(|client| !is_named(client)).take(extra).collect();
    lanes.retain(|client, _| !dropped.contains(client));
    lanes
}

fn scale(lanes: &BTreeMap<&str, Swimlane<'_>>, violation: &Violation, history: &History) -> Scale {
    let begins = lanes.values().flat_map(|swimlane| {
        swimlane.operations.iter().map(|it| it.invoked).chain(swimlane.pushes.iter().map(|(at, _)| *at))
    });
    let from = begins.min().unwrap_or(violation.at).min(violation.at).saturating_sub(AROUND);
    let to = violation.at.saturating_add(AROUND).min(history.end.max(violation.at) + 1);
    Scale { from, to, left: LABEL_WIDTH, width: WIDTH }
}

/// Bands for faults that overlap with the picture.
fn faults(picture: &mut Picture, history: &History, scale: Scale, height: u64) {
    let shown = |begins: u64, ends: u64| begins <= scale.to && ends >= scale.from;
    for (row, fault) in (0..).zip(history.faults.iter().filter(|it| shown(it.begins, it.ends))) {
        let (begins, ends) = (scale.x(fault.begins), scale.x(fault.ends));
        let title = format!("{} {}", fault.kind, fault.target);
        picture.bar("fault", (begins, TOP - 12), ((ends - begins).max(2), height - TOP - 10), &title);
        picture.text("fault-name", (begins, 12 + row % 2 * 12), &title);
    }
}

/// The swimlane of the exchange: what was seen of it, by everybody.
fn exchange(
    picture: &mut Picture,
    lanes: &BTreeMap<&str, Swimlane<'_>>,
    violation: &Violation,
    scale: Scale,
) {
    let Some(request) = &violation.request else { return };
    picture.text("name exchange", (4, TOP + 15), request);
    for operation in lanes.values().flat_map(|swimlane| &swimlane.operations) {
        if let Some(state) = operation.answer.state {
            let (from, to) = (scale.x(operation.invoked), scale.x(operation.ended));
            let title = format!("{state}, seen by {} at {}", operation.by.client, seconds(operation.ended));
            let class = format!("state-{state}");
            picture.bar(&class, (from, TOP + 2), ((to - from).max(3), LANE_HEIGHT - 8), &title);
        }
    }
}

fn draw_lane(picture: &mut Picture, swimlane: &Swimlane<'_>, violation: &Violation, scale: Scale, y: u64) {
    for operation in &swimlane.operations {
        let class = match operation.outcome {
            Outcome::Ok => "ok",
            Outcome::Fail => "fail",
            Outcome::Unknown => "unknown",
        };
        let named = if violation.operations.contains(&operation.number) { " named" } else { "" };
        let (from, to) = (scale.x(operation.invoked), scale.x(operation.ended));
        let size = ((to - from).max(3), LANE_HEIGHT - 12);
        picture.bar(&format!("{class}{named}"), (from, y + 4), size, &title(operation));
    }
    for (at, push) in &swimlane.pushes {
        let title = format!(
            "{} {} pushed at {} on connection {} of {}",
            push.message.kind,
            push.message.id,
            seconds(*at),
            push.connection,
            push.by.node
        );
        picture.dot("push", (scale.x(*at), y + 11), &title);
    }
    for at in &swimlane.acts {
        picture.dot("act", (scale.x(*at), y + 11), &format!("acted at {}", seconds(*at)));
    }
}

/// Everything about an operation.
fn title(operation: &Operation) -> String {
    let call = serde_json::to_string(&operation.call).unwrap_or_default();
    let answer = serde_json::to_string(&operation.answer).unwrap_or_default();
    let ended = if operation.ended == u64::MAX { "no end".to_owned() } else { seconds(operation.ended) };
    let (number, invoked, outcome) = (operation.number, seconds(operation.invoked), operation.outcome);
    format!("{number} on {}, {invoked} to {ended}, {outcome:?}\n{call}\n{answer}", operation.by.node)
}

fn axis(picture: &mut Picture, scale: Scale, y: u64) {
    for tick in 0..=8 {
        let at = scale.from + (scale.to - scale.from) * tick / 8;
        picture.text("axis", (scale.x(at), y), &seconds(at));
    }
}
