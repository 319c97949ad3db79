//! Logs and traces. Logs go to stderr: stdout is for programs. A thread of its own writes them, so that a reader of the log
//! who is slow or gone holds up no request.

use std::{
    io::{self, Write},
    mem,
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tracing::Level;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    fmt,
    fmt::{
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    layer::SubscriberExt as _,
    reload,
    util::SubscriberInitExt as _,
};

#[cfg(feature = "otel")]
use tracing_subscriber::{Layer as _, registry};

#[cfg(feature = "otel")]
use crate::traces;
use crate::{
    config::{Log, LogFormat, LogLevel, TracesConfig},
    metrics::DROPPED_LOG_LINES,
};

/// Bytes of lines that wait to be written, about 5,000 lines. Beyond that lines are dropped and counted. The thread may
/// have as much again in hand.
const MAX_QUEUED_BYTES: usize = 1 << 20;

/// How long the end of the program waits for lines to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts logging to stderr, and sending traces if there is a collector, until the result is dropped.
pub fn start(log: Log, traces: &TracesConfig) -> anyhow::Result<Flush> {
    let queue = Arc::new(LogQueue::default());
    let of_thread = Arc::clone(&queue);
    let write = move || of_thread.write_to(&mut io::stderr(), log.format);
    thread::Builder::new().name("log".to_owned()).spawn(write)?;
    #[cfg(feature = "otel")]
    if let Some((spans, exporter)) = traces::layer(traces)? {
        let spans = registry().with(spans);
        let lines = fmt::layer().with_writer(Arc::clone(&queue)).with_target(false);
        let (sources, handle) = reload::Layer::new(sources(log.level));
        match log.format {
            LogFormat::Json => {
                drop(spans.with(lines.json().flatten_event(true).with_filter(sources)).try_init());
            }
            LogFormat::Text => drop(spans.with(lines.with_ansi(false).with_filter(sources)).try_init()),
        }
        return Ok(Flush { queue, level: LogHandle::new(handle), _exporter: Some(exporter) });
    }
    // A configuration with a collector was refused.
    #[cfg(not(feature = "otel"))]
    let _ = traces;
    let builder = fmt().with_max_level(Level::TRACE).with_writer(Arc::clone(&queue)).with_target(false);
    // Fails only where a log was started before, which then goes on.
    let level = match log.format {
        LogFormat::Json => {
            let (sources, handle) = reload::Layer::new(sources(log.level));
            drop(builder.json().flatten_event(true).finish().with(sources).try_init());
            LogHandle::new(handle)
        }
        LogFormat::Text => {
            let (sources, handle) = reload::Layer::new(sources(log.level));
            drop(builder.with_ansi(false).finish().with(sources).try_init());
            LogHandle::new(handle)
        }
    };
    Ok(Flush {
        queue,
        level,
        #[cfg(feature = "otel")]
        _exporter: None,
    })
}

/// What is logged. The clients of NATS and HTTP log each of their attempts; who uses them says once what became of them.
fn sources(level: LogLevel) -> Targets {
    let level = match level {
        LogLevel::Error => Level::ERROR,
        LogLevel::Warn => Level::WARN,
        LogLevel::Info => Level::INFO,
        LogLevel::Debug => Level::DEBUG,
    };
    let silent = ["async_nats", "hyper_util", "reqwest", "rustls"];
    silent.into_iter().fold(Targets::new().with_default(level), |targets, source| {
        targets.with_target(source, LevelFilter::OFF)
    })
}

/// Changes the level of a log that runs.
#[derive(Clone)]
pub struct LogHandle(Arc<dyn Fn(LogLevel) + Send + Sync>);

impl LogHandle {
    fn new<S: 'static>(handle: reload::Handle<Targets, S>) -> Self {
        // Fails only where there is no log.
        Self(Arc::new(move |level| drop(handle.reload(sources(level)))))
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        (self.0)(level);
    }
}

impl std::fmt::Debug for LogHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogHandle").finish_non_exhaustive()
    }
}

/// When dropped, waits until what is queued is written, for a second at most, and as long for spans.
#[must_use = "what is queued at the end of the program is lost without it"]
#[derive(Debug)]
pub struct Flush {
    queue: Arc<LogQueue>,
    pub(crate) level: LogHandle,
    #[cfg(feature = "otel")]
    _exporter: Option<traces::Exporter>,
}

impl Drop for Flush {
    fn drop(&mut self) {
        let is_busy = |queued: &mut Queued| queued.is_writing || !queued.lines.is_empty();
        self.queue.changed.wait_while_for(&mut self.queue.queued.lock(), is_busy, FLUSH_TIMEOUT);
    }
}

/// Lines between those who log and the thread that writes.
#[derive(Debug, Default)]
struct LogQueue {
    queued: Mutex<Queued>,
    /// Signalled when the thread is idle and there is a line, and when it becomes idle.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queued {
    lines: Vec<u8>,
    /// How many lines were dropped since that was last said.
    dropped: u64,
    is_writing: bool,
}

impl LogQueue {
    /// Writes what is queued, for as long as the program runs.
    fn write_to(&self, out: &mut impl Write, format: LogFormat) {
        let mut lines = Vec::new();
        loop {
            let dropped = self.next(&mut lines);
            let mut lost = 0;
            for line in lines.split_inclusive(|byte| *byte == b'\n') {
                lost += u64::from(out.write_all(line).is_err());
            }
            DROPPED_LOG_LINES.inc_by(lost);
            if dropped > 0 && out.write_all(report(format, dropped).as_bytes()).is_err() {
                lost += dropped;
            }
            lines.clear();
            self.queued.lock().dropped += lost;
        }
    }

    /// Waits for lines and takes all of them, and how many were dropped.
    fn next(&self, lines: &mut Vec<u8>) -> u64 {
        let mut queued = self.queued.lock();
        if queued.lines.is_empty() {
            queued.is_writing = false;
            self.changed.notify_all();
            self.changed.wait_while(&mut queued, |queued| queued.lines.is_empty());
        }
        queued.is_writing = true;
        mem::swap(lines, &mut queued.lines);
        mem::take(&mut queued.dropped)
    }
}

impl Write for &LogQueue {
    /// The logger writes a whole line at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queued = self.queued.lock();
        if queued.lines.len() + line.len() > MAX_QUEUED_BYTES {
            queued.dropped += 1;
            DROPPED_LOG_LINES.inc();
            return Ok(line.len());
        }
        queued.lines.extend_from_slice(line);
        if !queued.is_writing {
            self.changed.notify_all();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The line that says how many lines are missing before it.
fn report(format: LogFormat, dropped: u64) -> String {
    let mut time = String::new();
    if SystemTime.format_time(&mut Writer::new(&mut time)).is_err() {
        // Without its time the line still says what matters.
        time.clear();
    }
    match format {
        LogFormat::Json => format!(
            "{{\"timestamp\":\"{time}\",\"level\":\"WARN\",\"message\":\"{dropped} log lines were dropped\",\"dropped\":{dropped}}}\n"
        ),
        LogFormat::Text => format!("{time}  WARN {dropped} log lines were dropped dropped={dropped}\n"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Hands over what is written to it, and is as slow as its reader: each write waits for a permit.
    struct SlowOutput {
        permits: Receiver<()>,
        written: Sender<String>,
    }

    impl Write for SlowOutput {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.permits.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            drop(self.written.send(String::from_utf8_lossy(line).into_owned()));
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn flush(queue: Arc<LogQueue>) -> Flush {
        Flush {
            level: LogHandle(Arc::new(|_| {})),
            queue,
            #[cfg(feature = "otel")]
            _exporter: None,
        }
    }

    #[test]
    fn lines_beyond_the_queue_are_dropped_and_counted_once() {
        let (permit, permits) = channel();
        let (written, lines) = channel();
        let queue = Arc::new(LogQueue::default());
        let line = "x".repeat(1_023) + "\n";
        // The queue holds 1,024 of them.
        for _ in 0..1_500 {
            (&*queue).write_all(line.as_bytes()).unwrap();
        }
        let of_thread = Arc::clone(&queue);
        thread::spawn(move || of_thread.write_to(&mut SlowOutput { permits, written }, LogFormat::Json));
        for _ in 0..1_025 {
            permit.send(()).unwrap();
        }
        for _ in 0..1_024 {
            assert_eq!(lines.recv().unwrap(), line);
        }
        let report: serde_json::Value = serde_json::from_str(&lines.recv().unwrap()).unwrap();
        assert_eq!(report["message"], "476 log lines were dropped");
        // It goes on, and does not repeat it.
        (&*queue).write_all(b"next\n").unwrap();
        permit.send(()).unwrap();
        assert_eq!(lines.recv().unwrap(), "next\n");
    }

    #[test]
    fn the_end_waits_for_what_is_queued_but_not_for_ever() {
        let (permit, permits) = channel();
        let (written, lines) = channel();
        let queue = Arc::new(LogQueue::default());
        let of_thread = Arc::clone(&queue);
        thread::spawn(move || of_thread.write_to(&mut SlowOutput { permits, written }, LogFormat::Text));
        (&*queue).write_all(b"last words\n").unwrap();
        permit.send(()).unwrap();
        drop(flush(Arc::clone(&queue)));
        assert_eq!(lines.try_recv().unwrap(), "last words\n");
        // Nobody reads this one.
        (&*queue).write_all(b"unheard\n").unwrap();
        drop(flush(queue));
        assert!(lines.try_recv().is_err());
    }
}
