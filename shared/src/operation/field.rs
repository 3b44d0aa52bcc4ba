//! A field as callers name it: `field` or `table.field`. A name with a dot is ambiguous: the origin's planner, which
//! knows the joined tables, decides whether the name includes a table.

use crate::error::Problem;
use crate::ident::{FieldName, TableName};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldRef {
    table: Option<TableName>,
    field: FieldName,
}

impl FieldRef {
    pub fn of(table: TableName, field: FieldName) -> Self {
        Self { table: Some(table), field }
    }

    /// Parses `name` or `table.name`; any other text is an `invalid_identifier`. A text that is valid as one field name
    /// stays undivided, even if it has dots: see [`FieldRef::readings`].
    pub fn parse(text: &str) -> Result<Self, Problem> {
        // A text that is too long for one name may be a table and a field.
        FieldName::parse(text).map(Self::from).or_else(|problem| match split(text).next() {
            Some((table, field)) => Ok(Self::of(table, field)),
            None => Err(problem),
        })
    }

    pub fn table(&self) -> Option<&TableName> {
        self.table.as_ref()
    }

    /// Returns the field's name, which may include dots if [`FieldRef::table`] is `None`.
    pub fn field(&self) -> &FieldName {
        &self.field
    }

    pub fn readings(&self) -> impl Iterator<Item = (TableName, FieldName)> + '_ {
        let bare = self.table.is_none().then_some(self.field.as_str());
        bare.into_iter().flat_map(split)
    }
}

impl From<FieldName> for FieldRef {
    fn from(field: FieldName) -> Self {
        Self { table: None, field }
    }
}

impl fmt::Display for FieldRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = &self.table {
            write!(f, "{table}.")?;
        }
        f.write_str(self.field.as_str())
    }
}

fn split(text: &str) -> impl Iterator<Item = (TableName, FieldName)> + '_ {
    text.match_indices('.').filter_map(|(dot, _)| {
        let table = TableName::parse(&text[..dot]).ok()?;
        Some((table, FieldName::parse(&text[dot + 1..]).ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_dots_has_several_readings() {
        let field = FieldRef::parse("a.b.c").unwrap();
        assert_eq!(field.field().as_str(), "a.b.c");
        let readings: Vec<_> = field.readings().map(|(table, field)| format!("{table}|{field}")).collect();
        assert_eq!(readings, ["a|b.c", "a.b|c"]);
        assert_eq!(FieldRef::parse("plain").unwrap().readings().count(), 0);
        assert_eq!(field.to_string(), "a.b.c");
    }

    #[test]
    fn two_long_names_are_no_one_name() {
        let (table, field) = ("t".repeat(64), "f".repeat(64));
        let reference = FieldRef::parse(&format!("{table}.{field}")).unwrap();
        assert_eq!(reference.table().unwrap().as_str(), table);
        assert_eq!(reference.field().as_str(), field);
        assert!(FieldRef::parse(&"x".repeat(65)).is_err());
        assert!(FieldRef::parse("").is_err());
    }
}
