//! Checks a rule of a role file against the schema of its table, before the role is stored.

use super::TableAccess;
use crate::query::catalog::{CaseSensitivity, Kind, Table};
use crate::query::plan::bind::{self, BindFor};
use crate::query::plan::filter::predicate;
use crate::query::plan::scope::Scope;
use crate::query::role::{Claims, Fields, TableRule, Template};
use shared::error::{ErrorCode, Problem};
use shared::ident::{FieldName, shown};
use shared::operation::filter::{Condition, Joiner, Test};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Checks a rule. Returns the fields that a condition compares with a claim although their collation ignores case: the
/// claims `Bob` and `bob` then allow the same records.
pub fn check_rule(rule: &TableRule, table: &Arc<Table>) -> Result<BTreeSet<String>, (String, String)> {
    let mut folded = BTreeSet::new();
    let known = |part: &str, name: &FieldName| match table.field(name) {
        Ok(at) => Ok(at),
        Err(problem) => Err((part.to_owned(), said(&problem))),
    };
    let fields = |part: &str, fields: &Fields| {
        let part = format!("{part}.fields");
        fields.names().iter().try_for_each(|name| known(&part, name).map(drop))
    };
    let mut rows = |part: &str, rows: &Option<Template>| match rows {
        Some(rows) => check_rows(rows, table, part, &mut folded).map_err(|fault| (format!("{part}.rows"), fault)),
        None => Ok(()),
    };
    if let Some(read) = &rule.read {
        fields("read", &read.fields)?;
        rows("read", &read.rows)?;
    }
    for (part, write) in [("insert", &rule.insert), ("update", &rule.update)] {
        let Some(write) = write else {
            continue;
        };
        fields(part, &write.fields)?;
        rows(part, &write.rows)?;
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
    rule.delete.as_ref().map_or(Ok(()), |delete| rows("delete", &delete.rows))?;
    Ok(folded)
}

/// Stands for each claim while a rule is checked, so whether claims fit their fields is not checked.
const CLAIM: &str = "\u{E000}claim";

fn check_rows(rows: &Template, table: &Arc<Table>, part: &str, folded: &mut BTreeSet<String>) -> Result<(), String> {
    let example = rows.fill_with(|_| Some(format!("\"{CLAIM}\"")));
    let condition = example.and_then(|query| Condition::from_query(&query, Joiner::And).ok().flatten());
    let whole = TableAccess { table: Arc::clone(table), limits: None };
    match condition {
        Some(condition) => check_condition(&condition, &Scope::of(&whole), part, folded),
        None => Err("it can't be read".to_owned()),
    }
}

fn check_condition(
    condition: &Condition,
    scope: &Scope<'_>,
    part: &str,
    folded: &mut BTreeSet<String>,
) -> Result<(), String> {
    let (field, test) = match condition {
        Condition::Related(related) => {
            let name = shown(&related.relation);
            return Err(format!("a rule can't have a condition on the related records {name}"));
        }
        Condition::All(parts) | Condition::Any(parts) => {
            return parts.iter().try_for_each(|inner| check_condition(inner, scope, part, folded));
        }
        Condition::Not(inner) => return check_condition(inner, scope, part, folded),
        Condition::Test(field, test) => (field, test),
    };
    let column_ref = scope.resolve(field, ErrorCode::InvalidFilter).map_err(|problem| said(&problem))?;
    if part == "update" && scope.column(column_ref).generated {
        return Err(format!("MariaDB computes {field}, so that no update could be checked"));
    }
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
