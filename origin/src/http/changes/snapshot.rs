//! Snapshots: all records of the subscriptions at one position of the log, then the token of that position.

use super::events::write_event;
use super::{Chunks, Reader, StreamError, Trailer};
use crate::changes::{ChangesError, Followed, Page, Place};
use crate::database::log_reader::LogError;
use crate::database::run::snapshot::{SnapshotList, SnapshotPart, begin_snapshot, log_facts, snapshot};
use crate::database::{DbError, Lease, ReadFrom};
use crate::http::request_context::RequestContext;
use crate::http::{respond, stream};
use crate::project_quota::QuotaGuard;
use async_stream::try_stream;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use shared::envelope::write_string;
use shared::format::Format;
use shared::operation::changes::ChangesForm;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// A snapshot, with which an event stream begins. Holds a connection until the client has received all records.
pub(super) struct SnapshotOfEvents {
    pub(super) lease: Lease,
    pub(super) lists: Vec<SnapshotList>,
    pub(super) connection: QuotaGuard,
    pub(super) time: Duration,
}

impl Reader {
    /// Streams every matching record, then the token. An event stream goes on with changes.
    pub(super) async fn snapshot(self, context: &RequestContext, slot: QuotaGuard) -> Result<Response, ChangesError> {
        let mut lease = context.lease(ReadFrom::Primary).await?;
        log_facts(&mut lease, context.limit()).await??;
        let position = begin_snapshot(&mut lease, context.limit()).await?;
        let position = position.ok_or_else(|| {
            LogError::Unavailable("MariaDB tells no position of a snapshot: use an engine with transactions.".into())
        })?;
        let place = Place { position, within: None };
        if self.form == ChangesForm::Events {
            let (app, caller) = (context.app(), context.caller());
            let shares = app.streams.of(caller.account());
            let connection = shares.try_take_as(caller.project(), caller.key_id(), 1);
            let connection = connection.map_err(|refused| refused.into_problem("streamed answers"))?;
            let records = SnapshotOfEvents { lease, lists: self.lists(), connection, time: app.streams.timeout() };
            return Ok(self.events(context, Some(records), Page { next: place, ..Page::default() }, slot));
        }
        let (limits, guard) = context.stream()?;
        let limit = context.limit();
        let chunks: Chunks = Box::pin(try_stream! {
            let _slot = slot;
            let mut limited = false;
            {
                let mut parts = pin!(self.records(lease, self.lists(), limit));
                while let Some(part) = parts.next().await {
                    let (chunk, is_cut) = part?;
                    limited |= is_cut;
                    yield chunk;
                }
            }
            let mut out = Vec::new();
            self.write_trailer(&Trailer { next: &place, up_to_date: true, limited }, &mut out);
            out.push(b'\n');
            yield Bytes::from(out);
        });
        let body = stream::body([], chunks, Format::NdJson.cut_mark(), limits, guard);
        Ok(respond::with_type(body, Format::NdJson.content_type()))
    }

    fn lists(&self) -> Vec<SnapshotList> {
        let list = |followed: &Followed| SnapshotList {
            statement: followed.snapshot(),
            layout: Arc::clone(followed.plan().select.layout()),
            maximum: followed.plan().maximum,
        };
        self.subscriptions.all.iter().map(list).collect()
    }

    /// Streams the records of a snapshot as messages, and whether a list is cut.
    pub(super) fn records(
        &self,
        lease: Lease,
        lists: Vec<SnapshotList>,
        limit: Duration,
    ) -> impl Stream<Item = Result<(Bytes, bool), StreamError>> + Send {
        snapshot(lease, lists, limit).map(|part: Result<_, DbError>| {
            let SnapshotPart { list, rows, is_cut } = part.map_err(|error| StreamError(error.to_string()))?;
            let id = self.subscriptions.all[list].id.as_deref();
            let mut out = Vec::new();
            let mut json = Vec::new();
            for at in 0..rows.count() {
                json.clear();
                json.extend_from_slice(br#"{"type":"insert","snapshot":true,"key":"#);
                rows.write_key(at, &mut json);
                json.extend_from_slice(br#","record":"#);
                rows.write_record(at, &mut json);
                if let Some(id) = id {
                    json.extend_from_slice(br#","subscription":"#);
                    write_string(&mut json, id);
                }
                json.push(b'}');
                match self.form {
                    ChangesForm::Events => write_event("change", None, &json, &mut out),
                    ChangesForm::Page | ChangesForm::Lines => {
                        out.extend_from_slice(&json);
                        out.push(b'\n');
                    }
                }
            }
            Ok((Bytes::from(out), is_cut))
        })
    }
}
