//! The fills that an isolate has in flight, and the files that were purged lately.

use shared::media::KeptName;
use std::collections::VecDeque;
use std::time::Duration;

/// Files that an isolate fetches for the cache at once: each is a connection, of which a request has six on Cloudflare.
const FILLS_MAX_COUNT: usize = 4;

/// How long a fill may take. One that says nothing of its end counts as ended then.
pub const FILL_TIMEOUT: Duration = Duration::from_secs(150);

/// Forgotten names that are remembered: 64 kB at most. Older fills than the oldest of them count as overtaken.
const FORGOTTEN_MAX_COUNT: usize = 1_024;

/// Seconds for which a purged file is not cached again: another origin than the one that deleted it may serve it for two
/// seconds more.
const GRACE_SECONDS: u64 = 5;

/// An isolate's fills.
#[derive(Debug, Default)]
pub struct Purged {
    /// Places, and until when, in seconds since 1970.
    fills: Vec<(String, u64)>,
    /// The last names that were purged, and when, the youngest last.
    forgotten: VecDeque<(KeptName, u64)>,
    /// How many were purged before them.
    dropped: u64,
}

impl Purged {
    /// Whether a cache_key may be filled by a request of its own: nobody does it already, and there are not too many.
    pub fn begin(&mut self, cache_key: &str, now: u64) -> bool {
        self.fills.retain(|(_, until)| now < *until);
        let is_busy = self.fills.iter().any(|(known, _)| known == cache_key);
        if is_busy || self.fills.len() >= FILLS_MAX_COUNT {
            return false;
        }
        self.fills.push((cache_key.to_owned(), now + FILL_TIMEOUT.as_secs()));
        true
    }

    /// It was, or it failed.
    pub fn end(&mut self, cache_key: &str) {
        self.fills.retain(|(known, _)| known != cache_key);
    }

    /// A moment, to ask [`Purged::was_purged`] about later.
    #[must_use]
    pub fn moment(&self) -> u64 {
        self.dropped + self.forgotten.len() as u64
    }

    /// Files of that name are others now.
    pub fn forget(&mut self, name: KeptName, now: u64) {
        if self.forgotten.len() == FORGOTTEN_MAX_COUNT {
            self.forgotten.pop_front();
            self.dropped += 1;
        }
        self.forgotten.push_back((name, now));
    }

    /// Whether what was asked of the origin at a moment may be older than the file is now.
    #[must_use]
    pub fn was_purged(&self, name: &KeptName, since: u64, now: u64) -> bool {
        let Some(known) = since.checked_sub(self.dropped) else {
            return true;
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let mut forgotten = self.forgotten.iter().enumerate();
        forgotten.any(|(index, (other, at))| other == name && (index >= known || now < at + GRACE_SECONDS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::media::FilePath;

    fn name(n: usize) -> KeptName {
        KeptName::of(&FilePath::parse(&format!("/media/default/{n}")).unwrap())
    }

    #[test]
    fn a_place_is_filled_once_at_a_time_and_few_are_at_all() {
        let mut desk = Purged::default();
        assert!(desk.begin("a", 0));
        assert!(!desk.begin("a", 1));
        desk.end("a");
        assert!(["a", "b", "c", "d"].iter().all(|cache_key| desk.begin(cache_key, 2)));
        assert!(!desk.begin("e", 3));
        assert!(desk.begin("e", 2 + FILL_TIMEOUT.as_secs()));
    }

    #[test]
    fn what_was_forgotten_since_a_fill_began_is_known() {
        const LATER: u64 = 100;
        let mut desk = Purged::default();
        desk.forget(name(1), 0);
        let began = desk.moment();
        assert!(!desk.was_purged(&name(1), began, LATER));
        desk.forget(name(2), 0);
        assert!(desk.was_purged(&name(2), began, LATER));
        assert!(!desk.was_purged(&name(1), began, LATER));
        assert!(!desk.was_purged(&name(2), desk.moment(), LATER));
    }

    #[test]
    fn a_file_is_not_kept_right_after_it_was_forgotten() {
        let mut desk = Purged::default();
        desk.forget(name(1), 10);
        let began = desk.moment();
        assert!(desk.was_purged(&name(1), began, 14));
        assert!(!desk.was_purged(&name(1), began, 15));
    }

    #[test]
    fn a_fill_that_began_before_all_that_is_remembered_counts_as_overtaken() {
        const LATER: u64 = 100;
        let mut desk = Purged::default();
        let began = desk.moment();
        for n in 0..FORGOTTEN_MAX_COUNT {
            desk.forget(name(n), 0);
        }
        assert!(!desk.was_purged(&name(5_000), began, LATER));
        desk.forget(name(4_000), 0);
        assert!(desk.was_purged(&name(5_000), began, LATER));
        assert!(desk.was_purged(&name(4_000), desk.moment() - 1, LATER));
    }
}
