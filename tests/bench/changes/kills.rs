//! Counts changes while origins are killed: those that a reader of the feed has not got, or twice, and those that the
//! endpoint of webhooks, which fails now and then, has not.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use mysql_async::prelude::Queryable as _;
use serde_json::json;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use super::{
    Figure,
    reader::{Reader, key},
    subject::Subject,
    webhooks::{Endpoint, make},
};
use crate::report::Bound::AtMost;

/// The orders that are inserted in one transaction. Every second one is then updated, every tenth deleted.
const ROWS: usize = 5_000;
const CHANGES_OF_ROWS: usize = ROWS + ROWS / 2 + ROWS / 10;
const READERS_KILLED_EVERY: Duration = Duration::from_secs(3);
/// Longer than another origin takes to go on with the deliveries of a killed one.
const COURIERS_KILLED_EVERY: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(50);
const WEBHOOKS: usize = 16;
/// The endpoint refuses one delivery of so many.
const REFUSED_EACH: usize = 100;
/// Maximum time until all changes have come, after the last write.
const ARRIVAL: Duration = Duration::from_secs(1_800);

/// The changes of orders that were told, by the order's key: 1 for its insert, 2 for its update, 3 for its deletion.
struct Ledger {
    told: Vec<u8>,
    seen: usize,
    doubled: usize,
    skipped: usize,
}

impl Ledger {
    fn new(orders: usize) -> Self {
        Self { told: vec![0; orders + 1], seen: 0, doubled: 0, skipped: 0 }
    }

    /// The kinds of change that an order goes through.
    fn kinds(order: usize) -> impl DoubleEndedIterator<Item = u8> {
        [(1, 1), (2, 2), (3, 10)].into_iter().filter(move |(_, each)| order.is_multiple_of(*each)).map(|(kind, _)| kind)
    }

    fn read(&mut self, json: &str) {
        for change in json.split(r#"{"type":""#).skip(1) {
            let kind = match change.as_bytes().first() {
                Some(b'i') => 1,
                Some(b'u') => 2,
                _ => 3,
            };
            let Some((order, told)) = key(change.as_bytes()).and_then(|order| Some((order, self.told.get_mut(order)?)))
            else {
                continue;
            };
            self.seen += 1;
            if kind <= *told {
                self.doubled += 1;
                continue;
            }
            let before = Self::kinds(order).rev().find(|known| *known < kind).unwrap_or(0);
            self.skipped += usize::from(before != *told);
            *told = kind;
        }
    }

    /// Returns the orders whose last change was not told.
    fn lost(&self) -> usize {
        let last = |order: usize| Self::kinds(order).next_back().unwrap_or(0);
        (1..self.told.len()).filter(|order| self.told[*order] != last(*order)).count()
    }

    fn figures(&self, name: &str, kills: usize, seconds: f64, is_exact: bool) -> Vec<Figure> {
        let figure = |what: &str, value: usize, wanted| Figure {
            name: format!("{name}: {what}"),
            value: value as f64,
            unit: "",
            wanted,
        };
        vec![
            figure("changes", self.seen, None),
            figure("origins killed", kills, None),
            figure("seconds", seconds as usize, None),
            figure("orders whose last change is missing", self.lost(), Some(AtMost(0.0))),
            figure("changes skipped, or in another order", self.skipped, Some(AtMost(0.0))),
            figure("changes doubled", self.doubled, is_exact.then_some(AtMost(0.0))),
        ]
    }
}

/// Inserts, updates and deletes orders, the first of which has the key 1.
async fn write(on: &Subject, rounds: usize) -> Result<tokio::task::JoinHandle<Result<()>>> {
    let mut session = on.session().await?;
    Ok(tokio::spawn(async move {
        for round in 0..rounds {
            let (first, last) = (round * ROWS + 1, (round + 1) * ROWS);
            for statement in [
                format!(
                    "INSERT INTO orders SELECT seq, 1 + seq % {WEBHOOKS}, 'open', 1.5, CONCAT('no. ', seq) \
                     FROM seq_{first}_to_{last}"
                ),
                format!("UPDATE orders SET amount = amount + 1 WHERE id BETWEEN {first} AND {last} AND id % 2 = 0"),
                format!("DELETE FROM orders WHERE id BETWEEN {first} AND {last} AND id % 10 = 0"),
            ] {
                session.query_drop(statement).await?;
            }
        }
        Ok(())
    }))
}

/// Kills origins until `is_over`. Returns how many.
async fn kill(
    on: &mut Subject,
    addresses: &watch::Sender<SocketAddr>,
    every: Duration,
    is_over: impl Fn() -> bool,
) -> Result<usize> {
    let (mut kills, mut killed_at) = (0, Instant::now());
    while !is_over() {
        sleep(PAUSE).await;
        if killed_at.elapsed() >= every {
            on.restart().await?;
            addresses.send_replace(on.endpoint.address);
            (kills, killed_at) = (kills + 1, Instant::now());
        }
    }
    Ok(kills)
}

/// One reader of pages, who goes on from the last token.
pub(super) async fn feed(on: &mut Subject, changes: usize) -> Result<Vec<Figure>> {
    let rounds = changes.div_ceil(CHANGES_OF_ROWS);
    let reader = Reader::new(&on.endpoint, "orders");
    let mut token = reader.now(&mut reader.connect().await?).await?;
    let (addresses, address) = watch::channel(on.endpoint.address);
    let (began, written) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let (writing, is_written) = (write(on, rounds).await?, Arc::clone(&written));
    let reading = tokio::spawn(async move {
        let mut ledger = Ledger::new(rounds * ROWS);
        let mut connection = None;
        loop {
            let was_written = is_written.load(Relaxed);
            let reader = reader.at(*address.borrow());
            let page = async {
                let mut open = match connection.take() {
                    Some(open) => open,
                    None => reader.connect().await?,
                };
                let page = reader.since(&mut open, &token).await?;
                connection = Some(open);
                anyhow::Ok(page)
            };
            // An error is that of a killed origin. One that lasts ends the run by its time limit.
            let Ok(page) = page.await else {
                sleep(PAUSE).await;
                continue;
            };
            ledger.read(&page.body);
            token = page.next;
            if page.changes == 0 && page.up_to_date && was_written {
                return ledger;
            }
        }
    });
    let ended = {
        let written = Arc::clone(&written);
        tokio::spawn(async move {
            let outcome = writing.await?;
            written.store(true, Relaxed);
            outcome
        })
    };
    let kills = kill(on, &addresses, READERS_KILLED_EVERY, || reading.is_finished()).await?;
    ended.await??;
    let ledger = timeout(ARRIVAL, reading).await.context("the reader does not end")??;
    Ok(ledger.figures("feed under kills", kills, began.elapsed().as_secs_f64(), true))
}

/// Webhooks, each of one customer's orders, to one endpoint that fails now and then.
pub(super) async fn deliveries(on: &mut Subject, changes: usize) -> Result<Vec<Figure>> {
    let rounds = changes.div_ceil(CHANGES_OF_ROWS);
    let ledger = Arc::new(Mutex::new((Ledger::new(rounds * ROWS), 0_usize)));
    let of_endpoint = Arc::clone(&ledger);
    let endpoint = Endpoint::start(move |body: &str| {
        let mut ledger = of_endpoint.lock().unwrap_or_else(PoisonError::into_inner);
        ledger.1 += 1;
        let is_accepted = !ledger.1.is_multiple_of(REFUSED_EACH);
        if is_accepted {
            ledger.0.read(body);
        }
        is_accepted
    })
    .await?;
    for customer in 1..=WEBHOOKS {
        make(on, &format!("customer {customer}"), &endpoint.url, json!({"customer": customer})).await?;
    }
    let (addresses, _) = watch::channel(on.endpoint.address);
    let began = Instant::now();
    let writing = write(on, rounds).await?;
    let is_over = || {
        let is_complete = ledger.lock().unwrap_or_else(PoisonError::into_inner).0.lost() == 0;
        is_complete || began.elapsed() > ARRIVAL
    };
    let kills = kill(on, &addresses, COURIERS_KILLED_EVERY, is_over).await?;
    writing.await??;
    let seconds = began.elapsed().as_secs_f64();
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(ledger.0.figures("webhooks under kills, 1 delivery in 100 refused", kills, seconds, false))
}
