//! A leased connection: returned as it is, reset first, or killed.

use crate::database::connection::{Connection, Connector, SessionState};
use crate::database::error::DbError;
use crate::database::run::SessionEffect;
use deadpool::managed::Object;
use std::time::Duration;

/// How long resetting a session may take.
const RESET_TIMEOUT: Duration = Duration::from_secs(5);

/// A leased connection; returned when dropped.
#[derive(Debug)]
pub struct Lease {
    object: Option<Object<Connector>>,
    stage: Stage,
}

/// Whether a statement is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Running,
}

impl Lease {
    pub(super) fn new(object: Object<Connector>) -> Self {
        Self { object: Some(object), stage: Stage::Idle }
    }

    /// The connection.
    ///
    /// # Errors
    /// [`DbError::Unavailable`] if the lease has ended.
    pub(in crate::database) fn connection(&mut self) -> Result<&mut Connection, DbError> {
        self.object
            .as_mut()
            .map(|object| &mut ***object)
            .ok_or_else(|| DbError::Unavailable("the connection is closed".into()))
    }

    /// Marks the beginning of a statement: from now on, dropping the lease kills it.
    pub(in crate::database) fn begin(&mut self) {
        self.stage = Stage::Running;
    }

    /// Marks the end of a statement and its rows: the connection can be returned.
    pub(in crate::database) fn end(&mut self) {
        self.stage = Stage::Idle;
        if let Some(object) = self.object.as_mut()
            && object.session == SessionState::Pristine
        {
            object.session = SessionState::Used;
        }
    }

    /// Notes, before a statement runs, what it may change in the session, so that the session is reset even if the
    /// statement fails or the client disconnects.
    pub(in crate::database) fn expect(&mut self, effect: SessionEffect) {
        if effect == SessionEffect::Anything {
            self.mark_dirty();
        }
    }

    /// Marks the session as dirty: it is reset before its next use.
    pub(in crate::database) fn mark_dirty(&mut self) {
        if let Some(object) = self.object.as_mut() {
            object.session = SessionState::Dirty;
        }
    }

    /// Resets a dirty session while the caller still waits, so that none of its locks is left once the answer is there.
    pub(in crate::database) async fn reset_if_dirty(&mut self) {
        let dirty = |object: &Object<Connector>| object.session == SessionState::Dirty;
        if self.stage == Stage::Running || !self.object.as_ref().is_some_and(dirty) {
            return;
        }
        if let Some(object) = self.object.take() {
            // In a task of its own: cancelled in the middle, the connection would be returned half reset.
            self.object = tokio::spawn(reset(object)).await.ok().flatten();
        }
    }

    /// A statement failed. What MariaDB refused leaves the connection as it is; a lost connection is
    /// given up; one whose statement still runs is killed when the lease is dropped.
    pub(in crate::database) fn failed(&mut self, error: DbError) -> DbError {
        match &error {
            DbError::NoDatabase(_)
            | DbError::ParamCount(..)
            | DbError::Misread
            | DbError::NoReceipts
            | DbError::PacketTooLarge(_) => {
                self.stage = Stage::Idle;
            }
            DbError::Refused(..) if !error.is_lost() => self.stage = Stage::Idle,
            DbError::Refused(..) | DbError::Unavailable(_) => {
                self.stage = Stage::Idle;
                if let Some(object) = self.object.take() {
                    if let Some(pool) = Object::pool(&object) {
                        pool.manager().forget_all();
                    }
                    drop(Object::take(object));
                }
            }
            DbError::Timeout
            | DbError::Overloaded
            | DbError::LocalFile
            | DbError::ResultsTooLarge
            | DbError::AnswerTooLarge => {}
        }
        error
    }

    /// As [`Lease::failed`], then [`Lease::reset_if_dirty`].
    pub(in crate::database) async fn failed_and_reset(&mut self, error: DbError) -> DbError {
        let error = self.failed(error);
        self.reset_if_dirty().await;
        error
    }

    /// Ends what runs, in MariaDB too. The lease has no connection after this.
    pub(in crate::database) fn kill(&mut self) {
        self.stage = Stage::Idle;
        if let Some(object) = self.object.take() {
            let pool = Object::pool(&object);
            let connection = Object::take(object);
            if let Some(pool) = pool {
                pool.manager().kill(connection.conn.id());
            }
        }
    }
}

/// Resets a session; a connection where that fails is closed.
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
            // What it holds, locks among it, must not wait for the connection's next use.
            SessionState::Dirty => match tokio::runtime::Handle::try_current() {
                Ok(runtime) => {
                    runtime.spawn(reset(object));
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
