//! The whole run: operations a second, faults and violations.

use super::{
    super::{
        checker::Violation,
        history::{History, Outcome},
    },
    svg::{Picture, Scale, seconds},
};

const WIDTH: u64 = 1_200;
const HEIGHT: u64 = 180;
const BASE: u64 = 140;

/// Columns of the picture.
const COLUMNS: u64 = 240;

pub(super) fn draw(history: &History, violations: &[Violation]) -> String {
    let scale = Scale { from: 0, to: history.end.max(1), left: 10, width: WIDTH };
    let mut picture = Picture::new(WIDTH + 30, HEIGHT);
    for fault in &history.faults {
        let (begins, ends) = (scale.x(fault.begins), scale.x(fault.ends));
        let title = format!("{} {}, from {}", fault.kind, fault.target, seconds(fault.begins));
        picture.bar("fault", (begins, 10), ((ends - begins).max(2), BASE - 10), &title);
    }
    columns(&mut picture, history);
    if let Some(quiet) = history.quiet_at {
        picture.line("quiet", (scale.x(quiet), 10), (scale.x(quiet), BASE));
        picture.text("axis", (scale.x(quiet), BASE + 30), "quiet phase");
    }
    for violation in violations {
        let x = scale.x(violation.at);
        picture.line("violation", (x, 4), (x, BASE));
    }
    for tick in 0..=8 {
        let at = history.end * tick / 8;
        picture.text("axis", (scale.x(at).min(WIDTH - 40), BASE + 15), &seconds(at));
    }
    picture.finish()
}

/// How many operations ended in each part of the time, and how.
fn columns(picture: &mut Picture, history: &History) {
    let mut counts = vec![[0_u64; 3]; usize::try_from(COLUMNS).unwrap_or_default()];
    for operation in history.operations.iter().filter(|operation| operation.ended != u64::MAX) {
        let column = (operation.ended * COLUMNS / (history.end + 1)).min(COLUMNS - 1);
        let kind = match operation.outcome {
            Outcome::Ok => 0,
            Outcome::Fail => 1,
            Outcome::Unknown => 2,
        };
        counts[usize::try_from(column).unwrap_or_default()][kind] += 1;
    }
    let tallest = counts.iter().map(|column| column.iter().sum()).max().unwrap_or(0).max(1);
    for (number, column) in (0..).zip(&counts) {
        let mut y = BASE;
        for (class, count) in ["ok", "fail", "unknown"].iter().zip(column) {
            let height = count * (BASE - 20) / tallest;
            y -= height;
            let at = (10 + number * WIDTH / COLUMNS, y);
            picture.bar(class, at, (WIDTH / COLUMNS, height), &format!("{count} {class}"));
        }
    }
}
