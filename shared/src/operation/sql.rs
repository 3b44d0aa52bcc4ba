//! Parses the body of `/api/v1/sql`: a caller's own SQL statement.

use crate::error::{ErrorCode, Problem};
use crate::format::Format;
use crate::ident::{DatabaseName, shown};
use crate::json::{self, Value};
use crate::limits::SQL_PARAMS_MAX_COUNT;

#[derive(Clone, Debug, PartialEq)]
pub struct SqlCall {
    pub query: String,
    /// The default database; `None` for the project's only one, or for no default if the project has several.
    pub database: Option<DatabaseName>,
    pub params: Vec<Value>,
    pub format: Format,
}

impl SqlCall {
    pub(super) fn from_body(format: Format, body: &[u8]) -> Result<Self, Problem> {
        let (mut query, mut database, mut params) = (None, None, Vec::new());
        for (name, value) in json::body_members(body)? {
            match (&*name, value) {
                ("query", Value::Text(text)) => query = Some(String::from(text)),
                ("database", Value::Text(name)) => database = Some(DatabaseName::parse(&name)?),
                ("database" | "params", Value::Null) => {}
                ("params", Value::List(text)) => {
                    params = json::items(&text, SQL_PARAMS_MAX_COUNT)
                        .map_err(|fault| invalid(format!("params can't be read: {fault}.")))?;
                    params.iter().enumerate().try_for_each(is_scalar)?;
                }
                ("query" | "database", other) => {
                    return Err(invalid(format!("{name} must be a string, not {}.", other.kind())));
                }
                ("params", other) => {
                    return Err(invalid(format!("params must be a list, not {}.", other.kind())));
                }
                (other, _) => {
                    return Err(invalid(format!("There is no key {} here.", shown(other)))
                        .with_hint("Use {\"query\": …, \"database\"?: …, \"params\"?: […]}."));
                }
            }
        }
        let query = query.ok_or_else(|| invalid("The body has no query.".to_owned()))?;
        if query.trim().is_empty() {
            return Err(invalid("The query is empty.".to_owned()));
        }
        if query.contains('\0') {
            return Err(invalid("The query holds a NUL character.".to_owned()).with_hint("Pass such text in params."));
        }
        if params.len() > SQL_PARAMS_MAX_COUNT {
            return Err(invalid(format!("There are more than {SQL_PARAMS_MAX_COUNT} params.")));
        }
        Ok(Self { query, database, params, format })
    }
}

/// Refuses a list or an object, since MariaDB would silently use its JSON text.
fn is_scalar((at, param): (usize, &Value)) -> Result<(), Problem> {
    let hint = match param {
        Value::List(_) => "A list needs a ? for each of its values: IN (?, ?) with \"params\": [1, 2].",
        Value::Object(_) => "To pass JSON, give its text as a string.",
        _ => return Ok(()),
    };
    let kind = param.kind();
    Err(invalid(format!("params[{at}] is {kind}; each ? stands for one value.")).with_hint(hint))
}

fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}
