//! Curve over existing projects, from 1 to 10,000: the cost of a start, a command and a project's first request.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Extent, curve::Curve, ground::Ground, installation::Installation, once::each_once, say};
use crate::selkie;

const POINTS: [u64; 5] = [1, 10, 100, 1_000, 10_000];
/// Number of projects whose first request is measured.
const ASKED: u64 = 20;
/// Time in which a started origin finishes its background work.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new(
        "projects",
        "Projects that were made",
        "projects",
        &[
            ("start", "ms", 0),
            ("making one more by command", "ms", 0),
            ("first request of a project", "ms", 2),
            ("longest first", "ms", 1),
            ("errors", "", 0),
            ("memory", "MB", 1),
            ("open files", "", 0),
            ("MariaDB connections", "", 0),
            ("making them by SQL", "s", 1),
        ],
    );
    // The first start creates the system schema and the project `default`.
    drop(ground.origin().await?);
    let installation = Installation::open(ground).await?;
    let mut made = 1;
    for projects in extent.of(&POINTS) {
        let began = Instant::now();
        let names: Vec<String> = (made + 1..=projects).map(name).collect();
        installation.projects(ground, "default", &names).await?;
        databases(ground, (made + 1..=projects).rev().take(20)).await?;
        made = made.max(projects);
        let making = began.elapsed();
        say(&format!("{} projects made in {making:.1?}", names.len()))?;
        let began = Instant::now();
        let (started, _) = selkie::serve(&ground.binary, &ground.mariadb, &[]).await?;
        let start = began.elapsed();
        drop(started);
        let subject = ground.origin().await?;
        tokio::time::sleep(SETTLING).await;
        let asked: Vec<String> = (2..=projects).rev().map(name).take(20).collect();
        let keys = installation.keys(ground, &asked).await?;
        let requests: Vec<Vec<u8>> =
            asked.iter().zip(&keys).map(|(project, key)| subject.get(&path(project), key)).collect();
        let count = ASKED.min(requests.len() as u64);
        let firsts = each_once(&subject, 1, count, move |index, buffer| {
            buffer.clear();
            let request = usize::try_from(index).ok().and_then(|at| requests.get(at));
            buffer.extend_from_slice(request.map_or(&[][..], Vec::as_slice));
        })
        .await?;
        let (memory, files) = (subject.resident()?, subject.files()?);
        let connections = ground.status("Threads_connected").await?;
        let more = ground.command(&subject, &["project", "create", &format!("more{projects}")]).await?;
        curve.add(
            projects,
            vec![
                Some(start.as_secs_f64() * 1e3),
                Some(more.as_secs_f64() * 1e3),
                firsts.middle(),
                firsts.longest(),
                Some(firsts.failed as f64),
                Some(memory),
                Some(files),
                Some(connections),
                (!names.is_empty()).then_some(making.as_secs_f64()),
            ],
        );
    }
    Ok(curve)
}

pub(super) fn name(number: u64) -> String {
    format!("p{number}")
}

/// Returns the path of a project's only record.
pub(super) fn path(project: &str) -> String {
    format!("/api/v1/crud/{project}_data/notes/1")
}

/// Creates for each of these projects a database with a table of one record.
pub(super) async fn databases(ground: &mut Ground, projects: impl Iterator<Item = u64>) -> Result<()> {
    for project in projects.map(name) {
        ground
            .sql(&[
                format!("CREATE DATABASE {project}_data"),
                format!(
                    "CREATE TABLE {project}_data.notes (id INT UNSIGNED NOT NULL PRIMARY KEY, body TEXT NOT NULL)
                     SELECT 1 AS id, 'A note' AS body"
                ),
            ])
            .await?;
    }
    Ok(())
}
