//! Curve over concurrent callers, from 1 to 1,000, each with its own connection: one record by a random id.

use std::sync::Arc;

use anyhow::Result;

use super::{
    Extent,
    curve::Curve,
    drive::{Seen, drive},
    ground::{Ground, Subject},
};
use crate::{handwritten, workload::Workload};

const POINTS: [u64; 9] = [1, 4, 16, 32, 64, 128, 256, 512, 1_000];
/// MariaDB connections of the hand-written server: the size of Selkie's pool of an account.
const POOL: &str = "8";

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "connections",
        "Callers at once, one record by a random id",
        "callers",
        &[
            ("requests/s", "", 0),
            ("hand-written's", "", 0),
            ("p50", "ms", 2),
            ("p99", "ms", 2),
            ("max", "ms", 1),
            ("hand-written's p99", "ms", 2),
            ("errors", "", 0),
            ("Selkie", "µs", 1),
            ("MariaDB", "µs", 1),
            ("peak memory", "MB", 1),
        ],
    );
    let (ours, theirs) = (ground.origin().await?, handwritten(ground).await?);
    for callers in extent.of(&POINTS) {
        let seen = by_id(ground, &ours, callers, extent).await?;
        let other = by_id(ground, &theirs, callers, extent).await?;
        other.require_success()?;
        curve.add(
            callers,
            vec![
                seen.per_second(),
                other.per_second(),
                seen.within(0.5),
                seen.within(0.99),
                seen.longest(),
                other.within(0.99),
                seen.failures(),
                seen.server_micros(),
                seen.database_micros(),
                seen.peak(),
            ],
        );
    }
    Ok(curve)
}

/// Measures reads of random records by `callers` connections, after a short warm-up.
async fn by_id(ground: &Ground, subject: &Subject, callers: u64, extent: Extent) -> Result<Seen> {
    let requests = subject.endpoint.requests.clone();
    let write = Arc::new(move |random: &mut _, buffer: &mut _| {
        requests.write(Workload::W1, random, buffer);
    });
    let warm_up = extent.duration / 4;
    drive(&ground.mariadb, subject, callers, warm_up, write.clone()).await?;
    drive(&ground.mariadb, subject, callers, extent.duration, write).await
}

async fn handwritten(ground: &Ground) -> Result<Subject> {
    let (process, endpoint) = handwritten::start(|command| {
        command
            .args(["serve-handwritten", "--style", "streamed", "--pool", POOL])
            .arg("--socket")
            .arg(ground.mariadb.socket());
    })
    .await?;
    Ok(Subject { process, endpoint })
}
