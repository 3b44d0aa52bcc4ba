//! Tests the text of the metrics. Also tests that the documentation, the dashboard and the alerts name only metrics
//! that exist.

use super::*;
use crate::changes::FeedGauge;
use crate::database::log_reader::ResyncReason;
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../docs/monitoring.md");
const DASHBOARD: &str = include_str!("../../../docs/monitoring/selkie-dashboard.json");
const ALERTS: &str = include_str!("../../../docs/monitoring/selkie-alerts.yml");

/// Returns the text of all metrics, each with at least one value.
fn text() -> String {
    let metrics = Metrics::new();
    let labels = RequestLabels { method: "GET", route: "/api/v1/crud/{db}/{table}/{id}", status: 404 };
    let (total, code) = (Duration::from_millis(3), Some(ErrorCode::RecordNotFound));
    metrics.request(&Ended { labels, total, rows: 0, bytes: 90, code });
    let feed = FeedGauge { committed_at: 1, ..FeedGauge::default() };
    let changes = ChangesGauge { feed, resyncs: vec![(ResyncReason::Truncated, 1)], ..ChangesGauge::default() };
    let attempted = DeliveryState::ALL.map(|state| (state, 1)).to_vec();
    let webhooks = WebhooksGauge { attempted, under_way: 1, failing: Some(0) };
    let readings = Readings { prepared_xa: Some(0), changes, webhooks, ..Readings::default() };
    readings.pools.waits.observe(Duration::ZERO);
    readings.pools.waits.observe(Duration::from_secs(60));
    metrics.text(&readings)
}

#[derive(Debug, Default)]
struct MetricFamily {
    kind: String,
    samples: Vec<(String, f64)>,
}

/// Parses the text of metrics by the rules of OpenMetrics 1.0, as far as Selkie uses them. Panics if the text breaks a
/// rule.
fn parse(text: &str) -> BTreeMap<String, MetricFamily> {
    let body = text.strip_suffix("# EOF\n").expect("ends with # EOF");
    let mut families = BTreeMap::<String, MetricFamily>::new();
    let mut current = String::new();
    let mut lines = body.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a name and a help text");
            assert!(help.len() > 5, "{line}");
            let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")));
            let kind = kind.unwrap_or_else(|| panic!("no TYPE after {line}")).to_owned();
            assert!(["counter", "gauge", "histogram", "info"].contains(&kind.as_str()), "{line} {kind}");
            let new = MetricFamily { kind, samples: Vec::new() };
            assert!(families.insert(name.to_owned(), new).is_none(), "{name} comes twice");
            current = name.to_owned();
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a sample and its value");
        let family = families.get_mut(&current).expect("HELP and TYPE come first");
        let suffix = series.split('{').next().and_then(|name| name.strip_prefix(&current)).expect(line);
        let suffixes: &[&str] = match family.kind.as_str() {
            "counter" => &["_total"],
            "histogram" => &["_sum", "_count", "_bucket"],
            "info" => &["_info"],
            _ => &[""],
        };
        assert!(suffixes.contains(&suffix), "{line}");
        if let Some((_, labels)) = series.split_once('{') {
            let labels = labels.strip_suffix('}').expect("labels end");
            for label in labels.split("\",").filter(|label| !label.is_empty()) {
                let (name, value) = label.split_once("=\"").expect("a label is quoted");
                assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{line}");
                assert!(!value.trim_end_matches('"').contains(['"', '\\']), "{line}");
            }
        }
        let value: f64 = value.parse().expect("a number");
        assert!(value >= 0.0, "{line}");
        assert!(!family.samples.iter().any(|(known, _)| known == series), "{series} comes twice");
        family.samples.push((series.to_owned(), value));
    }
    families
}

fn series() -> BTreeSet<String> {
    let families = parse(&text()).into_iter();
    families
        .flat_map(|(name, family)| {
            let suffixes: &[&str] = match family.kind.as_str() {
                "counter" => &["_total"],
                "info" => &["_info"],
                "histogram" => &["", "_bucket", "_count", "_sum"],
                _ => &[""],
            };
            suffixes.iter().map(move |suffix| format!("{name}{suffix}")).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the words of a text that begin with `selkie_` or `process_`, as the names of metrics do.
fn named(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("selkie_") || word.starts_with("process_"));
    words.map(str::to_owned).collect()
}

#[test]
fn the_text_is_an_exposition_with_a_help_and_a_type_for_each_metric() {
    let families = parse(&text());
    for (name, family) in &families {
        assert!(!family.samples.is_empty(), "{name} has no value");
        let ours = name.strip_prefix("selkie_").or(name.strip_prefix("process_"));
        assert!(ours.is_some_and(|rest| !rest.is_empty()), "{name}");
    }
    let waits = &families["selkie_pool_wait_seconds"].samples;
    let value = |series: &str| waits.iter().find(|(known, _)| known == series).map(|(_, value)| *value);
    assert_eq!(value("selkie_pool_wait_seconds_count"), Some(2.0));
    assert_eq!(value("selkie_pool_wait_seconds_sum"), Some(60.0));
    assert_eq!(value("selkie_pool_wait_seconds_bucket{le=\"0.0005\"}"), Some(1.0));
    assert_eq!(value("selkie_pool_wait_seconds_bucket{le=\"30.0\"}"), Some(1.0));
    assert_eq!(value("selkie_pool_wait_seconds_bucket{le=\"+Inf\"}"), Some(2.0));
}

#[test]
fn the_labels_have_few_values() {
    let families = parse(&text());
    let errors = &families["selkie_errors"].samples;
    assert_eq!(errors.len(), ErrorCode::ALL.len());
    assert!(errors.contains(&("selkie_errors_total{code=\"record_not_found\"}".to_owned(), 1.0)), "{errors:?}");
    let labels: BTreeSet<_> = families
        .values()
        .flat_map(|family| &family.samples)
        .filter_map(|(series, _)| series.split_once('{'))
        .flat_map(|(_, labels)| labels.trim_end_matches('}').split("\",").map(|label| label.split('=').next()))
        .flatten()
        .collect();
    assert_eq!(
        labels,
        BTreeSet::from(["arch", "code", "le", "method", "outcome", "reason", "route", "status", "version"])
    );
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_is_measured() {
    let families = parse(&text());
    for name in ["open_fds", "max_fds", "resident_memory_bytes", "start_time_seconds", "threads"] {
        let value = families[&format!("process_{name}")].samples[0].1;
        assert!(value > 0.0, "{name} {value}");
    }
}

#[test]
fn the_page_lists_each_metric_and_no_other() {
    let table: String = PAGE.lines().filter(|line| line.starts_with("| `")).collect();
    let listed = named(&table);
    let families = parse(&text());
    let exist: BTreeSet<_> = families
        .iter()
        .map(|(name, family)| match family.kind.as_str() {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.clone(),
        })
        .collect();
    assert_eq!(listed, exist);
}

#[test]
fn the_dashboard_and_the_alerts_name_only_metrics_that_exist() {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let queries: Vec<String> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default())
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    assert!(queries.len() > 10, "{queries:?}");
    let rules: Vec<&str> = ALERTS.lines().filter(|line| line.trim_start().starts_with("expr:")).collect();
    assert!(rules.len() > 5, "{rules:?}");
    let unknown = |text: &str| named(text).difference(&series()).cloned().collect::<Vec<_>>();
    for query in &queries {
        assert!(!named(query).is_empty(), "{query} names no metric");
        assert_eq!(unknown(query), Vec::<String>::new(), "{query}");
    }
    for rule in rules {
        assert_eq!(unknown(rule), Vec::<String>::new(), "{rule}");
    }
}
