//! Follows the changes of a table: writes the messages of an event stream as lines, and opens the stream again, after its
//! last event, when it ends.

use std::io::Write;

use bytes::{Buf as _, BytesMut};
use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;

use super::api::{ATTEMPTS_MAX_COUNT, ApiError, BACK_OFF_MAX, BACK_OFF_MIN, NoAnswer};
use super::{Api, TableRef, TransferError};

/// The `reason` of the line `resync` that the CLI prints if the stream ended within the snapshot. The other reasons are
/// those of the API.
const SNAPSHOT_BROKEN: &str = "snapshot_broken";

/// One table's feed.
#[derive(Debug)]
pub struct Follower {
    pub table: TableRef,
    pub query: Option<Value>,
    /// The fields; if empty, those of a list.
    pub select: Vec<String>,
    /// Whether to begin with all records, unless there is a token, and to begin again with all records when changes are
    /// missing.
    pub snapshot: bool,
    /// The token of the last event.
    last_event: Option<String>,
    /// The token after the last whole transaction.
    token: Option<String>,
}

/// Why a stream ended.
enum End {
    Closed,
    Resync(String),
}

impl Follower {
    pub fn new(table: TableRef, since: Option<String>) -> Self {
        Self { table, query: None, select: Vec::new(), snapshot: false, last_event: since, token: None }
    }

    /// Returns the token after the last whole transaction that was written.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Writes changes to `out` until the feed can't go on.
    pub async fn run(&mut self, api: &Api, out: &mut (dyn Write + Send)) -> Result<(), TransferError> {
        let mut attempts_max_count = ATTEMPTS_MAX_COUNT;
        let mut back_off = BACK_OFF_MIN;
        loop {
            let opened =
                api.changes(&self.table, &self.options(), self.last_event.as_deref(), attempts_max_count).await;
            let end = match opened {
                Ok(response) => {
                    attempts_max_count = u32::MAX;
                    let mut events = Events::new(response);
                    let end = self.copy(&mut events, out).await?;
                    if events.is_any {
                        back_off = BACK_OFF_MIN;
                    }
                    end
                }
                Err(NoAnswer::Refused(refusal)) if refusal.code == "resync_required" => resync(&refusal),
                Err(error) => return Err(error.into()),
            };
            match end {
                End::Resync(reason) if self.snapshot => self.begin_again(&reason, out)?,
                End::Resync(reason) => {
                    let message = format!("{} has changes that the feed lacks: {reason} (resync_required)", self.table);
                    return Err(TransferError::failed(
                        message,
                        "read all records again, by --snapshot without --since",
                    ));
                }
                End::Closed if self.last_event.is_none() && self.snapshot => self.begin_again(SNAPSHOT_BROKEN, out)?,
                End::Closed => {}
            }
            tokio::time::sleep(back_off).await;
            back_off = (back_off * 2).min(BACK_OFF_MAX);
        }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        if let Some(query) = &self.query {
            options.push(("query", query.to_string()));
        }
        if !self.select.is_empty() {
            options.push(("selectFields", self.select.join(",")));
        }
        if self.snapshot && self.last_event.is_none() {
            options.push(("snapshot", "true".to_owned()));
        }
        options
    }

    fn begin_again(&mut self, reason: &str, out: &mut (dyn Write + Send)) -> Result<(), TransferError> {
        (self.last_event, self.token) = (None, None);
        let line = serde_json::json!({ "type": "resync", "reason": reason });
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(TransferError::Output)
    }

    async fn copy(&mut self, events: &mut Events, out: &mut (dyn Write + Send)) -> Result<End, TransferError> {
        // The stream's end and a broken connection are the same: both go on after the last event.
        while let Ok(true) = events.receive().await {
            while let Some(event) = events.next() {
                if let Some(end) = self.write(&event, out).map_err(TransferError::Output)? {
                    out.flush().map_err(TransferError::Output)?;
                    return Ok(end);
                }
            }
            out.flush().map_err(TransferError::Output)?;
        }
        Ok(End::Closed)
    }

    fn write(&mut self, event: &Event, out: &mut (dyn Write + Send)) -> std::io::Result<Option<End>> {
        match event.name.as_str() {
            "change" => {
                out.write_all(&event.data)?;
                out.write_all(b"\n")?;
            }
            "transaction" => {
                // The event's data has no type.
                out.write_all(br#"{"type":"transaction","#)?;
                out.write_all(event.data.get(1..).unwrap_or_default())?;
                out.write_all(b"\n")?;
                self.token.clone_from(&event.id);
            }
            "resync" => {
                #[derive(Deserialize)]
                struct Resync {
                    reason: String,
                }
                let reason = serde_json::from_slice(&event.data).map(|resync: Resync| resync.reason);
                return Ok(Some(End::Resync(reason.unwrap_or_default())));
            }
            // The next request is refused if the failure is not temporary.
            "failed" => return Ok(Some(End::Closed)),
            _ => {}
        }
        if event.id.is_some() {
            self.last_event.clone_from(&event.id);
        }
        Ok(None)
    }
}

fn resync(refusal: &ApiError) -> End {
    End::Resync(refusal.details.reason.clone().unwrap_or_default())
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    name: String,
    id: Option<String>,
    data: Vec<u8>,
}

/// Reads server-sent events as Selkie writes them: `\n` ends a line, `data` has one line.
struct Events {
    response: Response,
    buffer: Buffer,
    is_any: bool,
}

impl Events {
    fn new(response: Response) -> Self {
        Self { response, buffer: Buffer::default(), is_any: false }
    }

    /// Waits for further bytes. Returns false at the end.
    async fn receive(&mut self) -> reqwest::Result<bool> {
        let chunk = self.response.chunk().await?;
        if let Some(chunk) = &chunk {
            self.buffer.bytes.extend_from_slice(chunk);
        }
        Ok(chunk.is_some())
    }

    fn next(&mut self) -> Option<Event> {
        let event = self.buffer.next();
        self.is_any |= event.is_some();
        event
    }
}

#[derive(Default)]
struct Buffer {
    bytes: BytesMut,
    /// The number of bytes that hold no end of an event.
    searched: usize,
}

impl Buffer {
    /// Returns the next event that is whole; comments are left out.
    fn next(&mut self) -> Option<Event> {
        const END: &[u8] = b"\n\n";
        loop {
            let Some(at) = self.bytes[self.searched..].windows(END.len()).position(|part| part == END) else {
                self.searched = self.bytes.len().saturating_sub(END.len() - 1);
                return None;
            };
            let block = self.bytes.split_to(self.searched + at);
            self.bytes.advance(END.len());
            self.searched = 0;
            let mut event = Event::default();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            for line in block[..].split(|byte: &u8| *byte == b'\n') {
                if let Some(name) = line.strip_prefix(b"event: ") {
                    event.name = text(name);
                } else if let Some(id) = line.strip_prefix(b"id: ") {
                    event.id = Some(text(id));
                } else if let Some(data) = line.strip_prefix(b"data: ") {
                    event.data = data.to_vec();
                }
            }
            if event != Event::default() {
                return Some(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_parts_of_the_stream_end() {
        let text = "id: a\nevent: change\ndata: {\"x\":1}\n\n: comment\n\nevent: resync\ndata: {}\n\n";
        let event = |name: &str, id: Option<&str>, data: &str| Event {
            name: name.to_owned(),
            id: id.map(str::to_owned),
            data: data.as_bytes().to_vec(),
        };
        let expected = [event("change", Some("a"), "{\"x\":1}"), event("resync", None, "{}")];
        for length in 1..=text.len() {
            let (mut buffer, mut found) = (Buffer::default(), Vec::new());
            for part in text.as_bytes().chunks(length) {
                buffer.bytes.extend_from_slice(part);
                found.extend(std::iter::from_fn(|| buffer.next()));
            }
            assert_eq!(found, expected, "in parts of {length} bytes");
            assert!(buffer.bytes.is_empty());
        }
    }
}
