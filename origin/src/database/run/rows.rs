//! Encodes the rows of a streamed read: each row when it arrives, or a batch of rows with their related records.

use super::related::{members, size};
use super::{CHUNK_ROOM_BYTES, SessionEffect, decoders, write_row, write_rows};
use crate::database::DbError;
use crate::database::connection::Connection;
use crate::database::json::Decoder;
use crate::database::pool::{Lease, Lessee, Pools};
use crate::project_quota::QuotaGuard;
use crate::query::catalog::Layout;
use crate::query::plan::include::Included;
use mysql_async::{Column, Row};
use shared::envelope::{Encoder, Shape};
use shared::format::Format;
use shared::ident::ProjectName;
use shared::key::Access;
use shared::limits::{INCLUDE_BATCH_MAX_RECORDS, INCLUDE_MAX_BYTES};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Leases a second connection, always to the primary, to read related records while the first one still streams.
#[derive(Debug)]
pub struct SecondConnection {
    pub pools: Arc<Pools>,
    pub project: ProjectName,
    pub access: Access,
    pub caller: Uuid,
    /// Limits the requests that wait for a second connection while they hold a first connection: otherwise they could
    /// hold the whole pool and wait for each other.
    pub guard: QuotaGuard,
}

impl SecondConnection {
    async fn lease(&self) -> Result<Lease, DbError> {
        let (project, access, caller) = (&self.project, self.access, self.caller);
        self.pools.lease_as(Lessee { project, access, caller }).await
    }
}

#[derive(Debug)]
pub(super) struct RelatedReads {
    pub(super) includes: Vec<Included>,
    pub(super) second_connection: Option<SecondConnection>,
    pub(super) effect: SessionEffect,
    pub(super) limit: Duration,
}

#[derive(Debug)]
pub(super) struct RowWriter<'a> {
    pub(super) encoder: Encoder,
    layout: &'a Layout,
    decoders: Vec<Decoder>,
    reads: RelatedReads,
    batch: Vec<Row>,
    batch_bytes: usize,
    last: Option<Row>,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(layout: &'a Layout, columns: &[Column], format: Format, reads: RelatedReads) -> Self {
        Self {
            encoder: Encoder::begin_as(format, Shape::Rows, &layout.keys, CHUNK_ROOM_BYTES),
            layout,
            decoders: decoders(Some(&layout.kinds), columns),
            reads,
            batch: Vec::new(),
            batch_bytes: 0,
            last: None,
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.encoder.rows() + self.batch.len() as u64
    }

    pub(super) fn add(&mut self, row: Row) {
        if !self.reads.includes.is_empty() {
            self.batch_bytes += size(&row);
            self.batch.push(row);
            return;
        }
        write_row(&mut self.encoder, &self.layout.keys, &self.decoders, &row);
        self.last = Some(row);
    }

    pub(super) fn is_batch_full(&self) -> bool {
        let is_full = self.batch.len() == INCLUDE_BATCH_MAX_RECORDS && self.reads.second_connection.is_some();
        is_full || self.batch_bytes > INCLUDE_MAX_BYTES
    }

    pub(super) async fn relate_on_second_connection(&mut self) -> Result<(), DbError> {
        // Leased for one batch only, because the client may be slow to receive the batch.
        let mut lease = match &self.reads.second_connection {
            Some(second_connection) => second_connection.lease().await?,
            None => return Err(DbError::IncludeTooLarge),
        };
        self.relate(&mut lease).await?;
        lease.reset_if_dirty().await;
        Ok(())
    }

    pub(super) async fn relate(&mut self, lease: &mut Lease) -> Result<(), DbError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let RelatedReads { includes, effect, limit, .. } = &self.reads;
        let work = async |connection: &mut Connection| members(connection, includes, &self.batch).await;
        let members = lease.run(*effect, *limit, None, work).await?;
        write_rows(&mut self.encoder, self.layout, &self.decoders, &self.batch, &members);
        self.last = self.batch.pop();
        self.batch.clear();
        self.batch_bytes = 0;
        Ok(())
    }

    pub(super) fn finish(self) -> (Encoder, Option<Row>) {
        (self.encoder, self.last)
    }
}
