//! An upload's body, checked while it passes. Holds no more of it than the parser does; what is done with
//! the bytes is the host's.

use super::call::{BodyLength, Call};
use shared::error::Problem;
use shared::upload::{Parser, UploadLimits};

/// The checker of one upload: [`check`](Self::check) each chunk in its order, then [`finish`](Self::finish).
pub struct Upload {
    parser: Parser,
}

impl Upload {
    /// A checker for the body that the call announces.
    pub(super) fn begin(call: &Call, limits: UploadLimits) -> Result<Self, Problem> {
        if let BodyLength::Known(bytes) = call.body
            && bytes > limits.body_bytes
        {
            return Err(limits.body_too_large());
        }
        Ok(Self {
            parser: Parser::new(call.content_type.as_deref(), limits)?,
        })
    }

    /// Looks at the next bytes of the body.
    ///
    /// # Errors
    /// What the origin would say of a body that goes on like this.
    pub fn check(&mut self, chunk: &[u8]) -> Result<(), Problem> {
        let mut feed = self.parser.feed(chunk);
        while feed.next_event()?.is_some() {}
        Ok(())
    }

    /// Looks at the body as a whole, once all of it was checked.
    ///
    /// # Errors
    /// What the origin would say of a body that ends here.
    pub fn finish(self) -> Result<(), Problem> {
        self.parser.finish().map(drop)
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What the parser holds is the caller's.
        f.debug_struct("Upload").finish_non_exhaustive()
    }
}
