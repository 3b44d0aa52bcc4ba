//! Measures the feed of changes: the time from a commit to the caller, the changes a second of a backlog, the cost of
//! changes of other tables, many waiting readers, what the binary log and its readers cost those who write, webhooks, and
//! what is lost while origins are killed.
//!
//! The load, the origin and MariaDB share this machine. Writers use the bare driver, so that only the feed is measured.

mod kills;
mod reader;
mod subject;
mod webhooks;

use std::{
    fs,
    io::Write as _,
    ops::Range,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum, value_parser};
use mysql_async::prelude::Queryable as _;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::timeout,
};

use self::{
    reader::{Page, Reader, is_change, key},
    subject::{ORDER, Subject, many},
};
use crate::{
    machine::Machine,
    report::{
        Bound,
        Bound::{AtLeast, AtMost},
    },
    selkie,
};

const SESSIONS: usize = 8;
/// Readers of each customer, whom one commit concerns.
const CONCERNED: usize = 10;
/// Maximum wait for changes that must come.
const ARRIVAL: Duration = Duration::from_secs(120);
const RUN_LIMIT: Duration = Duration::from_secs(3600);

/// Measure the feed of changes.
#[derive(Debug, Args)]
pub(crate) struct Changes {
    /// Parts to measure (all, if none is named).
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Divides the numbers of rows, readers and seconds: a quick look.
    #[arg(long, default_value_t = 1, value_parser = value_parser!(u16).range(1..=100))]
    divide: u16,
    /// Also write the result to `changes.txt` in this directory.
    #[arg(long)]
    save: Option<PathBuf>,
    /// The `selkie` binary (default: beside this one).
    #[arg(long)]
    selkie: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Latency,
    Backlog,
    Ignored,
    Waiting,
    Writers,
    Webhooks,
    Kills,
    WebhooksUnderKills,
}

/// One row of the result.
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    wanted: Option<Bound>,
}

pub(crate) async fn run(asked: &Changes) -> Result<()> {
    timeout(RUN_LIMIT, measure(asked)).await.context("the measurements took too long")?
}

async fn measure(asked: &Changes) -> Result<()> {
    let binary = selkie::binary(asked.selkie.as_deref())?.context("no `selkie` beside this program")?;
    let of = |whole: usize| (whole / usize::from(asked.divide)).max(1);
    let (mut figures, mut machine) = (Vec::new(), Machine::default());
    for part in Part::value_variants() {
        if !asked.only.is_empty() && !asked.only.contains(part) {
            continue;
        }
        writeln!(std::io::stderr().lock(), "{part:?}")?;
        let mut on = Subject::start(&binary, true).await?;
        machine = Machine::of(&mut on.admin).await?;
        let found = match part {
            Part::Latency => latency(&on, of(20_000)).await,
            Part::Backlog => backlog(&mut on, of(200_000)).await,
            Part::Ignored => ignored(&mut on, of(1_000_000)).await,
            Part::Waiting => waiting(&mut on, of(10_000), of(200)).await,
            Part::Writers => writers(&on, of(10)).await,
            Part::Webhooks => webhooks::webhooks(&on, of(20_000), of(10)).await,
            Part::Kills => kills::feed(&mut on, of(10_000_000)).await,
            Part::WebhooksUnderKills => kills::deliveries(&mut on, of(1_000_000)).await,
        };
        figures.extend(found.with_context(|| format!("{part:?}: {}", selkie::last_lines(&on.mariadb)))?);
    }
    let mut text = format!(
        "{}: {}, {} cores, MariaDB {}; load, origin and MariaDB together\n\n",
        machine.date, machine.processor, machine.cores, machine.mariadb
    );
    for Figure { name, value, unit, wanted } in figures {
        let verdict = wanted.map(|bound| {
            let verdict = if bound.holds(value) { "met" } else { "missed" };
            format!("{} {verdict}", bound.text())
        });
        let line = format!("{name:<86} {value:>11.2} {unit:<10} {}", verdict.unwrap_or_default());
        text.push_str(line.trim_end());
        text.push('\n');
    }
    write!(std::io::stdout().lock(), "{text}")?;
    if let Some(directory) = &asked.save {
        fs::write(directory.join("changes.txt"), text)?;
    }
    Ok(())
}

/// One reader, and 1,000 inserts of one row a second.
async fn latency(on: &Subject, count: usize) -> Result<Vec<Figure>> {
    const PER_SECOND: usize = 1_000;
    let base = Instant::now();
    let now = move || u64::try_from(base.elapsed().as_micros()).unwrap_or(u64::MAX);
    // In microseconds, by the record's key.
    let times = || -> Arc<[AtomicU64]> { (0..=count).map(|_| AtomicU64::new(0)).collect() };
    let (before, after) = (times(), times());
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let reader = Reader::new(&on.endpoint, "orders");
    let stream = tokio::spawn(async move {
        let tell = |json: &[u8]| {
            let _ = arrived.send((is_change(json).then(|| key(json)).flatten(), now()));
        };
        reader.events(None, tell).await
    });
    timeout(ARRIVAL, arrivals.recv()).await?.context("no stream")?;
    let (befores, afters) = (Arc::clone(&before), Arc::clone(&after));
    let micros = move |time: Instant| u64::try_from(time.duration_since(base).as_micros()).unwrap_or(u64::MAX);
    let note = move |id: usize, before: Instant, after: Instant| {
        befores[id].store(micros(before), Relaxed);
        afters[id].store(micros(after), Relaxed);
    };
    let rate = on.insert_at(PER_SECOND, 1..count + 1, note).await?;
    let [mut since_begin, mut since_return, mut writes] = [const { Vec::new() }; 3];
    let mut left = count;
    while left > 0 {
        let arrival =
            timeout(ARRIVAL, arrivals.recv()).await.context("changes are missing")?.context("the stream ended")?;
        let (Some(id), at) = arrival else { continue };
        left -= 1;
        // Not measured: the first tenth.
        if id > count / 10 {
            let (before, after) = (before[id].load(Relaxed), after[id].load(Relaxed));
            since_begin.push(at.saturating_sub(before));
            since_return.push(at.saturating_sub(after));
            writes.push(after.saturating_sub(before));
        }
    }
    stream.abort();
    let of = |times: Vec<u64>, name: &str, wanted: [Option<Bound>; 2]| {
        let name = format!("{rate:.0} inserts a second: {name}");
        let [p50, p99] = quantiles(times);
        [
            Figure { name: format!("{name}, p50"), value: p50, unit: "ms", wanted: wanted[0] },
            Figure { name: format!("{name}, p99"), value: p99, unit: "ms", wanted: wanted[1] },
        ]
    };
    let figures = [
        of(
            since_begin,
            "from before the insert with its commit to the reader",
            [Some(AtMost(5.0)), Some(AtMost(25.0))],
        ),
        of(since_return, "from the commit's return to the reader", [None; 2]),
        of(writes, "insert with its commit", [None; 2]),
    ];
    Ok(figures.into_iter().flatten().collect())
}

/// Changes that wait for one reader, by three ways.
async fn backlog(on: &mut Subject, count: usize) -> Result<Vec<Figure>> {
    const ROWS: usize = 100;
    let (mut reader, wanted) = (Reader::new(&on.endpoint, "orders"), Some(AtLeast(20_000.0)));
    let token = reader.now(&mut reader.connect().await?).await?;
    let inserts = count.div_ceil(ROWS);
    for _ in 0..inserts {
        on.admin.query_drop(many("orders", ROWS)).await?;
    }
    let count = inserts * ROWS;
    let mut figures = Vec::new();
    for way in ["event stream, from memory", "pages of 1,000, from memory", "pages of 1,000, from the log"] {
        if way.ends_with("log") {
            on.restart().await?;
            reader = reader.at(on.endpoint.address);
        }
        let (cpu, began) = (on.cpu()?, Instant::now());
        if way.starts_with("pages") {
            let found = read_all(&reader, &token).await?;
            ensure!(found == count, "{found} changes of {count} came");
        } else {
            let mut left = count;
            let (done, mut is_done) = mpsc::unbounded_channel();
            let stream = reader.events(Some(&token), |json| {
                left -= usize::from(is_change(json));
                if left == 0 {
                    let _ = done.send(());
                }
            });
            tokio::select! {
                ended = stream => bail!("the stream ended: {ended:?}"),
                _ = timeout(ARRIVAL, is_done.recv()) => {}
            }
        }
        let (seconds, cpu) = (began.elapsed().as_secs_f64(), on.cpu()?.saturating_sub(cpu).as_secs_f64());
        let name = format!("{count} changes behind: {way}");
        figures.push(Figure { name: name.clone(), value: count as f64 / seconds, unit: "changes/s", wanted });
        let name = format!("{name}: the origin's processor time for a change");
        figures.push(Figure { name, value: cpu * 1e6 / count as f64, unit: "µs", wanted: None });
    }
    Ok(figures)
}

/// Rows of another table than the reader's, as they are inserted and from the log.
async fn ignored(on: &mut Subject, count: usize) -> Result<Vec<Figure>> {
    const ROWS: usize = 1_000;
    let reader = Reader::new(&on.endpoint, "orders");
    let token = reader.now(&mut reader.connect().await?).await?;
    let (came, mut comes) = mpsc::unbounded_channel();
    let follower = reader.clone();
    let stream = tokio::spawn(async move {
        let tell = |_: &[u8]| {
            let _ = came.send(());
        };
        follower.events(None, tell).await
    });
    timeout(ARRIVAL, comes.recv()).await?.context("no stream")?;
    let inserts = count.div_ceil(ROWS * SESSIONS);
    let count = inserts * ROWS * SESSIONS;
    let (cpu, began) = (on.cpu()?, Instant::now());
    let mut sessions = JoinSet::new();
    for _ in 0..SESSIONS {
        let mut connection = on.session().await?;
        sessions.spawn(async move {
            for _ in 0..inserts {
                connection.query_drop(many("other", ROWS)).await?;
            }
            anyhow::Ok(())
        });
    }
    all(sessions).await?;
    let inserted = began.elapsed().as_secs_f64();
    on.admin.exec_drop(ORDER, (1,)).await?;
    timeout(ARRIVAL, comes.recv()).await?.context("the stream ended")?;
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), on.cpu()?.saturating_sub(cpu).as_secs_f64());
    stream.abort();
    on.restart().await?;
    let (before, began) = (on.cpu()?, Instant::now());
    let found = read_all(&reader.at(on.endpoint.address), &token).await?;
    ensure!(found == 1, "{found} changes came");
    let (from_log, cpu_from_log) = (began.elapsed().as_secs_f64(), on.cpu()?.saturating_sub(before).as_secs_f64());
    let figure = |name: &str, value: f64, unit: &'static str, wanted: Option<Bound>| Figure {
        name: format!("{count} rows of another table{name}"),
        value,
        unit,
        wanted,
    };
    let wanted = Some(AtLeast(200_000.0));
    Ok(vec![
        figure(": inserted", count as f64 / inserted, "rows/s", None),
        figure(": inserted and passed over", count as f64 / seconds, "rows/s", None),
        figure(": the origin's processor time", cpu, "s", None),
        figure(": passed over by a second of the origin's processor time", count as f64 / cpu, "rows", wanted),
        figure(", from the log", count as f64 / from_log, "rows/s", wanted),
        figure(", from the log: the origin's processor time", cpu_from_log, "s", None),
    ])
}

/// Long polls of many readers, of whom each commit concerns ten, and of these ten alone.
async fn waiting(on: &mut Subject, most: usize, commits: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let reader = Reader::new(&on.endpoint, "orders");
    // The first requests are not measured: they open connections to MariaDB.
    for _ in 0..100 {
        reader.now(&mut reader.connect().await?).await?;
    }
    let mut with_ten = None;
    for readers in [CONCERNED, most.next_multiple_of(CONCERNED)] {
        let before = on.megabytes()?;
        let customers = readers / CONCERNED;
        // No more requests at once than MariaDB has connections: readers come and stay.
        let (opening, ready) = (Arc::new(Semaphore::new(SESSIONS)), Arc::new(AtomicUsize::new(0)));
        let (answered, mut answers) = mpsc::unbounded_channel();
        let mut polls = JoinSet::new();
        for number in 0..readers {
            let reader = reader.of_customer(1 + number % customers);
            let (opening, ready, answered) = (Arc::clone(&opening), Arc::clone(&ready), answered.clone());
            polls.spawn(async move {
                let opens = opening.acquire().await?;
                let mut connection = reader.connect().await?;
                let mut token = reader.now(&mut connection).await?;
                drop(opens);
                ready.fetch_add(1, Relaxed);
                loop {
                    let Page { changes, next, .. } = reader.poll(&mut connection, &token).await?;
                    token = next;
                    if changes > 0 && answered.send(Instant::now()).is_err() {
                        return anyhow::Ok(());
                    }
                }
            });
        }
        while ready.load(Relaxed) < readers {
            if let Ok(Some(ended)) = timeout(Duration::from_millis(50), polls.join_next()).await {
                ended??;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let grown = on.megabytes()? - before;
        let mut times = Vec::new();
        for commit in 0..commits {
            let began = Instant::now();
            on.admin.exec_drop(ORDER, (1 + commit % customers,)).await?;
            let mut last = began;
            for _ in 0..CONCERNED {
                last = timeout(ARRIVAL, answers.recv()).await.context("an answer is missing")?.context("no poll")?;
            }
            times.push(u64::try_from(last.duration_since(began).as_micros())?);
            // The ten come again.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let name = format!("{readers} waiting readers: from before a commit to the last of ten answers");
        let [p50, p99] = quantiles(times);
        let wanted = with_ten.map(AtMost);
        with_ten = Some(p50);
        figures.push(Figure { name: format!("{name}, p50"), value: p50, unit: "ms", wanted });
        figures.push(Figure { name: format!("{name}, p99"), value: p99, unit: "ms", wanted: None });
        let wanted = (readers > CONCERNED).then_some(AtMost(300.0));
        let name = format!("{readers} waiting readers: growth of the origin's memory");
        figures.push(Figure { name, value: grown, unit: "MB", wanted });
        polls.shutdown().await;
    }
    Ok(figures)
}

/// Inserts as fast as they are answered: without a log, with one, and with a hundred readers. Then a thousand a second,
/// without and with these readers: the processors are not all in use.
async fn writers(on: &Subject, seconds: usize) -> Result<Vec<Figure>> {
    const ROUNDS: usize = 3;
    const READERS: usize = 100;
    const PER_SECOND: usize = 1_000;
    /// The inserts between two such keys are fewer: MariaDB gives them keys above the last one.
    const KEYS: usize = 600_000_000;
    let off = Subject::start(&on.binary, false).await?;
    let time = Duration::from_secs(u64::try_from(seconds)?);
    let (mut rates, bytes) = ([const { Vec::new() }; 3], Arc::new(AtomicUsize::new(0)));
    let (mut times, count) = ([const { Vec::new() }; 2], PER_SECOND * seconds);
    for round in 0..ROUNDS {
        rates[0].push(inserts(&off, time).await?);
        rates[1].push(inserts(on, time).await?);
        let keys = |nth: usize| (2 * round + nth) * KEYS..(2 * round + nth) * KEYS + count;
        times[0].extend(times_at(on, PER_SECOND, keys(1)).await?);
        let mut streams = JoinSet::new();
        let (opened, mut opens) = mpsc::unbounded_channel();
        for _ in 0..READERS {
            let (reader, bytes) = (Reader::new(&on.endpoint, "orders"), Arc::clone(&bytes));
            let mut opened = Some(opened.clone());
            streams.spawn(async move {
                let count = |part: &[u8]| {
                    if let Some(opened) = opened.take() {
                        let _ = opened.send(());
                    }
                    bytes.fetch_add(part.len(), Relaxed);
                };
                reader.stream(None, count).await
            });
        }
        for _ in 0..READERS {
            timeout(ARRIVAL, opens.recv()).await.context("a stream does not begin")?;
        }
        rates[2].push(inserts(on, time).await?);
        times[1].extend(times_at(on, PER_SECOND, keys(2)).await?);
        ensure!(streams.try_join_next().is_none(), "a stream ended");
    }
    let [without, with, read] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[ROUNDS / 2]
    });
    let loss = |less: f64, more: f64| (1.0 - less / more) * 100.0;
    let read_bytes = bytes.load(Relaxed) as f64 / 1e6 / (2.0 * time.as_secs_f64() * ROUNDS as f64);
    let [[p50, p99], [read_p50, read_p99]] = times.map(quantiles);
    let figure = |name: &str, value, unit, wanted| Figure { name: name.to_owned(), value, unit, wanted };
    Ok(vec![
        figure("inserts of one row, 8 sessions: changes = \"off\", no binary log", without, "inserts/s", None),
        figure("inserts of one row, 8 sessions: changes = \"on\", no reader", with, "inserts/s", None),
        figure("inserts of one row, 8 sessions: changes = \"on\", 100 event streams", read, "inserts/s", None),
        figure("what the log costs", loss(with, without), "%", None),
        figure("what 100 event streams cost", loss(read, with), "%", Some(AtMost(3.0))),
        figure("1,000 inserts a second, no reader: p50", p50, "ms", None),
        figure("1,000 inserts a second, no reader: p99", p99, "ms", None),
        figure("1,000 inserts a second, 100 event streams: p50", read_p50, "ms", Some(AtMost(1.03 * p50))),
        figure("1,000 inserts a second, 100 event streams: p99", read_p99, "ms", None),
        figure("read by the 100 event streams", read_bytes, "MB/s", None),
    ])
}

/// Returns the microseconds of each insert.
async fn times_at(on: &Subject, per_second: usize, keys: Range<usize>) -> Result<Vec<u64>> {
    let (took, mut times) = mpsc::unbounded_channel();
    let note = move |_: usize, before: Instant, after: Instant| {
        let _ = took.send(u64::try_from(after.duration_since(before).as_micros()).unwrap_or(u64::MAX));
    };
    on.insert_at(per_second, keys, note).await?;
    let mut all = Vec::new();
    times.recv_many(&mut all, usize::MAX).await;
    Ok(all)
}

async fn inserts(on: &Subject, time: Duration) -> Result<f64> {
    let count = Arc::new(AtomicUsize::new(0));
    let mut sessions = JoinSet::new();
    for _ in 0..SESSIONS {
        let (mut connection, count) = (on.session().await?, Arc::clone(&count));
        sessions.spawn(async move {
            let insert = connection.prep(ORDER).await?;
            let began = Instant::now();
            while began.elapsed() < time {
                connection.exec_drop(&insert, (7,)).await?;
                count.fetch_add(1, Relaxed);
            }
            anyhow::Ok(())
        });
    }
    all(sessions).await?;
    Ok(count.load(Relaxed) as f64 / time.as_secs_f64())
}

/// Returns the number of changes after a token, read by pages.
async fn read_all(reader: &Reader, token: &str) -> Result<usize> {
    let (mut connection, mut token, mut count) = (reader.connect().await?, token.to_owned(), 0);
    loop {
        let Page { changes, next, up_to_date, .. } = reader.since(&mut connection, &token).await?;
        count += changes;
        if up_to_date {
            return Ok(count);
        }
        token = next;
    }
}

/// Returns the median and the 99th percentile of microseconds, in milliseconds.
fn quantiles(mut micros: Vec<u64>) -> [f64; 2] {
    micros.sort_unstable();
    [50, 99].map(|percent| micros.get(micros.len() * percent / 100).map_or(f64::NAN, |micros| *micros as f64 / 1e3))
}

async fn all(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
