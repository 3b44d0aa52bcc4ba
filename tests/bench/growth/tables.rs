//! Curve over tables of a schema, from 10 to 10,000: the time of the first request, and the cost of using one table and
//! of using all of them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use mysql_async::{Row, prelude::Queryable as _};

use super::{
    Extent,
    curve::Curve,
    drive::{drive, repeat},
    ground::{Ground, Subject},
    once::each_once,
    say,
};
use crate::{selkie, workload::Random};

const POINTS: [u64; 4] = [10, 100, 1_000, 10_000];
const CALLERS: u64 = 32;
/// Name of a database with many tables; the prefix makes it one of project `default`.
const DATABASE: &str = "default_many";

/// Up to this number, tables are created durably and timed; more tables are created without waiting for the disk.
const TIMED_MAX: u64 = 1_000;

const FIGURES: [(&str, &str, usize); 13] = [
    ("first after a start", "ms", 2),
    ("first after a DDL", "ms", 2),
    ("first of each table", "ms", 2),
    ("one table", "requests/s", 0),
    ("one table, p99", "ms", 2),
    ("all tables", "requests/s", 0),
    ("all, p99", "ms", 2),
    ("all, Selkie", "µs", 0),
    ("all, MariaDB", "µs", 0),
    ("all, bare driver", "ms", 2),
    ("errors", "", 0),
    ("memory of a table", "KB", 1),
    ("making one", "ms", 2),
];

pub(super) async fn measure(ground: &mut Ground, extent: Extent) -> Result<Curve> {
    let mut curve = Curve::new("tables", "Tables of one schema", "tables", &FIGURES);
    ground.sql(&[format!("CREATE DATABASE {DATABASE}")]).await?;
    let mut made = 0;
    for tables in extent.of(&POINTS) {
        let making = make(ground, made, tables).await?;
        made = tables;
        let subject = ground.origin().await?;
        let one = subject.read(&path(1));
        let after_start = subject.once(&one).await?;
        for statement in ["CREATE TABLE more (id INT)", "DROP TABLE more"] {
            ddl(&subject, statement).await?;
        }
        let after_ddl = subject.once(&one).await?;
        let steady = repeat(&ground.mariadb, &subject, CALLERS, extent.duration, one).await?;
        let before = subject.resident()?;
        let key = subject.endpoint.requests.key.clone();
        let host = subject.endpoint.address;
        let write = move |table: u64, buffer: &mut Vec<u8>| {
            *buffer = format!("GET {} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n", path(table))
                .into_bytes();
        };
        let firsts = each_once(&subject, 1, tables.min(500), {
            let write = write.clone();
            move |index, buffer| write(index + 1, buffer)
        })
        .await?;
        let all = drive(
            &ground.mariadb,
            &subject,
            CALLERS,
            extent.duration.max(Duration::from_secs(2)),
            Arc::new(move |random, buffer| write(random.up_to(tables), buffer)),
        )
        .await?;
        let bare = bare(ground, tables, extent.duration).await?;
        let described = tables.min(all.outcome.requests) as f64;
        let grown = (subject.resident()? - before).max(0.0) * 1e3;
        curve.add(
            tables,
            vec![
                Some(after_start),
                Some(after_ddl),
                firsts.middle(),
                steady.per_second(),
                steady.within(0.99),
                all.per_second(),
                all.within(0.99),
                all.server_micros(),
                all.database_micros(),
                Some(bare),
                Some((steady.failed() + firsts.failed + all.failed()) as f64),
                (tables >= 1_000).then_some(grown / described),
                making,
            ],
        );
    }
    Ok(curve)
}

fn path(table: u64) -> String {
    format!("/api/v1/crud/{DATABASE}/t{table}/1")
}

/// Creates tables up to `upto`, with a row each. Returns the milliseconds per table; `None` beyond [`TIMED_MAX`].
async fn make(ground: &mut Ground, from: u64, upto: u64) -> Result<Option<f64>> {
    say(&format!("making {} tables", upto - from))?;
    let (flushed, synced) = if upto > TIMED_MAX { (0, "OFF") } else { (1, "ON") };
    ground
        .sql(&[
            format!("SET GLOBAL innodb_flush_log_at_trx_commit = {flushed}"),
            format!("SET GLOBAL sync_frm = {synced}"),
        ])
        .await?;
    let began = Instant::now();
    for table in from + 1..=upto {
        let statement = format!(
            "CREATE TABLE {DATABASE}.t{table} (
               id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(200) NOT NULL, body TEXT NOT NULL,
               category VARCHAR(40) NOT NULL, price DECIMAL(10,2) NOT NULL, views INT UNSIGNED NOT NULL,
               published_at DATETIME NOT NULL, KEY listing (category, id)
             ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
             SELECT 1 AS id, 'A title' AS title, 'A body' AS body, 'c1' AS category, 1.5 AS price, 1 AS views,
               '2026-01-02' AS published_at"
        );
        ground.sql(&[statement]).await?;
    }
    let each = began.elapsed().as_secs_f64() * 1e3 / (upto - from).max(1) as f64;
    ground.sql(&["SET GLOBAL innodb_flush_log_at_trx_commit = 1, GLOBAL sync_frm = ON".to_owned()]).await?;
    Ok((upto <= TIMED_MAX).then_some(each))
}

/// Returns the median milliseconds in which the bare driver reads the record of a random table.
async fn bare(ground: &mut Ground, tables: u64, duration: Duration) -> Result<f64> {
    let (mut random, mut times) = (Random::new(0), Vec::new());
    let began = Instant::now();
    while began.elapsed() < duration {
        let text = format!("SELECT * FROM {DATABASE}.t{} WHERE id = 1", random.up_to(tables));
        let from = Instant::now();
        let row: Option<Row> = ground.admin.query_first(text).await?;
        row.context("no such row")?;
        times.push(from.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64() * 1e3)
}

async fn ddl(subject: &Subject, statement: &str) -> Result<()> {
    let mut endpoint =
        selkie::Endpoint { address: subject.endpoint.address, requests: subject.endpoint.requests.clone() };
    DATABASE.clone_into(&mut endpoint.requests.database);
    let (status, body) = selkie::sql(&endpoint, statement).await?;
    if status != 200 {
        bail!("{statement}: {body}");
    }
    Ok(())
}
