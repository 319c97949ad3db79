//! The terminal, the network and the clock around the state.

use std::{
    io::{self, Stdout, stdout},
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use countersign_agents::tool::{
    exit::{Exit, Failure},
    gateway_error::{describe, describe_decide},
    moment,
};
use countersign_client::{
    approver::{Approver, DecideError},
    payload::visible,
    profile::Pins,
    receipt::{Outcome, Receipt, ReceiptError},
    reply::{Choice, SentDecision},
    request::OpenedRequest,
};
use countersign_wire::{decision::DecisionOutcome, id::RequestId};
use crossterm::{
    event::{
        self, DisableBracketedPaste, EnableBracketedPaste, Event as TerminalEvent, KeyCode, KeyEvent,
        KeyEventKind, KeyModifiers,
    },
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{Terminal, backend::CrosstermBackend};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::Instant,
};

use super::{
    item::{End, Report},
    state::{Action, Event, Key, Now, State},
    view::{self, Palette},
};
use crate::{
    answers::Answers,
    source::{Incoming, Source},
};

/// How long the loop waits for a key before it looks for news.
const KEY_WAIT: Duration = Duration::from_millis(40);

/// How often times on the screen are drawn anew.
const TICK: Duration = Duration::from_millis(250);

/// Whether any thread has panicked: the terminal is given back then, and nothing more is drawn.
static HAS_PANICKED: AtomicBool = AtomicBool::new(false);

/// What the thread of the network is asked to do.
enum Order {
    Decide(Arc<OpenedRequest>, Box<Choice>),
    AskStatus(RequestId),
    AskAgain(RequestId),
}

/// How long the report of a machine is looked for. What runs longer is still in its bundle.
const REPORT_TIME: Duration = Duration::from_mins(30);

/// The pause before each look at first, and after two minutes.
const REPORT_PAUSES: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));

/// How long the interface has to restore the terminal after a signal.
const LAST_WORDS: Duration = Duration::from_secs(1);

enum News {
    Event(Event),
    /// The process was asked to end.
    Signal,
}

/// Opens the interface and stays until the person leaves. The keys of the approver stay in this process.
pub fn run(approver: Arc<Approver>, source: impl Source + 'static, answers: Answers) -> Result<(), Failure> {
    let (owner, gateway) = (visible(approver.id.as_str()), visible(approver.http.gateway().as_str()));
    let clock = Arc::clone(&approver.clock);
    let started = Instant::now();
    let now = move || Now { running: started.elapsed(), wall: clock.now() };
    let (orders, news) = network(approver, source, answers)?;
    let mut screen = Screen::open()?;
    let mut state = State::new(owner, gateway, now());
    let palette = match std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
        true => Palette::Plain,
        false => Palette::Colours,
    };
    let mut ticked = Instant::now();
    let mut size = (0, 0);
    loop {
        if HAS_PANICKED.load(Ordering::SeqCst) {
            return Err(Failure::new(Exit::Failed, "a part of the inbox has failed; what it says is above"));
        }
        let mut events = Vec::new();
        let area = screen.terminal.size().map_err(broken)?;
        if size != (area.width, area.height) {
            size = (area.width, area.height);
            events.push(Event::Resize(area.width, area.height));
        }
        loop {
            match news.try_recv() {
                Ok(News::Event(event)) => events.push(event),
                Ok(News::Signal) => {
                    drop(screen);
                    return Err(Failure::new(Exit::TakenBack, "the inbox was ended from outside"));
                }
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err(Failure::new(Exit::Failed, "the connection to the gateway has ended"));
                }
            }
        }
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            events.push(Event::Tick);
        }
        if events.is_empty() && event::poll(KEY_WAIT).map_err(broken)? {
            events.extend(event_of(event::read().map_err(broken)?));
        }
        if events.is_empty() {
            continue;
        }
        for event in events {
            for action in state.handle(event, now()) {
                let order = match action {
                    Action::Quit => return Ok(()),
                    Action::Decide(request, choice) => Order::Decide(request, choice),
                    Action::AskStatus(id) => Order::AskStatus(id),
                    Action::AskAgain(id) => Order::AskAgain(id),
                };
                drop(orders.send(order));
            }
        }
        screen.terminal.draw(|frame| view::draw(frame, &state, palette)).map_err(broken)?;
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn broken(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("the terminal can't be used: {error}"))
}

/// A key or a paste; other events of the terminal are found out otherwise or mean nothing here.
fn event_of(event: TerminalEvent) -> Option<Event> {
    match event {
        TerminalEvent::Key(key) => key_of(key).map(Event::Key),
        TerminalEvent::Paste(text) => Some(Event::Paste(text)),
        _ => None,
    }
}

fn key_of(event: KeyEvent) -> Option<Key> {
    let key = match event.code {
        KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(_) if event.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
            return None;
        }
        KeyCode::Char(char) => Key::Char(char),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    };
    let moves = !matches!(key, Key::Char(_) | Key::Enter | Key::Tab | Key::Interrupt | Key::Escape);
    match event.kind {
        KeyEventKind::Press => Some(key),
        // A terminal that tells repetitions apart: a held key moves, and does nothing else.
        KeyEventKind::Repeat if moves || matches!(key, Key::Char('j' | 'k')) => Some(key),
        _ => None,
    }
}

/// The terminal while the interface has it. It is given back however the program goes on.
struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    fn open() -> Result<Self, Failure> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |information| {
            HAS_PANICKED.store(true, Ordering::SeqCst);
            restore();
            before(information);
        }));
        enable_raw_mode().map_err(broken)?;
        let opened = execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore();
                Err(broken(error))
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. If that fails nothing more can be done.
fn restore() {
    drop(execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, crossterm::cursor::Show));
    drop(disable_raw_mode());
}

/// Starts the thread that talks to the gateway, so that no call ever delays a key.
fn network(
    approver: Arc<Approver>,
    source: impl Source + 'static,
    answers: Answers,
) -> Result<(UnboundedSender<Order>, mpsc::Receiver<News>), Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (orders, to_do) = unbounded_channel();
    let (report, news) = mpsc::channel();
    let work = move || runtime.block_on(serve(&approver, source, &answers, to_do, &report));
    thread::Builder::new().name("network".to_owned()).spawn(work).map_err(failed)?;
    Ok((orders, news))
}

async fn serve(
    approver: &Arc<Approver>,
    mut source: impl Source,
    answers: &Answers,
    mut to_do: UnboundedReceiver<Order>,
    report: &mpsc::Sender<News>,
) {
    let watched = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()].map(signal);
    let [Ok(mut terminate), Ok(mut hangup), Ok(mut interrupt)] = watched else { return };
    loop {
        let news = tokio::select! {
            _ = interrupt.recv() => News::Signal,
            _ = terminate.recv() => News::Signal,
            _ = hangup.recv() => News::Signal,
            order = to_do.recv() => {
                let Some(order) = order else { return };
                tokio::spawn(carry_out(Arc::clone(approver), answers.clone(), order, report.clone()));
                continue;
            }
            incoming = source.next() => News::Event(match incoming {
                Ok(Incoming::Inbox(items)) => Event::Inbox(items),
                Ok(Incoming::Ended(id, state)) => Event::Status(id, state),
                Err(failure) => Event::Trouble(visible(&failure.to_string())),
            }),
        };
        let is_signal = matches!(news, News::Signal);
        if report.send(news).is_err() {
            return;
        }
        if is_signal {
            // Reading keys from a terminal that is gone never returns.
            tokio::time::sleep(LAST_WORDS).await;
            std::process::exit(i32::from(Exit::TakenBack.code()));
        }
    }
}

async fn carry_out(approver: Arc<Approver>, answers: Answers, order: Order, report: mpsc::Sender<News>) {
    let event = match order {
        Order::Decide(request, choice) => {
            let id = request.request_id.clone();
            match approver.decide(&request, &choice).await {
                Ok(sent) => {
                    answers.keep(&request, &choice, approver.clock.now());
                    drop(report.send(News::Event(Event::Accepted(id.clone()))));
                    let found = reported(&approver, &request, &sent, choice.outcome).await;
                    let Some(found) = found else { return };
                    Event::Reported(id, found)
                }
                Err(error) => not_accepted(&request, &error),
            }
        }
        Order::AskStatus(id) => match approver.status(&id).await {
            Ok(status) => Event::Status(id, status.state),
            // The next refresh asks again where it matters.
            Err(_) => return,
        },
        Order::AskAgain(id) => match approver.refresh(&id, None).await {
            Ok(()) => Event::Wanted(id),
            Err(error) => Event::NotWanted(id, visible(&describe(&error).to_string())),
        },
    };
    drop(report.send(News::Event(event)));
}

/// Waits for the machine's signed report about an answer; `None` if it does not come.
async fn reported(
    approver: &Approver,
    request: &OpenedRequest,
    sent: &SentDecision,
    outcome: DecisionOutcome,
) -> Option<Report> {
    let mut pins = Pins::default();
    pins.insert(request.asked_by.clone()).ok()?;
    let asked = Instant::now();
    while asked.elapsed() < REPORT_TIME {
        let is_early = asked.elapsed() < Duration::from_mins(2);
        tokio::time::sleep(if is_early { REPORT_PAUSES.0 } else { REPORT_PAUSES.1 }).await;
        match approver.receipt(sent, 1, &pins).await {
            Ok(Some(receipt)) => return Some(report_of(&receipt, outcome)),
            // Not there yet, or the gateway is away for a moment.
            Ok(None) | Err(ReceiptError::Call(_)) => {}
            Err(error) => return Some(Report::Unproven(visible(&error.to_string()))),
        }
    }
    None
}

fn report_of(receipt: &Receipt, outcome: DecisionOutcome) -> Report {
    let (is_done, words) = match &receipt.outcome {
        Outcome::Applied { exit_status } => match (outcome, exit_status) {
            (DecisionOutcome::Reject, _) => (true, "stopped by the machine".to_owned()),
            (DecisionOutcome::Approve, Some(code)) => {
                (true, format!("applied by the machine, exit status {code},"))
            }
            (DecisionOutcome::Approve, None) => (true, "applied by the machine".to_owned()),
        },
        Outcome::Refused { reason } => (false, format!("not applied, the machine says: {}", visible(reason))),
        Outcome::Drifted => (false, "not applied: it had changed since you saw it".to_owned()),
        Outcome::TooLate => (false, "not applied: your answer came too late".to_owned()),
    };
    Report::Signed { is_done, words, at: receipt.at.parse().ok() }
}

fn not_accepted(request: &OpenedRequest, error: &DecideError) -> Event {
    let id = request.request_id.clone();
    let end = match error {
        DecideError::AnsweredBefore => Some(End::Answered),
        DecideError::TooLate => Some(End::Expired),
        DecideError::TakenBack => Some(End::Withdrawn),
        _ => None,
    };
    let why = match end {
        // The key that asks for it again is below.
        Some(End::Expired) => format!("too late, it expired at {}", moment::clock(request.expires_at)),
        _ => visible(&describe_decide(error, request).to_string()),
    };
    Event::NotAccepted { id, why, end }
}

#[cfg(test)]
mod tests;
