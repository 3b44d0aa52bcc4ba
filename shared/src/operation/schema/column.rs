//! Definitions of columns.

use super::expression::Expression;
use super::part::{Part, invalid};
use super::sql_type::SqlType;
use crate::error::Problem;
use crate::ident::FieldName;
use crate::json::Value;

#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    pub name: FieldName,
    pub data_type: SqlType,
    /// The name of a character set: letters, digits and `_`.
    pub charset: Option<Box<str>>,
    pub collation: Option<Box<str>>,
    pub nullable: bool,
    pub source: ColumnSource,
    /// A condition that each value must meet.
    pub check: Option<Expression>,
    /// A read returns the column only if the read names it.
    pub invisible: bool,
    pub comment: Option<Box<str>>,
}

/// Where the values of new records come from, if they are not given.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnSource {
    Default {
        value: Option<DefaultValue>,
        /// An update sets the column to the current time with so many decimal digits.
        on_update: Option<u8>,
    },
    AutoIncrement,
    Generated {
        expression: Expression,
        stored: bool,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    Text(Box<str>),
    /// A number as JSON writes it.
    Number(Box<str>),
    Expression(Expression),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnPlace {
    First,
    After(FieldName),
}

pub(super) const KEYS: [&str; 12] = [
    "name",
    "type",
    "charset",
    "collation",
    "nullable",
    "default",
    "onUpdate",
    "autoIncrement",
    "generated",
    "check",
    "invisible",
    "comment",
];
pub(super) const PLACE_KEYS: [&str; 2] = ["first", "after"];

impl ColumnDefinition {
    pub(super) fn parse(part: &mut Part) -> Result<Self, Problem> {
        let name = part.text("name")?.ok_or_else(|| part.missing("name"))?;
        let data_type = part.text("type")?.ok_or_else(|| part.missing("type"))?;
        Ok(Self {
            name: FieldName::parse(&name)?,
            data_type: SqlType::parse(&data_type)
                .map_err(|fault| invalid(format!("{} {fault}.", part.path_of("type"))).with_hint(SqlType::HINT))?,
            charset: word(part, "charset")?,
            collation: word(part, "collation")?,
            nullable: part.flag("nullable")?,
            source: ColumnSource::parse(part)?,
            check: check(part)?,
            invisible: part.flag("invisible")?,
            comment: part.text("comment")?,
        })
    }
}

impl ColumnSource {
    fn parse(part: &mut Part) -> Result<Self, Problem> {
        let value = part.take("default");
        let value = value.map(|value| DefaultValue::parse(part, value)).transpose()?;
        let on_update = part.text("onUpdate")?;
        let on_update = on_update.map(|text| {
            let message =
                || invalid(format!("{} must be current_timestamp(), or with digits in ().", part.path_of("onUpdate")));
            current_timestamp(&text).ok_or_else(message)
        });
        let on_update = on_update.transpose()?;
        let is_counted = part.flag("autoIncrement")?;
        let path = part.path_of("generated");
        let generated = part.take("generated").map(|value| generated(&path, value)).transpose()?;
        match (is_counted, generated) {
            (false, None) => Ok(Self::Default { value, on_update }),
            (true, None) if value.is_none() && on_update.is_none() => Ok(Self::AutoIncrement),
            (false, Some(generated)) if value.is_none() && on_update.is_none() => Ok(generated),
            _ => Err(invalid(format!(
                "{} excludes default, onUpdate and {}.",
                part.path_of(if is_counted { "autoIncrement" } else { "generated" }),
                if is_counted { "generated" } else { "autoIncrement" },
            ))),
        }
    }
}

impl DefaultValue {
    fn parse(part: &Part, value: Value) -> Result<Self, Problem> {
        let path = part.path_of("default");
        Ok(match value {
            Value::Text(text) if text.contains('\0') => return Err(invalid(format!("{path} holds a NUL character."))),
            Value::Text(text) => Self::Text(text),
            Value::Number(number) => Self::Number(number),
            Value::Bool(flag) => Self::Number(if flag { "1" } else { "0" }.into()),
            Value::Object(_) => Self::Expression(Expression::alone(&path, value)?),
            other => return Err(part.wrong("default", "a string, a number, a boolean or {\"expression\": …}", &other)),
        })
    }
}

fn check(part: &mut Part) -> Result<Option<Expression>, Problem> {
    let path = part.path_of("check");
    part.take("check").map(|value| Expression::alone(&path, value)).transpose()
}

fn generated(path: &str, value: Value) -> Result<ColumnSource, Problem> {
    let mut part = Part::of(path, value)?;
    let generated = ColumnSource::Generated { expression: Expression::take(&mut part)?, stored: part.flag("stored")? };
    part.end(&["expression", "stored"])?;
    Ok(generated)
}

impl ColumnPlace {
    pub(super) fn parse(part: &mut Part) -> Result<Option<Self>, Problem> {
        match (part.flag("first")?, part.text("after")?) {
            (false, None) => Ok(None),
            (true, None) => Ok(Some(Self::First)),
            (false, Some(name)) => Ok(Some(Self::After(FieldName::parse(&name)?))),
            (true, Some(_)) => Err(invalid(format!("{} and after exclude each other.", part.path_of("first")))),
        }
    }
}

fn word(part: &mut Part, key: &str) -> Result<Option<Box<str>>, Problem> {
    let word = part.text(key)?;
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match word {
        Some(word) if !is_word(&word) => {
            Err(invalid(format!("{} must be a word of letters, digits and _.", part.path_of(key))))
        }
        word => Ok(word),
    }
}

/// Returns the decimal digits of seconds.
fn current_timestamp(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    let rest = lower.strip_prefix("current_timestamp").or_else(|| lower.strip_prefix("now"))?;
    match rest {
        "" | "()" => Some(0),
        _ => {
            let digits = rest.strip_prefix('(')?.strip_suffix(')')?;
            digits.parse().ok().filter(|digits| *digits <= 6 && rest.len() == 3)
        }
    }
}
