//! Improves MariaDB's errors for full-text searches, which don't say which search of a request failed.

use crate::database::errno;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::operation::RecordOperation;
use shared::operation::filter::{Condition, MatchMode, Test};
use shared::operation::write::WriteTarget;

struct Search {
    code: ErrorCode,
    name: String,
    fields: String,
    mode: MatchMode,
}

pub(in crate::http) fn name(problem: Problem, operation: &RecordOperation) -> Problem {
    match problem.code() {
        ErrorCode::FulltextIndexMissing => name_index(problem, operation),
        ErrorCode::SqlError => name_boolean_searches(problem, operation),
        _ => problem,
    }
}

fn name_index(problem: Problem, operation: &RecordOperation) -> Problem {
    let table = operation.table().table.as_str();
    problem.with_hint(match searches(operation).as_slice() {
        [one] => format!("Add a FULLTEXT index over exactly these fields of {table}: {}.", one.fields),
        several => {
            let each: Vec<_> = several.iter().map(|search| &*search.fields).collect();
            format!("Each search needs a FULLTEXT index over exactly its fields of {table}: {}.", each.join("; "))
        }
    })
}

/// Names the boolean searches, which alone can cause MariaDB's parse error, since rendered statements are valid SQL.
fn name_boolean_searches(problem: Problem, operation: &RecordOperation) -> Problem {
    let refusal = problem.details().and_then(|details| details.refusal.clone());
    let Some(refusal) = refusal.filter(|refusal| refusal.errno == errno::PARSE_ERROR) else {
        return problem;
    };
    let mut searches = searches(operation);
    searches.retain(|search| search.mode == MatchMode::Boolean);
    let Some(first) = searches.first() else {
        return problem;
    };
    let names: Vec<_> = searches.iter().map(|search| &*search.name).collect();
    let message = format!("{} is no boolean search: {}", names.join(" or "), problem.message());
    Problem::new(first.code, message)
        .with_hint_if(problem.hint().map(str::to_owned))
        .with_details(refusal.errno, refusal.sql_state)
}

fn searches(operation: &RecordOperation) -> Vec<Search> {
    let mut found = Vec::new();
    let condition = match operation {
        RecordOperation::Read(read) => {
            if let Some(search) = &read.search {
                let fields: Vec<_> = search.fields.iter().map(ToString::to_string).collect();
                found.push(Search {
                    code: ErrorCode::InvalidQueryOption,
                    name: "The option fullTextSearch".to_owned(),
                    fields: fields.join(", "),
                    mode: search.mode,
                });
            }
            read.filter.as_ref()
        }
        RecordOperation::Update(update) => matching(&update.target),
        RecordOperation::Delete(delete) => matching(&delete.target),
        _ => None,
    };
    if let Some(condition) = condition {
        add_searches(condition, &mut found);
    }
    found
}

fn matching(target: &WriteTarget) -> Option<&Condition> {
    match target {
        WriteTarget::Record(_) => None,
        WriteTarget::Matching(condition) => Some(condition),
    }
}

fn add_searches(condition: &Condition, found: &mut Vec<Search>) {
    match condition {
        Condition::Test(field, Test::Match(mode, _)) => found.push(Search {
            code: ErrorCode::InvalidFilter,
            name: format!("The condition {}", shown(&field.to_string())),
            fields: field.to_string(),
            mode: *mode,
        }),
        Condition::Test(..) => {}
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| add_searches(part, found));
        }
        Condition::Not(part) => add_searches(part, found),
        Condition::Related(related) => {
            related.condition.iter().for_each(|condition| add_searches(condition, found));
        }
    }
}
