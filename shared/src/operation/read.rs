//! Parses reads of records: joined tables, fields, conditions, order and page.

pub mod arithmetic;
pub mod include;
pub mod join;
pub mod order;
pub mod search;
pub mod select;

use super::filter::Condition;
use super::options::{self, Options};
use super::window::Span;
use super::{RecordId, TablePath};
use crate::error::{Faults, Problem};
use crate::format::Format;
use crate::json::Value;
use crate::limits::PAGE_TOKEN_MAX_BYTES;

pub use include::Include;
pub use join::Join;
pub use order::{Direction, Order};
pub use search::FullTextSearch;
pub use select::{Selected, Selection};

#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct Read {
    pub table: TablePath,
    pub joins: Vec<Join>,
    pub includes: Vec<Include>,
    pub select: Selection,
    pub filter: Option<Condition>,
    pub search: Option<FullTextSearch>,
    /// Fields and parts of dates.
    pub group: Vec<Selected>,
    pub rows: Rows,
    /// The fields to sort by, the most significant first. If empty, the origin's planner may choose the order.
    pub order: Vec<Order>,
    pub window: Window,
    pub count: Count,
    pub answer: ReadAnswer,
    pub format: Format,
}

#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct ReadOne {
    pub table: TablePath,
    pub id: RecordId,
    pub joins: Vec<Join>,
    pub includes: Vec<Include>,
    pub select: Selection,
    pub answer: ReadAnswer,
    pub format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rows {
    All,
    Distinct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Count {
    None,
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadAnswer {
    Records,
    Explanation,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Window {
    /// Maximum number of records. The origin may return fewer.
    pub limit: Option<u64>,
    pub offset: u64,
    /// The cursor `next` of the previous page.
    pub after: Option<Box<str>>,
}

pub(super) const READ_OPTIONS: [&str; 16] = [
    "limit",
    "page",
    "offset",
    "order",
    "selectFields",
    "omitFields",
    "query",
    "searchOperator",
    "fullTextSearch",
    "join",
    "include",
    "group",
    "distinct",
    "count",
    "after",
    "explain",
];

const ONE_OPTIONS: [&str; 5] = ["selectFields", "omitFields", "join", "include", "explain"];

impl Read {
    pub(super) fn from_pairs(table: TablePath, format: Format, options: Options) -> Result<Self, Problem> {
        Draft::collect(options, &READ_OPTIONS)?.into_read(table, format)
    }

    pub(super) fn from_body(table: TablePath, format: Format, body: &[u8]) -> Result<Self, Problem> {
        Draft::collect(options::members(body)?, &READ_OPTIONS)?.into_read(table, format)
    }
}

impl ReadOne {
    pub(super) fn from_pairs(
        table: TablePath,
        id: RecordId,
        format: Format,
        options: Options,
    ) -> Result<Self, Problem> {
        let draft = Draft::collect(options, &ONE_OPTIONS)?;
        Ok(Self {
            table,
            id,
            joins: draft.joins()?,
            includes: draft.includes(format)?,
            select: draft.selection()?,
            answer: draft.answer()?,
            format,
        })
    }
}

/// The options of a read by their full names.
#[derive(Default)]
pub(super) struct Draft(Vec<(&'static str, Value)>);

impl Draft {
    pub(super) fn collect(options: Options, known: &'static [&'static str]) -> Result<Self, Problem> {
        let (mut draft, mut faults) = (Self::default(), Faults::default());
        for (name, value) in options {
            let full = options::full_name(&name);
            match known.iter().find(|known| **known == full) {
                None => {
                    faults.add(|| options::unknown(&name, known));
                    if faults.is_full() {
                        break;
                    }
                }
                Some(full) if draft.get(full).is_some() => return Err(options::given_twice("", full)),
                Some(full) => draft.0.push((full, value)),
            }
        }
        faults.end()?;
        Ok(draft)
    }

    /// Moves the options of these names into a draft of their own.
    pub(super) fn take(&mut self, names: &[&str]) -> Self {
        let (taken, kept) = std::mem::take(&mut self.0).into_iter().partition(|(name, _)| names.contains(name));
        self.0 = kept;
        Self(taken)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn into_read(self, table: TablePath, format: Format) -> Result<Read, Problem> {
        let group = self.get("group").map(select::group).transpose()?.unwrap_or_default();
        let order = self.get("order").map(order::orders).transpose()?.unwrap_or_default();
        let rows = match self.flag("distinct")? {
            true => Rows::Distinct,
            false => Rows::All,
        };
        let count = match self.flag("count")? {
            true if !format.has_trailer() => {
                return Err(options::invalid("The option count has no place in CSV or NDJSON.")
                    .with_hint("Leave the header Accept out, or ask for the count in a separate request for JSON."));
            }
            true => Count::Exact,
            false => Count::None,
        };
        Ok(Read {
            joins: self.joins()?,
            includes: self.includes(format)?,
            select: self.selection()?,
            filter: self.filter()?,
            search: self.get("fullTextSearch").map(search::search).transpose()?,
            window: self.window()?,
            answer: self.answer()?,
            table,
            group,
            rows,
            order,
            count,
            format,
        })
    }

    fn filter(&self) -> Result<Option<Condition>, Problem> {
        let joiner = self.get("searchOperator");
        let joiner = joiner.map(|value| super::filter::joiner("searchOperator", value)).transpose()?;
        match self.get("query") {
            Some(query) => {
                super::filter::check_extent(query)?;
                Condition::from_query(query, joiner.unwrap_or_default())
            }
            None if joiner.is_some() => Err(options::invalid("The option searchOperator needs query.")),
            None => Ok(None),
        }
    }

    fn window(&self) -> Result<Window, Problem> {
        let after = self.after()?;
        let (page, offset) = (self.get("page"), self.get("offset"));
        if after.is_some() && (page.is_some() || offset.is_some()) {
            return Err(options::invalid("The option after excludes page and offset."));
        }
        let Span { limit, offset } = Span::parse(self.get("limit"), page, offset)?;
        Ok(Window { limit, offset, after })
    }

    /// Returns the option `after`. A `null` counts as missing, since a loop over pages sends it for the first page.
    fn after(&self) -> Result<Option<Box<str>>, Problem> {
        match self.get("after") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(token)) if token.len() <= PAGE_TOKEN_MAX_BYTES && !token.is_empty() => {
                Ok(Some(token.clone()))
            }
            Some(other) => Err(options::wrong("after", "the next of the page before", other)),
        }
    }

    fn joins(&self) -> Result<Vec<Join>, Problem> {
        Ok(self.get("join").map(join::joins).transpose()?.unwrap_or_default())
    }

    fn includes(&self, format: Format) -> Result<Vec<Include>, Problem> {
        let Some(value) = self.get("include") else {
            return Ok(Vec::new());
        };
        if format == Format::Csv {
            return Err(options::invalid("The option include has no place in CSV, whose rows hold no records.")
                .with_hint("Ask for JSON or application/x-ndjson, or use join."));
        }
        for (name, is_given) in [
            ("distinct", self.flag("distinct")?),
            ("group", self.get("group").is_some()),
            ("explain", self.flag("explain")?),
        ] {
            if is_given {
                return Err(options::invalid(format!("The option include does not go with {name}.")));
            }
        }
        include::includes(value)
    }

    fn selection(&self) -> Result<Selection, Problem> {
        select::selection(self.get("selectFields"), self.get("omitFields"))
    }

    fn answer(&self) -> Result<ReadAnswer, Problem> {
        Ok(match self.flag("explain")? {
            true => ReadAnswer::Explanation,
            false => ReadAnswer::Records,
        })
    }

    fn flag(&self, name: &str) -> Result<bool, Problem> {
        self.get(name).map_or(Ok(false), |value| options::flag(name, value))
    }
}

#[cfg(test)]
mod tests;
