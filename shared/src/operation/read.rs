//! Reads: which records, which fields, in what order.

use super::filter::Condition;
use super::options::{self, Options};
use super::{RecordId, TablePath};
use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::ident::{FieldName, shown};
use crate::json::Value;
use crate::limits::{FIELDS_MAX_COUNT, ORDER_MAX_STEPS};

/// Records of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The table.
    pub table: TablePath,
    /// Which of its fields.
    pub select: Selection,
    /// Which of its records; `None` is all.
    pub filter: Option<Condition>,
    /// In what order; empty is MariaDB's own.
    pub order: Vec<Order>,
    /// How many at most; `None` is all.
    pub limit: Option<u64>,
    /// How many are skipped first.
    pub offset: u64,
    /// In what form.
    pub format: Format,
}

/// One record by its key.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadOne {
    /// The table.
    pub table: TablePath,
    /// The key's value.
    pub id: RecordId,
    /// Which of its fields.
    pub select: Selection,
    /// In what form.
    pub format: Format,
}

/// Which fields come out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Selection {
    /// All, in the table's order.
    #[default]
    All,
    /// These, in this order.
    Only(Vec<FieldName>),
    /// All but these.
    Except(Vec<FieldName>),
}

/// One step of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The field.
    pub field: FieldName,
    /// Its direction.
    pub direction: Direction,
}

/// A direction of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

const READ_OPTIONS: [&str; 8] = [
    "limit",
    "page",
    "offset",
    "order",
    "selectFields",
    "omitFields",
    "query",
    "searchOperator",
];

/// Promised by the interface, not built yet: refused by name, never ignored.
const LATER_OPTIONS: [&str; 7] = [
    "fullTextSearch",
    "join",
    "group",
    "distinct",
    "count",
    "after",
    "explain",
];

impl Read {
    pub(super) fn from_pairs(
        table: TablePath,
        format: Format,
        options: Options,
    ) -> Result<Self, Problem> {
        Draft::collect(options)?.into_read(table, format)
    }

    pub(super) fn from_body(
        table: TablePath,
        format: Format,
        body: &[u8],
    ) -> Result<Self, Problem> {
        Draft::collect(options::members(body)?)?.into_read(table, format)
    }
}

impl ReadOne {
    pub(super) fn from_pairs(
        table: TablePath,
        id: RecordId,
        format: Format,
        options: Options,
    ) -> Result<Self, Problem> {
        const ONE_OPTIONS: [&str; 2] = ["selectFields", "omitFields"];
        if let Some((name, _)) = options
            .iter()
            .find(|(name, _)| !ONE_OPTIONS.contains(&name.as_str()))
        {
            return Err(options::unknown(name, &ONE_OPTIONS));
        }
        Ok(Self {
            table,
            id,
            select: Draft::collect(options)?.selection()?,
            format,
        })
    }
}

/// Options by name, each still as it was spelled.
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
}

impl Draft {
    fn collect(options: Options) -> Result<Self, Problem> {
        let mut draft = Self::default();
        for (name, value) in options {
            let slot = match name.as_str() {
                "limit" => &mut draft.limit,
                "page" => &mut draft.page,
                "offset" => &mut draft.offset,
                "order" => &mut draft.order,
                "selectFields" => &mut draft.select,
                "omitFields" => &mut draft.omit,
                "query" => &mut draft.query,
                "searchOperator" => &mut draft.search_operator,
                later if LATER_OPTIONS.contains(&later) => return Err(not_yet(later)),
                unknown => return Err(options::unknown(unknown, &READ_OPTIONS)),
            };
            *slot = Some(value);
        }
        Ok(draft)
    }

    fn into_read(self, table: TablePath, format: Format) -> Result<Read, Problem> {
        let (limit, offset) = self.paging()?;
        let joiner = self
            .search_operator
            .as_ref()
            .map(|value| super::filter::joiner("searchOperator", value))
            .transpose()?;
        let filter = match &self.query {
            Some(query) => {
                super::filter::check_extent(query)?;
                Condition::from_query(query, joiner.unwrap_or_default(), &table.table)?
            }
            None if joiner.is_some() => {
                return Err(Problem::new(
                    ErrorCode::InvalidQueryOption,
                    "The option searchOperator needs query.",
                ));
            }
            None => None,
        };
        let order = self
            .order
            .as_ref()
            .map(orders)
            .transpose()?
            .unwrap_or_default();
        Ok(Read {
            select: self.selection()?,
            table,
            filter,
            order,
            limit,
            offset,
            format,
        })
    }

    fn paging(&self) -> Result<(Option<u64>, u64), Problem> {
        let number = |name: &str, value: &Option<Value>| {
            value
                .as_ref()
                .map(|value| options::whole_number(name, value))
                .transpose()
        };
        let (limit, page, offset) = (
            number("limit", &self.limit)?,
            number("page", &self.page)?,
            number("offset", &self.offset)?,
        );
        let invalid =
            |message: &'static str| Err(Problem::new(ErrorCode::InvalidQueryOption, message));
        match (limit, page, offset) {
            (_, Some(_), Some(_)) => invalid("The options page and offset exclude each other."),
            (None, Some(_), None) => invalid("The option page needs limit."),
            (_, Some(0), None) => invalid("The option page counts from 1."),
            (Some(limit), Some(page), None) => match limit.checked_mul(page - 1) {
                Some(offset) if i64::try_from(offset).is_ok() => Ok((Some(limit), offset)),
                _ => invalid("The option page lies beyond any table."),
            },
            (limit, None, offset) => Ok((limit, offset.unwrap_or(0))),
        }
    }

    fn selection(&self) -> Result<Selection, Problem> {
        match (&self.select, &self.omit) {
            (Some(_), Some(_)) => Err(Problem::new(
                ErrorCode::InvalidQueryOption,
                "The options selectFields and omitFields exclude each other.",
            )),
            (Some(select), None) => {
                refuse_field_objects(select)?;
                Ok(Selection::Only(options::field_names(
                    "selectFields",
                    select,
                )?))
            }
            (None, Some(omit)) => Ok(Selection::Except(options::field_names("omitFields", omit)?)),
            (None, None) => Ok(Selection::All),
        }
    }
}

fn refuse_field_objects(select: &Value) -> Result<(), Problem> {
    let Value::List(text) = select else {
        return Ok(());
    };
    match options::items("selectFields", text, FIELDS_MAX_COUNT)?
        .iter()
        .any(|item| matches!(item, Value::Object(_)))
    {
        true => Err(not_yet("selectFields with alias or aggregate")),
        false => Ok(()),
    }
}

fn not_yet(what: &str) -> Problem {
    Problem::new(
        ErrorCode::InvalidQueryOption,
        format!("The option {what} is not available yet."),
    )
}

/// One `{field, strategy}` or a list of them.
fn orders(value: &Value) -> Result<Vec<Order>, Problem> {
    match value {
        Value::Object(text) => Ok(vec![order(text)?]),
        Value::List(text) => {
            let items = options::items("order", text, ORDER_MAX_STEPS)?;
            if items.len() > ORDER_MAX_STEPS {
                return Err(Problem::new(
                    ErrorCode::InvalidQueryOption,
                    format!("The option order has more than {ORDER_MAX_STEPS} steps."),
                ));
            }
            items
                .iter()
                .map(|item| match item {
                    Value::Object(text) => order(text),
                    other => Err(wrong_order(other)),
                })
                .collect()
        }
        other => Err(wrong_order(other)),
    }
}

fn wrong_order(got: &Value) -> Problem {
    options::wrong(
        "order",
        "an object {field, strategy} or a list of them",
        got,
    )
}

fn order(text: &str) -> Result<Order, Problem> {
    let (mut field, mut direction) = (None, Direction::Ascending);
    for (name, value) in options::object("order", text)? {
        match (&*name, &value) {
            ("field", Value::Text(name)) => field = Some(FieldName::parse(name)?),
            ("strategy", Value::Text(word)) if word.eq_ignore_ascii_case("ASC") => {
                direction = Direction::Ascending;
            }
            ("strategy", Value::Text(word)) if word.eq_ignore_ascii_case("DESC") => {
                direction = Direction::Descending;
            }
            ("field", other) => return Err(options::wrong("order.field", "a field's name", other)),
            ("strategy", other) => {
                return Err(options::wrong("order.strategy", "ASC or DESC", other));
            }
            (other, _) => {
                return Err(Problem::new(
                    ErrorCode::InvalidQueryOption,
                    format!("The option order has no part {}.", shown(other)),
                )
                .with_hint("Use {\"field\": …, \"strategy\": \"ASC\" or \"DESC\"}."));
            }
        }
    }
    let field = field.ok_or_else(|| {
        Problem::new(
            ErrorCode::InvalidQueryOption,
            "The option order needs a field.",
        )
    })?;
    Ok(Order { field, direction })
}
