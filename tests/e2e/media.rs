//! The media library through both doors: uploads in every shape, what they must be refused for, listing,
//! files one by one, deletion. How bytes are served is told in `media/serving.rs`.

mod cli;
mod fixtures;
mod library;
mod refusals;
mod shapes;
mod shelf;

use crate::case::Case;

pub(crate) fn cases() -> Vec<Case> {
    [
        cli::cases(),
        cli::faults::cases(),
        library::cases(),
        refusals::cases(),
        shapes::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
