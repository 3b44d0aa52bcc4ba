//! The floor: the same statements by the bare driver over the same socket, without HTTP, JSON or a pool. No server can be
//! faster than this one's absence.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures_util::TryStreamExt as _;
use mysql_async::{
    Conn, Opts, Row,
    prelude::{Query as _, Queryable as _, WithParams as _},
};

use crate::{
    data::{CATEGORIES, POSTS},
    handwritten::statement,
    load::Outcome,
    request::BODY,
    workload::{AGGREGATE, Random, Workload},
};

/// Run `workload` on so many connections for so long, in this process.
pub(crate) async fn run(
    options: &Opts,
    workload: Workload,
    connections: u16,
    duration: Duration,
) -> Result<Outcome> {
    let mut ready = Vec::new();
    for _ in 0..connections {
        ready.push(Conn::new(options.clone()).await?);
    }
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (number, connection) in (0_u64..).zip(ready) {
        tasks.push(tokio::spawn(caller(
            connection,
            workload,
            number,
            began + duration,
        )));
    }
    let mut outcome = Outcome::new()?;
    for task in tasks {
        outcome.merge(&task.await.context("a connection")??)?;
    }
    outcome.elapsed = began.elapsed();
    Ok(outcome)
}

async fn caller(
    mut connection: Conn,
    workload: Workload,
    number: u64,
    until: Instant,
) -> Result<Outcome> {
    let mut outcome = Outcome::new()?;
    let mut random = Random::new(number);
    loop {
        let from = Instant::now();
        if from >= until {
            break;
        }
        once(&mut connection, workload, &mut random).await?;
        outcome.record(from.elapsed(), from.elapsed(), 0);
    }
    connection.disconnect().await?;
    Ok(outcome)
}

async fn once(connection: &mut Conn, workload: Workload, random: &mut Random) -> Result<()> {
    match workload {
        Workload::W1 | Workload::Lone => {
            let row: Option<Row> = connection
                .exec_first(statement::BY_ID, (random.up_to(POSTS),))
                .await?;
            row.context("no such row")?;
        }
        Workload::W2 => {
            let category = format!("c{}", random.up_to(CATEGORIES) - 1);
            let _rows: Vec<Row> = connection.exec(statement::LISTING, (category, 20)).await?;
        }
        Workload::W3 => {
            let number = random.up_to(POSTS);
            let values = (
                format!("Letter no. {number}"),
                BODY,
                format!("c{}", number % 10),
                "7.50",
                1,
                number,
                "2026-01-02 03:04:05",
            );
            connection.exec_drop(statement::INSERT, values).await?;
        }
        Workload::W4 => drain(connection, statement::ALL_POSTS).await?,
        Workload::Million => drain(connection, statement::ALL_MILLION).await?,
        Workload::Sql => {
            let _rows: Vec<Row> = connection.query(AGGREGATE).await?;
        }
    }
    Ok(())
}

/// Rows one by one, dropped as they come.
async fn drain(connection: &mut Conn, text: &str) -> Result<()> {
    let mut rows = text.with(()).stream::<Row, _>(connection).await?;
    while rows.try_next().await?.is_some() {}
    Ok(())
}
