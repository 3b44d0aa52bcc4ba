//! Keeps the last requests of each project, and figures of the last five minutes, in this origin's memory, for people
//! who see neither the log nor the metrics. Contains no values of records, and of keys only their ids.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quick_cache::sync::Cache;
use serde::Serialize;
use uuid::Uuid;

pub const REQUESTS_KEPT_COUNT: usize = 200;

/// The maximum number of projects whose requests are kept. A project takes about 50 kB.
pub const PROJECTS_KEPT_COUNT: usize = 512;

/// The length of a period. All kept periods together cover five minutes.
pub const PERIOD_SECONDS: u64 = 5;
const PERIODS_KEPT_COUNT: usize = 60;

#[derive(Debug)]
pub struct Activity {
    projects: Cache<String, Arc<Mutex<Project>>>,
}

#[derive(Debug, Default)]
struct Project {
    requests: VecDeque<LastRequest>,
    figures: VecDeque<ActivityFigure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LastRequest {
    pub id: String,
    #[serde(flatten)]
    pub answered: Answered,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The time of the response's end, in milliseconds since 1970.
    pub at: u64,
    pub method: &'static str,
    /// A pattern such as `/api/v1/crud/{db}/{table}`.
    pub route: &'static str,
    pub status: u16,
    pub code: Option<&'static str>,
    /// The id of the key; for a user token, the user's id ([`shared::key::subject_id`]).
    pub key: Option<Uuid>,
    pub rows: u64,
    pub bytes: u64,
    /// Whether the response was truncated by an error, or because the client disconnected.
    pub cut: bool,
    pub db_micros: u64,
    pub total_micros: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityFigure {
    /// The start of the period, in seconds since 1970.
    pub at: u64,
    pub requests: u64,
    /// The number of responses with a status from 400 to 499.
    pub refused: u64,
    /// The number of responses with status 500 or more.
    pub failed: u64,
    pub total_micros: u64,
    pub slowest_micros: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { projects: Cache::new(PROJECTS_KEPT_COUNT) }
    }
}

impl Activity {
    pub fn record(&self, project: &str, id: &str, answered: Answered) {
        let known = self.projects.get(project).or_else(|| {
            let new = self.projects.get_or_insert_with(project, || Ok::<_, std::convert::Infallible>(Arc::default()));
            new.ok()
        });
        if let Some(known) = known {
            // The lists are valid after every step, so a poisoned lock can be used.
            known.lock().unwrap_or_else(PoisonError::into_inner).record(id, answered);
        }
    }

    pub fn requests(&self, project: &str) -> Vec<LastRequest> {
        self.read(project, |known| known.requests.iter().rev().cloned().collect())
    }

    /// Returns the figures of the kept periods. `now` is the time since 1970.
    pub fn figures(&self, project: &str, now: Duration) -> Vec<ActivityFigure> {
        let oldest = now.as_secs().saturating_sub(PERIOD_SECONDS * PERIODS_KEPT_COUNT as u64);
        self.read(project, |known| known.figures.iter().filter(|figure| figure.at >= oldest).copied().collect())
    }

    fn read<R: Default>(&self, project: &str, read: impl FnOnce(&Project) -> R) -> R {
        let known = self.projects.get(project);
        known.map(|known| read(&known.lock().unwrap_or_else(PoisonError::into_inner))).unwrap_or_default()
    }
}

impl Project {
    fn record(&mut self, id: &str, answered: Answered) {
        self.count(answered);
        let oldest = match self.requests.len() {
            0..REQUESTS_KEPT_COUNT => None,
            _ => self.requests.pop_front(),
        };
        let mut text = oldest.map(|request| request.id).unwrap_or_default();
        text.clear();
        text.push_str(id);
        self.requests.push_back(LastRequest { id: text, answered });
    }

    fn count(&mut self, request: Answered) {
        let seconds = request.at / 1_000;
        let at = seconds - seconds % PERIOD_SECONDS;
        // Requests that end at nearly the same time may be recorded in any order: a late one counts in the newest
        // period.
        if self.figures.back().is_none_or(|last| last.at < at) {
            if self.figures.len() == PERIODS_KEPT_COUNT {
                self.figures.pop_front();
            }
            self.figures.push_back(ActivityFigure { at, ..ActivityFigure::default() });
        }
        if let Some(figure) = self.figures.back_mut() {
            figure.requests += 1;
            figure.refused += u64::from((400..500).contains(&request.status));
            figure.failed += u64::from(request.status >= 500);
            figure.total_micros += request.total_micros;
            figure.slowest_micros = figure.slowest_micros.max(request.total_micros);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(at: u64, status: u16) -> Answered {
        Answered {
            at,
            method: "GET",
            route: "/api/v1/crud",
            status,
            code: None,
            key: None,
            rows: 0,
            bytes: 0,
            cut: false,
            db_micros: 1,
            total_micros: at % 1_000,
        }
    }

    #[test]
    fn the_last_requests_of_a_project_are_kept_and_no_others() {
        let activity = Activity::default();
        for number in 0..REQUESTS_KEPT_COUNT as u64 + 3 {
            activity.record("shop", &format!("request-{number}"), request(number, 200));
        }
        activity.record("blog", "other", request(1, 200));
        let kept = activity.requests("shop");
        assert_eq!(kept.len(), REQUESTS_KEPT_COUNT);
        assert_eq!((&*kept[0].id, &*kept[REQUESTS_KEPT_COUNT - 1].id), ("request-202", "request-3"));
        assert_eq!(activity.requests("blog").len(), 1);
        assert!(activity.requests("none").is_empty());
    }

    #[test]
    fn a_full_list_allocates_no_further_ids() {
        let mut project = Project::default();
        let id = "0".repeat(36);
        for _ in 0..REQUESTS_KEPT_COUNT {
            project.record(&id, request(0, 200));
        }
        let oldest = project.requests[0].id.as_ptr();
        project.record(&id, request(0, 200));
        assert_eq!(project.requests[REQUESTS_KEPT_COUNT - 1].id.as_ptr(), oldest);
    }

    #[test]
    fn requests_are_counted_by_period_and_old_periods_are_left_out() {
        let activity = Activity::default();
        for (at, status) in [(1_000_100, 200), (1_004_300, 404), (1_003_200, 429), (1_005_007, 503)] {
            activity.record("shop", "x", request(at, status));
        }
        let first =
            ActivityFigure { at: 1_000, requests: 3, refused: 2, failed: 0, total_micros: 600, slowest_micros: 300 };
        let second =
            ActivityFigure { at: 1_005, requests: 1, refused: 0, failed: 1, total_micros: 7, slowest_micros: 7 };
        let at = |seconds| activity.figures("shop", Duration::from_secs(seconds));
        assert_eq!(at(1_006), [first, second]);
        assert_eq!(at(1_304), [second]);
        assert_eq!(at(9_999), []);
        for period in 0..PERIODS_KEPT_COUNT as u64 * 2 {
            activity.record("shop", "x", request(2_000_000 + period * PERIOD_SECONDS * 1_000, 200));
        }
        assert_eq!(at(2_000).len(), PERIODS_KEPT_COUNT);
    }

    #[test]
    fn more_projects_than_are_kept_take_no_more_room() {
        let activity = Activity::default();
        for number in 0..PROJECTS_KEPT_COUNT * 3 {
            activity.record(&format!("p{number}"), "x", request(0, 200));
        }
        assert!(activity.projects.len() <= PROJECTS_KEPT_COUNT);
    }
}
