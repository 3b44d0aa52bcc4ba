//! The differential test: random schemas, records, reads and writes. Each answer is compared with the result of a
//! simple, slow evaluation in these files.
//!
//! These files are written from the description of the API alone, and must not know how the service parses, plans or
//! renders. A disagreement is reduced to a small one, and printed with the seed that repeats it:
//! `SELKIE_DIFFERENTIAL_SEED=… SELKIE_DIFFERENTIAL_ROUNDS=1`.

mod cell;
mod dice;
mod evaluate;
mod generate;
mod json;
mod paging;
mod read;
mod related;
mod roles;
mod shrink;
mod spell;
mod verdict;
mod world;
mod writes;

use crate::host::Host;
use crate::service::shared;
use crate::test_db::TestDb;
use dice::Dice;
use read::Read;
use related::{related_records_are_those_of_a_plain_evaluation, writes_keep_to_rules_through_relations};
use roles::{
    reads_of_a_role_answer_what_a_plain_evaluation_of_its_records_answers, writes_of_a_role_change_what_its_rules_allow,
};
use spell::{STYLES, Style};
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};
use world::World;
use writes::writes_of_single_records_change_what_they_name;

cases! {
    Both: [
        reads_answer_what_a_plain_evaluation_answers,
        pages_by_next_make_up_the_whole_answer,
        reads_of_a_role_answer_what_a_plain_evaluation_of_its_records_answers,
        writes_of_a_role_change_what_its_rules_allow,
        writes_of_single_records_change_what_they_name,
        related_records_are_those_of_a_plain_evaluation,
        writes_keep_to_rules_through_relations,
    ],
}

/// Default number of schemas for each host. The edge gets fewer, since it forwards the origin's answers.
const ROUNDS: [(Host, usize); 2] = [(Host::Origin, 10), (Host::Edge, 3)];

/// Number of reads of each schema.
const READS: usize = 40;

/// Number of reads of each schema whose cursor `next` is followed from page to page.
const PAGED: usize = 12;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Returns the seeds of a run, one for each schema.
fn seeds(host: Host) -> impl Iterator<Item = u64> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let first = setting("SELKIE_DIFFERENTIAL_SEED")
        .unwrap_or_else(|| u64::try_from(now() % 1_000_000_000).expect("a small number") * 10_000);
    let usual = ROUNDS.iter().find(|(known, _)| *known == host);
    let rounds = setting("SELKIE_DIFFERENTIAL_ROUNDS").unwrap_or_else(|| usual.map_or(1, |(_, rounds)| *rounds as u64));
    first..first + rounds
}

struct Stage {
    db: TestDb,
    world: World,
    key: String,
    seed: u64,
}

impl Stage {
    async fn set(host: Host, seed: u64, dice: &mut Dice) -> Self {
        let world = World::draw(dice);
        let statements: Vec<String> = world.tables.iter().flat_map(world::Table::sql).collect();
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let db = TestDb::new(host, &statements).await;
        Self { db, world, key: shared().full_key.clone(), seed }
    }

    async fn refill(&self, table: usize) {
        let table = &self.world.tables[table];
        self.db.exec(&format!("DELETE FROM {}", table.name)).await;
        for insert in table.sql().iter().skip(1) {
            self.db.exec(insert).await;
        }
    }

    async fn strike(self) {
        let drop = format!("DROP DATABASE {}", self.db.name);
        self.db.exec(&drop).await;
    }

    /// Sends a read in one style. Returns a description of the fault in the answer; `None` if the answer is right.
    async fn disagreement(&self, read: &Read, style: Style, dice: &mut Dice) -> Option<String> {
        let options = spell::options(read, &self.world);
        let table = read.table(&self.world, 0);
        let answer = spell::request(&self.db, table, &options, style, dice).key(&self.key).send().await;
        verdict::fault(read, &self.world, &answer).map(|fault| format!("{fault}\n{answer}"))
    }

    async fn report(mut self, read: Read, style: Style, fault: String, dice: &mut Dice) -> String {
        let (read, fault) = shrink::smallest(&mut self, read, style, fault, dice).await;
        let mut report =
            format!("SELKIE_DIFFERENTIAL_SEED={} SELKIE_DIFFERENTIAL_ROUNDS=1, {style:?}: {fault}\n", self.seed);
        for (name, value) in spell::options(&read, &self.world) {
            writeln!(report, "  {name} = {value}").expect("a text");
        }
        let mut shown = Vec::new();
        for at in 0..=read.joins.len() {
            let table = read.table(&self.world, at);
            if !shown.contains(&table.name) {
                shown.push(table.name);
                writeln!(report, "  {}", table.sql().join(";\n  ")).expect("a text");
            }
        }
        report
    }
}

async fn reads_answer_what_a_plain_evaluation_answers(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let stage = Stage::set(host, seed, &mut dice).await;
        for _ in 0..READS {
            let read = generate::read(&mut dice, &stage.world);
            // Each read is sent in two styles, whose answers must be equal.
            let first = dice.below(STYLES.len());
            for style in [STYLES[first], STYLES[(first + 1) % STYLES.len()]] {
                if let Some(fault) = stage.disagreement(&read, style, &mut dice).await {
                    panic!("{}", stage.report(read, style, fault, &mut dice).await);
                }
            }
        }
        stage.strike().await;
    }
}

async fn pages_by_next_make_up_the_whole_answer(host: Host) {
    for seed in seeds(host) {
        let mut dice = Dice::new(seed);
        let stage = Stage::set(host, seed, &mut dice).await;
        for _ in 0..PAGED {
            let read = generate::pageable(&mut dice, &stage.world);
            if let Some(fault) = paging::fault(&stage, &read, &mut dice).await {
                let style = Style::Twin;
                panic!("{}", stage.report(read, style, fault, &mut dice).await);
            }
        }
        stage.strike().await;
    }
}
