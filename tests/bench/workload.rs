//! The workloads. Knows nothing of how a contender is called.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    W1,
    /// W1 with a single caller: latency without queueing.
    Lone,
    W2,
    Stories,
    /// Reads the twenty latest stories, each with its author and its five latest replies.
    Related,
    W3,
    Batch,
    /// Nine of ten requests are W1, the tenth is W3.
    Mixed,
    /// Reads all 100,000 rows in one answer.
    W4,
    /// Runs an aggregate over all rows as SQL: nearly all of the time is MariaDB's.
    Sql,
    Million,
    /// W1 with a thousand callers at once, each with its own connection.
    Storm,
}

/// Rows of one request of [`Workload::Batch`].
pub(crate) const BATCH_ROWS: u64 = 1_000;

/// Callers of [`Workload::Storm`].
pub(crate) const STORM_CALLERS: u16 = 1_000;

impl Workload {
    /// All workloads in the order of measurement: workloads that measure memory before workloads that use much of it.
    pub(crate) const ALL: [Self; 12] = [
        Self::W1,
        Self::Lone,
        Self::W4,
        Self::Million,
        Self::Storm,
        Self::W2,
        Self::Stories,
        Self::Related,
        Self::W3,
        Self::Mixed,
        Self::Batch,
        Self::Sql,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::W1 => "W1: one row by random id",
            Self::Lone => "W1 by a lone caller",
            Self::W2 => "W2: twenty rows, filtered and ordered",
            Self::Stories => "Twenty stories",
            Self::Related => "Twenty stories with author and five latest replies",
            Self::W3 => "W3: insert one row",
            Self::Batch => "Insert 1,000 rows by one request",
            Self::Mixed => "Mixed: nine W1, one W3",
            Self::W4 => "W4: 100,000 rows in one answer",
            Self::Sql => "SQL: aggregate over 100,000 rows",
            Self::Million => "A million short rows in one answer",
            Self::Storm => "Storm: W1 by 1,000 callers",
        }
    }

    /// Returns the number of concurrent callers if the arguments ask for `asked`.
    pub(crate) fn callers(self, asked: u16) -> u16 {
        match self {
            Self::W1 | Self::W2 | Self::Stories | Self::Related | Self::W3 | Self::Mixed => asked,
            Self::Storm => STORM_CALLERS,
            Self::Sql => asked.min(8),
            Self::Batch => asked.min(4),
            Self::Lone | Self::W4 | Self::Million => 1,
        }
    }

    /// Returns the number of rows that a right answer has; `None` if it varies.
    pub(crate) const fn rows(self) -> Option<u64> {
        match self {
            Self::W2 | Self::Stories | Self::Related => Some(20),
            Self::Batch => Some(BATCH_ROWS),
            Self::W4 => Some(100_000),
            Self::Sql => Some(10),
            Self::Million => Some(1_000_000),
            Self::W1 | Self::Lone | Self::W3 | Self::Mixed | Self::Storm => None,
        }
    }

    pub(crate) fn next(self, random: &mut Random) -> Self {
        match self {
            Self::Mixed if random.up_to(10) == 10 => Self::W3,
            Self::Mixed | Self::Storm => Self::W1,
            other => other,
        }
    }
}

/// The aggregate of [`Workload::Sql`].
pub(crate) const AGGREGATE: &str = "SELECT category, COUNT(*) AS posts, AVG(price) AS price, SUM(views) AS views \
                                    FROM posts GROUP BY category ORDER BY category";

/// A fast generator of random ids (xorshift64), whose cost is negligible beside a request.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Each caller has its own seed, so that callers don't read the same rows.
    pub(crate) fn new(caller: u64) -> Self {
        Self((caller + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// Returns a number from 1 to `n`.
    pub(crate) fn up_to(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n + 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Random, Workload};

    #[test]
    fn a_tenth_of_a_mixed_load_inserts() {
        let mut random = Random::new(7);
        let inserts = (0..100_000).filter(|_| Workload::Mixed.next(&mut random) == Workload::W3).count();
        assert!((9_700..10_300).contains(&inserts), "{inserts}");
    }
}
