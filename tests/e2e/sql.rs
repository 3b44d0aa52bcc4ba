//! `POST /api/v1/sql`.

mod answers;
mod ending;
mod refusals;
