//! Leases of pooled connections: how a connection is returned, reset or killed.

use crate::database::connection::{Connection, Connector, SessionState};
use crate::database::deadline::{Limit, within};
use crate::database::error::DbError;
use crate::database::long_rows::{AnswersLongRows, LongRows};
use crate::database::position::Position;
use crate::database::run::{SessionEffect, StatementStats};
use crate::project_quota::QuotaGuard;
use deadpool::managed::Object;
use std::time::{Duration, Instant};

const RESET_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for asking a host's position. Short, because the caller of a committed write waits for the answer.
const POSITION_TIMEOUT: Duration = Duration::from_secs(2);

/// A leased connection. On drop, a statement that still runs is killed, a dirty session is reset, and the connection
/// returns to the pool; but a clean connection is closed if a request waits to open another one.
pub struct Lease {
    object: Option<Object<Connector>>,
    stage: Stage,
    turn: Option<QuotaGuard>,
    long_rows: LongRows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Running,
}

impl Lease {
    pub(super) fn new(object: Object<Connector>, turn: QuotaGuard, long_rows: LongRows) -> Self {
        Self { object: Some(object), stage: Stage::Idle, turn: Some(turn), long_rows }
    }

    pub(in crate::database) fn long_rows(&self) -> Result<AnswersLongRows, DbError> {
        let turn = self.turn.as_ref().ok_or_else(|| DbError::Unavailable("the connection is closed".into()))?;
        let (project, caller) = turn.holder();
        Ok(self.long_rows.of_answer(project, caller))
    }

    pub(in crate::database) fn connection(&mut self) -> Result<&mut Connection, DbError> {
        self.object
            .as_mut()
            .map(|object| &mut ***object)
            .ok_or_else(|| DbError::Unavailable("the connection is closed".into()))
    }

    /// Returns the limit of a statement: it fails after `time`, or when the host is left (see `database::hosts`).
    pub(in crate::database) fn limit(&self, time: Duration) -> Limit {
        Limit { time, left: self.object.as_ref().and_then(|object| object.host.left.clone()) }
    }

    /// Runs a statement until it ends, `time` is over, or the connection's host is left. If the statement still runs
    /// then, or when this future is dropped, dropping the lease kills the statement.
    pub(in crate::database) async fn run<T>(
        &mut self,
        effect: SessionEffect,
        time: Duration,
        progress: Option<&StatementStats>,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let started = Instant::now();
        self.expect(effect);
        let outcome = within(self.limit(time), self.step(work)).await;
        if let Some(progress) = progress {
            progress.add_time(started);
        }
        outcome
    }

    /// Runs a step without a time limit: the caller must set one.
    pub(in crate::database) async fn step<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        self.begin();
        match work(self.connection()?).await {
            Ok(value) => {
                self.end();
                Ok(value)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    pub(in crate::database) async fn has_reached(&mut self, position: &Position) -> Result<bool, DbError> {
        self.run(SessionEffect::Nothing, POSITION_TIMEOUT, None, async |connection| {
            connection.has_reached(position).await
        })
        .await
    }

    pub(in crate::database) async fn note_position(&mut self, progress: &StatementStats) {
        progress.set_position(self.position().await);
    }

    /// Returns the host's position; `None` if the host has no positions or is a replica, or the query fails or takes
    /// longer than [`POSITION_TIMEOUT`].
    pub(in crate::database) async fn position(&mut self) -> Option<Position> {
        if !self.connection().ok()?.has_positions() {
            return None;
        }
        let asked = async |connection: &mut Connection| Ok(connection.position().await);
        self.run(SessionEffect::Nothing, POSITION_TIMEOUT, None, asked).await.ok().flatten()
    }

    pub(in crate::database) fn begin(&mut self) {
        self.stage = Stage::Running;
    }

    pub(in crate::database) fn end(&mut self) {
        self.stage = Stage::Idle;
        if let Some(object) = self.object.as_mut()
            && object.session == SessionState::Pristine
        {
            object.session = SessionState::Used;
        }
    }

    /// Prepares for a statement's effect on the session. Called before the statement runs, so that the session is reset
    /// even if the statement fails or the client disconnects.
    pub(in crate::database) fn expect(&mut self, effect: SessionEffect) {
        if effect == SessionEffect::Anything {
            self.mark_dirty();
        }
    }

    pub(in crate::database) fn mark_dirty(&mut self) {
        if let Some(object) = self.object.as_mut() {
            object.session = SessionState::Dirty;
        }
    }

    pub(in crate::database) fn mark_clean(&mut self) {
        if let Some(object) = self.object.as_mut() {
            object.session = SessionState::Used;
        }
    }

    /// Resets a dirty session before the end of the response is sent, so that the session holds no locks once the
    /// client has the whole response. Does nothing while a statement runs.
    pub(in crate::database) async fn reset_if_dirty(&mut self) {
        let dirty = |object: &Object<Connector>| object.session == SessionState::Dirty;
        if self.stage == Stage::Running || !self.object.as_ref().is_some_and(dirty) {
            return;
        }
        if let Some(object) = self.object.take() {
            // The reset runs in its own task: if it were cancelled, a half-reset connection would return to the pool.
            self.object = tokio::spawn(reset(object)).await.ok().flatten();
        }
    }

    /// Notes the error and returns it. After an error of the statement only, the connection stays usable. After a lost
    /// connection, all connections that the account's pool has opened so far are closed. A statement that may still run
    /// is killed when the lease is dropped.
    pub(in crate::database) fn failed(&mut self, error: DbError) -> DbError {
        match &error {
            DbError::NoDatabase(_)
            | DbError::ParamCount(..)
            | DbError::Misread
            | DbError::NoReceipts
            | DbError::OtherPosition
            | DbError::NoPosition
            | DbError::PacketTooLarge(_) => self.end(),
            // The session has the error's diagnostics (SHOW WARNINGS) until its next reset.
            DbError::Refused(..) if !error.is_lost() => self.end(),
            DbError::Refused(..) | DbError::Unavailable(_) => {
                self.stage = Stage::Idle;
                if let Some(object) = self.object.take() {
                    if let Some(pool) = Object::pool(&object) {
                        pool.manager().forget_all(&object.host);
                    }
                    drop(Object::take(object));
                }
            }
            DbError::Timeout
            | DbError::Overloaded
            | DbError::LocalFile
            | DbError::ResultsTooLarge
            | DbError::TooManyColumns
            | DbError::AnswerTooLarge
            | DbError::IncludeTooLarge
            | DbError::RowsAdded
            | DbError::NotReached
            | DbError::DescriptionTooLarge(_)
            | DbError::RoleForbids(_) => {}
        }
        error
    }

    pub(in crate::database) async fn failed_and_reset(&mut self, error: DbError) -> DbError {
        let error = self.failed(error);
        self.reset_if_dirty().await;
        error
    }

    pub(in crate::database) fn kill(&mut self) {
        self.stage = Stage::Idle;
        if let Some(object) = self.object.take() {
            let pool = Object::pool(&object);
            let connection = Object::take(object);
            if let Some(pool) = pool {
                pool.manager().kill(&connection);
            }
        }
    }
}

/// Resets the session; closes the connection if that fails or takes longer than [`RESET_TIMEOUT`].
async fn reset(mut object: Object<Connector>) -> Option<Object<Connector>> {
    match tokio::time::timeout(RESET_TIMEOUT, object.reset()).await {
        Ok(Ok(())) => Some(object),
        Ok(Err(_)) | Err(_) => {
            drop(Object::take(object));
            None
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.stage == Stage::Running {
            self.kill();
        }
        let Some(object) = self.object.take() else {
            return;
        };
        match object.session {
            // Resets now, because the session's locks must not last until the connection's next use.
            SessionState::Dirty => match tokio::runtime::Handle::try_current() {
                Ok(runtime) => {
                    let turn = self.turn.take();
                    runtime.spawn(async move {
                        drop(reset(object).await);
                        drop(turn);
                    });
                }
                Err(_) => drop(Object::take(object)),
            },
            SessionState::Pristine | SessionState::Used => {
                if object.slot.must_yield() {
                    drop(Object::take(object));
                }
            }
        }
    }
}
