//! Draws the state. Colours are the sixteen of every terminal, and nothing is said by a colour alone.

#[cfg(test)]
mod tests;

use ratatui::{
    Frame,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Paragraph, Wrap},
};

use super::{
    item::Item,
    kind::Kind,
    layout::ITEM_ROWS,
    pager::{Mark, Row},
    search::matches,
    state::{Mode, State, Tone},
    wrap,
};

/// Whether colours are used, as `NO_COLOR` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// The colours of the terminal.
    Colours,
    /// Bold, reversed and underlined text only.
    Plain,
}

impl Palette {
    fn style(self, colour: Color) -> Style {
        match self {
            Self::Colours => Style::new().fg(colour),
            Self::Plain => Style::new(),
        }
    }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

pub fn draw(frame: &mut Frame<'_>, state: &State, palette: Palette) {
    let whole = frame.area();
    if state.is_too_small() {
        let words = "The terminal is too small: 40 columns and 10 rows are needed. q leaves.";
        return frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: true }), whole);
    }
    if state.mode == Mode::Help {
        return help(frame, whole);
    }
    let areas = state.areas();
    title(frame, areas.title, state);
    list(frame, areas.list, state, palette);
    separator(frame, areas.separator);
    head(frame, areas.head, state, palette);
    match state.reading() {
        Some((_, pager)) => body(frame, areas.body, pager.rows(), pager.query(), palette),
        None => summary(frame, areas.body, state),
    }
    bar(frame, areas.bar, state, palette);
}

fn title(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let width = usize::from(area.width);
    let right = match (&state.away, state.reading()) {
        (Some(_), _) => "no connection ".to_owned(),
        (None, Some((item, pager))) => {
            let status = item.status(state.now.wall);
            let shown = pager.shown();
            let files = match shown.of_files {
                0 => String::new(),
                of_files => format!("{}/{of_files} files opened · ", shown.files),
            };
            let long = format!("{files}line {} of {} · {status} ", pager.line(), shown.of_lines);
            if wrap::columns(&long) * 3 <= width * 2 { long } else { format!("{status} ") }
        }
        (None, None) => String::new(),
    };
    let room = width.saturating_sub(wrap::columns(&right) + 1);
    let short = format!(" Countersign inbox of {}", state.owner);
    let long = format!("{short} at {}", state.gateway);
    let left = if wrap::columns(&long) <= room { long } else { wrap::shortened(&short, room) };
    let gap = width.saturating_sub(wrap::columns(&left) + wrap::columns(&right));
    let text = format!("{left}{}{right}", " ".repeat(gap));
    frame.render_widget(Line::styled(text, REVERSED), area);
}

fn separator(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> = match area.width {
        ..=2 => (0..area.height).map(|_| Line::styled("│", FAINT)).collect(),
        width => (0..area.height).map(|_| Line::styled("─".repeat(usize::from(width)), FAINT)).collect(),
    };
    frame.render_widget(Paragraph::new(lines), area);
}

fn list(frame: &mut Frame<'_>, area: Rect, state: &State, palette: Palette) {
    if area.height == 0 {
        return;
    }
    let rows = usize::from(area.height.saturating_sub(1) / ITEM_ROWS);
    let width = usize::from(area.width);
    let mut lines = vec![Line::styled(wrap::shortened(&list_title(state, rows), width), BOLD)];
    let selected = state.selected_index();
    for (index, item) in state.items.iter().enumerate().skip(state.list_top).take(rows) {
        lines.extend(list_item(state, item, selected == Some(index), width, palette));
    }
    if state.items.is_empty() {
        let words = if state.is_loaded { "Nothing is waiting for you." } else { "Reading the inbox …" };
        lines.push(Line::styled(words, FAINT));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// How many wait, and how many are not on the screen.
fn list_title(state: &State, rows: usize) -> String {
    let waiting = state.items.iter().filter(|item| !item.is_settled()).count();
    let below = state.items.len().saturating_sub(state.list_top + rows);
    let new = state.items.iter().filter(|item| item.is_new && !item.is_settled()).count();
    let waiting = format!("{waiting} waiting");
    let parts = [(new, "new"), (below, "more below"), (state.list_top, "more above")];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    parts.fold(waiting, |title, (count, word)| format!("{title} · {count} {word}"))
}

fn list_item<'a>(
    state: &State,
    item: &Item,
    is_selected: bool,
    width: usize,
    palette: Palette,
) -> [Line<'a>; 2] {
    let mark = if is_selected { "> " } else { "  " };
    let new = if item.is_new && !item.is_settled() { "new · " } else { "" };
    let status = item.status(state.now.wall);
    let chips = if item.is_settled() { "" } else { &item.chips };
    let again = match &item.request {
        Some(request) if !item.is_settled() && request.is_edited => "your change · ",
        Some(request) if !item.is_settled() && request.supersedes.is_some() => "again · ",
        _ => "",
    };
    // Where it stands and what is dangerous come first: the end may be cut.
    let chips = if chips.is_empty() { String::new() } else { format!(" {chips}") };
    let second = format!("{mark}{new}{again}{status}{chips} · {}", item.who);
    let fill = |text: String| {
        let text = wrap::shortened(&text, width);
        let gap = width.saturating_sub(wrap::columns(&text));
        format!("{text}{}", " ".repeat(gap))
    };
    let (first, second) = (fill(format!("{mark}{}", item.headline)), fill(second));
    match (is_selected, item.is_settled()) {
        (true, _) => [Line::styled(first, REVERSED), Line::styled(second, REVERSED)],
        (false, true) => [Line::styled(first, FAINT), Line::styled(second, FAINT)],
        (false, false) => [Line::styled(first, BOLD), Line::styled(second, palette.style(Color::Cyan))],
    }
}

fn head(frame: &mut Frame<'_>, area: Rect, state: &State, palette: Palette) {
    let chips = state.current().map(|item| item.chips.clone()).unwrap_or_default();
    let lines: Vec<Line<'_>> = state
        .head()
        .into_iter()
        .map(|row| {
            let is_chip = !row.is_empty() && chips.contains(&row);
            Line::styled(row, if is_chip { BOLD.patch(palette.style(Color::Magenta)) } else { BOLD })
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn body(frame: &mut Frame<'_>, area: Rect, rows: &[Row], query: &str, palette: Palette) {
    let lines: Vec<Line<'_>> = rows.iter().map(|row| body_row(row, query, palette)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn body_row<'a>(row: &'a Row, query: &'a str, palette: Palette) -> Line<'a> {
    let style = match row.kind {
        Kind::Title => BOLD.add_modifier(Modifier::UNDERLINED),
        Kind::Text | Kind::Note => Style::new(),
        Kind::Added => palette.style(Color::Green),
        Kind::Removed => palette.style(Color::Red),
        Kind::Hunk => palette.style(Color::Cyan),
    };
    let mark = match row.mark {
        Mark::Folded => "▸",
        Mark::Unfolded => "▾",
        Mark::Continued => "↳",
        Mark::Inside => "│",
        Mark::Note => "·",
        Mark::None => " ",
    };
    let cursor = if row.is_current { Span::styled(">", BOLD) } else { Span::raw(" ") };
    let mut spans = vec![cursor, Span::raw(mark), Span::raw(" ")];
    let mut from = 0;
    for found in matches(&row.text, query).take_while(|_| !query.is_empty()) {
        spans.push(Span::styled(&row.text[from..found.start], style));
        spans.push(Span::styled(&row.text[found.clone()], style.patch(REVERSED)));
        from = found.end;
    }
    spans.push(Span::styled(&row.text[from..], style));
    Line::from(spans)
}

/// What is known about the selected request before it is opened.
fn summary(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let Some(item) = state.selected() else { return };
    let mut lines = vec![format!("{} · {}", item.who, item.status(state.now.wall))];
    if item.request.is_some() && !item.is_settled() {
        lines.push(String::new());
        lines.push("Enter opens it.".to_owned());
    }
    let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}

fn bar(frame: &mut Frame<'_>, area: Rect, state: &State, palette: Palette) {
    let line = |(tone, text)| {
        let style = match tone {
            Tone::Strong => BOLD,
            Tone::Warning => BOLD.patch(palette.style(Color::Red)),
            Tone::Plain => Style::new(),
            Tone::Hint => FAINT,
        };
        Line::styled(text, style)
    };
    let lines: Vec<Line<'_>> = state.bar_rows().into_iter().map(line).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

const HELP: &[(&str, &str)] = &[
    ("j k ↓ ↑", "move; PageDown or Space, PageUp or b, g and G further"),
    ("Enter", "opens the selected request"),
    ("Esc q", "back to the list; from the list, leave"),
    ("a, then y", "approves; what is dangerous needs all unfolded and a word typed"),
    ("r", "rejects at once"),
    ("R", "rejects with words that reach the agent"),
    ("e", "changes the command; you are asked again before it runs"),
    ("A", "asks for what has expired again"),
    ("s", "chooses what an approval covers"),
    ("Tab", "folds or unfolds the file of the cursor; f goes to the next file"),
    ("/ n N", "search, next and previous match"),
    ("c", "clears what is settled from the list"),
];

const HELP_NOTES: &str = "Left of the text: > the cursor, ▸ folded, ▾ unfolded, ↳ the row goes on from the one above, \
    │ inside of a file, · about the request. ⟨U+202E⟩ is a character that can't be seen or looks like another, ⟨⇥⟩ a tab. \
    Keys in the first half second of a new screen or question are ignored. Any key closes this.";

fn help(frame: &mut Frame<'_>, area: Rect) {
    let keys = HELP
        .iter()
        .map(|(keys, words)| Line::from(vec![Span::styled(format!("{keys:<10} "), BOLD), Span::raw(*words)]));
    let lines: Vec<Line<'_>> = keys.chain([Line::from(""), Line::from(HELP_NOTES)]).collect();
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
