//! Parses the body of an upload while it arrives, and stages its files one after the other.
//!
//! Memory holds at most two chunks of one file. Staged files are dropped if the upload fails or its client disconnects.

use axum::body::{Body, HttpBody as _};
use axum::http::HeaderMap;
use shared::error::Problem;
use shared::upload::{Event, Parser, UploadForm, UploadLimits};
use std::time::Duration;

use crate::http::body::BodyReader;
use crate::media::store::{Staged, Staging, Store};

/// A completely received upload: its form, and the staged files in the order of the form's items.
pub(super) struct Received {
    pub(super) form: UploadForm,
    pub(super) files: Vec<Staged>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveLimits {
    pub(super) limits: UploadLimits,
    /// The maximum time to wait for the next bytes of the body.
    pub(super) pause_max: Duration,
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
    let mut files = Files::new(store);
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
    arriving: Option<Staging>,
    staged: Vec<Staged>,
}

impl<'a> Files<'a> {
    fn new(store: &'a Store) -> Self {
        Self { store, arriving: None, staged: Vec::new() }
    }

    async fn take(&mut self, event: Event<'_>) -> Result<(), Problem> {
        let outcome = match (event, &mut self.arriving) {
            (Event::ItemBegins(_), arriving) => {
                *arriving = Some(self.store.stage());
                Ok(())
            }
            (Event::Data(bytes), Some(file)) => file.write(bytes).await,
            (Event::ItemEnds, arriving) => match arriving.take() {
                Some(file) => file.finish().await.map(|file| self.staged.push(file)),
                None => Ok(()),
            },
            (Event::Data(_), None) => Ok(()),
        };
        outcome.map_err(|error| error.into_problem())
    }
}
