//! Measures uploads: memory and processor time per byte of one large file as base64 in JSON, and the effect of a
//! hundred concurrent pictures on other requests.
//!
//! Files are stored in memory (`/dev/shm`), so that the disk is not measured.

use std::{
    io::{Cursor, Write as _},
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use clap::{Args, value_parser};
use image::{ImageFormat, Rgb, RgbImage};
use mysql_async::Conn;
use tokio::task::JoinSet;

use crate::{
    accounting, data,
    http::Connection,
    load::{self, Load, Pace},
    mariadb::{self, MariaDb},
    process::Started,
    selkie::{self, Endpoint},
    workload::{Random, Workload},
};

const MEBIBYTE: usize = 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct Uploads {
    /// MiB of the large body.
    #[arg(long, default_value_t = 90, value_parser = value_parser!(u16).range(1..=250))]
    megabytes: u16,
    /// How often it is sent; the median is printed.
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u16).range(1..=50))]
    rounds: u16,
    /// Pictures that are uploaded at once.
    #[arg(long, default_value_t = 100, value_parser = value_parser!(u16).range(1..=250))]
    pictures: u16,
    /// Reads by id a second beside them.
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u32).range(1..=10_000))]
    rate: u32,
}

pub(crate) async fn run(asked: &Uploads) -> Result<()> {
    let mariadb = MariaDb::start().await?;
    let mut administrator = Conn::new(mariadb::options(&mariadb.socket(), None)).await?;
    data::fill(&mut administrator).await?;
    let binary = selkie::binary(None)?.context("no selkie beside this program")?;
    let media = tempfile::tempdir_in("/dev/shm")?;
    let address = format!("file://{}", media.path().display());
    let settings = [("SELKIE_MEDIA_STORE", address.as_str())];
    let (started, endpoint) = selkie::start_with(&binary, &mariadb, &settings).await?;
    large(asked, &started, &endpoint).await?;
    pictures(asked, &started, &endpoint).await
}

/// Uploads a large file repeatedly, each time replacing the last.
async fn large(asked: &Uploads, started: &Started, endpoint: &Endpoint) -> Result<()> {
    let pid = started.pid();
    let file = noise(usize::from(asked.megabytes) * MEBIBYTE * 3 / 4);
    let request = upload(endpoint, "large.bin", "file", "application/octet-stream", &file);
    // The first upload is not measured, since it starts threads and opens connections.
    send(endpoint.address, &upload(endpoint, "small.bin", "file", "application/octet-stream", b"x")).await?;
    let before = accounting::resident(pid)?;
    let (mut rates, mut growth) = (Vec::new(), 0);
    for _ in 0..asked.rounds {
        accounting::forget_peak(pid)?;
        let (cpu, began) = (accounting::cpu(pid)?, Instant::now());
        send(endpoint.address, &request).await?;
        let elapsed = began.elapsed();
        let cpu = accounting::cpu(pid)?.saturating_sub(cpu);
        growth = growth.max(accounting::peak(pid)?.saturating_sub(before));
        let megabytes = request.len() as f64 / 1e6;
        rates.push((megabytes / cpu.as_secs_f64(), megabytes / elapsed.as_secs_f64()));
    }
    rates.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (by_cpu, by_time) = rates[rates.len() / 2];
    print(&format!(
        "{} MiB as base64 in JSON: {by_cpu:.0} MB/s of body a core ({by_time:.0} MB/s by the clock), \
         {:.1} MB of growth over {:.1} MB",
        asked.megabytes,
        growth as f64 / 1e6,
        before as f64 / 1e6,
    ))
}

/// Uploads all pictures at once, with reads by id at a fixed rate meanwhile.
async fn pictures(asked: &Uploads, started: &Started, endpoint: &Endpoint) -> Result<()> {
    let picture = photograph()?;
    let requests: Vec<Vec<u8>> = (0..asked.pictures)
        .map(|number| upload(endpoint, &format!("{number}.jpg"), "image", "image/jpeg", &picture))
        .collect();
    let reads = |seconds| Load {
        address: endpoint.address,
        requests: endpoint.requests.clone(),
        workload: Workload::W1,
        callers: 8,
        pace: Pace::Open { per_second: asked.rate },
        duration: Duration::from_secs(seconds),
    };
    let alone = load::run(reads(3)).await?;
    accounting::forget_peak(started.pid())?;
    let beside = tokio::spawn(load::run(reads(10)));
    let began = Instant::now();
    let mut uploads = JoinSet::new();
    for request in requests {
        let address = endpoint.address;
        uploads.spawn(async move { send(address, &request).await });
    }
    while let Some(done) = uploads.join_next().await {
        done.context("an upload")??;
    }
    let elapsed = began.elapsed();
    let peak = accounting::peak(started.pid())?;
    let beside = beside.await.context("the reads")??;
    let ms = |micros: u64| micros as f64 / 1e3;
    print(&format!(
        "{} pictures of {:.1} MB at once: {:.2} s, peak {:.0} MB; reads by id beside them p50 {:.2}, p99 {:.2}, \
         max {:.2} ms (alone {:.2}, {:.2}, {:.2})",
        asked.pictures,
        picture.len() as f64 / 1e6,
        elapsed.as_secs_f64(),
        peak as f64 / 1e6,
        ms(beside.latency.value_at_quantile(0.5)),
        ms(beside.latency.value_at_quantile(0.99)),
        ms(beside.latency.max()),
        ms(alone.latency.value_at_quantile(0.5)),
        ms(alone.latency.value_at_quantile(0.99)),
        ms(alone.latency.max()),
    ))
}

async fn send(address: SocketAddr, request: &[u8]) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let (status, body) = connection.fetch(request).await?;
    if status != 200 {
        bail!("answered {status}: {}", String::from_utf8_lossy(&body));
    }
    Ok(())
}

fn upload(endpoint: &Endpoint, name: &str, kind: &str, mime: &str, file: &[u8]) -> Vec<u8> {
    let body = format!(
        "{{\"type\":\"{kind}\",\"folder\":\"bench\",\"update\":true,\"media\":[{{\"name\":\"{name}\",\
         \"base64\":\"data:{mime};base64,{}\"}}]}}",
        STANDARD.encode(file)
    );
    let mut request = format!(
        "POST /api/v1/media HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        endpoint.requests.host,
        endpoint.requests.key,
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body.as_bytes());
    request
}

/// Returns bytes that begin with no known file signature.
fn noise(length: usize) -> Vec<u8> {
    let mut random = Random::new(1);
    (0..length).map(|_| u8::try_from(random.up_to(255)).unwrap_or(0)).collect()
}

fn photograph() -> Result<Vec<u8>> {
    let mut random = Random::new(2);
    let pixels = RgbImage::from_fn(2048, 1536, |x, y| {
        let wave = |step: f32| ((x as f32 / step).sin() + (y as f32 / step).cos()) * 50.0 + 120.0;
        let grain = random.up_to(12) as f32;
        Rgb([wave(97.0), wave(61.0), wave(151.0)].map(|value| (value + grain) as u8))
    });
    let mut bytes = Cursor::new(Vec::new());
    pixels.write_to(&mut bytes, ImageFormat::Jpeg)?;
    Ok(bytes.into_inner())
}

fn print(line: &str) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")?;
    Ok(())
}
