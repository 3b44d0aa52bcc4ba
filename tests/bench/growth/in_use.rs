//! Curve over projects in use, from 1 to 500: each has its own MariaDB account and so its own connections.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;

use super::{
    Extent,
    curve::Curve,
    drive::drive,
    ground::Ground,
    installation::Installation,
    projects::{databases, name, path},
};
use crate::workload::Random;

const POINTS: [u64; 7] = [1, 8, 32, 64, 128, 200, 500];
const CALLERS: u64 = 32;

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "in-use",
        "Projects used by 32 callers, one record by its id",
        "projects",
        &[
            ("in turn", "requests/s", 0),
            ("at random", "requests/s", 0),
            ("p50", "ms", 2),
            ("p99", "ms", 2),
            ("max", "ms", 1),
            ("errors", "", 0),
            ("Selkie", "µs", 1),
            ("MariaDB", "µs", 1),
            ("MariaDB connections", "", 0),
            ("open files", "", 0),
            ("memory", "MB", 1),
        ],
    );
    drop(ground.origin().await?);
    let installation = Installation::open(ground).await?;
    let most = extent.of(&POINTS).last().unwrap_or(1);
    let names: Vec<String> = (1..=most).map(name).collect();
    installation.projects(ground, "default", &names).await?;
    databases(ground, 1..=most).await?;
    let keys = installation.keys(ground, &names).await?;
    for projects in extent.of(&POINTS) {
        let subject = ground.origin().await?;
        let requests: Vec<Vec<u8>> = names
            .iter()
            .zip(&keys)
            .take(usize::try_from(projects)?)
            .map(|(project, key)| subject.get(&path(project), key))
            .collect();
        let requests = Arc::new(requests);
        let random = Arc::new({
            let requests = Arc::clone(&requests);
            move |random: &mut Random, buffer: &mut Vec<u8>| {
                let index = usize::try_from(random.up_to(projects) - 1).unwrap_or_default();
                buffer.clone_from(&requests[index]);
            }
        });
        let next = AtomicUsize::new(0);
        let write = Arc::new(move |_: &mut _, buffer: &mut Vec<u8>| {
            let index = next.fetch_add(1, Ordering::Relaxed) % requests.len();
            buffer.clone_from(&requests[index]);
        });
        // The first request of each project is not measured.
        let warm_up = extent.duration;
        drive(&ground.mariadb, &subject, CALLERS, warm_up, write.clone()).await?;
        let seen = drive(&ground.mariadb, &subject, CALLERS, extent.duration, write).await?;
        let other = drive(&ground.mariadb, &subject, CALLERS, extent.duration, random).await?;
        curve.add(
            projects,
            vec![
                seen.per_second(),
                other.per_second(),
                seen.within(0.5),
                seen.within(0.99),
                seen.longest(),
                Some((seen.failed() + other.failed()) as f64),
                seen.server_micros(),
                seen.database_micros(),
                Some(ground.status("Threads_connected").await?),
                Some(subject.files()?),
                Some(subject.resident()?),
            ],
        );
    }
    Ok(curve)
}
