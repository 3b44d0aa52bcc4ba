//! Writes log lines to standard error through a buffer and a thread, so that logging doesn't block a request. Other
//! crates log warnings and errors at most, because some of them print keys at finer levels.

mod json;

use std::io::{self, IsTerminal, Write};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::json::JsonLines;
use crate::config::{Config, LogFormat};

/// The maximum size of the buffer. If the reader of standard error blocks, further lines are dropped and only counted.
const BUFFER_MAX_BYTES: usize = 1024 * 1024;

const COLLECT_TIME: Duration = Duration::from_millis(20);

const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

const OURS: [&str; 3] = ["origin", "selkie", "shared"];

static SINK: Sink = Sink::new();

#[derive(Debug)]
#[must_use = "dropping it flushes"]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        flush();
    }
}

pub fn init(config: &Config) -> LogGuard {
    let terminal = io::stderr().is_terminal();
    let json = match config.log_format {
        LogFormat::Json => true,
        LogFormat::Pretty => false,
        LogFormat::Auto => !terminal,
    };
    let lines = if json {
        JsonLines(|line| SINK.push(line)).boxed()
    } else {
        fmt::layer().with_target(false).with_writer(&SINK).compact().with_ansi(terminal).boxed()
    };
    let level = LevelFilter::from_level(config.log_level);
    let levels = Targets::new()
        .with_default(LevelFilter::WARN.min(level))
        // This crate logs a warning for each error that a caller gets, with texts from the caller.
        .with_target("rmcp", LevelFilter::ERROR)
        .with_targets(OURS.map(|name| (name, level)));
    // Fails on a second call, as in tests.
    let _ = tracing_subscriber::registry().with(levels).with(lines).try_init();
    static START: Once = Once::new();
    START.call_once(|| {
        std::thread::spawn(|| SINK.drain(&mut io::stderr()));
        flush_on_panic();
    });
    LogGuard(())
}

pub fn flush() {
    SINK.flush(FLUSH_TIMEOUT);
}

fn flush_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        flush();
        report(panic);
    }));
}

#[derive(Debug)]
struct Sink {
    state: Mutex<SinkState>,
    changed: Condvar,
}

#[derive(Debug)]
struct SinkState {
    waiting: Vec<u8>,
    dropped: u64,
    writing: bool,
}

impl Sink {
    const fn new() -> Self {
        let state = SinkState { waiting: Vec::new(), dropped: 0, writing: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, SinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.waiting.len() + line.len() > BUFFER_MAX_BYTES {
            state.dropped += 1;
            return;
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.extend_from_slice(line);
        drop(state);
        // The writer thread waits for a notification only while the buffer is empty, so only the first line must wake
        // it.
        if was_empty {
            self.changed.notify_all();
        }
    }

    fn drain(&self, to: &mut impl Write) {
        let mut taken = Vec::new();
        loop {
            let asleep = self.changed.wait_while(self.lock(), |state| state.waiting.is_empty());
            drop(asleep.unwrap_or_else(PoisonError::into_inner));
            std::thread::sleep(COLLECT_TIME);
            self.write_once(&mut taken, to);
        }
    }

    fn write_once(&self, taken: &mut Vec<u8>, to: &mut impl Write) {
        let mut state = self.lock();
        std::mem::swap(&mut state.waiting, taken);
        let dropped = std::mem::take(&mut state.dropped);
        state.writing = true;
        drop(state);
        let _ = to.write_all(taken);
        if dropped > 0 {
            let _ = writeln!(to, "{{\"level\":\"WARN\",\"message\":\"log lines were dropped\",\"dropped\":{dropped}}}");
        }
        let _ = to.flush();
        taken.clear();
        self.lock().writing = false;
        self.changed.notify_all();
    }

    fn flush(&self, limit: Duration) {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while state.writing || !state.waiting.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[derive(Debug)]
struct LineWriter(&'static Sink);

impl Write for LineWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for &'static Sink {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> Self::Writer {
        LineWriter(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_and_in_order() {
        let sink = Sink::new();
        sink.push(b"one\n");
        sink.push(b"two\n");
        let mut out = Vec::new();
        sink.write_once(&mut Vec::new(), &mut out);
        assert_eq!(out, b"one\ntwo\n");
    }

    #[test]
    fn a_full_buffer_drops_lines_and_says_how_many() {
        let sink = Sink::new();
        sink.push(&vec![b'x'; BUFFER_MAX_BYTES]);
        sink.push(b"lost\n");
        sink.push(b"lost\n");
        let mut out = Vec::new();
        sink.write_once(&mut Vec::new(), &mut out);
        let end = String::from_utf8_lossy(&out[BUFFER_MAX_BYTES..]).into_owned();
        assert!(end.contains("\"dropped\":2") && !end.contains("lost\n"), "{end}");
    }

    #[test]
    fn a_flush_of_nothing_returns() {
        Sink::new().flush(FLUSH_TIMEOUT);
    }
}
