//! Reading a document on a screen: a cursor, folds, search, and what was shown.
//!
//! Positions are lines and rows within them, so that only what is on the screen is ever wrapped.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    rc::Rc,
};

use super::{document::Document, kind::Kind, search::matches, wrap};

/// Wrapped lines that are kept; more are wrapped again when they are needed.
const MAX_CACHED: usize = 4_096;

/// The columns left of the text: the cursor, a mark that no text can imitate, and a blank.
pub const GUTTER: u16 = 3;

/// A line: of a section its title (`None`) or one of its lines.
type Place = (usize, Option<usize>);

/// A row of a wrapped line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    place: Place,
    row: usize,
}

/// What is left of the text of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A title of a section that is folded.
    Folded,
    /// A title of a section that is unfolded.
    Unfolded,
    /// The line goes on from the row above.
    Continued,
    /// A line of a section with a title.
    Inside,
    /// A line of ours about the request.
    Note,
    None,
}

/// A row on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What is left of it.
    pub mark: Mark,
    /// How it is drawn.
    pub kind: Kind,
    /// The text, which fits.
    pub text: String,
    /// Whether the cursor is here.
    pub is_current: bool,
}

/// How much was on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// Files or scripts that were unfolded on the screen.
    pub files: usize,
    /// All files or scripts.
    pub of_files: usize,
    /// Lines that were on the screen from their beginning to their end.
    pub lines: usize,
    pub of_lines: usize,
}

/// A document that is being read.
#[derive(Debug)]
pub struct Pager {
    document: Document,
    folded: Vec<bool>,
    opened: Vec<bool>,
    seen: Vec<Vec<bool>>,
    /// Of lines that are higher than the screen: how many rows from their beginning were on it.
    partly_seen: BTreeMap<(usize, usize), usize>,
    width: usize,
    height: usize,
    top: Position,
    cursor: Position,
    wrapped: HashMap<Place, Rc<Vec<Range<usize>>>>,
    visible: Vec<Row>,
    query: String,
}

impl Pager {
    /// A document at its beginning. Nothing of it is shown before [`Pager::resize`].
    pub fn new(document: Document) -> Self {
        let folded = document.sections.iter().map(|section| section.is_folded).collect();
        let seen = document.sections.iter().map(|section| vec![false; section.lines.len()]).collect();
        let start = Position { place: (0, Some(0)), row: 0 };
        Self {
            opened: vec![false; document.sections.len()],
            folded,
            seen,
            document,
            partly_seen: BTreeMap::new(),
            width: 0,
            height: 0,
            top: start,
            cursor: start,
            wrapped: HashMap::new(),
            visible: Vec::new(),
            query: String::new(),
        }
    }

    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The rows that are on the screen.
    pub fn rows(&self) -> &[Row] {
        &self.visible
    }

    /// What is searched for; empty if nothing is.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Fits the document into an area. From here on its rows count as shown.
    pub fn resize(&mut self, width: u16, height: u16) {
        let (width, height) = (usize::from(width.saturating_sub(GUTTER)), usize::from(height));
        if width != self.width {
            self.wrapped.clear();
            self.partly_seen.clear();
            // Rows are others now; the lines stay.
            (self.top.row, self.cursor.row) = (0, 0);
        }
        (self.width, self.height) = (width, height);
        self.settle();
    }

    /// Moves the cursor by rows, down or up.
    pub fn scroll(&mut self, rows: isize) {
        for _ in 0..rows.unsigned_abs() {
            let next = if rows > 0 { self.below(self.cursor) } else { self.above(self.cursor) };
            let Some(next) = next else { break };
            self.cursor = next;
        }
        self.settle();
    }

    /// Moves the cursor by screens, down or up.
    pub fn page(&mut self, pages: isize) {
        let bottom = isize::try_from(self.height.saturating_sub(1)).unwrap_or(isize::MAX);
        // The last row of a page is the first one of the next, so that no row is left out.
        let step = bottom.max(1).saturating_mul(pages);
        let cursor = self.rows_between_top_and_cursor();
        let edge = if pages > 0 { bottom } else { 0 };
        self.scroll(edge - cursor + step);
    }

    fn rows_between_top_and_cursor(&self) -> isize {
        let current = self.visible.iter().position(|row| row.is_current).unwrap_or(0);
        isize::try_from(current).unwrap_or(0)
    }

    /// Moves the cursor to the beginning.
    pub fn to_start(&mut self) {
        self.cursor = Position { place: (0, Some(0)), row: 0 };
        self.settle();
    }

    /// Moves the cursor to the end.
    pub fn to_end(&mut self) {
        let place = self.last_of(self.document.sections.len().saturating_sub(1));
        self.cursor = Position { place, row: self.wrap(place).len() - 1 };
        self.settle();
    }

    /// Folds or unfolds the section of the cursor. Returns whether it folds at all.
    pub fn toggle(&mut self) -> bool {
        let (section, _) = self.cursor.place;
        if self.document.sections[section].title.is_none() {
            return false;
        }
        self.folded[section] = !self.folded[section];
        self.cursor = Position { place: (section, None), row: 0 };
        if self.top > self.cursor {
            self.top = self.cursor;
        }
        self.settle();
        true
    }

    /// Moves the cursor to the next section, so that files can be gone through one by one. Returns whether there is one.
    pub fn next_section(&mut self) -> bool {
        let next = self.cursor.place.0 + 1;
        let exists = next < self.document.sections.len();
        if exists {
            self.cursor = Position { place: (next, None), row: 0 };
            self.top = self.cursor;
            self.settle();
        }
        exists
    }

    /// Looks for a text from the cursor on, or back from it, also in what is folded, and goes there. A text without
    /// capital letters matches them too. Returns whether it was found.
    pub fn search(&mut self, query: &str, is_forward: bool) -> bool {
        query.clone_into(&mut self.query);
        let places: Vec<Place> = self.all_places().collect();
        let here = places.binary_search(&self.cursor.place).unwrap_or(0);
        let count = places.len();
        let order = (1..=count).map(|step| match is_forward {
            true => places[(here + step) % count],
            false => places[(here + count - step) % count],
        });
        let found = if query.is_empty() {
            None
        } else {
            order.into_iter().find(|place| matches(&self.text(*place), query).next().is_some())
        };
        let Some(place) = found else { return false };
        if place.1.is_some() {
            self.folded[place.0] = false;
        }
        let text = self.text(place);
        let byte = matches(&text, query).next().map_or(0, |found| found.start);
        let row = self.wrap(place).iter().rposition(|row| row.start <= byte).unwrap_or(0);
        self.cursor = Position { place, row };
        self.settle();
        true
    }

    /// How much was on the screen until now.
    pub fn shown(&self) -> Shown {
        let files = self.document.sections.iter().zip(&self.opened);
        let files = files.filter(|(section, opened)| section.title.is_some() && **opened).count();
        let lines = self.seen.iter().flatten().filter(|seen| **seen).count();
        Shown {
            files,
            of_files: self.document.files(),
            lines,
            of_lines: self.seen.iter().map(Vec::len).sum(),
        }
    }

    /// Lines of the content that were not on the screen yet. The proof at the end does not count: it has ids and hashes.
    pub fn unread(&self) -> usize {
        let content = self.seen.len().saturating_sub(1);
        self.seen[..content].iter().flatten().filter(|seen| !**seen).count()
    }

    /// The number of the cursor's line among all lines, from 1.
    pub fn line(&self) -> usize {
        let (section, line) = self.cursor.place;
        let before: usize = self.seen.iter().take(section).map(Vec::len).sum();
        before + line.map_or(1, |line| line + 1)
    }

    fn all_places(&self) -> impl Iterator<Item = Place> + '_ {
        self.document.sections.iter().enumerate().flat_map(|(section, content)| {
            let title = content.title.is_some().then_some((section, None));
            title.into_iter().chain((0..content.lines.len()).map(move |line| (section, Some(line))))
        })
    }

    fn first_of(&self, section: usize) -> Option<Place> {
        let content = self.document.sections.get(section)?;
        Some((section, if content.title.is_some() { None } else { Some(0) }))
    }

    fn last_of(&self, section: usize) -> Place {
        let lines = self.document.sections[section].lines.len();
        match self.folded[section] || lines == 0 {
            true => (section, None),
            false => (section, Some(lines - 1)),
        }
    }

    fn next(&self, (section, line): Place) -> Option<Place> {
        let next = line.map_or(0, |line| line + 1);
        let is_open = !self.folded[section] && next < self.document.sections[section].lines.len();
        if is_open { Some((section, Some(next))) } else { self.first_of(section + 1) }
    }

    fn previous(&self, (section, line): Place) -> Option<Place> {
        match line {
            Some(0) if self.document.sections[section].title.is_some() => Some((section, None)),
            Some(line) if line > 0 => Some((section, Some(line - 1))),
            _ => section.checked_sub(1).map(|section| self.last_of(section)),
        }
    }

    fn below(&mut self, at: Position) -> Option<Position> {
        if at.row + 1 < self.wrap(at.place).len() {
            return Some(Position { row: at.row + 1, ..at });
        }
        self.next(at.place).map(|place| Position { place, row: 0 })
    }

    fn above(&mut self, at: Position) -> Option<Position> {
        if let Some(row) = at.row.checked_sub(1) {
            return Some(Position { row, ..at });
        }
        let place = self.previous(at.place)?;
        Some(Position { place, row: self.wrap(place).len() - 1 })
    }

    fn text(&self, (section, line): Place) -> std::borrow::Cow<'_, str> {
        let content = &self.document.sections[section];
        match line.and_then(|line| content.lines.get(line)) {
            Some(line) => line.text(),
            None => content.title.as_deref().unwrap_or_default().into(),
        }
    }

    fn wrap(&mut self, place: Place) -> Rc<Vec<Range<usize>>> {
        if let Some(rows) = self.wrapped.get(&place) {
            return Rc::clone(rows);
        }
        if self.wrapped.len() >= MAX_CACHED {
            self.wrapped.clear();
        }
        let rows = Rc::new(wrap::rows(&self.text(place), self.width));
        self.wrapped.insert(place, Rc::clone(&rows));
        rows
    }

    /// Moves the screen so that the cursor is on it, and notes what is shown.
    fn settle(&mut self) {
        let height = self.height.max(1);
        self.cursor.row = self.cursor.row.min(self.wrap(self.cursor.place).len() - 1);
        self.top = self.top.min(self.cursor);
        let mut last = self.top;
        for _ in 1..height {
            match self.below(last) {
                Some(next) => last = next,
                None => break,
            }
        }
        if self.cursor > last {
            self.top = self.cursor;
            for _ in 1..height {
                match self.above(self.top) {
                    Some(above) => self.top = above,
                    None => break,
                }
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        let mut rows = Vec::with_capacity(self.height);
        let mut at = Some(self.top);
        while let Some(position) = at.filter(|_| rows.len() < self.height && self.width > 0) {
            rows.push(self.row(position));
            self.note_shown(position);
            at = self.below(position);
        }
        self.visible = rows;
    }

    fn row(&mut self, position: Position) -> Row {
        let range = self.wrap(position.place)[position.row].clone();
        let (section, line) = position.place;
        let content = &self.document.sections[section];
        let kind = line.map_or(Kind::Title, |line| content.lines[line].kind);
        let mark = match (position.row, line) {
            (1.., _) => Mark::Continued,
            (0, None) if self.folded[section] => Mark::Folded,
            (0, None) => Mark::Unfolded,
            (0, Some(line)) if kind == Kind::Note && content.lines[line].is_ours() => Mark::Note,
            (0, Some(_)) if content.title.is_some() => Mark::Inside,
            (0, Some(_)) => Mark::None,
        };
        let text = self.text(position.place)[range].to_owned();
        Row { mark, kind, text, is_current: position == self.cursor }
    }

    fn note_shown(&mut self, position: Position) {
        let (section, Some(line)) = position.place else {
            let section = position.place.0;
            self.opened[section] |= !self.folded[section] && self.document.sections[section].lines.is_empty();
            return;
        };
        self.opened[section] = true;
        if self.seen[section][line] {
            return;
        }
        let rows = self.wrap(position.place).len();
        let until_now = self.partly_seen.get(&(section, line)).copied().unwrap_or(0);
        let until_now = if position.row <= until_now { until_now.max(position.row + 1) } else { until_now };
        if until_now >= rows {
            self.seen[section][line] = true;
            self.partly_seen.remove(&(section, line));
        } else {
            self.partly_seen.insert((section, line), until_now);
        }
    }
}
