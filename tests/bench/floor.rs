//! The floor: runs the same statements with the bare driver, without HTTP, JSON or a pool. No server can be faster.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures_util::TryStreamExt as _;
use mysql_async::{
    Conn, Opts, Params, Row, Value,
    prelude::{Query as _, Queryable as _, WithParams as _},
};

use crate::{
    data::{CATEGORIES, POSTS},
    handwritten::statement,
    load::Outcome,
    pace::{Clock, Pace},
    request::BODY,
    workload::{AGGREGATE, BATCH_ROWS, Random, Workload},
};

pub(crate) async fn run(
    options: &Opts,
    workload: Workload,
    connections: u16,
    pace: Pace,
    duration: Duration,
) -> Result<Outcome> {
    let mut ready = Vec::new();
    for _ in 0..connections {
        ready.push(Conn::new(options.clone()).await?);
    }
    let clock = Arc::new(Clock::start(pace, duration)?);
    let mut tasks = Vec::new();
    for (number, connection) in (0_u64..).zip(ready) {
        let clock = Arc::clone(&clock);
        tasks.push(tokio::spawn(caller(connection, workload, number, clock)));
    }
    let mut outcome = Outcome::new()?;
    for task in tasks {
        outcome.merge(&task.await.context("a connection")??)?;
    }
    outcome.elapsed = clock.elapsed();
    Ok(outcome)
}

async fn caller(mut connection: Conn, workload: Workload, number: u64, clock: Arc<Clock>) -> Result<Outcome> {
    let mut outcome = Outcome::new()?;
    let mut random = Random::new(number);
    while let Some(from) = clock.next().await? {
        once(&mut connection, workload, &mut random).await?;
        let latency = Instant::now().duration_since(from);
        outcome.record(latency, latency, 0);
    }
    connection.disconnect().await?;
    Ok(outcome)
}

async fn once(connection: &mut Conn, workload: Workload, random: &mut Random) -> Result<()> {
    match workload.next(random) {
        Workload::W1 | Workload::Lone | Workload::Mixed | Workload::Storm => {
            let row: Option<Row> = connection.exec_first(statement::BY_ID, (random.up_to(POSTS),)).await?;
            row.context("no such row")?;
        }
        Workload::W2 => {
            let category = format!("c{}", random.up_to(CATEGORIES) - 1);
            let _rows: Vec<Row> = connection.exec(statement::LISTING, (category, 20)).await?;
        }
        Workload::W3 => {
            let values = Params::Positional(new_post(random.up_to(POSTS)));
            connection.exec_drop(statement::INSERT, values).await?;
        }
        Workload::Batch => {
            let values = Params::Positional((1..=BATCH_ROWS).flat_map(new_post).collect());
            connection.exec_drop(statement::INSERT_BATCH.as_str(), values).await?;
        }
        Workload::Stories => {
            let _rows: Vec<Row> = connection.exec(statement::STORIES, ()).await?;
        }
        Workload::Related => {
            let stories: Vec<Row> = connection.exec(statement::STORIES, ()).await?;
            let column = |name| stories.iter().filter_map(|row| row.get::<Value, _>(name)).collect();
            let (ids, writers) = (Params::Positional(column("id")), Params::Positional(column("writer_id")));
            let _writers: Vec<Row> = connection.exec(statement::WRITERS.as_str(), writers).await?;
            let _replies: Vec<Row> = connection.exec(statement::REPLIES.as_str(), ids).await?;
        }
        Workload::W4 => drain(connection, statement::ALL_POSTS).await?,
        Workload::Million => drain(connection, statement::ALL_MILLION).await?,
        Workload::Sql => {
            let _rows: Vec<Row> = connection.query(AGGREGATE).await?;
        }
    }
    Ok(())
}

fn new_post(number: u64) -> Vec<Value> {
    vec![
        format!("Letter no. {number}").into(),
        BODY.into(),
        format!("c{}", number % CATEGORIES).into(),
        format!("{}.50", number % 100).into(),
        1.into(),
        number.into(),
        "2026-01-02 03:04:05".into(),
    ]
}

async fn drain(connection: &mut Conn, text: &str) -> Result<()> {
    let mut rows = text.with(()).stream::<Row, _>(connection).await?;
    while rows.try_next().await?.is_some() {}
    Ok(())
}
