//! Parses the options `selectFields` and `omitFields`: the fields and aggregates to return, and their names.

use super::order::of_table;
use crate::error::{Problem, nearest};
use crate::fingerprint::unordered;
use crate::ident::{FieldName, TableName, shown};
use crate::json::Value;
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
    Aggregate(Aggregate, FieldRef),
    CountAll,
}

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

const PARTS: [&str; 4] = ["fieldName", "tableName", "alias", "aggregate"];
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
    const EXPECTED: &str = "a list of field names or {fieldName, alias?, aggregate?}";
    let mut chosen: Vec<Selected> = Vec::new();
    for part in options::parts("selectFields", value, EXPECTED)? {
        let one = match &part {
            Value::Object(text) => selected(text)?,
            other => Selected { what: What::Field(options::field("selectFields", EXPECTED, other)?), alias: None },
        };
        chosen.push(one);
    }
    match options::repeated_item(&chosen) {
        Some(one) => {
            Err(options::invalid(format!("The option selectFields names {} more than once.", shown(&one.describe()))))
        }
        None => Ok(chosen),
    }
}

impl What {
    pub(in crate::operation) fn field(&self) -> Option<&FieldRef> {
        match self {
            Self::Field(field) | Self::Aggregate(_, field) => Some(field),
            Self::CountAll => None,
        }
    }
}

impl Selected {
    fn describe(&self) -> String {
        self.what.field().map_or_else(|| EVERYTHING.to_owned(), ToString::to_string)
    }
}

/// Parses one selected field. Without `fieldName` and `tableName`, it must be `COUNT`, which then counts records.
fn selected(text: &str) -> Result<Selected, Problem> {
    let (mut field, mut table, mut alias, mut aggregate) = (None, None, None, None);
    for (name, value) in options::object("selectFields", text)? {
        match (&*name, &value) {
            ("fieldName", Value::Text(name)) => field = Some(name.clone()),
            ("tableName", Value::Text(name)) => table = Some(TableName::parse(name)?),
            ("alias", Value::Text(name)) => alias = Some(FieldName::parse(name)?),
            ("aggregate", Value::Text(name)) => aggregate = Some(named_aggregate(name)?),
            ("alias" | "aggregate", Value::Null) => {}
            (known, other) if PARTS.contains(&known) => {
                return Err(options::wrong(&format!("selectFields.{known}"), "a string", other));
            }
            (other, _) => return Err(options::unknown_part("selectFields", other, &PARTS)),
        }
    }
    let what = match (field.as_deref(), aggregate) {
        (None | Some(EVERYTHING), Some(Aggregate::Count)) if table.is_none() => What::CountAll,
        (None, _) => return Err(options::missing_part("selectFields", "fieldName")),
        (Some(field), aggregate) => {
            let field = of_table(table, FieldRef::parse(field)?)?;
            match aggregate {
                Some(aggregate) => What::Aggregate(aggregate, field),
                None => What::Field(field),
            }
        }
    };
    Ok(Selected { what, alias })
}

fn named_aggregate(word: &str) -> Result<Aggregate, Problem> {
    let folded = word.trim().to_ascii_uppercase().replace(' ', "_");
    AGGREGATES.iter().find(|(name, _)| *name == folded).map(|(_, aggregate)| *aggregate).ok_or_else(|| {
        let near = nearest(&folded, AGGREGATES.iter().map(|(name, _)| *name));
        options::invalid(format!("The option selectFields knows no aggregate {}.", shown(word))).with_hint(match near {
            Some(near) => format!("Did you mean {}?", shown(near)),
            None => format!("Use one of {}.", AGGREGATES.map(|(name, _)| name).join(", ")),
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
