//! Parses reads of records: joined tables, fields, conditions, order and page.

pub mod include;
pub mod join;
pub mod order;
pub mod search;
pub mod select;

use super::field::FieldRef;
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
pub use select::Selection;

#[derive(Clone, Debug, PartialEq, Hash)]
#[non_exhaustive]
pub struct Read {
    pub table: TablePath,
    pub joins: Vec<Join>,
    pub includes: Vec<Include>,
    pub select: Selection,
    pub filter: Option<Condition>,
    pub search: Option<FullTextSearch>,
    pub group: Vec<FieldRef>,
    pub rows: Rows,
    /// The most significant first. If empty, the origin's planner may choose the order.
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
    /// The origin may return fewer.
    pub limit: Option<u64>,
    pub offset: u64,
    /// The `next` of the previous page.
    pub after: Option<Box<str>>,
}

const READ_OPTIONS: [&str; 16] = [
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

#[derive(Default)]
struct Draft {
    limit: Option<Value>,
    page: Option<Value>,
    offset: Option<Value>,
    order: Option<Value>,
    select: Option<Value>,
    omit: Option<Value>,
    query: Option<Value>,
    search_operator: Option<Value>,
    search: Option<Value>,
    join: Option<Value>,
    include: Option<Value>,
    group: Option<Value>,
    distinct: Option<Value>,
    count: Option<Value>,
    after: Option<Value>,
    explain: Option<Value>,
}

impl Draft {
    fn collect(options: Options, known: &[&str]) -> Result<Self, Problem> {
        let (mut draft, mut faults) = (Self::default(), Faults::default());
        for (name, value) in options {
            let full = options::full_name(&name);
            let slot = match full {
                _ if !known.contains(&full) => {
                    faults.add(options::unknown(&name, known));
                    continue;
                }
                "limit" => &mut draft.limit,
                "page" => &mut draft.page,
                "offset" => &mut draft.offset,
                "order" => &mut draft.order,
                "selectFields" => &mut draft.select,
                "omitFields" => &mut draft.omit,
                "query" => &mut draft.query,
                "searchOperator" => &mut draft.search_operator,
                "fullTextSearch" => &mut draft.search,
                "join" => &mut draft.join,
                "include" => &mut draft.include,
                "group" => &mut draft.group,
                "distinct" => &mut draft.distinct,
                "count" => &mut draft.count,
                "after" => &mut draft.after,
                "explain" => &mut draft.explain,
                unknown => return Err(options::unknown(unknown, known)),
            };
            options::put(slot, "", &name, value)?;
        }
        faults.end()?;
        Ok(draft)
    }

    fn into_read(self, table: TablePath, format: Format) -> Result<Read, Problem> {
        let group = match &self.group {
            Some(value) => options::fields("group", value)?,
            None => Vec::new(),
        };
        let order = match &self.order {
            Some(value) => order::orders(value)?,
            None => Vec::new(),
        };
        let rows = match flag("distinct", self.distinct.as_ref())? {
            true => Rows::Distinct,
            false => Rows::All,
        };
        let count = match flag("count", self.count.as_ref())? {
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
            search: self.search.as_ref().map(search::search).transpose()?,
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
        let joiner =
            self.search_operator.as_ref().map(|value| super::filter::joiner("searchOperator", value)).transpose()?;
        match &self.query {
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
        if after.is_some() && (self.page.is_some() || self.offset.is_some()) {
            return Err(options::invalid("The option after excludes page and offset."));
        }
        let (page, offset) = (self.page.as_ref(), self.offset.as_ref());
        let Span { limit, offset } = Span::parse(self.limit.as_ref(), page, offset)?;
        Ok(Window { limit, offset, after })
    }

    /// A loop over pages sends `null` for the first page.
    fn after(&self) -> Result<Option<Box<str>>, Problem> {
        match &self.after {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(token)) if token.len() <= PAGE_TOKEN_MAX_BYTES && !token.is_empty() => {
                Ok(Some(token.clone()))
            }
            Some(other) => Err(options::wrong("after", "the next of the page before", other)),
        }
    }

    fn joins(&self) -> Result<Vec<Join>, Problem> {
        match &self.join {
            Some(value) => join::joins(value),
            None => Ok(Vec::new()),
        }
    }

    fn includes(&self, format: Format) -> Result<Vec<Include>, Problem> {
        let Some(value) = &self.include else {
            return Ok(Vec::new());
        };
        if format == Format::Csv {
            return Err(options::invalid("The option include has no place in CSV, whose rows hold no records.")
                .with_hint("Ask for JSON or application/x-ndjson, or use join."));
        }
        for (name, is_given) in [
            ("distinct", flag("distinct", self.distinct.as_ref())?),
            ("group", self.group.is_some()),
            ("explain", flag("explain", self.explain.as_ref())?),
        ] {
            if is_given {
                return Err(options::invalid(format!("The option include does not go with {name}.")));
            }
        }
        include::includes(value)
    }

    fn selection(&self) -> Result<Selection, Problem> {
        select::selection(self.select.as_ref(), self.omit.as_ref())
    }

    fn answer(&self) -> Result<ReadAnswer, Problem> {
        Ok(match flag("explain", self.explain.as_ref())? {
            true => ReadAnswer::Explanation,
            false => ReadAnswer::Records,
        })
    }
}

fn flag(name: &str, value: Option<&Value>) -> Result<bool, Problem> {
    value.map_or(Ok(false), |value| options::flag(name, value))
}

#[cfg(test)]
mod tests;
