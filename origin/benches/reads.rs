//! Measures what a request costs before MariaDB gets it: parsing, planning and rendering. `make bench-micro` runs it.
//!
//! The aim is under 10 µs for all three of a typical read. Also counts allocations, which take most of the time.
#![allow(clippy::expect_used, reason = "what is measured here is known to be right")]

#[path = "material/requests.rs"]
mod requests;

use divan::{AllocProfiler, Bencher, black_box};
use origin::query::plan::access::TableAccess;
use origin::query::plan::scope::Scope;
use origin::query::sql::Statement;
use requests::{REQUESTS, joined, parse, plan, render, request, tables};
use shared::limits::URL_MAX_BYTES;
use shared::operation::{RecordOperation, parse_head};
use shared::request::RequestHead;

#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn statements(operation: &RecordOperation, tables: &[TableAccess]) -> Vec<Statement> {
    let joined = joined(operation, tables);
    let scope = Scope::joined(&tables[0], operation.joins(), &joined).expect("sound joins");
    render(plan(operation, &scope), &scope)
}

#[divan::bench(args = REQUESTS.iter().map(|(name, ..)| *name))]
fn parsing(bencher: Bencher<'_, '_>, name: &str) {
    let (target, body) = request(name);
    bencher.bench(|| parse(black_box(target), black_box(body)));
}

#[divan::bench(args = REQUESTS.iter().map(|(name, ..)| *name))]
fn planning_and_rendering(bencher: Bencher<'_, '_>, name: &str) {
    let (target, body) = request(name);
    let (operation, tables) = (parse(target, body), tables());
    bencher.bench(|| statements(black_box(&operation), black_box(&tables)));
}

/// Measures parsing, planning and rendering: from the bytes of a request to SQL statements.
#[divan::bench(args = REQUESTS.iter().map(|(name, ..)| *name))]
fn altogether(bencher: Bencher<'_, '_>, name: &str) {
    let (target, body) = request(name);
    let tables = tables();
    bencher.bench(|| statements(&parse(black_box(target), black_box(body)), &tables));
}

#[divan::bench]
fn a_batch_of_a_thousand(bencher: Bencher<'_, '_>) {
    let (_, row) = request("an insert");
    let rows = vec![row; 1_000].join(",");
    let (body, tables) = (format!("{{\"batchData\":[{rows}]}}"), tables());
    let target = "POST /api/v1/crud/demo/posts";
    bencher
        .counter(divan::counter::BytesCount::new(body.len()))
        .bench(|| statements(&parse(target, black_box(&body)), &tables));
}

#[divan::bench(args = ["names", "names with brackets", "items", "labels", "fields"])]
fn hostile(bencher: Bencher<'_, '_>, kind: &str) {
    let query = worst(kind);
    bencher.bench(|| {
        parse_head(&RequestHead {
            method: "GET",
            path: "/api/v1/crud/demo/posts",
            query: Some(black_box(&query)),
            ..RequestHead::default()
        })
    });
}

fn worst(kind: &str) -> String {
    let part = |number: usize| match kind {
        "names" => format!("{number:x}&"),
        "names with brackets" => format!("{number:x}[]&"),
        "items" => "a[]&".to_owned(),
        "labels" => format!("a[{number:x}]&"),
        _ => format!("{number:x},"),
    };
    let start = match kind {
        "fields" => "selectFields=",
        _ => "",
    };
    let mut query = start.to_owned();
    for number in 0.. {
        let part = part(number);
        if query.len() + part.len() > URL_MAX_BYTES - 100 {
            break;
        }
        query.push_str(&part);
    }
    query
}
