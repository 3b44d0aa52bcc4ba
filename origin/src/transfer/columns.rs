//! Maps the columns of a file to the fields of a table, and reports mappings that look wrong.

use shared::ident::{FieldName, TableName, shown};

use super::TransferError;
use super::api::Field;
use super::column_type::{Values, ValuesRead};
use crate::query::sql::create_table::{NewKey, create_table};

/// A column of a CSV file, or a key of the objects in NDJSON.
#[derive(Clone, Debug)]
pub(super) struct FileColumn {
    pub(super) name: String,
    /// The values of the rows that were read before the import.
    pub(super) values: Values,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedColumn {
    pub column: String,
    pub field: Option<(String, String)>,
    pub values: &'static str,
}

impl MappedColumn {
    pub(super) fn goes_to(&self, field: &str) -> bool {
        self.field.as_ref().is_some_and(|(name, _)| name == field)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt(pub String);

/// Returns the field of each column. If no name is equal, case, blanks, hyphens and underscores are ignored. An empty
/// name in `map` leaves the column out.
pub(super) fn map_columns(
    columns: &[FileColumn],
    fields: &[Field],
    map: &[(String, String)],
) -> Result<(Vec<MappedColumn>, Vec<Doubt>), TransferError> {
    if let Some((name, _)) = map.iter().find(|(name, _)| columns.iter().all(|column| column.name != *name)) {
        return Err(TransferError::usage(
            format!("--map names the column {}, which the file doesn't have", shown(name)),
            have(columns),
        ));
    }
    let (mut mapped, mut doubts) = (Vec::<MappedColumn>::new(), Vec::new());
    for column in columns {
        let name = &column.name;
        let renamed = map.iter().find(|(from, _)| from == name).map(|(_, to)| to);
        let target = renamed.unwrap_or(name);
        let field = match fields.iter().find(|field| field.name == *target) {
            _ if renamed.is_some_and(String::is_empty) => None,
            Some(field) => Some(field),
            None => {
                let Some(field) = fields.iter().find(|field| folded(&field.name) == folded(target)) else {
                    return Err(unknown(target, fields));
                };
                doubts.push(Doubt(format!("column {} is taken for the field {}", shown(name), shown(&field.name))));
                Some(field)
            }
        };
        let field = match field {
            Some(field) if !field.writable && renamed.is_none() => {
                doubts.extend(
                    (!field.is_generated())
                        .then(|| Doubt(format!("column {} is left out: the field can't be written", shown(name)))),
                );
                None
            }
            field => field,
        };
        if let Some(field) = field {
            if mapped.iter().any(|other| other.field.as_ref().is_some_and(|(taken, _)| *taken == field.name)) {
                let message = format!("two columns go to the field {}", shown(&field.name));
                return Err(TransferError::usage(message, "leave one out by --map COLUMN="));
            }
            if let Some(text) = column.values.misfit(&field.sql_type) {
                let field_type = &field.sql_type;
                doubts.push(Doubt(format!(
                    "column {} has texts such as {}, the field is {field_type}",
                    shown(name),
                    shown(text)
                )));
            }
        }
        mapped.push(MappedColumn {
            column: name.clone(),
            field: field.map(|field| (field.name.clone(), type_of(field))),
            values: column.values.describe(),
        });
    }
    let has = |name: &str| mapped.iter().any(|column| column.field.as_ref().is_some_and(|(taken, _)| taken == name));
    let missing = fields.iter().filter(|field| field.required && !has(&field.name));
    doubts.extend(
        missing
            .map(|field| Doubt(format!("the table requires the field {}, which no column gives", shown(&field.name)))),
    );
    if mapped.iter().all(|column| column.field.is_none()) {
        return Err(TransferError::usage("no column of the file goes to a field", have(columns)));
    }
    Ok((mapped, doubts))
}

pub(super) fn check_header(names: &[String], delimiter: u8) -> Result<(), TransferError> {
    if let [only] = names
        && let Some(other) = [';', '\t', '|', ','].iter().find(|&&other| only.contains(other))
    {
        let message = format!(
            "the header row has a single name, {}: {:?} doesn't delimit the cells",
            shown(only),
            delimiter as char
        );
        return Err(TransferError::usage(message, format!("--delimiter {other:?}").replace('\'', "\"")));
    }
    for (at, name) in names.iter().enumerate() {
        if name.is_empty() {
            let message = format!("the header row has no name for column {}", at + 1);
            return Err(TransferError::usage(message, "the first row of CSV must name the fields"));
        }
        FieldName::parse(name).map_err(|problem| {
            TransferError::usage(problem.message().trim_end_matches('.'), "the first row of CSV must name the fields")
        })?;
        if names[..at].contains(name) {
            let message = format!("the header row names {} more than once", shown(name));
            return Err(TransferError::usage(message, "rename one of the columns in the file"));
        }
    }
    Ok(())
}

fn type_of(field: &Field) -> String {
    field.json_type.clone().unwrap_or_else(|| field.sql_type.clone())
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).flat_map(char::to_lowercase).collect()
}

fn unknown(name: &str, fields: &[Field]) -> TransferError {
    let near = |field: &&Field| (strsim::jaro_winkler(&field.name, name) * 1000.0) as u32;
    let nearest = fields.iter().max_by_key(near);
    let name = shown(name);
    let hint = match nearest.filter(|field| near(field) > 750) {
        Some(field) => {
            format!("did you mean {}? --map COLUMN=FIELD renames it, --map COLUMN= leaves it out", shown(&field.name))
        }
        None => "--map COLUMN=FIELD renames the column, --map COLUMN= leaves it out".to_owned(),
    };
    TransferError::usage(format!("the table has no field {name}"), hint)
}

fn have(columns: &[FileColumn]) -> String {
    let names: Vec<String> = columns.iter().map(|column| shown(&column.name)).collect();
    format!("the file has {}", names.join(", "))
}

/// Returns the statement of `selkie import --create`. A column `id` of whole numbers is the primary key, with
/// AUTO_INCREMENT; without a column `id`, the table gets such a key.
pub(super) fn create_statement(
    table: &TableName,
    columns: &[FileColumn],
    extent: ValuesRead,
) -> Result<(String, Vec<String>), TransferError> {
    let mut typed = Vec::new();
    for column in columns {
        let name = FieldName::parse(&column.name).map_err(|problem| {
            TransferError::usage(problem.message().trim_end_matches('.'), "rename the column in the file")
        })?;
        let is_taken = |(other, _): &(FieldName, _)| other.as_str().eq_ignore_ascii_case(&column.name);
        if typed.iter().any(is_taken) {
            let message = format!("two columns are named {} but for the case of letters", shown(&column.name));
            return Err(TransferError::usage(message, "rename one of them in the file"));
        }
        typed.push((name, column.values.column_type(extent)));
    }
    let key = match columns.iter().find(|column| column.name.eq_ignore_ascii_case("id")) {
        None => NewKey::Added,
        Some(column) if column.values.is_whole_key() => NewKey::Column,
        Some(_) => NewKey::None,
    };
    let types = typed.iter().map(|(_, of_type)| of_type.to_string()).collect();
    Ok((create_table(table, &typed, key), types))
}
