//! Curve over bytes of a row, from 10 to 1,000,000, read by its id with a single caller.

use anyhow::Result;

use super::{Extent, curve::Curve, drive::repeat, ground::Ground};
use crate::data::DATABASE;

const POINTS: [u64; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "width",
        "Bytes of one row, read by its id by a lone caller",
        "bytes",
        &[
            ("time", "ms", 3),
            ("bare driver", "ms", 3),
            ("MB/s", "", 1),
            ("Selkie", "µs", 1),
            ("MariaDB", "µs", 1),
            ("peak memory", "MB", 1),
        ],
    );
    let table = format!("{DATABASE}.wide_rows");
    ground
        .sql(&[
            format!("CREATE TABLE {table} (id INT UNSIGNED NOT NULL PRIMARY KEY, body LONGTEXT NOT NULL)"),
            // Typical text: it contains some quotes, which JSON escapes.
            format!(
                "INSERT INTO {table} SELECT POW(10, seq), LEFT(REPEAT('The tide was out and \"still\" the boats lay in the mud. ', 20000), POW(10, seq)) FROM seq_1_to_6"
            ),
        ])
        .await?;
    let subject = ground.origin().await?;
    for bytes in extent.of(&POINTS) {
        let request = subject.read(&format!("/api/v1/crud/{DATABASE}/wide_rows/{bytes}"));
        subject.once(&request).await?;
        let seen = repeat(&ground.mariadb, &subject, 1, extent.duration, request).await?;
        seen.require_success()?;
        let text = format!("SELECT id, body FROM {table} WHERE id = {bytes}");
        curve.add(
            bytes,
            vec![
                seen.within(0.5),
                Some(ground.bare(&text, extent.duration / 2).await?),
                seen.megabytes_per_second(),
                seen.server_micros(),
                seen.database_micros(),
                seen.peak(),
            ],
        );
    }
    Ok(curve)
}
