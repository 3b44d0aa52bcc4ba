//! A run of `cluster` or `soak`: starts the installation, runs the load, injects one fault after
//! the other, and checks the results.

use std::{
    net::Ipv4Addr,
    path::Path,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use machines::{
    galera::Galera,
    network::{self, Network},
    replicas::Replicated,
    scratch,
    server::{ACCOUNT, PORT, Site},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use crate::{
    arguments::{Cluster as Asked, Databases, Hosts},
    caller::{Caller, Request},
    faults::{Cluster, Kind, Stage},
    followers::Followers,
    growth,
    installation::{Common, edge_url, keep_logs, origin_url},
    mixture,
    random::Random,
    say,
    tally::Tally,
    verdict,
    work::{DATABASE, Steps, TABLES, Worker, counters, sql},
};

/// Ranges of random durations in milliseconds: of a fault, of the pause between two faults, and of
/// this pause in a soak.
const FAULT_MS: (u64, u64) = (2_500, 4_500);
const REST_MS: (u64, u64) = (500, 1_500);
const REST_OF_SOAK_MS: (u64, u64) = (8_000, 20_000);
/// Maximum time for all callers to finish their last request after the load.
const FINISH_MAX: Duration = Duration::from_secs(180);

/// Runs the load and its checks. Returns success if all checks passed; copies the logs in any case.
pub(crate) async fn run(asked: &Asked) -> Result<ExitCode> {
    let directory = scratch::directory()?;
    // All databases and origins have their files below this directory.
    let result = run_in(asked, directory.path()).await;
    if let Some(logs) = &asked.load.logs {
        keep_logs(directory.path(), logs)?;
    }
    result
}

async fn run_in(asked: &Asked, directory: &Path) -> Result<ExitCode> {
    let began = Instant::now();
    let sites = Sites::choose(asked.databases.machines().0).await?;
    let home = sites.home;
    let common = Common::new(asked.load.selkie.as_deref(), directory, home)?;
    let (mut stage, open) = start(asked, &common, sites).await?;
    say(&format!("everything is up after {:.1} s", began.elapsed().as_secs_f64()))?;
    let tally = Arc::new(Tally::new());
    prepare(asked, &open, &tally).await?;
    let mut followers = None;
    if !asked.is_soak() {
        followers = Some(Followers::begin(|| open.caller(0, &tally), home, asked.load.seed).await?);
    }
    execute(&mut open.caller(0, &tally)?, sql(&counters(asked.load.callers))).await?;
    let end = Instant::now() + Duration::from_secs(asked.load.seconds.into());
    let watched = asked.is_soak().then(|| stage.watch(end)).transpose()?;
    if let Some(followers) = &mut followers {
        followers.follow(end);
    }
    let mut callers = JoinSet::new();
    let run = uuid::Uuid::new_v4().simple().to_string();
    let steps = if asked.is_soak() { Steps::Mixed } else { Steps::Durable };
    for number in 0..asked.load.callers {
        let worker = Worker::new(open.caller(number, &tally)?, steps, asked.load.seed, run.clone());
        callers.spawn(worker.work(end));
    }
    say(&format!("{} callers work for {} s", asked.load.callers, asked.load.seconds))?;
    tally.begin("nothing fails");
    if let Err(error) = fail(asked, &mut stage, &tally, end).await {
        for name in ["origin1", "origin2", "origin3", "edge1", "edge2", "s3"] {
            let tail = common.log_tail(name);
            if !tail.is_empty() {
                say(&format!("--- {name}:\n{tail}"))?;
            }
        }
        return Err(error);
    }
    let finished = tokio::time::timeout(FINISH_MAX, async { while callers.join_next().await.is_some() {} }).await;
    if finished.is_err() {
        bail!("{} callers still wait {FINISH_MAX:?} after the end", callers.len());
    }
    say("the load has ended: comparing what was acknowledged with what is there")?;
    let verdict = verdict::judge(&stage, open.caller(0, &tally)?, &tally, followers).await?;
    verdict.print()?;
    let mut is_well = verdict.is_well(asked.briefly);
    if let Some(watched) = watched {
        is_well &= growth::print(&watched.await?)?;
    }
    say(if is_well { "\nAll is well." } else { "\nNot all is well: see above." })?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Sites {
    network: Option<Network>,
    /// The address of the S3 service.
    home: Ipv4Addr,
    databases: Vec<Site>,
    origins: Vec<Site>,
}

impl Sites {
    /// Creates a virtual network with a machine for each database and origin if this process is in
    /// a network namespace of its own; otherwise returns loopback addresses.
    async fn choose(machines: usize) -> Result<Self> {
        if !network::is_own() {
            let sites = || (0..machines).map(|_| Site::on_loopback()).collect();
            let home = Site::on_loopback().address;
            return Ok(Self { network: None, home, databases: sites(), origins: sites() });
        }
        let mut network = Network::create()?;
        let (mut databases, mut origins) = (Vec::new(), Vec::new());
        for sites in [&mut databases, &mut origins] {
            for _ in 0..machines {
                sites.push(network.add().await?);
            }
        }
        Ok(Self { network: Some(network), home: network::HOME, databases, origins })
    }
}

struct Open {
    key: String,
    edges: Arc<Vec<String>>,
}

impl Open {
    fn caller(&self, number: u32, tally: &Arc<Tally>) -> Result<Caller> {
        Caller::new(number, Arc::clone(&self.edges), self.key.clone(), Arc::clone(tally))
    }
}

/// Starts all parts and waits until they are ready.
async fn start(asked: &Asked, common: &Common, sites: Sites) -> Result<(Stage, Open)> {
    let mut s3 = common.s3(sites.home)?;
    s3.launch()?;
    let cluster = match asked.databases {
        Databases::Galera => {
            say("starting three Galera nodes, the S3 service, three origins and two edges")?;
            Cluster::Galera(Galera::start_on(&sites.databases).await?)
        }
        Databases::Replicas => {
            say("starting a primary and two replicas, the S3 service, three origins and two edges")?;
            Cluster::Replicated(Replicated::start_on(&sites.databases).await?)
        }
        Databases::Single => {
            say("starting MariaDB, the S3 service, an origin and an edge")?;
            Cluster::Replicated(Replicated::start_on(&sites.databases).await?)
        }
    };
    let mut origins = Vec::new();
    for (index, site) in sites.origins.iter().enumerate() {
        let (database, more) = databases_of(asked, &sites, index);
        let mut origin = common.origin(&format!("origin{}", index + 1), *site, &database, &more);
        // Starts all origins at once, so that they create the installation's tables concurrently.
        origin.launch()?;
        origins.push(origin);
    }
    for origin in &mut origins {
        let ready = origin.wait_until_ready().await;
        ready.with_context(|| common.log_tail(&origin.name))?;
    }
    let (database, _) = databases_of(asked, &sites, 0);
    let key = common.full_key(&database).await?;
    let jwks = common.printed(&database, &["key", "jwks"]).await?;
    let (mut edges, mut addresses) = (Vec::new(), Vec::new());
    let (machines, edges_asked) = asked.databases.machines();
    for index in 0..edges_asked {
        // Each edge has a different origin as its first.
        let urls: Vec<String> =
            (0..machines).map(|step| origin_url(sites.origins[(index + step) % machines])).collect();
        let address = Ipv4Addr::new(127, 0, 0, u8::try_from(index + 1)?);
        // On the host's own 127.0.0.x, other programs may use these ports.
        let address = if sites.network.is_some() { address } else { Site::on_loopback().address };
        let mut edge = common.edge(&format!("edge{}", index + 1), address, &urls.join(","), &jwks)?;
        edge.launch()?;
        edges.push(edge);
        addresses.push(edge_url(address));
    }
    if asked.is_soak() {
        addresses.push(origin_url(sites.origins[0]));
    }
    let mut stage = Stage { cluster, origins, edges, s3, network: sites.network };
    stage.wait_until_ready().await?;
    Ok((stage, Open { key, edges: Arc::new(addresses) }))
}

fn databases_of(asked: &Asked, sites: &Sites, origin: usize) -> (String, Vec<(&'static str, String)>) {
    let url = |order: &[usize]| {
        let address = |index: &usize| format!("{}:{PORT}", sites.databases[*index].address);
        let hosts: Vec<String> = order.iter().map(address).collect();
        format!("mysql://{ACCOUNT}:{ACCOUNT}@{}/", hosts.join(","))
    };
    let machines = sites.databases.len();
    let own_first: Vec<usize> = (0..machines).map(|step| (origin + step) % machines).collect();
    match (asked.databases, asked.hosts) {
        (Databases::Galera, Hosts::All) => (url(&own_first), Vec::new()),
        (Databases::Galera, Hosts::Own) => (url(&own_first[..1]), Vec::new()),
        (Databases::Replicas, Hosts::All) => (url(&[0]), vec![("SELKIE_REPLICA_URL", url(&[1, 2]))]),
        (Databases::Replicas, Hosts::Own) | (Databases::Single, _) => (url(&[0]), Vec::new()),
    }
}

/// Creates the database and its tables through an edge. Returns an error if a statement is refused.
async fn prepare(asked: &Asked, open: &Open, tally: &Arc<Tally>) -> Result<()> {
    let mut caller = open.caller(0, tally)?;
    let create = json!({"query": format!("CREATE DATABASE {DATABASE}")});
    let mut bodies = vec![create];
    bodies.extend(TABLES.map(sql));
    if asked.is_soak() {
        bodies.extend(mixture::tables().iter().map(|statement| sql(statement)));
    }
    for body in bodies {
        execute(&mut caller, body).await?;
    }
    Ok(())
}

async fn execute(caller: &mut Caller, body: Value) -> Result<()> {
    let request = Request::new(Method::POST, "/api/v1/sql".to_owned()).json(body);
    if let Err(refusal) = caller.write(&request).await {
        bail!("creating the tables: {}", refusal.text);
    }
    Ok(())
}

/// Injects one fault after the other until `end`, in rounds that have each kind of fault once.
/// Returns an error if a fault can't be made, or if the installation is not ready after it.
async fn fail(asked: &Asked, stage: &mut Stage, tally: &Tally, end: Instant) -> Result<()> {
    let mut random = Random::new(asked.load.seed);
    let possible = |kind: &Kind| stage.network.is_some() || !kind.needs_network();
    let (kinds, skipped): (Vec<Kind>, Vec<Kind>) = asked.kinds().into_iter().partition(possible);
    for kind in skipped {
        say(&format!("skipped, since this machine allows no network namespaces: {}", kind.title()))?;
    }
    let mut round: Vec<Kind> = Vec::new();
    let rest_ms = if asked.is_soak() { REST_OF_SOAK_MS } else { REST_MS };
    let began = Instant::now();
    while !kinds.is_empty() {
        if round.is_empty() {
            round = kinds.clone();
        }
        let index = usize::try_from(random.below(round.len() as u64))?;
        let kind = round.swap_remove(index);
        let target = usize::try_from(random.below(stage.targets(kind) as u64))?;
        sleep(random.duration(rest_ms).min(end.saturating_duration_since(Instant::now()))).await;
        if Instant::now() >= end {
            return Ok(());
        }
        say(&format!("{:6.1} s: {} ({})", began.elapsed().as_secs_f64(), kind.title(), target + 1))?;
        tally.begin(kind.title());
        stage.break_it(kind, target).await.with_context(|| kind.title())?;
        sleep(random.duration(FAULT_MS)).await;
        let mended = Instant::now();
        stage.mend(kind, target).await.with_context(|| format!("after {}", kind.title()))?;
        say(&format!(
            "{:6.1} s: mended, all is ready again after {:.1} s",
            began.elapsed().as_secs_f64(),
            mended.elapsed().as_secs_f64()
        ))?;
    }
    sleep(end.saturating_duration_since(Instant::now())).await;
    Ok(())
}
