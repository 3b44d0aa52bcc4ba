//! Limits how many requests wait for an origin at the same time, because each takes a connection and some 100 KB of the
//! runtime's memory.

use shared::error::{ErrorCode, Problem};
use shared::limits::{EDGE_REQUESTS_MAX_COUNT, EDGE_REQUESTS_PER_PROJECT_MAX_COUNT};
use std::cell::RefCell;

/// Milliseconds after which a request is no longer counted. The runtime can abandon a request without dropping its
/// future: without this limit, it would count for ever. A side effect is that longer uploads are no longer counted.
const COUNTED_MAX_MS: u64 = 120_000;

/// The requests of this isolate that wait for an origin.
#[derive(Debug, Default)]
pub struct InFlight {
    entries: RefCell<Vec<Entry>>,
}

/// A counted request, or an unused entry.
#[derive(Debug)]
struct Entry {
    /// In ms since 1970; 0 if the entry is unused.
    started: u64,
    project: Option<Box<str>>,
}

/// A counted request. Dropping the slot ends the count.
#[derive(Debug)]
pub struct Slot<'a> {
    in_flight: &'a InFlight,
    index: usize,
    started: u64,
}

impl InFlight {
    /// Counts a request that starts at `now`, in ms since 1970. `project` is `None` if the edge can't tell it: all such
    /// requests together have one project's share.
    ///
    /// # Errors
    /// `rate_limited` beyond the project's share; `overloaded` beyond the limit of all projects.
    pub fn begin(&self, project: Option<&str>, now: u64) -> Result<Slot<'_>, Problem> {
        let mut entries = self.entries.borrow_mut();
        let (mut of_all, mut of_project, mut unused) = (0, 0, entries.len());
        for (index, entry) in entries.iter().enumerate() {
            if entry.started + COUNTED_MAX_MS <= now {
                unused = index;
                continue;
            }
            of_all += 1;
            of_project += usize::from(entry.project.as_deref() == project);
        }
        if of_project >= EDGE_REQUESTS_PER_PROJECT_MAX_COUNT {
            return Err(refused(ErrorCode::RateLimited, EDGE_REQUESTS_PER_PROJECT_MAX_COUNT, "one project"));
        }
        if of_all >= EDGE_REQUESTS_MAX_COUNT {
            return Err(refused(ErrorCode::Overloaded, EDGE_REQUESTS_MAX_COUNT, "all projects together"));
        }
        let entry = Entry { started: now, project: project.map(Into::into) };
        match entries.get_mut(unused) {
            Some(reused) => *reused = entry,
            None => entries.push(entry),
        }
        Ok(Slot { in_flight: self, index: unused, started: now })
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.in_flight.entries.borrow_mut().get_mut(self.index)
            && entry.started == self.started
        {
            entry.started = 0;
        }
    }
}

fn refused(code: ErrorCode, limit: usize, whose: &str) -> Problem {
    Problem::new(code, format!("This edge lets at most {limit} requests of {whose} wait for an origin."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;

    impl InFlight {
        fn len_at(&self, now: u64) -> usize {
            self.entries.borrow().iter().filter(|entry| entry.started + COUNTED_MAX_MS > now).count()
        }
    }

    fn code(begun: Result<Slot<'_>, Problem>) -> ErrorCode {
        begun.map(drop).unwrap_err().code()
    }

    #[test]
    fn a_project_has_its_share_and_all_projects_have_the_limit() {
        let in_flight = InFlight::default();
        let share = || 0..EDGE_REQUESTS_PER_PROJECT_MAX_COUNT;
        let mut of_shop: Vec<_> = share().map(|_| in_flight.begin(Some("shop"), NOW).unwrap()).collect();
        assert_eq!(code(in_flight.begin(Some("shop"), NOW)), ErrorCode::RateLimited);
        let of_nobody: Vec<_> = share().map(|_| in_flight.begin(None, NOW).unwrap()).collect();
        assert_eq!(code(in_flight.begin(None, NOW)), ErrorCode::RateLimited);
        assert_eq!(code(in_flight.begin(Some("blog"), NOW)), ErrorCode::Overloaded);
        of_shop.swap_remove(7);
        let of_blog = in_flight.begin(Some("blog"), NOW).unwrap();
        assert_eq!(code(in_flight.begin(Some("shop"), NOW)), ErrorCode::Overloaded);
        drop(of_blog);
        assert!(in_flight.begin(Some("shop"), NOW).is_ok());
        drop((of_shop, of_nobody));
        assert_eq!(in_flight.len_at(NOW), 0);
    }

    #[test]
    fn a_request_that_never_ends_is_not_counted_for_ever() {
        let in_flight = InFlight::default();
        let lost: Vec<_> =
            (0..EDGE_REQUESTS_PER_PROJECT_MAX_COUNT).map(|_| in_flight.begin(None, NOW).unwrap()).collect();
        assert_eq!(code(in_flight.begin(None, NOW + COUNTED_MAX_MS - 1)), ErrorCode::RateLimited);
        let next = in_flight.begin(None, NOW + COUNTED_MAX_MS).unwrap();
        drop(lost);
        assert_eq!(in_flight.len_at(NOW + COUNTED_MAX_MS), 1);
        drop(next);
        assert_eq!(in_flight.len_at(NOW + COUNTED_MAX_MS), 0);
    }
}
