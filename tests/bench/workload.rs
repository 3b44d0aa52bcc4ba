//! What is measured. Knows nothing of how a contender is spoken to.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// One row by random id.
    W1,
    /// W1 by a single caller: latency without queues.
    Lone,
    /// Twenty rows, filtered and ordered along an index.
    W2,
    /// Insert one row.
    W3,
    /// All 100,000 rows in one answer.
    W4,
    /// An aggregate over all rows, as SQL: MariaDB's time alone.
    Sql,
    /// A million short rows in one answer: what matters is memory.
    Million,
}

impl Workload {
    pub(crate) const ALL: [Self; 7] = [
        Self::W1,
        Self::Lone,
        Self::W2,
        Self::W3,
        Self::W4,
        Self::Sql,
        Self::Million,
    ];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::W1 => "W1: one row by random id",
            Self::Lone => "W1 by a lone caller",
            Self::W2 => "W2: twenty rows, filtered and ordered",
            Self::W3 => "W3: insert one row",
            Self::W4 => "W4: 100,000 rows in one answer",
            Self::Sql => "SQL: aggregate over 100,000 rows",
            Self::Million => "A million short rows in one answer",
        }
    }

    /// Callers at once, when `asked` were asked for.
    pub(crate) fn callers(self, asked: u16) -> u16 {
        match self {
            Self::W1 | Self::W2 | Self::W3 => asked,
            Self::Sql => asked.min(8),
            Self::Lone | Self::W4 | Self::Million => 1,
        }
    }

    /// Rows in the answer, where that is fixed: an answer with another number is no answer.
    pub(crate) const fn rows(self) -> Option<u64> {
        match self {
            Self::W2 => Some(20),
            Self::W4 => Some(100_000),
            Self::Sql => Some(10),
            Self::Million => Some(1_000_000),
            Self::W1 | Self::Lone | Self::W3 => None,
        }
    }
}

/// The aggregate of [`Workload::Sql`].
pub(crate) const AGGREGATE: &str = "SELECT category, COUNT(*) AS posts, AVG(price) AS price, SUM(views) AS views \
                                    FROM posts GROUP BY category ORDER BY category";

/// A small generator of random ids (xorshift64): the choice must cost nothing next to the request.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Each caller gets its own seed, so that no two ask for the same rows in step.
    pub(crate) fn new(caller: u64) -> Self {
        Self((caller + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// A number from 1 to `n`.
    pub(crate) fn up_to(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n + 1
    }
}
