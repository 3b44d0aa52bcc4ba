//! `POST /api/v1/sql`.

mod answers;
mod ending;
mod refusals;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [answers::cases(), refusals::cases(), ending::cases()].into_iter().flatten().collect()
}
