//! Screens as text, at the sizes that people have, and how long they take to draw.

use std::{fmt::Write as _, time::Duration};

use countersign_client::{
    approver::InboxItem,
    payload::{Command, CommandFile, FileRole, Invocation, Payload},
    request::OpenedRequest,
};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Color};
use tokio::time::Instant;

use super::*;
use crate::tui::{
    fixture::{Desk, arrived, command, force_push, harmless, noon, patch, request, scripts},
    item::Report,
    state::{Event, Key},
};

fn drawn(desk: &Desk, width: u16, height: u16, palette: Palette) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &desk.state, palette)).unwrap();
    terminal.backend().buffer().clone()
}

fn screen(desk: &Desk, width: u16, height: u16) -> String {
    let buffer = drawn(desk, width, height, Palette::Colours);
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(width)) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        writeln!(text, "{}", line.trim_end()).unwrap();
    }
    text
}

fn mixed(width: u16, height: u16) -> Desk {
    Desk::new(width, height, &[force_push(), patch(&[300, 3]), scripts(), harmless()])
}

#[test]
fn the_list_at_80_columns() {
    insta::assert_snapshot!(screen(&mixed(80, 24), 80, 24));
}

#[test]
fn a_patch_at_80_columns() {
    let mut desk = mixed(80, 24);
    desk.slowly("j\nff");
    insta::assert_snapshot!(screen(&desk, 80, 24));
}

#[test]
fn a_dangerous_command_at_120_columns() {
    let mut desk = mixed(120, 30);
    desk.slowly("\nama");
    insta::assert_snapshot!(screen(&desk, 120, 30));
}

#[test]
fn the_question_at_40_columns() {
    let mut desk = Desk::new(40, 10, &[patch(&[300, 3])]);
    desk.slowly("\na");
    insta::assert_snapshot!(screen(&desk, 40, 10));
}

#[test]
fn a_scope_at_80_columns() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    desk.slowly("\ns");
    insta::assert_snapshot!(screen(&desk, 80, 24));
}

#[test]
fn an_answer_that_was_delivered_at_120_columns() {
    let mut desk = mixed(120, 30);
    desk.slowly("G\nay");
    desk.handle(Event::Accepted("r3".parse().unwrap()));
    let known = [force_push(), patch(&[300, 3]), scripts()];
    let known = known.iter().enumerate().map(|(index, payload)| arrived(&format!("r{index}"), payload));
    desk.handle(Event::Inbox(known.chain([arrived("later", &harmless())]).collect()));
    desk.handle(Event::Status("r3".parse().unwrap(), countersign_wire::exchange::ExchangeState::Delivered));
    insta::assert_snapshot!(screen(&desk, 120, 30));
}

#[test]
fn an_answer_that_was_applied_at_120_columns() {
    let mut desk = mixed(120, 30);
    desk.slowly("G\nay");
    desk.handle(Event::Accepted("r3".parse().unwrap()));
    let words = "applied by the machine, exit status 0,".to_owned();
    let at = Some(desk.state.now.wall);
    desk.handle(Event::Reported("r3".parse().unwrap(), Report::Signed { is_done: true, words, at }));
    insta::assert_snapshot!(screen(&desk, 120, 30));
}

/// The old card says what became of it, and the new one that it was asked before.
#[test]
fn what_was_asked_again_at_80_columns() {
    let mut desk = Desk::new(80, 24, &[harmless()]);
    desk.wait(600_000);
    desk.slowly("A");
    desk.handle(Event::Wanted("r0".parse().unwrap()));
    insta::assert_snapshot!("what_is_wanted_again_at_80_columns", screen(&desk, 80, 24));
    let id = "8633ed33-f77f-46bf-b000-9cf78a1ee52f";
    let opened = OpenedRequest {
        supersedes: Some("r0".parse().unwrap()),
        expires_at: noon().plus(Duration::from_mins(20)),
        ..request(id, &harmless())
    };
    desk.handle(Event::Inbox(vec![InboxItem { request_id: id.parse().unwrap(), opened: Ok(opened) }]));
    insta::assert_snapshot!("what_was_replaced_at_80_columns", screen(&desk, 80, 24));
    desk.slowly("j\n");
    insta::assert_snapshot!("what_was_asked_again_at_80_columns", screen(&desk, 80, 24));
}

#[test]
fn what_misleads_is_visible_and_a_long_line_is_all_there() {
    let content = format!("echo \u{202e}safe\tp\u{430}ypal\n{}END\n", "~".repeat(300));
    let payload = Payload::Command(Command {
        files: vec![CommandFile::with_content("run.sh", FileRole::Script, content)],
        ..Command::new(Invocation::Argv(vec!["sh".to_owned(), "run.sh".to_owned()]), "/")
    });
    let mut desk = Desk::new(80, 24, &[payload]);
    desk.slowly("\nf");
    let text = screen(&desk, 80, 24);
    assert!(text.contains("│ echo ⟨U+202E⟩safe⟨⇥⟩ p⟨U+0430⟩ypal"), "{text}");
    assert_eq!(text.matches('~').count(), 300, "{text}");
    assert!(text.contains("↳ ~~") && text.contains("~END"), "{text}");
}

#[test]
fn every_size_is_drawn_without_a_panic() {
    for (width, height) in
        [(1, 1), (2, 3), (20, 5), (40, 10), (41, 11), (80, 24), (99, 24), (100, 24), (200, 60), (500, 200)]
    {
        let mut desk = mixed(width, height);
        for keys in ["", "\n", "a", "q", "j\n", "f", "a", "R", "q", "s", "/", "?"] {
            desk.slowly(keys);
            drop(screen(&desk, width, height));
            desk.handle(Event::Trouble("the gateway can't be reached.".to_owned()));
            drop(screen(&desk, width, height));
            if keys.len() == 1 && "aRs/?".contains(keys) {
                desk.key(Key::Escape);
            }
        }
    }
}

#[test]
fn no_colour_carries_a_meaning_alone() {
    let mut desk = mixed(120, 40);
    desk.slowly("j\nff");
    let (coloured, plain) = (drawn(&desk, 120, 40, Palette::Colours), drawn(&desk, 120, 40, Palette::Plain));
    let symbols = |buffer: &Buffer| -> Vec<String> {
        buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect()
    };
    assert_eq!(symbols(&coloured), symbols(&plain));
    assert!(coloured.content.iter().any(|cell| cell.fg == Color::Green));
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(coloured.content.iter().all(|cell| cell.bg == Color::Reset), "light and dark terminals alike");
    // Green text is on lines that begin with a plus sign.
    for row in coloured.content.chunks(120).filter(|row| row.iter().any(|cell| cell.fg == Color::Green)) {
        let first = row.iter().find(|cell| cell.fg == Color::Green).unwrap();
        assert_eq!(first.symbol(), "+");
    }
}

/// From a key to the frame, the median of many.
fn key_to_frame(lines: usize) -> Duration {
    let mut desk = Desk::new(120, 40, &[patch(&[lines])]);
    desk.slowly("\nf");
    if desk.state.reading().unwrap().1.shown().files == 0 {
        desk.key(Key::Tab);
    }
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    let mut times: Vec<Duration> = (0..60)
        .map(|_| {
            let start = Instant::now();
            desk.key(Key::PageDown);
            terminal.draw(|frame| draw(frame, &desk.state, Palette::Colours)).unwrap();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

#[test]
fn a_hundred_times_the_lines_do_not_take_a_hundred_times_as_long() {
    let (small, large) = (key_to_frame(200), key_to_frame(20_000));
    let ratio = large.as_secs_f64() / small.as_secs_f64();
    // Shown by `cargo nextest run --no-capture`.
    eprintln!("a key to its frame: {small:?} with 200 lines, {large:?} with 20,000 ({ratio:.1} times)");
    assert!(ratio < 5.0, "{small:?} with 200 lines, {large:?} with 20,000");
}

#[test]
fn a_command_of_many_rows_is_all_there() {
    let words: Vec<String> = (0..400).map(|number| format!("w{number}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut desk = Desk::new(80, 24, &[command(&words, Some(Vec::new()))]);
    desk.slowly("\n");
    assert!(screen(&desk, 80, 24).contains("more rows: see below"));
    let mut seen = String::new();
    for _ in 0..6 {
        seen += &screen(&desk, 80, 24);
        desk.key(Key::PageDown);
    }
    let seen: String = seen.split_whitespace().collect();
    assert!(seen.contains("w399"), "{seen}");
}
