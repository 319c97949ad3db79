//! What keys do.

use countersign_agents::tool::output::short;
use countersign_client::{edit::Edit, reply::Words};
use countersign_wire::decision::DecisionOutcome;

use super::{Action, Key, Mode, State};
use crate::tui::{document::Care, item::Step, layout::ITEM_ROWS, scope::Offer, search::matches};

/// The longest words of a rejection.
const MAX_WORDS: usize = 1_000;

impl State {
    pub(super) fn key(&mut self, key: Key, actions: &mut Vec<Action>) {
        self.notice = None;
        if key == Key::Interrupt {
            return self.quit(actions);
        }
        match std::mem::replace(&mut self.mode, Mode::Browse) {
            Mode::Browse => self.browse(key, actions),
            Mode::Confirm => self.confirm(key, actions),
            Mode::Target(typed) => self.target(key, typed),
            Mode::Words(typed) => self.words(key, typed, actions),
            Mode::Change(typed) => self.change(key, typed, actions),
            Mode::Scope(offers) => self.scope(key, offers),
            Mode::Pattern(typed) => self.pattern(key, typed),
            Mode::Search(typed) => self.search(key, typed),
            Mode::Help => {}
        }
        if key != Key::Char('q') {
            self.is_leaving = false;
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        let chars = text.chars().map(|char| if char == '\n' { ' ' } else { char });
        // What is pasted is never an answer, and a target is typed by hand.
        if let Mode::Words(typed) | Mode::Change(typed) | Mode::Search(typed) = &mut self.mode {
            chars.for_each(|char| push(typed, char));
        }
    }

    fn browse(&mut self, key: Key, actions: &mut Vec<Action>) {
        // Moving and leaving decide nothing, and are always possible.
        match (key, self.open.is_some()) {
            (Key::Escape | Key::Char('q'), true) => {
                // The list has more room again.
                (self.open, self.list_top) = (None, 0);
                return;
            }
            (Key::Escape | Key::Char('q'), false) => return self.quit(actions),
            (_, true) if self.scroll(key) => return,
            (_, false) if self.select(key) => return,
            _ => {}
        }
        if !self.guard.accepts(self.now.running) {
            return;
        }
        match key {
            Key::Enter if self.open.is_none() => self.open_selected(),
            Key::Tab => self.toggle(),
            Key::Char('a') => self.ask_to_approve(),
            Key::Char('r') if self.can_answer() => {
                self.decide(DecisionOutcome::Reject, Words::default(), actions);
            }
            Key::Char('R') => self.ask(Mode::Words(String::new())),
            Key::Char('e') => self.ask_for_change(),
            Key::Char('A') => self.ask_again(actions),
            Key::Char('s') => self.ask_for_scope(),
            Key::Char('/') => self.mode = Mode::Search(String::new()),
            Key::Char('n') => self.find(true),
            Key::Char('N') => self.find(false),
            Key::Char('c') if self.open.is_none() => self.clear_settled(),
            Key::Char('?') => self.mode = Mode::Help,
            _ => {}
        }
    }

    fn scroll(&mut self, key: Key) -> bool {
        let Some((_, pager)) = &mut self.open else { return false };
        match key {
            Key::Down | Key::Char('j') => pager.scroll(1),
            Key::Up | Key::Char('k') => pager.scroll(-1),
            Key::PageDown | Key::Char(' ') => pager.page(1),
            Key::PageUp | Key::Char('b') => pager.page(-1),
            Key::Home | Key::Char('g') => pager.to_start(),
            Key::End | Key::Char('G') => pager.to_end(),
            Key::Char('f') if !pager.next_section() => {
                self.notice = Some("There is no other file after this one.".to_owned());
            }
            Key::Char('f') => {}
            _ => return false,
        }
        true
    }

    fn select(&mut self, key: Key) -> bool {
        let last = self.items.len().saturating_sub(1);
        let here = self.selected_index().unwrap_or(0);
        let page = usize::from(self.areas().list.height / ITEM_ROWS).max(1);
        let next = match key {
            Key::Down | Key::Char('j') => here + 1,
            Key::Up | Key::Char('k') => here.saturating_sub(1),
            Key::PageDown | Key::Char(' ') => here + page,
            Key::PageUp | Key::Char('b') => here.saturating_sub(page),
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return false,
        };
        self.select_index(next.min(last));
        true
    }

    fn select_index(&mut self, index: usize) {
        if let Some(item) = self.items.get_mut(index) {
            item.is_new = false;
            self.selected = Some(item.id.clone());
        }
    }

    fn toggle(&mut self) {
        let folds = self.open.as_mut().is_some_and(|(_, pager)| pager.toggle());
        if !folds {
            self.notice = Some("Nothing folds here; `f` goes to the next file.".to_owned());
        }
    }

    /// Whether the current request can be answered; says why not.
    fn can_answer(&mut self) -> bool {
        let Some(item) = self.current() else { return false };
        let why = match item.answerable(self.now.wall) {
            Ok(_) if self.is_too_small() => "the terminal is too small to show it".to_owned(),
            Ok(_) => return true,
            Err(why) => why,
        };
        self.notice = Some(format!("It can't be answered: {why}."));
        false
    }

    fn ask(&mut self, question: Mode) {
        if self.can_answer() {
            self.mode = question;
            self.guard.renew(self.now.running);
        }
    }

    fn ask_to_approve(&mut self) {
        if !self.can_answer() {
            return;
        }
        let Some((_, pager)) = self.reading() else {
            self.notice = Some("Open it with Enter first; what was not shown is not approved.".to_owned());
            return;
        };
        let (care, shown) = (pager.document().care.clone(), pager.shown());
        let folded = shown.of_files - shown.files;
        if care != Care::Ordinary && folded > 0 {
            self.notice = Some(format!(
                "Not yet: it is serious, so all of it has to be unfolded; {folded} of {} files are not (f goes to the next, Tab unfolds).",
                shown.of_files
            ));
            return;
        }
        let unread = pager.unread();
        if care != Care::Ordinary && unread > 0 {
            let lines = if unread == 1 { "1 line was" } else { &format!("{unread} lines were") };
            self.notice =
                Some(format!("Not yet: it is serious, so read to the end first; {lines} not on the screen."));
            return;
        }
        self.ask(match care {
            Care::Serious(_) => Mode::Target(String::new()),
            Care::Ordinary => Mode::Confirm,
        });
    }

    fn ask_for_scope(&mut self) {
        if self.open.is_none() {
            self.notice = Some("Open it with Enter first.".to_owned());
            return;
        }
        let request = self.current().and_then(|item| item.request.as_ref());
        let offers = request.map(|request| Offer::all(request)).unwrap_or_default();
        self.ask(Mode::Scope(offers));
    }

    fn confirm(&mut self, key: Key, actions: &mut Vec<Action>) {
        match key {
            Key::Escape => self.nothing_decided(),
            _ if !self.guard.accepts(self.now.running) => self.mode = Mode::Confirm,
            Key::Char('y') => self.decide(DecisionOutcome::Approve, Words::default(), actions),
            _ => self.nothing_decided(),
        }
    }

    fn nothing_decided(&mut self) {
        self.notice = Some("Nothing was decided.".to_owned());
    }

    fn target(&mut self, key: Key, mut typed: String) {
        if key == Key::Escape {
            return self.nothing_decided();
        }
        if self.guard.accepts(self.now.running) {
            match key {
                Key::Enter => {
                    let wanted = self.reading().map(|(_, pager)| pager.document().care.clone());
                    if wanted == Some(Care::Serious(typed.clone())) {
                        return self.ask(Mode::Confirm);
                    }
                    self.notice = Some("That is not what has to be typed.".to_owned());
                    typed.clear();
                }
                Key::Char(char) => push(&mut typed, char),
                Key::Backspace => drop(typed.pop()),
                _ => {}
            }
        }
        self.mode = Mode::Target(typed);
    }

    fn words(&mut self, key: Key, mut typed: String, actions: &mut Vec<Action>) {
        match key {
            Key::Escape => return self.nothing_decided(),
            Key::Enter if self.guard.accepts(self.now.running) => {
                let reason = Some(typed.trim().to_owned()).filter(|reason| !reason.is_empty());
                return self.decide(DecisionOutcome::Reject, Words { reason, ..Words::default() }, actions);
            }
            Key::Char(char) => push(&mut typed, char),
            Key::Backspace => drop(typed.pop()),
            _ => {}
        }
        self.mode = Mode::Words(typed);
    }

    /// A single line can be changed here; more than that needs an editor.
    fn ask_for_change(&mut self) {
        if self.open.is_none() {
            self.notice = Some("Open it with Enter first.".to_owned());
            return;
        }
        let Some(item) = self.current() else { return };
        let places = item.request.as_ref().map(|request| request.edits.as_slice()).unwrap_or_default();
        match places {
            [place] if is_line(&place.text) => {
                let text = place.text.clone();
                self.ask(Mode::Change(text));
            }
            [] => {
                self.notice = Some(
                    "The machine takes no change of this; R rejects it with words for the agent.".to_owned(),
                );
            }
            _ => {
                let id = short(&item.id);
                self.notice =
                    Some(format!("It is more than one line: change it with `countersign change {id}`."));
            }
        }
    }

    fn change(&mut self, key: Key, mut typed: String, actions: &mut Vec<Action>) {
        match key {
            Key::Escape => return self.nothing_decided(),
            Key::Enter if self.guard.accepts(self.now.running) => {
                let request = self.current().and_then(|item| item.request.clone());
                let Some((request, place)) = request.as_ref().and_then(|it| Some((it, it.edits.first()?)))
                else {
                    return self.nothing_decided();
                };
                let edit = Edit([(place.pointer.clone(), typed.clone())].into());
                match edit.check(&request.edits) {
                    Ok(()) => {
                        let words = Words { edit: Some(edit), ..Words::default() };
                        return self.decide(DecisionOutcome::Reject, words, actions);
                    }
                    Err(why) => self.notice = Some(format!("Nothing was sent: {why}.")),
                }
            }
            Key::Char(char) => push(&mut typed, char),
            Key::Backspace => drop(typed.pop()),
            _ => {}
        }
        self.mode = Mode::Change(typed);
    }

    fn scope(&mut self, key: Key, offers: Vec<Offer>) {
        let chosen = match key {
            Key::Escape => return,
            Key::Char(char) if self.guard.accepts(self.now.running) => {
                char.to_digit(10).and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1))
            }
            _ => None,
        };
        match chosen.and_then(|index| offers.get(index)) {
            // Which commands it covers beside this one is for the person to write.
            Some(Offer::Hour { text, .. }) => self.ask(Mode::Pattern(text.clone())),
            Some(offer) => self.offer = offer.clone(),
            None => self.mode = Mode::Scope(offers),
        }
    }

    fn pattern(&mut self, key: Key, mut typed: String) {
        if key == Key::Escape {
            return;
        }
        if self.guard.accepts(self.now.running) {
            match key {
                Key::Enter => {
                    let request = self.current().and_then(|item| item.request.as_ref());
                    match request.map(|request| Offer::hour(request, typed.trim())) {
                        Some(Ok(offer)) => {
                            self.offer = offer;
                            return;
                        }
                        Some(Err(why)) => self.notice = Some(format!("Not this pattern: {why}.")),
                        None => return,
                    }
                }
                Key::Char(char) => push(&mut typed, char),
                Key::Backspace => drop(typed.pop()),
                _ => {}
            }
        }
        self.mode = Mode::Pattern(typed);
    }

    fn search(&mut self, key: Key, mut typed: String) {
        match key {
            Key::Escape => return,
            Key::Enter => {
                self.query = typed;
                return self.find(true);
            }
            Key::Char(char) => push(&mut typed, char),
            Key::Backspace => drop(typed.pop()),
            _ => {}
        }
        self.mode = Mode::Search(typed);
    }

    fn find(&mut self, is_forward: bool) {
        let query = self.query.clone();
        let found = match &mut self.open {
            Some((_, pager)) => pager.search(&query, is_forward),
            None => self.find_item(&query, is_forward),
        };
        if !found && !query.is_empty() {
            let shown = countersign_client::payload::visible(&query);
            self.notice = Some(format!("“{shown}” was not found."));
        }
    }

    fn find_item(&mut self, query: &str, is_forward: bool) -> bool {
        let count = self.items.len();
        let here = self.selected_index().unwrap_or(0);
        let mut order = (1..=count).map(|step| match is_forward {
            true => (here + step) % count,
            false => (here + count - step) % count,
        });
        let is_match = |text: &str| matches(text, query).next().is_some();
        let found = order.find(|index| {
            let item = &self.items[*index];
            is_match(&item.headline) || is_match(&item.who) || is_match(&item.chips)
        });
        found.map(|index| self.select_index(index)).is_some()
    }

    fn clear_settled(&mut self) {
        let selected = self.selected_index().unwrap_or(0);
        let before = self.items.iter().take(selected).filter(|item| !item.is_settled()).count();
        self.items.retain(|item| !item.is_settled());
        self.list_top = 0;
        if self.selected().is_none() {
            self.selected = None;
            self.select_index(before.min(self.items.len().saturating_sub(1)));
        }
        self.guard.renew(self.now.running);
    }

    fn quit(&mut self, actions: &mut Vec<Action>) {
        let is_sending = |answer: &super::Answer| answer.accepted == Step::Waiting;
        let sending = self.items.iter().filter_map(|item| item.answer.as_ref()).any(is_sending);
        if sending && !self.is_leaving {
            self.is_leaving = true;
            self.notice =
                Some("Your answer is on its way. Once more leaves without knowing its end.".to_owned());
        } else {
            actions.push(Action::Quit);
        }
    }
}

/// Whether all of a text can be typed here.
fn is_line(text: &str) -> bool {
    text.len() < MAX_WORDS && !text.chars().any(char::is_control)
}

fn push(typed: &mut String, char: char) {
    if !char.is_control() && typed.len() < MAX_WORDS {
        typed.push(char);
    }
}
