//! Parses the body of an upload while it arrives, and stages its files one after the other, with at most two pieces of
//! a file in memory. Staged files are deleted if the upload fails or its client disconnects.

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use shared::error::Problem;
use shared::upload::{Event, ParsedUpload, Parser, UploadLimits};
use std::time::Duration;

use crate::http::body::BodyReader;
use crate::media::rights;
use crate::media::store::{Staged, Staging, Store};

pub(super) struct Received {
    pub(super) form: ParsedUpload,
    pub(super) files: Vec<Staged>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveLimits {
    pub(super) limits: UploadLimits,
    pub(super) pause_max: Duration,
    pub(super) file_max_bytes: Option<u64>,
}

pub(super) async fn receive(
    content: &mut Body,
    headers: &HeaderMap,
    store: &Store,
    terms: ReceiveLimits,
) -> Result<Received, Problem> {
    let content_type = headers.get("content-type").and_then(|value| value.to_str().ok());
    if content.size_hint().lower() > terms.limits.body_bytes {
        return Err(terms.limits.body_too_large());
    }
    let mut parser = Parser::new(content_type, terms.limits)?;
    let mut files = Files::new(store, terms.file_max_bytes);
    let mut reader = BodyReader::new(content, terms.pause_max);
    while let Some(bytes) = reader.next().await? {
        let mut feed = parser.feed(&bytes);
        while let Some(event) = feed.next_event()? {
            files.take(event).await?;
        }
    }
    let form = parser.finish()?;
    Ok(Received { form, files: files.staged })
}

struct Files<'a> {
    store: &'a Store,
    file_max_bytes: Option<u64>,
    arriving: Option<Staging>,
    arrived: u64,
    staged: Vec<Staged>,
}

impl<'a> Files<'a> {
    fn new(store: &'a Store, file_max_bytes: Option<u64>) -> Self {
        Self { store, file_max_bytes, arriving: None, arrived: 0, staged: Vec::new() }
    }

    async fn take(&mut self, event: Event<'_>) -> Result<(), Problem> {
        let outcome = match (event, &mut self.arriving) {
            (Event::ItemBegins(_), arriving) => {
                *arriving = Some(self.store.stage());
                self.arrived = 0;
                Ok(())
            }
            (Event::Data(bytes), Some(file)) => {
                self.arrived += bytes.len() as u64;
                if let Some(most) = self.file_max_bytes.filter(|most| self.arrived > *most) {
                    return Err(rights::too_large(most));
                }
                file.write(bytes).await
            }
            (Event::ItemEnds, arriving) => match arriving.take() {
                Some(file) => file.finish().await.map(|file| self.staged.push(file)),
                None => Ok(()),
            },
            (Event::Data(_), None) => Ok(()),
        };
        Ok(outcome?)
    }
}
