//! The figures of one measurement, and the median of several.

use std::time::Duration;

use serde::Serialize;

use crate::load::Outcome;

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sample {
    pub(crate) requests_per_second: f64,
    pub(crate) megabytes_per_second: f64,
    /// Processor time of the server (behind a worker: of the origin) per request, in microseconds.
    pub(crate) server_micros: Option<f64>,
    /// Processor time of the worker's workerd per request, in microseconds.
    pub(crate) worker_micros: Option<f64>,
    /// Processor time of MariaDB per request, in microseconds.
    pub(crate) database_micros: Option<f64>,
    /// Processor time of the load per request, in microseconds; `None` for the floor, where load and server are one.
    pub(crate) load_micros: Option<f64>,
    /// Median milliseconds to the last byte.
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) p9999: f64,
    pub(crate) max: f64,
    /// Median milliseconds to the answer's head.
    pub(crate) first_byte: f64,
    /// Highest resident memory of the called process, in bytes.
    pub(crate) peak_bytes: Option<u64>,
    /// Growth of the called process's resident memory since before its first request, in bytes.
    pub(crate) grown_bytes: Option<u64>,
}

pub(crate) type Figure = fn(&Sample) -> Option<f64>;

impl Sample {
    /// Creates a sample from the answers, without processor time and memory.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        let seconds = outcome.elapsed.max(Duration::from_millis(1)).as_secs_f64();
        let at = |quantile| outcome.latency.value_at_quantile(quantile) as f64 / 1e3;
        Self {
            requests_per_second: short(outcome.requests as f64 / seconds),
            megabytes_per_second: short(outcome.bytes as f64 / 1e6 / seconds),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            p9999: at(0.9999),
            max: outcome.latency.max() as f64 / 1e3,
            first_byte: outcome.first_byte.value_at_quantile(0.5) as f64 / 1e3,
            ..Self::default()
        }
    }

    /// Returns a sample with the median of each figure; `None` if there are no samples.
    pub(crate) fn median(samples: &[Self]) -> Option<Self> {
        let of = |figure: fn(&Self) -> f64| middle(samples.iter().map(figure).collect());
        let maybe = |figure: fn(&Self) -> Option<f64>| middle(samples.iter().filter_map(figure).collect());
        let bytes = |figure: fn(&Self) -> Option<u64>| {
            let mut values: Vec<u64> = samples.iter().filter_map(figure).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied()
        };
        Some(Self {
            requests_per_second: of(|sample| sample.requests_per_second)?,
            megabytes_per_second: of(|sample| sample.megabytes_per_second)?,
            server_micros: maybe(|sample| sample.server_micros),
            worker_micros: maybe(|sample| sample.worker_micros),
            database_micros: maybe(|sample| sample.database_micros),
            load_micros: maybe(|sample| sample.load_micros),
            p50: of(|sample| sample.p50)?,
            p90: of(|sample| sample.p90)?,
            p99: of(|sample| sample.p99)?,
            p999: of(|sample| sample.p999)?,
            p9999: of(|sample| sample.p9999)?,
            max: of(|sample| sample.max)?,
            first_byte: of(|sample| sample.first_byte)?,
            peak_bytes: bytes(|sample| sample.peak_bytes),
            grown_bytes: bytes(|sample| sample.grown_bytes),
        })
    }
}

/// Returns the microseconds of processor time per request.
pub(crate) fn micros_each(time: Duration, requests: u64) -> f64 {
    short(time.as_secs_f64() * 1e6 / requests.max(1) as f64)
}

/// Returns the median of the rounds' ratios of `ours` to `theirs`. Both figures of a round were measured one after the
/// other, so that slow changes of the machine affect both. `None` if either was not measured.
pub(crate) fn ratio(ours: &[Sample], theirs: &[Sample], figure: Figure) -> Option<f64> {
    let ratios = ours.iter().zip(theirs).filter_map(|(ours, theirs)| {
        let (ours, theirs) = (figure(ours)?, figure(theirs)?);
        (theirs > 0.0).then_some(ours / theirs)
    });
    middle(ratios.collect())
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::{Sample, ratio};

    fn samples(rates: &[f64]) -> Vec<Sample> {
        let sample = |rate: &f64| Sample { requests_per_second: *rate, ..Sample::default() };
        rates.iter().map(sample).collect()
    }

    #[test]
    fn each_figure_has_its_own_middle() {
        let mut rounds = samples(&[10.0, 30.0, 20.0]);
        for (round, p99) in rounds.iter_mut().zip([1.0, 2.0, 9.0]) {
            round.p99 = p99;
        }
        rounds[2].peak_bytes = Some(7);
        let median = Sample::median(&rounds).unwrap();
        assert_eq!((median.requests_per_second, median.p99, median.peak_bytes), (20.0, 2.0, Some(7)));
        assert!(Sample::median(&[]).is_none());
    }

    #[test]
    fn a_machine_that_drifts_leaves_ratios_as_they_are() {
        let rate = |sample: &Sample| Some(sample.requests_per_second);
        let (ours, theirs) = (samples(&[50.0, 5.0, 80.0]), samples(&[100.0, 10.0, 100.0]));
        assert_eq!(ratio(&ours, &theirs, rate), Some(0.5));
        assert_eq!(ratio(&ours, &[], rate), None);
        assert_eq!(ratio(&ours, &theirs, |sample| sample.server_micros), None);
    }
}
