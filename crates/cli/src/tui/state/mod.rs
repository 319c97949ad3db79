//! The state of the interface: events in, state and things to do out. No clock, no terminal, no network.

mod bar;
mod event;
mod keys;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use countersign_client::{
    approver::InboxItem,
    reply::{Choice, Words},
};
use countersign_wire::{
    decision::DecisionOutcome, exchange::ExchangeState, id::RequestId, timestamp::Timestamp,
};

pub use self::event::{Action, Away, Event, Key, Mode, Now, Tone};
use super::{
    document::Document,
    guard::Guard,
    item::{Again, Answer, End, Item, Report, Step},
    layout::{self, Areas, ITEM_ROWS, Shape},
    pager::{Pager, Shown},
    scope::Offer,
    wrap,
};

/// Settled items that stay in the list; the oldest leave first.
const MAX_SETTLED: usize = 200;

/// Answers whose delivery is asked for at each refresh.
const MAX_ASKED: usize = 10;

/// From this height on there is room for an empty row.
const ROOMY: u16 = 20;

/// Everything that is drawn.
#[derive(Debug)]
pub struct State {
    /// Whose inbox it is.
    pub owner: String,
    pub gateway: String,
    /// Everything in the list, in the order that it is shown in.
    pub items: Vec<Item>,
    /// The first item on the screen.
    pub list_top: usize,
    /// Whether the inbox has been read at all.
    pub is_loaded: bool,
    /// Since when the gateway can't be reached, if it can't.
    pub away: Option<Away>,
    /// When it could be reached again, until a key is pressed after that.
    back_at: Option<Timestamp>,
    /// What keys are for.
    pub mode: Mode,
    /// The clocks at the last event.
    pub now: Now,
    selected: Option<RequestId>,
    open: Option<(RequestId, Pager)>,
    offer: Offer,
    notice: Option<String>,
    guard: Guard,
    size: (u16, u16),
    query: String,
    is_leaving: bool,
}

impl State {
    pub fn new(owner: String, gateway: String, now: Now) -> Self {
        Self {
            owner,
            gateway,
            items: Vec::new(),
            list_top: 0,
            is_loaded: false,
            away: None,
            back_at: None,
            mode: Mode::Browse,
            now,
            selected: None,
            open: None,
            offer: Offer::Once,
            notice: None,
            guard: Guard::default(),
            size: (80, 24),
            query: String::new(),
            is_leaving: false,
        }
    }

    /// Takes an event and returns what has to be done.
    pub fn handle(&mut self, event: Event, now: Now) -> Vec<Action> {
        self.now = now;
        let mut actions = Vec::new();
        match event {
            Event::Key(key) => {
                self.back_at = None;
                self.key(key, &mut actions);
            }
            Event::Paste(text) => self.paste(&text),
            Event::Resize(width, height) => {
                self.size = (width, height);
                self.list_top = 0;
            }
            Event::Inbox(items) => self.merge(items, &mut actions),
            Event::Trouble(why) => {
                let since = self.away.as_ref().map_or(now.wall, |away| away.since);
                (self.away, self.back_at) = (Some(Away { since, why }), None);
            }
            Event::Status(id, state) => self.status(&id, state),
            Event::Reported(id, report) => self.answer_step(&id, |answer, now| {
                if matches!(report, Report::Signed { .. }) && answer.delivered == Step::Waiting {
                    answer.delivered = Step::Done(now);
                }
                answer.report = Some(report);
            }),
            Event::Accepted(id) => {
                self.answer_step(&id, |answer, now| answer.accepted = Step::Done(now));
                self.forget_content(&id);
                actions.push(Action::AskStatus(id));
            }
            Event::NotAccepted { id, why, end } => {
                self.answer_step(&id, |answer, _| answer.accepted = Step::Failed(why.clone()));
                if let Some(end) = end {
                    self.end(&id, end);
                }
            }
            Event::Wanted(id) => self.again(&id, Again::Wanted(now.wall)),
            Event::NotWanted(id, why) => self.again(&id, Again::Failed(why)),
            Event::Tick => {}
        }
        self.expire();
        self.leave_stale_question();
        self.settle();
        actions
    }

    pub fn selected(&self) -> Option<&Item> {
        self.selected.as_ref().and_then(|id| self.item(id))
    }

    /// The place of the selected item in the list.
    pub fn selected_index(&self) -> Option<usize> {
        self.items.iter().position(|item| Some(&item.id) == self.selected.as_ref())
    }

    pub fn reading(&self) -> Option<(&Item, &Pager)> {
        let (id, pager) = self.open.as_ref()?;
        Some((self.item(id)?, pager))
    }

    /// The item that an answer would be about.
    pub fn current(&self) -> Option<&Item> {
        self.reading().map(|(item, _)| item).or_else(|| self.selected())
    }

    /// What the search looks for.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Whether the terminal is too small to answer safely.
    pub fn is_too_small(&self) -> bool {
        layout::is_too_small(self.size.0, self.size.1)
    }

    pub fn areas(&self) -> Areas {
        let (width, height) = self.size;
        let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        layout::areas(&Shape {
            width,
            height,
            items: self.items.len(),
            is_reading: self.open.is_some(),
            bar: rows(self.bar_rows().len()),
            head: rows(self.head().len()),
        })
    }

    /// The head of the review, wrapped: what will happen stays on the screen while its details scroll. What has no place
    /// here is in the body too.
    pub fn head(&self) -> Vec<String> {
        let Some(item) = self.current() else { return Vec::new() };
        let width = usize::from(layout::review_width(self.size.0));
        let limit = usize::from(self.size.1 / 8).clamp(1, 5);
        let mut head = Vec::new();
        for text in [&item.headline, &item.chips].into_iter().filter(|text| !text.is_empty()) {
            let rows = wrap::rows(text, width);
            let more = rows.len().saturating_sub(limit);
            head.extend(rows.into_iter().take(limit).map(|row| text[row].to_owned()));
            if more > 0 {
                head.push(format!("… {more} more rows: see below"));
            }
        }
        if self.size.1 >= ROOMY {
            head.push(String::new());
        }
        head
    }

    fn item(&self, id: &RequestId) -> Option<&Item> {
        self.items.iter().find(|item| item.id == *id)
    }

    fn item_mut(&mut self, id: &RequestId) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.id == *id)
    }

    fn answer_step(&mut self, id: &RequestId, change: impl FnOnce(&mut Answer, Timestamp)) {
        let now = self.now.wall;
        if let Some(answer) = self.item_mut(id).and_then(|item| item.answer.as_mut()) {
            change(answer, now);
        }
    }

    /// What can't be answered any more needs no memory.
    fn forget_content(&mut self, id: &RequestId) {
        if let Some(item) = self.item_mut(id) {
            item.request = None;
        }
    }

    fn end(&mut self, id: &RequestId, end: End) {
        if let Some(item) = self.item_mut(id).filter(|item| !item.is_answered()) {
            item.end = Some(end);
            item.request = None;
        }
    }

    /// What became of a request that is wanted again. That the machine has asked again is the last word.
    fn again(&mut self, id: &RequestId, again: Again) {
        let is_open = |item: &&mut Item| !matches!(item.again, Some(Again::Replaced(_)));
        if let Some(item) = self.item_mut(id).filter(is_open) {
            item.again = Some(again);
        }
    }

    fn ask_again(&mut self, actions: &mut Vec<Action>) {
        let Some(item) = self.current() else { return };
        let id = item.id.clone();
        match item.renewable() {
            Ok(()) => {
                self.again(&id, Again::Sending);
                actions.push(Action::AskAgain(id));
            }
            Err(why) => self.notice = Some(format!("It is not asked for again: {why}.")),
        }
    }

    /// Marks what a new request takes the place of. Only the machine that asked for both can say so.
    fn mark_replaced(&mut self) {
        let replaced: Vec<(RequestId, RequestId)> = self
            .items
            .iter()
            .filter_map(|new| {
                let old = self.item(new.supersedes.as_ref()?)?;
                let is_own = new.enforcer.is_some() && new.enforcer == old.enforcer && old.id != new.id;
                is_own.then(|| (old.id.clone(), new.id.clone()))
            })
            .collect();
        for (old, new) in replaced {
            self.open_in_place(&old, &new);
            self.again(&old, Again::Replaced(new));
        }
    }

    /// What this person has changed is opened in the place of what they still look at.
    fn open_in_place(&mut self, old: &RequestId, new: &RequestId) {
        let is_edited = |item: &Item| item.request.as_ref().is_some_and(|request| request.is_edited);
        let is_open = self.open.as_ref().is_some_and(|(id, _)| id == old);
        if is_open && self.mode == Mode::Browse && self.item(new).is_some_and(is_edited) {
            self.selected = Some(new.clone());
            self.open_selected();
        }
    }

    fn merge(&mut self, arrived: Vec<InboxItem>, actions: &mut Vec<Action>) {
        if self.away.take().is_some() {
            self.back_at = Some(self.now.wall);
        }
        let was_empty = self.items.is_empty();
        let waiting: Vec<RequestId> = arrived.iter().map(|item| item.request_id.clone()).collect();
        for item in arrived {
            match self.item_mut(&item.request_id) {
                Some(known) => compare(known, item),
                None => self.items.push(Item::of(item, self.is_loaded)),
            }
        }
        self.mark_replaced();
        if !self.is_loaded {
            self.is_loaded = true;
            // Soonest to expire first; what arrives later is added at the end, so that nothing moves.
            self.items.sort_by_key(|item| (item.expires_at.is_none(), item.expires_at));
        }
        let gone = |item: &&mut Item| !item.is_settled() && !waiting.contains(&item.id);
        for item in self.items.iter_mut().filter(gone) {
            item.end = Some(End::Gone);
            actions.push(Action::AskStatus(item.id.clone()));
        }
        let is_on_its_way = |item: &&Item| {
            let answer = item.answer.as_ref();
            answer.is_some_and(|answer| {
                matches!((&answer.accepted, &answer.delivered), (Step::Done(_), Step::Waiting))
            })
        };
        let asked = self.items.iter().rev().filter(is_on_its_way).take(MAX_ASKED);
        actions.extend(asked.map(|item| Action::AskStatus(item.id.clone())));
        self.drop_oldest_settled();
        if was_empty && let Some(first) = self.items.first() {
            self.selected = Some(first.id.clone());
            self.guard.renew(self.now.running);
        }
    }

    fn drop_oldest_settled(&mut self) {
        let kept = |item: &Item, state: &Self| {
            !item.is_settled() || state.current().is_some_and(|current| current.id == item.id)
        };
        let settled = self.items.iter().filter(|item| !kept(item, self)).count();
        for _ in MAX_SETTLED..settled {
            let Some(index) = self.items.iter().position(|item| !kept(item, self)) else { break };
            self.items.remove(index);
            // What is on the screen stays where it is.
            self.list_top -= usize::from(index < self.list_top);
        }
    }

    fn status(&mut self, id: &RequestId, state: ExchangeState) {
        let Some(item) = self.item(id) else { return };
        match &item.answer {
            Some(answer) if matches!(answer.accepted, Step::Done(_)) => {
                if state == ExchangeState::Delivered && answer.delivered == Step::Waiting {
                    self.answer_step(id, |answer, now| answer.delivered = Step::Done(now));
                }
            }
            _ => {
                if let Some(end) = End::of(state) {
                    self.end(id, end);
                }
            }
        }
    }

    fn expire(&mut self) {
        let now = self.now.wall;
        let is_over = |item: &&mut Item| {
            !item.is_settled() && item.expires_at.is_some_and(|expires_at| now >= expires_at)
        };
        for item in self.items.iter_mut().filter(is_over) {
            (item.end, item.request) = (Some(End::Expired), None);
        }
    }

    /// A question about something that can't be answered any more is not asked any more, and neither is one that can't be
    /// shown.
    fn leave_stale_question(&mut self) {
        let asks = matches!(
            self.mode,
            Mode::Confirm
                | Mode::Target(_)
                | Mode::Words(_)
                | Mode::Change(_)
                | Mode::Scope(_)
                | Mode::Pattern(_)
        );
        let is_answerable = self.current().is_some_and(|item| item.answerable(self.now.wall).is_ok());
        let why = match (asks, is_answerable, self.is_too_small() || !self.bar_fits()) {
            (false, ..) | (true, true, false) => return,
            (true, false, _) => "Never mind: this request can no longer be answered.",
            (true, true, true) => "The terminal is too small for the question. Make it larger.",
        };
        self.mode = Mode::Browse;
        self.notice = Some(why.to_owned());
        self.guard.renew(self.now.running);
    }

    fn settle(&mut self) {
        let areas = self.areas();
        let rows = usize::from(areas.list.height.saturating_sub(1) / ITEM_ROWS).max(1);
        if let Some(selected) = self.selected_index() {
            self.list_top = self.list_top.min(selected).max((selected + 1).saturating_sub(rows));
        }
        // Behind the help nothing is shown.
        if self.mode != Mode::Help
            && !self.is_too_small()
            && let Some((_, pager)) = &mut self.open
        {
            pager.resize(areas.body.width, areas.body.height);
        }
    }

    fn open_selected(&mut self) {
        let Some(item) = self.selected() else { return };
        match item.request.clone() {
            Some(request) => {
                self.open = Some((item.id.clone(), Pager::new(Document::of(&request))));
                self.offer = Offer::Once;
                self.guard.renew(self.now.running);
            }
            None => self.notice = Some(format!("It can't be opened: {}.", item.status(self.now.wall))),
        }
    }

    fn shown(&self) -> Option<Shown> {
        self.reading().map(|(_, pager)| pager.shown())
    }

    fn decide(&mut self, outcome: DecisionOutcome, words: Words, actions: &mut Vec<Action>) {
        self.mode = Mode::Browse;
        let now = self.now.wall;
        let (width, height) = self.size;
        let terminal = format!("terminal {width}×{height}");
        let shown = match self.shown() {
            Some(shown) => format!("{}, {terminal}", in_words(&shown)),
            None => format!("the first line in the list, not opened, {terminal}"),
        };
        let Some(item) = self.current() else { return };
        let id = item.id.clone();
        let request = match item.answerable(now) {
            Ok(request) => Arc::clone(request),
            Err(why) => {
                self.notice = Some(format!("Nothing was decided: {why}."));
                return;
            }
        };
        if let Some(why) = crate::review::needs_lock(&request).filter(|_| outcome == DecisionOutcome::Approve)
        {
            self.notice = Some(why.to_owned());
            return;
        }
        let offer = match outcome {
            DecisionOutcome::Approve => &self.offer,
            DecisionOutcome::Reject => &Offer::Once,
        };
        let (scope, valid_until) = (offer.scope(), now.plus(offer.time()));
        let pattern = offer.pattern().cloned();
        let is_change = words.edit.is_some();
        let words = Words { shown: Some(shown), pattern, ..words };
        let choice = Choice { outcome, scope, valid_until, words };
        actions.push(Action::Decide(request, Box::new(choice)));
        if let Some(item) = self.item_mut(&id) {
            let (accepted, delivered) = (Step::Waiting, Step::Waiting);
            item.answer =
                Some(Answer { outcome, is_change, signed_at: now, accepted, delivered, report: None });
        }
        self.guard.renew(self.now.running);
    }
}

/// Compares a request that is known with the same one as it arrives again.
fn compare(known: &mut Item, again: InboxItem) {
    if known.is_answered() {
        return;
    }
    match (&known.request, again.opened) {
        (Some(before), Ok(now)) if before.artifact_hash != now.artifact_hash => {
            (known.end, known.request) = (Some(End::Replaced), None);
        }
        (Some(_), Ok(_)) if known.end == Some(End::Gone) => known.end = None,
        (Some(_), Err(error)) => {
            let why = countersign_client::payload::visible(&error.to_string());
            (known.end, known.request) = (Some(End::Unchecked(why)), None);
        }
        // It could not be shown before, such as before its sender was paired.
        (None, Ok(request)) if known.end.is_none() => {
            *known = Item::of(InboxItem { request_id: known.id.clone(), opened: Ok(request) }, known.is_new);
        }
        _ => {}
    }
}

/// How much was on the screen, as it is signed.
pub fn in_words(shown: &Shown) -> String {
    let lines = format!("{} of {} lines", shown.lines, shown.of_lines);
    match shown.of_files {
        0 => lines,
        of_files => format!("{} of {of_files} files, {lines}", shown.files),
    }
}
