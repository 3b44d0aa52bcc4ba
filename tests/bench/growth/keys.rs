//! Curve over keys in use, up to more than the origin caches: one record by a random id, with a random key.

use std::sync::Arc;

use anyhow::Result;

use super::{Extent, curve::Curve, drive::drive, ground::Ground, installation::Installation, once::each_once};
use crate::data::{DATABASE, POSTS};

/// Numbers of keys; the last is three times the number that the origin caches.
const POINTS: [u64; 6] = [1, 10, 100, 1_000, 10_000, 30_000];
const CALLERS: u64 = 32;

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "keys",
        "Keys in use, 32 callers, one record by a random id",
        "keys",
        &[
            ("requests/s", "", 0),
            ("p99", "ms", 2),
            ("each key's first", "requests/s", 0),
            ("errors", "", 0),
            ("Selkie", "µs", 1),
            ("MariaDB", "µs", 1),
            ("memory", "MB", 1),
        ],
    );
    for count in extent.of(&POINTS) {
        let subject = ground.origin().await?;
        let installation = Installation::open(ground).await?;
        let projects = vec!["default".to_owned(); usize::try_from(count)?];
        let keys = Arc::new(installation.keys(ground, &projects).await?);
        let host = subject.endpoint.address;
        let write = move |key: &str, id: u64, buffer: &mut Vec<u8>| {
            *buffer = format!(
                "GET /api/v1/crud/{DATABASE}/posts/{id} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n"
            )
            .into_bytes();
        };
        let first = each_once(&subject, CALLERS, count, {
            let keys = Arc::clone(&keys);
            move |index, buffer| write(key(&keys, index), 1, buffer)
        })
        .await?;
        let seen = drive(
            &ground.mariadb,
            &subject,
            CALLERS,
            extent.duration,
            Arc::new(move |random, buffer| {
                let index = random.up_to(count) - 1;
                write(key(&keys, index), random.up_to(POSTS), buffer);
            }),
        )
        .await?;
        curve.add(
            count,
            vec![
                seen.per_second(),
                seen.within(0.99),
                Some(first.per_second()),
                Some((seen.failed() + first.failed) as f64),
                seen.server_micros(),
                seen.database_micros(),
                Some(subject.resident()?),
            ],
        );
    }
    Ok(curve)
}

fn key(keys: &[String], index: u64) -> &str {
    usize::try_from(index).ok().and_then(|index| keys.get(index)).map_or("", String::as_str)
}
