//! Parses the options `selectFields`, `omitFields` and `group`: the fields and aggregates to return, and their names.

use super::arithmetic::Arithmetic;
use super::order::of_table;
use crate::error::{Problem, nearest};
use crate::fingerprint::unordered;
use crate::ident::{FieldName, TableName, shown};
use crate::json::Value;
use crate::limits::EXPRESSIONS_MAX_COUNT;
use crate::operation::field::FieldRef;
use crate::operation::options;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Selection {
    #[default]
    All,
    Only(Vec<Selected>),
    Except(Vec<FieldRef>),
}

/// The order of omitted fields makes no difference.
impl Hash for Selection {
    fn hash<H: Hasher>(&self, state: &mut H) {
        discriminant(self).hash(state);
        match self {
            Self::All => {}
            Self::Only(fields) => fields.hash(state),
            Self::Except(fields) => unordered(fields, state),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Selected {
    pub what: What,
    pub alias: Option<FieldName>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    Field(FieldRef),
    Part(DatePart, FieldRef),
    Aggregate(Aggregate, FieldRef),
    /// An aggregate other than a count.
    Computed(Aggregate, Arithmetic),
    CountAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatePart {
    Year,
    Month,
    Day,
}

pub const DATE_PARTS: [(&str, DatePart); 3] =
    [("year", DatePart::Year), ("month", DatePart::Month), ("day", DatePart::Day)];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Aggregate {
    Count,
    CountDistinct,
    Sum,
    Avg,
    Min,
    Max,
}

pub const AGGREGATES: [(&str, Aggregate); 6] = [
    ("COUNT", Aggregate::Count),
    ("COUNT_DISTINCT", Aggregate::CountDistinct),
    ("SUM", Aggregate::Sum),
    ("AVG", Aggregate::Avg),
    ("MIN", Aggregate::Min),
    ("MAX", Aggregate::Max),
];

const PARTS: [&str; 6] = ["fieldName", "tableName", "part", "alias", "aggregate", "expression"];
/// How many of the parts an item of `group` may have.
const GROUP_PARTS: usize = 3;
/// With this `fieldName`, `COUNT` counts records.
const EVERYTHING: &str = "*";

pub(super) fn selection(select: Option<&Value>, omit: Option<&Value>) -> Result<Selection, Problem> {
    match (select, omit) {
        (Some(_), Some(_)) => Err(options::invalid("The options selectFields and omitFields exclude each other.")),
        (Some(select), None) => selected_fields(select).map(Selection::Only),
        (None, Some(omit)) => options::fields("omitFields", omit).map(Selection::Except),
        (None, None) => Ok(Selection::All),
    }
}

fn selected_fields(value: &Value) -> Result<Vec<Selected>, Problem> {
    let chosen = items("selectFields", &PARTS, value)?;
    if chosen.iter().filter(|one| matches!(one.what, What::Computed(..))).count() > EXPRESSIONS_MAX_COUNT {
        return Err(options::invalid(format!(
            "The option selectFields has more than {EXPRESSIONS_MAX_COUNT} expressions."
        )));
    }
    Ok(chosen)
}

/// Returns fields and parts of dates, without aliases.
pub(super) fn group(value: &Value) -> Result<Vec<Selected>, Problem> {
    items("group", &PARTS[..GROUP_PARTS], value)
}

fn items(option: &str, known: &[&str], value: &Value) -> Result<Vec<Selected>, Problem> {
    const EXPECTED: &str = "a list of field names or objects with fieldName";
    let mut chosen: Vec<Selected> = Vec::new();
    for part in options::parts(option, value, EXPECTED)? {
        let one = match &part {
            Value::Object(text) => selected(option, known, text)?,
            other => Selected { what: What::Field(options::field(option, EXPECTED, other)?), alias: None },
        };
        chosen.push(one);
    }
    match options::repeated_item(&chosen) {
        Some(one) => {
            Err(options::invalid(format!("The option {option} names {} more than once.", shown(&one.describe()))))
        }
        None => Ok(chosen),
    }
}

impl What {
    pub(in crate::operation) fn field(&self) -> Option<&FieldRef> {
        match self {
            Self::Field(field) | Self::Part(_, field) | Self::Aggregate(_, field) => Some(field),
            Self::Computed(..) | Self::CountAll => None,
        }
    }
}

impl Selected {
    fn describe(&self) -> String {
        self.what.field().map_or_else(|| EVERYTHING.to_owned(), ToString::to_string)
    }
}

/// Parses one item. Without `fieldName` and `tableName`, it must have an `expression`, or be `COUNT`, which then counts
/// records.
fn selected(option: &str, known: &[&str], text: &str) -> Result<Selected, Problem> {
    let (mut field, mut table, mut alias, mut aggregate) = (None, None, None, None);
    let (mut part, mut expression) = (None, None);
    for (name, value) in options::object(option, text)? {
        match (&*name, &value) {
            (other, _) if !known.contains(&other) => return Err(options::unknown_part(option, other, known)),
            ("fieldName", Value::Text(name)) => field = Some(name.clone()),
            ("tableName", Value::Text(name)) => table = Some(TableName::parse(name)?),
            ("alias", Value::Text(name)) => alias = Some(FieldName::parse(name)?),
            ("aggregate", Value::Text(name)) => {
                aggregate = Some(AGGREGATES[named(option, "aggregate", name, &AGGREGATES.map(|(name, _)| name))?].1);
            }
            ("part", Value::Text(name)) => {
                part = Some(DATE_PARTS[named(option, "part", name, &DATE_PARTS.map(|(name, _)| name))?].1);
            }
            ("expression", Value::Text(text)) => expression = Some(Arithmetic::parse(text)?),
            ("alias" | "aggregate" | "part" | "expression", Value::Null) => {}
            (known, other) => return Err(options::wrong(&format!("{option}.{known}"), "a string", other)),
        }
    }
    let what = match (field.as_deref(), aggregate, expression) {
        (None, Some(aggregate), Some(expression))
            if table.is_none()
                && part.is_none()
                && alias.is_some()
                && !matches!(aggregate, Aggregate::Count | Aggregate::CountDistinct) =>
        {
            What::Computed(aggregate, expression)
        }
        (_, _, Some(_)) => {
            return Err(options::invalid(
                "An expression needs an aggregate (SUM, AVG, MIN or MAX) and an alias, and no other part.",
            ));
        }
        (None | Some(EVERYTHING), Some(Aggregate::Count), None) if table.is_none() && part.is_none() => What::CountAll,
        (None, ..) => return Err(options::missing_part(option, "fieldName")),
        (Some(field), aggregate, None) => {
            let field = of_table(table, FieldRef::parse(field)?)?;
            match (aggregate, part) {
                (Some(_), Some(_)) => return Err(options::invalid("A part of a date takes no aggregate.")),
                (Some(aggregate), None) => What::Aggregate(aggregate, field),
                (None, Some(part)) => What::Part(part, field),
                (None, None) => What::Field(field),
            }
        }
    };
    Ok(Selected { what, alias })
}

/// Returns the index of the name.
fn named(option: &str, kind: &str, word: &str, names: &[&str]) -> Result<usize, Problem> {
    let folded = word.trim().replace(' ', "_");
    names.iter().position(|name| name.eq_ignore_ascii_case(&folded)).ok_or_else(|| {
        let near = nearest(&folded, names.iter().copied());
        options::invalid(format!("The option {option} knows no {kind} {}.", shown(word))).with_hint(match near {
            Some(near) => format!("Did you mean {}?", shown(near)),
            None => format!("Use one of {}.", names.join(", ")),
        })
    })
}

impl Aggregate {
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::CountDistinct => "count_distinct",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
        }
    }
}

impl DatePart {
    pub fn name(self) -> &'static str {
        DATE_PARTS[self as usize].0
    }
}
