//! What the bar at the bottom says: a question, what became of an answer, and which keys there are.

use countersign_agents::tool::moment;
use countersign_client::payload::visible;

use super::{Away, Mode, ROOMY, State, Tone};
use crate::tui::{document::Care, layout, scope::Offer, wrap};

impl State {
    /// The lines of the bar.
    fn bar(&self) -> Vec<(Tone, String)> {
        let mut lines = Vec::new();
        match &self.mode {
            Mode::Browse | Mode::Help => self.browse_lines(&mut lines),
            Mode::Confirm => self.confirm_lines(&mut lines),
            Mode::Target(typed) => self.target_lines(typed, &mut lines),
            Mode::Words(typed) => {
                lines.push((Tone::Strong, format!("Reject: {}", self.short_headline())));
                lines.push((Tone::Plain, format!("Words for the agent: {}", self.tail(typed))));
                lines.push((Tone::Hint, "Enter rejects · Esc goes back".to_owned()));
            }
            Mode::Change(typed) => {
                lines.push((Tone::Strong, format!("Change: {}", self.short_headline())));
                lines.push((Tone::Plain, self.tail(typed)));
                lines.push((
                    Tone::Hint,
                    "Enter sends it, and you are asked again before it runs · Esc goes back".to_owned(),
                ));
            }
            Mode::Scope(offers) => self.scope_lines(offers, &mut lines),
            Mode::Pattern(typed) => {
                lines.push((Tone::Strong, "Which commands may run for 1 hour without asking?".to_owned()));
                lines.push((Tone::Plain, self.tail(typed)));
                let rule = "* in place of an argument stands for any, ** at the end for any number; never for an option.";
                lines.push((Tone::Plain, rule.to_owned()));
                lines.push((Tone::Hint, self.when_open("Enter goes on · Esc goes back")));
            }
            Mode::Search(typed) => {
                lines.push((Tone::Plain, format!("/{}", self.tail(typed))));
                lines.push((Tone::Hint, "Enter searches · Esc goes back".to_owned()));
            }
        }
        if !matches!(self.mode, Mode::Browse | Mode::Help)
            && let Some(notice) = &self.notice
        {
            lines.push((Tone::Warning, format!("! {notice}")));
        }
        if let Some(Away { since, why }) = &self.away {
            let since = moment::when(*since, self.now.wall);
            lines.push((
                Tone::Warning,
                format!("! No connection to the gateway since {since}, trying again. {why}"),
            ));
            if self.size.1 >= ROOMY {
                let rule = "You can read what is here. An answer counts only once the gateway has it.";
                lines.push((Tone::Plain, rule.to_owned()));
            }
        }
        if let Some(at) = self.back_at {
            lines.push((
                Tone::Strong,
                format!("✓ The gateway is back since {}.", moment::when(at, self.now.wall)),
            ));
        }
        lines
    }

    /// The bar as rows of the screen.
    pub fn bar_rows(&self) -> Vec<(Tone, String)> {
        let rows = |(tone, line): (Tone, String)| {
            let rows = wrap::sentence_rows(&line, usize::from(self.size.0));
            rows.into_iter().map(|row| (tone, line[row].to_owned())).collect::<Vec<_>>()
        };
        self.bar().into_iter().flat_map(rows).collect()
    }

    /// Whether the bar has a place for all of its lines.
    pub(super) fn bar_fits(&self) -> bool {
        self.bar_rows().len() <= usize::from(layout::most_bar_rows(self.size.1))
    }

    /// The end of a text that is being typed.
    fn tail(&self, typed: &str) -> String {
        let limit = usize::from(self.size.0);
        let from = typed.char_indices().rev().nth(limit.saturating_sub(1)).map_or(0, |(index, _)| index);
        let before = if from > 0 { "…" } else { "" };
        format!("{before}{}▏", visible(&typed[from..]))
    }

    /// What is answered, short enough for a question on a small screen. All of it is in the review.
    fn short_headline(&self) -> String {
        let headline = self.current().map(|item| item.headline.as_str()).unwrap_or_default();
        wrap::shortened(headline, usize::from(self.size.0))
    }

    fn browse_lines(&self, lines: &mut Vec<(Tone, String)>) {
        if let Some(item) = self.current() {
            match (&item.answer, &item.end) {
                (Some(answer), _) => {
                    // Side by side on a low screen, one below the other where there is room.
                    let steps = answer.timeline(self.now.wall);
                    match self.size.1 < ROOMY {
                        true => lines.push((Tone::Strong, steps.join(" → "))),
                        false => lines.extend(steps.into_iter().map(|step| (Tone::Strong, step))),
                    }
                    if let (Some(end), false) = (&item.end, item.is_answered()) {
                        lines.push((Tone::Warning, format!("! {}", end.words())));
                    }
                }
                (None, Some(end)) => {
                    let words = end.words();
                    lines.push((Tone::Warning, format!("! {words}; it can no longer be answered")));
                }
                (None, None) => {}
            }
            if let Some(again) = &item.again {
                lines.push((Tone::Strong, again.sentence(self.now.wall)));
            }
        }
        if let Some(notice) = &self.notice {
            lines.push((Tone::Warning, format!("! {notice}")));
        }
        let can_answer = self.current().is_some_and(|item| item.answerable(self.now.wall).is_ok());
        if can_answer && self.open.is_some() && self.offer != Offer::Once {
            let (word, sentence) = (self.offer.word(), self.offer.sentence());
            lines.push((Tone::Plain, format!("An approval will be {word}. {sentence}")));
        }
        let is_renewable = self.current().is_some_and(|item| item.renewable().is_ok());
        let keys = match (self.open.is_some(), can_answer) {
            _ if is_renewable && self.open.is_some() => "A asks for it again · Esc back · / search · ? help",
            _ if is_renewable => "A asks for it again · j/k move · c clear what is settled · q quit · ? help",
            (true, true) => {
                "a approve · r reject · R reject with words · s scope · Tab unfold · f next file · / search · Esc back · ? help"
            }
            (true, false) => "Esc back · Tab unfold · f next file · / search · ? help",
            (false, true) => {
                "Enter open · r reject · R reject with words · j/k move · / search · q quit · ? help"
            }
            (false, false) => "j/k move · c clear what is settled · q quit · ? help",
        };
        lines.push((Tone::Hint, keys.to_owned()));
    }

    fn scope_lines(&self, offers: &[Offer], lines: &mut Vec<(Tone, String)>) {
        lines.push((Tone::Strong, "What should an approval cover?".to_owned()));
        lines.extend(offers.iter().enumerate().map(|(index, offer)| {
            (Tone::Plain, format!("{} {}: {}", index + 1, offer.word(), offer.sentence()))
        }));
        if offers.len() == 1 {
            let why = match self.reading().map(|(_, pager)| &pager.document().care) {
                Some(Care::Serious(_)) => {
                    "What is dangerous or was not examined always asks, so there is no other choice."
                }
                _ => {
                    "It names no session and is no command with plain arguments, so there is no other choice."
                }
            };
            lines.push((Tone::Plain, why.to_owned()));
        }
        lines.push((Tone::Hint, self.when_open("a number chooses · Esc goes back")));
    }

    fn confirm_lines(&self, lines: &mut Vec<(Tone, String)>) {
        let missing = self.shown().map(|shown| {
            let (files, rest) = (shown.of_files - shown.files, shown.of_lines - shown.lines);
            let files = (files > 0).then(|| format!(", {files} of {} files unopened", shown.of_files));
            let rest = (rest > 0).then(|| format!(", {rest} of {} lines not shown", shown.of_lines));
            format!("{}{}", files.unwrap_or_default(), rest.unwrap_or_default())
        });
        let missing = missing.unwrap_or_default();
        lines.push((Tone::Strong, format!("Approve {}{missing}?", self.offer.word())));
        lines.push((Tone::Strong, self.short_headline()));
        lines.push((Tone::Plain, self.offer.sentence()));
        lines.push((Tone::Hint, self.when_open("y approves · any other key goes back")));
    }

    fn target_lines(&self, typed: &str, lines: &mut Vec<(Tone, String)>) {
        let Some((item, pager)) = self.reading() else { return };
        let Care::Serious(target) = &pager.document().care else { return };
        let chips = wrap::shortened(&item.chips, usize::from(self.size.0).saturating_mul(2));
        lines.push((Tone::Warning, format!("! Dangerous: {chips}")));
        lines.push((Tone::Strong, format!("Type {target} to go on: {}", self.tail(typed))));
        lines.push((Tone::Hint, self.when_open("Enter goes on · Esc goes back")));
    }

    /// The keys of a question, or that it takes none yet.
    fn when_open(&self, keys: &str) -> String {
        match self.guard.is_open(self.now.running) {
            true => keys.to_owned(),
            false => "one moment …".to_owned(),
        }
    }
}
