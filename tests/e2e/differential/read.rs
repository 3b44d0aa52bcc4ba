//! The model of a read, which `spell` writes as a request and `evaluate` evaluates. Knows no encoding and no answer.

use super::cell::Cell;
use super::world::{Column, Table, World};
use serde_json::Value;

#[derive(Clone)]
pub(super) struct Read {
    pub(super) root: usize,
    pub(super) joins: Vec<Join>,
    pub(super) fields: Fields,
    pub(super) filter: Vec<Condition>,
    /// `searchOperator`; `Some(true)` is OR.
    pub(super) either: Option<bool>,
    pub(super) order: Vec<Order>,
    pub(super) group: Vec<Place>,
    pub(super) distinct: bool,
    pub(super) count: bool,
    pub(super) window: Window,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) limit: Option<usize>,
    pub(super) offset: Option<usize>,
    pub(super) page: Option<usize>,
}

/// A column of the root table (`at` 0) or of join number `at`, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) column: usize,
}

#[derive(Clone)]
pub(super) enum Fields {
    All,
    Omit(Vec<usize>),
    Picks(Vec<Pick>),
}

#[derive(Clone)]
pub(super) struct Pick {
    /// A field of the list's own table. Only an aggregating read may name joined tables' fields in the root's list.
    pub(super) place: Place,
    pub(super) alias: Option<String>,
    pub(super) aggregate: Option<Aggregate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Count,
    /// COUNT of records, not of a field's values.
    CountAll,
    CountDistinct,
    Sum,
    Avg,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JoinKind {
    Inner,
    Left,
    Right,
}

#[derive(Clone)]
pub(super) struct Join {
    pub(super) table: usize,
    pub(super) alias: Option<String>,
    pub(super) kind: JoinKind,
    /// How the join's type is written; `None` leaves out the default.
    pub(super) word: Option<&'static str>,
    pub(super) on: Vec<Match>,
    /// `operator` between several matches; `Some(true)` is OR.
    pub(super) either: Option<bool>,
    pub(super) fields: Fields,
    pub(super) nest: Option<bool>,
}

#[derive(Clone)]
pub(super) struct Match {
    pub(super) source: Place,
    pub(super) target: Target,
}

#[derive(Clone)]
pub(super) enum Target {
    Field(Place),
    Literal(Asked),
}

#[derive(Clone)]
pub(super) enum Condition {
    Leaf(Leaf),
    Group { members: Vec<Condition>, either: Option<bool>, not: Option<bool> },
}

#[derive(Clone)]
pub(super) struct Leaf {
    pub(super) place: Place,
    pub(super) op: Op,
    /// How the operator is written; `None` leaves out the default.
    pub(super) word: Option<&'static str>,
    pub(super) operand: Operand,
    pub(super) not: Option<bool>,
    /// `operator` between the values of a list; `Some(true)` is AND.
    pub(super) every: Option<bool>,
    pub(super) naming: Naming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    Plain,
    Apart,
    Labelled,
}

#[derive(Clone)]
pub(super) enum Operand {
    None,
    One(Asked),
    List(Vec<Asked>),
}

#[derive(Clone)]
pub(super) struct Asked {
    pub(super) cell: Cell,
    pub(super) json: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Same,
    In,
    NotIn,
    Between,
    NotBetween,
    IsNull,
    IsNotNull,
    Like,
    NotLike,
    Regexp,
    NotRegexp,
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Clone)]
pub(super) struct Order {
    pub(super) by: By,
    /// How the direction is written; `None` leaves it out, which is ascending.
    pub(super) strategy: Option<&'static str>,
    pub(super) naming: Naming,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) enum By {
    Field(Place),
    Alias(String),
}

impl Order {
    pub(super) fn descends(&self) -> bool {
        self.strategy.is_some_and(|word| word.eq_ignore_ascii_case("DESC"))
    }
}

impl Window {
    /// Returns the number of rows before the window.
    pub(super) fn start(self) -> usize {
        let pages = self.page.map_or(0, |page| page - 1);
        self.offset.unwrap_or(pages * self.limit.unwrap_or(0))
    }
}

impl Read {
    pub(super) fn table<'w>(&self, world: &'w World, at: usize) -> &'w Table {
        let table = match at {
            0 => self.root,
            joined => self.joins[joined - 1].table,
        };
        &world.tables[table]
    }

    pub(super) fn column<'w>(&self, world: &'w World, place: Place) -> &'w Column {
        &self.table(world, place.at).columns[place.column]
    }

    pub(super) fn name<'a>(&'a self, world: &'a World, at: usize) -> &'a str {
        let alias = at.checked_sub(1).and_then(|join| self.joins[join].alias.as_deref());
        alias.unwrap_or(self.table(world, at).name)
    }

    pub(super) fn is_aggregated(&self) -> bool {
        let aggregates = |fields: &Fields| match fields {
            Fields::Picks(picks) => picks.iter().any(|pick| pick.aggregate.is_some()),
            _ => false,
        };
        !self.group.is_empty() || aggregates(&self.fields) || self.joins.iter().any(|join| aggregates(&join.fields))
    }
}
