//! Checks a rule of a role file against the schema of its table, before the role is stored.

use crate::query::catalog::{CaseSensitivity, Kind, Table};
use crate::query::plan::ColumnRef;
use crate::query::plan::bind::{self, BindFor};
use crate::query::plan::filter::predicate;
use crate::query::plan::scope::Scope;
use crate::query::role::{Claims, Fields, TableRule, Template};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, shown};
use shared::operation::filter::{Condition, Joiner, Test};
use std::collections::BTreeSet;

/// Checks the fields of a rule, and the values that it sets.
pub fn check_fields(rule: &TableRule, table: &Table) -> Result<(), (String, String)> {
    let known = |part: &str, name: &FieldName| match table.field(name) {
        Ok(at) => Ok(at),
        Err(problem) => Err((part.to_owned(), said(&problem))),
    };
    let fields = |part: &str, fields: &Fields| {
        let part = format!("{part}.fields");
        fields.names().iter().try_for_each(|name| known(&part, name).map(drop))
    };
    rule.read.as_ref().map_or(Ok(()), |read| fields("read", &read.fields))?;
    for (part, write) in [("insert", &rule.insert), ("update", &rule.update)] {
        let Some(write) = write else {
            continue;
        };
        fields(part, &write.fields)?;
        let unchecked = format!("{part}.unchecked");
        write.unchecked.iter().try_for_each(|name| known(&unchecked, name).map(drop))?;
        for (name, value) in &write.set {
            let part = format!("{part}.set.{}", shown(name.as_str()));
            let column = table.column(known(&part, name)?);
            if column.generated {
                return Err((part, "MariaDB computes this field".to_owned()));
            }
            if value.claims().is_empty()
                && let Some(value) = value.fill(&Claims::default())
                && let Err(problem) = bind::value(column, &value, BindFor::Store)
            {
                return Err((part, said(&problem)));
            }
        }
        if write.rows.is_some() && (table.traits().view || !table.traits().inserts.transactional) {
            return Err((
                format!("{part}.rows"),
                "records of a view or of an engine without transactions can't be checked".to_owned(),
            ));
        }
    }
    Ok(())
}

/// Stands for each claim while a rule is checked, so whether claims fit their fields is not checked.
const CLAIM: &str = "\u{E000}claim";

/// Checks the condition of the action on records. Returns the fields that are compared with a claim although their
/// collation ignores case: the claims `Bob` and `bob` then allow the same records.
pub fn check_rows(rows: &Template, scope: &Scope<'_>, action: &str) -> Result<BTreeSet<String>, String> {
    let example = rows.fill_with(|_| Some(format!("\"{CLAIM}\"")));
    let condition = example.and_then(|query| Condition::from_query(&query, Joiner::And).ok().flatten());
    let mut folded = BTreeSet::new();
    let condition = condition.ok_or("it can't be read")?;
    check_condition(&condition, scope, &mut folded)?;
    if action == "update"
        && let Some(name) = generated(&condition, scope)
    {
        return Err(format!("MariaDB computes {name}, so that no update could be checked"));
    }
    Ok(folded)
}

/// Returns a generated field that the condition reads.
fn generated(condition: &Condition, scope: &Scope<'_>) -> Option<String> {
    let is_generated = |at: ColumnRef| scope.column(at).generated.then(|| scope.column(at).name.to_string());
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().find_map(|part| generated(part, scope)),
        Condition::Not(part) => generated(part, scope),
        Condition::Test(field, _) => scope.resolve(field, ErrorCode::InvalidFilter).ok().and_then(is_generated),
        Condition::Related(related) => {
            let columns = scope.find_related(&related.relation)?.own_columns(scope).ok()?;
            columns.into_iter().find_map(is_generated)
        }
    }
}

fn check_condition(condition: &Condition, scope: &Scope<'_>, folded: &mut BTreeSet<String>) -> Result<(), String> {
    let (field, test) = match condition {
        Condition::Related(related) => {
            let table = scope.find_related(&related.relation).ok_or("a relation can't be resolved")?;
            let inner = related.condition.as_ref();
            return inner.map_or(Ok(()), |inner| check_condition(inner, &table.scope(), folded));
        }
        Condition::All(parts) | Condition::Any(parts) => {
            return parts.iter().try_for_each(|inner| check_condition(inner, scope, folded));
        }
        Condition::Not(inner) => return check_condition(inner, scope, folded),
        Condition::Test(field, test) => (field, test),
    };
    let column_ref = scope.resolve(field, ErrorCode::InvalidFilter).map_err(|problem| said(&problem))?;
    if !test.has_value(CLAIM) {
        return predicate(condition, scope).map(drop).map_err(|problem| said(&problem));
    }
    let column = scope.column(column_ref);
    if matches!(test, Test::Compare(..) | Test::In(_))
        && column.kind == Kind::Text
        && column.case_sensitivity == CaseSensitivity::Insensitive
    {
        folded.insert(column.name.to_string());
    }
    Ok(())
}

fn said(problem: &Problem) -> String {
    let hint = problem.hint().map(|hint| format!(" {hint}")).unwrap_or_default();
    format!("{}{hint}", problem.message()).trim_end_matches('.').to_owned()
}
