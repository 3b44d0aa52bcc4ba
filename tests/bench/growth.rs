//! Measures how cost grows with rows, columns, callers, tables, keys and projects: one curve for each. Each curve has
//! its own new origin on the same private MariaDB. Some curves also measure the bare driver or the hand-written server,
//! to tell MariaDB's part of the cost from Selkie's.

mod columns;
mod connections;
mod curve;
mod drive;
mod ground;
mod in_use;
mod installation;
mod keys;
mod once;
mod projects;
mod rows;
mod tables;
mod width;

use std::{fs, io::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum, value_parser};

use self::{
    curve::Curve,
    ground::{Contents, Ground},
};
use crate::selkie;

/// Maximum time of a run, whatever the arguments.
const RUN_LIMIT: Duration = Duration::from_secs(3600);

#[derive(Debug, Args)]
pub(crate) struct Growth {
    /// Curves to measure (all, if none is named).
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Milliseconds of one measurement.
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u64).range(50..=20_000))]
    millis: u64,
    /// No point beyond this one: a quick look.
    #[arg(long, default_value_t = 1_000_000, value_parser = value_parser!(u64).range(1..=1_000_000))]
    most: u64,
    /// Also write the curves to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also write each curve's table to `growth-<curve>.txt` in this directory.
    #[arg(long)]
    save: Option<PathBuf>,
    /// The `selkie` binary (default: beside this one).
    #[arg(long)]
    selkie: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Rows,
    Columns,
    /// Varies the bytes of one row.
    Width,
    Connections,
    Tables,
    Keys,
    Projects,
    InUse,
}

impl Part {
    /// Curves that share a MariaDB are next to each other.
    const ALL: [Self; 8] = [
        Self::Rows,
        Self::Columns,
        Self::Width,
        Self::Connections,
        Self::Keys,
        Self::Tables,
        Self::Projects,
        Self::InUse,
    ];

    /// Returns what MariaDB must contain. A curve that creates thousands of tables or projects has its own MariaDB.
    const fn ground(self) -> Contents {
        match self {
            Self::Rows | Self::Columns | Self::Width | Self::Connections | Self::Keys => Contents::Posts,
            Self::Tables | Self::Projects | Self::InUse => Contents::Nothing,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Extent {
    duration: Duration,
    most: u64,
}

impl Extent {
    /// Returns the points that are not greater than the largest one that the arguments allow.
    fn of(self, points: &[u64]) -> impl Iterator<Item = u64> {
        let most = self.most;
        points.iter().copied().filter(move |point| *point <= most)
    }
}

pub(crate) async fn run(growth: &Growth) -> Result<()> {
    tokio::time::timeout(RUN_LIMIT, measure(growth)).await.context("the curves took too long")?
}

async fn measure(growth: &Growth) -> Result<()> {
    let binary = selkie::binary(growth.selkie.as_deref())?
        .context("no `selkie` beside this program (cargo build --release -p selkie-origin)")?;
    let mut shared = None;
    let extent = Extent { duration: Duration::from_millis(growth.millis), most: growth.most };
    let mut curves = Vec::new();
    for part in Part::ALL {
        if growth.only.is_empty() || growth.only.contains(&part) {
            say(&format!("{part:?}"))?;
            let ground = match shared.take() {
                Some(ground) if part.ground() == Contents::Posts => ground,
                kept => {
                    shared = kept;
                    Ground::prepare(&binary, part.ground()).await?
                }
            };
            let (found, ground) = one(part, ground, extent).await.with_context(|| format!("{part:?}"))?;
            if part.ground() == Contents::Posts {
                shared = Some(ground);
            }
            found.print(&mut std::io::stdout().lock())?;
            curves.push(found);
        }
    }
    if let Some(path) = &growth.json {
        curve::write_json(&curves, path)?;
    }
    if let Some(directory) = &growth.save {
        for curve in &curves {
            let path = directory.join(format!("growth-{}.txt", curve.name));
            fs::write(&path, curve.plain()).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

async fn one(part: Part, mut ground: Ground, extent: Extent) -> Result<(Curve, Ground)> {
    let on = &mut ground;
    let curve = match part {
        Part::Rows => rows::measure(on, extent).await?,
        Part::Columns => columns::measure(on, extent).await?,
        Part::Width => width::measure(on, extent).await?,
        Part::Connections => connections::measure(on, extent).await?,
        Part::Tables => tables::measure(on, extent).await?,
        Part::Keys => keys::measure(on, extent).await?,
        Part::Projects => projects::measure(on, extent).await?,
        Part::InUse => in_use::measure(on, extent).await?,
    };
    Ok((curve, ground))
}

fn say(line: &str) -> Result<()> {
    writeln!(std::io::stderr().lock(), "{line}")?;
    Ok(())
}
