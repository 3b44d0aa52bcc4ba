//! Plans a subscription to changes: the fields and conditions of a list, which are applied to one row at a time.

use super::access;
use super::scope::Scope;
use super::{Expression, Operand, Output, Page, Param, Predicate, Select, SqlConversion, read};
use crate::query::catalog::Kind;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::operation::filter::Comparison;
use shared::operation::read::{Read, Window};
use shared::policy::role_forbids;

#[derive(Clone, Debug)]
pub struct FollowedRead {
    /// The order and the limit apply to a snapshot only.
    pub select: Select,
    /// The columns that identify a record: those of an `{id}`, or else of another readable unique key.
    pub key: Vec<usize>,
    /// The maximum number of records of a snapshot, if the caller's role or the service allow fewer than the read asks
    /// for.
    pub maximum: Option<u64>,
    /// An integer column that has the same value in every record of the list, and that value in digits.
    pub equals: Option<(usize, String)>,
}

pub fn follow(read: &Read, scope: &Scope<'_>, max_rows: Option<u64>) -> Result<FollowedRead, Problem> {
    let refuse = |why: &str| Problem::new(ErrorCode::InvalidQueryOption, why.to_owned());
    let table = scope.root();
    if table.traits().view {
        return Err(refuse("A view has no changes of its own.").with_hint("Follow the tables that the view reads."));
    }
    if access::read_rule(0, scope).is_some_and(|rule| !rule.subqueries().is_empty()) {
        let name = format!("{}.{}", table.database(), table.name());
        return Err(role_forbids(&format!("follow changes of {name}")).with_hint(
            "The rows of its read rule for this table are chosen by related records, whose changes the feed does not \
             judge. Read the table instead.",
        ));
    }
    // Planned without a limit, the read gets no cells for a cursor.
    let mut whole = read.clone();
    whole.window = Window::default();
    let select = read::records(&whole, scope, None, Page::default())?;
    let is_column = |cell: &Expression| matches!(cell, Expression::Column(_));
    if matches!(&select.output, Output::Cells(cells) if !cells.iter().all(is_column)) {
        return Err(refuse("The option selectFields of changes takes no aggregates."));
    }
    if select.filter.as_ref().is_some_and(Predicate::has_search) {
        return Err(refuse("The option query of changes takes no full-text conditions.")
            .with_hint("Use CONTAINS, STARTS WITH or LIKE."));
    }
    let key = match table.key_is_readable() && table.key_is_unique() {
        true => table.key(),
        false => table.identity(),
    };
    // The only generated column that a key may have is the end of a row's period in a system-versioned table. All
    // present rows have the same value in it.
    let key: Vec<usize> = key.iter().copied().filter(|at| !table.column(*at).generated).collect();
    if key.is_empty() {
        return Err(refuse(&format!(
            "The table {} has no unique key that the caller may read.",
            shown(table.name().as_str())
        ))
        .with_hint("Changes name records by their key: add a primary key, or add its fields to the role."));
    }
    let maximum = max_rows.filter(|most| read.window.limit.is_none_or(|limit| limit > *most));
    let select = Select { limit: read.window.limit, ..select };
    let equals = select.filter.as_ref().and_then(|filter| integer_equality(filter, scope));
    Ok(FollowedRead { key, maximum, equals, select })
}

impl FollowedRead {
    /// The number of fields that the plan lists itself, instead of sharing those of its table.
    pub fn own_fields(&self) -> usize {
        match &self.select.output {
            Output::Whole => 0,
            Output::Cells(cells) => cells.len(),
        }
    }

    /// Returns the read of a snapshot. The row after the [`maximum`](Self::maximum) shows that more match.
    pub fn of_snapshot(&self) -> Select {
        let limit = self.maximum.map(|most| most.saturating_add(1)).or(self.select.limit);
        Select { limit, ..self.select.clone() }
    }
}

fn integer_equality(filter: &Predicate, scope: &Scope<'_>) -> Option<(usize, String)> {
    match filter {
        Predicate::All(parts) => parts.iter().find_map(|part| integer_equality(part, scope)),
        Predicate::Compare(at, Comparison::Equal, Operand { param, form: SqlConversion::Plain }) => {
            // In a YEAR, MariaDB reads 70 as 1970, so the digits of the condition may differ from those in the log.
            let column = scope.column(*at);
            // MariaDB may leave generated columns out of the log.
            let is_integer = column.kind == Kind::Integer && !column.generated && !column.type_text.starts_with("year");
            let digits = match param {
                Param::Int(number) => number.to_string(),
                Param::UInt(number) => number.to_string(),
                _ => return None,
            };
            is_integer.then_some((at.column, digits))
        }
        _ => None,
    }
}
