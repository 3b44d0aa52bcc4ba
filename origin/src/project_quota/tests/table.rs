//! Checks that the table of shared resources in docs/limits.md is complete and agrees with the code.

use crate::activity::{PROJECTS_KEPT_COUNT, REQUESTS_KEPT_COUNT};
use crate::changes::{
    RECENT_MAX_BYTES, TABLES_MAX_COUNT, TABLES_PER_PROJECT_MAX_COUNT, catch_up_readers, followers, table_lookups,
};
use crate::config::find_setting;
use crate::database::admin::{LOG_MAX_BYTES, STATEMENT_TIMEOUT};
use crate::database::long_rows::{LONG_ROWS_MAX_BYTES, LONG_ROWS_PER_PROJECT_MAX_BYTES};
use crate::database::media::{CONNECTIONS_MAX_COUNT, CONNECTIONS_PER_PROJECT_MAX_COUNT};
use crate::database::pool::QUEUES_OF_ALL;
use crate::database::schema_cache::{self, connections};
use crate::database::{KILLS_MAX_COUNT, KILLS_PER_ACCOUNT_MAX_COUNT, PoolSettings};
use crate::media::library::{FILE_CHANGES_MAX_COUNT, FILE_CHANGES_PER_PROJECT_MAX_COUNT};
use crate::project_quota::ProjectQuota;
use crate::service_state::{StreamSlots, answer_memory, body_memory, descriptions, management_slots};
use crate::system::keys::registry::lookup_slots;
use crate::tls::HANDSHAKES_MAX_COUNT;
use crate::traces::QUEUE_MAX_COUNT;
use crate::webhooks::in_flight;
use shared::limits::{
    DESCRIPTIONS_CACHE_MAX_BYTES, EDGE_BODIES_MAX_BYTES, EDGE_BODY_OVERHEAD_BYTES, EDGE_CHANGES_MAX_COUNT,
    EDGE_DRAINS_MAX_COUNT, EDGE_DRAINS_PER_ADDRESS_MAX_COUNT, EDGE_HEALTH_CHECKS_IN_FLIGHT_MAX_COUNT,
    EDGE_PUBLIC_REQUESTS_MAX_COUNT, EDGE_REFUSAL_LINES_MAX_COUNT, EDGE_REFUSAL_LINES_MS, EDGE_REQUESTS_MAX_COUNT,
    EDGE_UNVERIFIED_CHANGES_MAX_COUNT, EDGE_UNVERIFIED_REQUESTS_MAX_COUNT, IMAGE_MEMORY_MAX_BYTES,
    IMAGE_QUEUE_MAX_COUNT, IMAGE_QUEUE_PROJECT_MAX_COUNT, TUS_OPEN_MAX_COUNT, TUS_OPEN_MAX_LARGEST, UPLOADS_MAX_COUNT,
    UPLOADS_PER_PROJECT_MAX_COUNT, WEBHOOKS_MAX_COUNT, WEBHOOKS_PER_PROJECT_MAX_COUNT,
};
use std::time::Duration;

const PAGE: &str = include_str!("../../../../docs/limits.md");
const HEADING: &str = "## Shares of projects";
const MIB: u64 = 1024 * 1024;

/// The expected beginnings of the table cells with a resource's limit and its share per project.
struct Expected {
    resource: &'static str,
    limit: String,
    share: String,
}

fn default_of(setting: &str) -> usize {
    let default = find_setting(setting).and_then(|setting| setting.default);
    default.unwrap().parse().unwrap()
}

fn settings() -> PoolSettings {
    PoolSettings {
        size: default_of("pool_size"),
        total: default_of("pool_total"),
        queue: default_of("pool_queue"),
        wait_timeout: Duration::ZERO,
        connect_timeout: Duration::ZERO,
        query_timeout: Duration::ZERO,
    }
}

/// Formats a number with commas between thousands, such as `4,096`.
fn written(number: impl TryInto<u64>) -> String {
    let number = number.try_into().unwrap_or_default();
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", number / 1_000, number % 1_000),
    }
}

fn row(resource: &'static str, limit: String, share: String) -> Expected {
    Expected { resource, limit, share }
}

fn counted(resource: &'static str, shares: &ProjectQuota) -> Expected {
    row(resource, written(shares.whole()), written(shares.share()))
}

fn of_records() -> Vec<Expected> {
    let pool = settings();
    let streams = StreamSlots::new(pool, Duration::ZERO);
    let (bodies, answers) = (body_memory(default_of("json_body_max_bytes")), answer_memory());
    vec![
        row("connections for statements", written(pool.total), written(pool.size)),
        row("connections to [replicas](scale.md#replicas) for reads", written(pool.total), written(pool.size)),
        row("requests that wait for those", written(pool.queue * QUEUES_OF_ALL), written(pool.queue)),
        row(
            "connections for descriptions of tables",
            written(connections(pool.total)),
            written(schema_cache::CONNECTIONS_PER_PROJECT),
        ),
        counted("descriptions of the API that are written or sent", &descriptions()),
        counted("requests that read or change keys and roles, or drop databases", &management_slots()),
        counted("look-ups of keys and roles that the origin does not know yet", &lookup_slots()),
        row(
            "last requests, and figures of five minutes, for `/status` and `/requests`",
            format!("{} projects", written(PROJECTS_KEPT_COUNT)),
            format!("{} requests", written(REQUESTS_KEPT_COUNT)),
        ),
        row("connections that kill a statement", written(KILLS_MAX_COUNT), written(KILLS_PER_ACCOUNT_MAX_COUNT)),
        counted("streamed answers of records", streams.shares()),
        counted("second connections of reads with `include` and no `limit` below 256", streams.second_connections()),
        row(
            "bytes of JSON bodies, without the first 64 KiB of each",
            format!("{} MiB", bodies.whole() / MIB),
            format!("half: {} MiB", bodies.share() / MIB),
        ),
        row(
            "bytes of answers that are held as a whole (single records, batches, lists of keys), each above 64 KiB, or 8 KiB \
             over HTTP/2",
            format!("{} MiB", answers.whole() / MIB),
            format!("a quarter: {} MiB", answers.share() / MIB),
        ),
        row(
            "bytes of rows above 512 KiB while they are encoded, and in a stream until the client has taken them",
            format!("{} MiB", LONG_ROWS_MAX_BYTES / MIB),
            format!("half: {} MiB", LONG_ROWS_PER_PROJECT_MAX_BYTES / MIB),
        ),
    ]
}

fn of_media() -> Vec<Expected> {
    let disk = || "the disk".to_owned();
    let tus_gib = default_of("tus_max_bytes") as u64 * TUS_OPEN_MAX_LARGEST / (1024 * MIB);
    let media = || (written(CONNECTIONS_MAX_COUNT), written(CONNECTIONS_PER_PROJECT_MAX_COUNT));
    vec![
        row("uploads that arrive or are examined", written(UPLOADS_MAX_COUNT), written(UPLOADS_PER_PROJECT_MAX_COUNT)),
        row(
            "files that are being stored or deleted",
            written(FILE_CHANGES_MAX_COUNT),
            written(FILE_CHANGES_PER_PROJECT_MAX_COUNT),
        ),
        row(
            "images that wait to be decoded, or are",
            written(IMAGE_QUEUE_MAX_COUNT),
            written(IMAGE_QUEUE_PROJECT_MAX_COUNT),
        ),
        row(
            "memory for images that are decoded",
            format!("{} MB", IMAGE_MEMORY_MAX_BYTES / 1_000_000),
            "all, but projects take turns".to_owned(),
        ),
        row("connections for look-ups of media", media().0, media().1),
        row("connections for lists and writes of media", media().0, media().1),
        row(
            "resumable uploads under way by full keys, and as many by callers with roles",
            disk(),
            format!("{TUS_OPEN_MAX_COUNT}, and {tus_gib} GiB"),
        ),
        row(
            "the disk on which uploads arrive",
            disk(),
            format!("{UPLOADS_PER_PROJECT_MAX_COUNT} of `upload_max_bytes`"),
        ),
    ]
}

fn of_changes() -> Vec<Expected> {
    let recent = RECENT_MAX_BYTES as u64 / MIB;
    vec![
        counted("requests and streams that follow [changes](api/changes.md)", &followers()),
        counted("connections that read older changes from the log", &catch_up_readers()),
        counted("connections that look up followed tables", &table_lookups()),
        counted("deliveries of [webhooks](api/webhooks.md) under way", &in_flight()),
        row("webhooks", written(WEBHOOKS_MAX_COUNT), written(WEBHOOKS_PER_PROJECT_MAX_COUNT)),
        row("memory for recent changes of followed tables", format!("{recent} MiB"), "none".to_owned()),
        row("the binary log of a private MariaDB", format!("{} GiB", LOG_MAX_BYTES >> 30), "none: ".to_owned()),
        row("tables that are followed", written(TABLES_MAX_COUNT), written(TABLES_PER_PROJECT_MAX_COUNT)),
    ]
}

fn of_the_edge_and_caches() -> Vec<Expected> {
    let by_address = || "by client address".to_owned();
    vec![
        row(
            "requests that wait for an origin, at one edge (each isolate on Cloudflare): those with a key or a user's token \
             that the edge verified",
            written(EDGE_REQUESTS_MAX_COUNT),
            "all".to_owned(),
        ),
        row(
            "the same, with users' tokens that only the origin can verify",
            written(EDGE_UNVERIFIED_REQUESTS_MAX_COUNT),
            by_address(),
        ),
        row(
            "the same, without a key: public media, `/docs`, `/console`",
            written(EDGE_PUBLIC_REQUESTS_MAX_COUNT),
            by_address(),
        ),
        row("the same, for `/readyz`", written(EDGE_HEALTH_CHECKS_IN_FLIGHT_MAX_COUNT), by_address()),
        row(
            "the same, for changes with a key or a verified token: pages until they are answered, event streams until they \
             begin",
            written(EDGE_CHANGES_MAX_COUNT),
            "by project".to_owned(),
        ),
        row(
            "the same, for changes with users' tokens that only the origin can verify",
            written(EDGE_UNVERIFIED_CHANGES_MAX_COUNT),
            by_address(),
        ),
        row(
            "memory of the bodies that one edge reads as a whole",
            format!(
                "{} MiB; a body counts its length and {} KiB",
                EDGE_BODIES_MAX_BYTES / MIB,
                EDGE_BODY_OVERHEAD_BYTES / 1024
            ),
            by_address(),
        ),
        row(
            "memory of those above 32 KiB that have arrived",
            format!("{} MiB", EDGE_BODIES_MAX_BYTES / MIB),
            "none".to_owned(),
        ),
        row(
            "bodies of refused requests that one edge drains; up to 64 KiB, the runtime does",
            written(EDGE_DRAINS_MAX_COUNT),
            format!("{EDGE_DRAINS_PER_ADDRESS_MAX_COUNT} for each client address"),
        ),
        row(
            "log lines of one edge for requests that it refuses for their key",
            format!("{EDGE_REFUSAL_LINES_MAX_COUNT} in {} s", EDGE_REFUSAL_LINES_MS / 1_000),
            "none: they have no valid key".to_owned(),
        ),
        row("TLS handshakes under way", written(HANDSHAKES_MAX_COUNT), "none: no key is known yet".to_owned()),
        row(
            "caches of descriptions: of tables, of databases, of tables as roles see them, of foreign keys",
            format!("{} MiB each", DESCRIPTIONS_CACHE_MAX_BYTES / MIB),
            "none".to_owned(),
        ),
        row("caches: paths of files, keys, counts of requests", written(10_000), "none".to_owned()),
        row("requests whose trace waits to be sent", written(QUEUE_MAX_COUNT), "none".to_owned()),
    ]
}

/// Returns the rows of the table in docs/limits.md without its header.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, section) = PAGE.split_once(HEADING).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = |line: &'static str| line.trim_end_matches(" |").split(" | ").collect();
    lines.skip(2).map(cells).collect()
}

#[test]
fn the_table_of_shared_resources_says_what_the_code_holds_to() {
    let rows = rows();
    let expected: Vec<_> =
        [of_records(), of_changes(), of_media(), of_the_edge_and_caches()].into_iter().flatten().collect();
    let named: Vec<_> = rows.iter().map(|row| row[0]).collect();
    let known: Vec<_> = expected.iter().map(|row| row.resource).collect();
    assert_eq!(named, known);
    for (row, expected) in rows.iter().zip(expected) {
        let [resource, limit, share, lasts, beyond] = row[..] else {
            panic!("{row:?} has not five cells");
        };
        assert!(limit.starts_with(&expected.limit), "{resource}: {limit}");
        assert!(share.starts_with(&expected.share), "{resource}: {share}");
        assert!(!lasts.is_empty() && !beyond.is_empty(), "{resource}");
    }
}

#[test]
fn the_table_says_how_long_statements_about_keys_and_roles_may_take() {
    let rows = rows();
    let row = rows.iter().find(|row| row[0].starts_with("requests that read or change keys and roles")).expect("a row");
    assert_eq!(row[3], format!("their statements: {} s each", STATEMENT_TIMEOUT.as_secs()));
}
