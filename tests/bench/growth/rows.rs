//! Curve over the rows of an answer, from 1 to 1,000,000 short rows, with a single caller.

use anyhow::Result;

use super::{Extent, curve::Curve, drive::repeat, ground::Ground};
use crate::data::DATABASE;

const POINTS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "rows",
        "Rows of one answer, a lone caller",
        "rows",
        &[
            ("time", "ms", 2),
            ("bare driver", "ms", 2),
            ("first byte", "ms", 2),
            ("MB/s", "", 1),
            ("Selkie", "µs a row", 3),
            ("MariaDB", "µs a row", 3),
            ("peak memory", "MB", 1),
        ],
    );
    let subject = ground.origin().await?;
    for rows in extent.of(&POINTS) {
        let request = subject.read(&format!("/api/v1/crud/{DATABASE}/million?limit={rows}"));
        subject.once(&request).await?;
        let seen = repeat(&ground.mariadb, &subject, 1, extent.duration, request).await?;
        seen.require_success()?;
        let text = format!("SELECT id, label, amount FROM {DATABASE}.million LIMIT {rows}");
        let bare = ground.bare(&text, extent.duration / 2).await?;
        let each = |micros: Option<f64>| micros.map(|micros| micros / rows as f64);
        curve.add(
            rows,
            vec![
                seen.within(0.5),
                Some(bare),
                seen.first_byte(),
                seen.megabytes_per_second(),
                each(seen.server_micros()),
                each(seen.database_micros()),
                seen.peak(),
            ],
        );
    }
    Ok(curve)
}
