//! Curve over columns of a table, from 1 to InnoDB's maximum of 1,017: one record by its id, a list of twenty, and the
//! first request, which reads the table's schema.

use anyhow::Result;

use super::{Extent, curve::Curve, drive::repeat, ground::Ground};
use crate::data::DATABASE;

const POINTS: [u64; 7] = [1, 3, 10, 30, 100, 300, 1_000];

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "columns",
        "Columns of a table of integers, a lone caller",
        "columns",
        &[
            ("by id", "ms", 3),
            ("bare driver", "ms", 3),
            ("list of 20", "ms", 3),
            ("bare driver's 20", "ms", 3),
            ("by id, Selkie", "µs", 1),
            ("by id, MariaDB", "µs", 1),
            ("first request", "ms", 2),
        ],
    );
    let subject = ground.origin().await?;
    // Opens connections before the first requests are measured.
    let warm = subject.read(&format!("/api/v1/crud/{DATABASE}/posts/1"));
    subject.once(&warm).await?;
    for columns in extent.of(&POINTS) {
        let name = format!("columns_{columns}");
        ground.sql(&table(&name, columns)).await?;
        let one = subject.read(&format!("/api/v1/crud/{DATABASE}/{name}/7"));
        let twenty = subject.read(&format!("/api/v1/crud/{DATABASE}/{name}?limit=20"));
        let first = subject.once(&one).await?;
        let ask = |request: Vec<u8>| repeat(&ground.mariadb, &subject, 1, extent.duration, request);
        let (single, list) = (ask(one).await?, ask(twenty).await?);
        single.require_success()?;
        list.require_success()?;
        let bare = format!("SELECT * FROM {DATABASE}.{name} WHERE id = 7");
        let bare_twenty = format!("SELECT * FROM {DATABASE}.{name} LIMIT 20");
        curve.add(
            columns,
            vec![
                single.within(0.5),
                Some(ground.bare(&bare, extent.duration / 4).await?),
                list.within(0.5),
                Some(ground.bare(&bare_twenty, extent.duration / 4).await?),
                single.server_micros(),
                single.database_micros(),
                Some(first),
            ],
        );
    }
    Ok(curve)
}

fn table(name: &str, columns: u64) -> [String; 2] {
    let others = (2..=columns)
        .map(|column| format!(", c{column} INT NOT NULL DEFAULT {}", column * 7919 % 100_003))
        .collect::<String>();
    [
        format!("CREATE TABLE {DATABASE}.{name} (id INT UNSIGNED NOT NULL PRIMARY KEY{others}) ENGINE=InnoDB"),
        format!("INSERT INTO {DATABASE}.{name} (id) SELECT seq FROM seq_1_to_20"),
    ]
}
