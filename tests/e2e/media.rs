//! The media library through both doors: uploads in every shape, what they must be refused for, listing,
//! files one by one, deletion. How bytes are served is told in `media/serving.rs`.

mod fixtures;
mod library;
mod refusals;
mod shapes;
mod shelf;
mod tus;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [
        library::cases(),
        refusals::cases(),
        shapes::cases(),
        tus::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
