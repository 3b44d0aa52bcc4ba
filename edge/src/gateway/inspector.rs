//! A body, looked at while it passes. Holds no more of it than the parsers do; what is done with the bytes
//! is the host's.

use super::call::{BodyLength, Call};
use shared::error::Problem;
use shared::json::Checker;
use shared::limits::EDGE_CHECKED_BODY_MAX_BYTES;
use shared::operation::Pending;
use shared::policy::Action;
use shared::upload::{Parser, UploadLimits};

/// Bytes of a body that must be right before the origin is asked, where it is longer than that.
const FIRST_BYTES: usize = 64 * 1024;

/// Looks at one body: [`check`](Self::check) each piece in its order, then [`finish`](Self::finish), or
/// [`finish_held`](Self::finish_held) if all of it was kept.
pub struct Inspector {
    form: Form,
}

enum Form {
    /// Its form is checked, and all of it if it ends before it has become large.
    Json(Box<Checker>, Option<Box<Pending>>),
    Upload(Box<Parser>),
}

impl Inspector {
    /// For a JSON body that is too long to be held.
    pub(super) fn of_large_json() -> Self {
        let form = Form::Json(Box::default(), None);
        Self { form }
    }

    /// For a JSON body that does not say how long it is.
    pub(super) fn of_json(pending: Pending) -> Self {
        let form = Form::Json(Box::default(), Some(Box::new(pending)));
        Self { form }
    }

    /// For the upload that the call announces.
    pub(super) fn of_upload(call: &Call, limits: UploadLimits) -> Result<Self, Problem> {
        if let BodyLength::Known(bytes) = call.body
            && bytes > limits.body_bytes
        {
            return Err(limits.body_too_large());
        }
        let parser = Parser::new(call.content_type.as_deref(), limits)?;
        let form = Form::Upload(Box::new(parser));
        Ok(Self { form })
    }

    /// Whether the body is that of a read.
    pub(super) fn is_read(&self) -> bool {
        matches!(&self.form, Form::Json(_, Some(pending)) if pending.action() == Action::Query)
    }

    /// Bytes that are kept, and must be right, before anybody is asked. A body that ends within them is
    /// looked at whole.
    #[must_use]
    pub fn first_bytes(&self) -> usize {
        match &self.form {
            Form::Json(_, Some(_)) => EDGE_CHECKED_BODY_MAX_BYTES,
            _ => FIRST_BYTES,
        }
    }

    /// Whether the body will be refused, though what for only its end tells: nobody needs to be asked.
    #[must_use]
    pub fn is_refused_in_the_end(&self) -> bool {
        match &self.form {
            Form::Json(checker, _) => checker.is_refused_in_the_end(),
            Form::Upload(_) => false,
        }
    }

    /// Looks at the next bytes of the body.
    ///
    /// # Errors
    /// What the origin would say of a body that goes on like this.
    pub fn check(&mut self, piece: &[u8]) -> Result<(), Problem> {
        match &mut self.form {
            Form::Json(checker, _) => checker.check(piece),
            Form::Upload(parser) => {
                let mut feed = parser.feed(piece);
                while feed.next_event()?.is_some() {}
                Ok(())
            }
        }
    }

    /// Looks at the body as a whole, once all of it was checked. Whether a blank one is no body or an empty
    /// one, the origin says.
    ///
    /// # Errors
    /// What the origin would say of a body that ends here.
    pub fn finish(self) -> Result<(), Problem> {
        match self.form {
            Form::Json(checker, _) if checker.is_blank() => Ok(()),
            Form::Json(checker, _) => checker.finish(),
            Form::Upload(parser) => parser.finish().map(drop),
        }
    }

    /// Looks at a body that was checked, and of which all is here unless it
    /// [is refused in the end](Self::is_refused_in_the_end).
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and whatever else the shared parsers refuse.
    pub fn finish_held(self, body: &[u8]) -> Result<(), Problem> {
        match self.form {
            Form::Json(checker, Some(pending)) if !checker.is_refused_in_the_end() => {
                pending.finish(body).map(drop)
            }
            form => Self { form }.finish(),
        }
    }
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What the parsers hold is the caller's.
        f.debug_struct("Inspector").finish_non_exhaustive()
    }
}
