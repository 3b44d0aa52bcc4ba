//! Formats log lines as JSON objects in one pass, because a general serializer would take a tenth of a request's time.

use std::cell::RefCell;
use std::fmt::{Debug, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use shared::envelope::write_string;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

const LINE_BYTES: usize = 512;

thread_local! {
    static LINE: RefCell<LogLine> = RefCell::new(LogLine::new());
}

pub(super) struct JsonLines(pub(super) fn(&[u8]));

impl<S: Subscriber> Layer<S> for JsonLines {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        LINE.with(|line| {
            // The buffer is in use if formatting an event logs another event. That other event is dropped.
            if let Ok(mut line) = line.try_borrow_mut() {
                (self.0)(line.write(event, SystemTime::now()));
            }
        });
    }
}

struct LogLine {
    out: Vec<u8>,
    text: String,
    /// The second, since 1970, for which `prefix` was made.
    second: Option<u64>,
    /// The beginning of all lines of one second, such as `{"timestamp":"2026-11-20T08:36:16.`
    prefix: String,
}

impl LogLine {
    fn new() -> Self {
        Self { out: Vec::with_capacity(LINE_BYTES), text: String::new(), second: None, prefix: String::new() }
    }

    fn write(&mut self, event: &Event<'_>, now: SystemTime) -> &[u8] {
        let age = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.second != Some(age.as_secs()) {
            self.begin_second(age.as_secs());
        }
        self.out.clear();
        self.out.extend_from_slice(self.prefix.as_bytes());
        // Adding a million keeps leading zeros; the million's digit is then cut off.
        let mut digits = itoa::Buffer::new();
        let micros = digits.format(1_000_000 + age.subsec_micros());
        self.out.extend_from_slice(&micros.as_bytes()[1..]);
        self.out.extend_from_slice(b"Z\",\"level\":\"");
        let level = event.metadata().level().as_str();
        self.out.extend_from_slice(level.as_bytes());
        self.out.push(b'"');
        event.record(self);
        self.out.extend_from_slice(b"}\n");
        &self.out
    }

    fn begin_second(&mut self, second: u64) {
        let time = Timestamp::from_second(i64::try_from(second).unwrap_or(0)).unwrap_or_default();
        self.prefix.clear();
        let _ = write!(self.prefix, "{{\"timestamp\":\"{time:.0}");
        self.prefix.pop();
        self.prefix.push('.');
        self.second = Some(second);
    }

    /// Appends a field's name. Names come from the source code and need no escaping.
    fn name(&mut self, field: &Field) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(field.name().as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn number(&mut self, field: &Field, digits: &str) {
        self.name(field);
        self.out.extend_from_slice(digits.as_bytes());
    }
}

impl Visit for LogLine {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, itoa::Buffer::new().format(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, itoa::Buffer::new().format(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, if value { "true" } else { "false" });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field);
        write_string(&mut self.out, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.name(field);
        self.text.clear();
        let _ = write!(self.text, "{value:?}");
        write_string(&mut self.out, &self.text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tracing_subscriber::layer::SubscriberExt as _;

    static SEEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

    #[test]
    fn a_line_is_one_object_with_the_time_the_level_and_every_field() {
        let layer = JsonLines(|line| SEEN.lock().unwrap().extend_from_slice(line));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let absent: Option<bool> = None;
            tracing::info!(
                text = "a \"quoted\"\nline",
                count = 7_u64,
                below = -1_i64,
                cut = true,
                absent,
                shown = %"é",
                "said {}",
                1
            );
        });
        let seen = SEEN.lock().unwrap();
        assert_eq!(seen.iter().filter(|byte| **byte == b'\n').count(), 1);
        let line: serde_json::Value = serde_json::from_slice(&seen).unwrap();
        let time = line["timestamp"].as_str().unwrap();
        assert_eq!(time.len(), "2026-11-20T08:36:16.123456Z".len());
        assert!(time.parse::<Timestamp>().is_ok(), "{time}");
        assert_eq!(line["level"], "INFO");
        assert_eq!(line["message"], "said 1");
        assert_eq!(line["text"], "a \"quoted\"\nline");
        assert_eq!(line["count"], 7);
        assert_eq!(line["below"], -1);
        assert_eq!(line["cut"], true);
        assert_eq!(line["shown"], "é");
        assert!(line.get("absent").is_none());
    }

    #[test]
    fn the_time_moves_on_with_the_clock() {
        let mut line = LogLine::new();
        line.begin_second(1_763_627_776);
        assert_eq!(line.prefix, "{\"timestamp\":\"2025-11-20T08:36:16.");
        line.begin_second(1_763_627_777);
        assert_eq!(line.prefix, "{\"timestamp\":\"2025-11-20T08:36:17.");
    }
}
