//! Encodes the parts of a read that are the same on all its pages: project, database, tables, joins, conditions and
//! order, but not the selected fields (unless DISTINCT rows are sorted by them), the includes or the limit.
//!
//! The encoding must not change without a new [`VERSION`], since it is part of the MAC of page cursors from earlier
//! builds. Each variant of an enum has its own byte, each text and list is preceded by its length, and columns are
//! written by name, so that the order of an enum's variants or a table's columns does not matter.

use super::value;
use crate::query::plan::keyset::Keyset;
use crate::query::plan::related::Exists;
use crate::query::plan::scope::Scope;
use crate::query::plan::{ColumnRef, Expression, Form, LikePattern, Operand, Predicate, Search, Select};
use shared::ident::ProjectName;
use shared::operation::filter::{Comparison, MatchMode};
use shared::operation::read::join::JoinKind;
use shared::operation::read::select::Aggregate;
use shared::operation::read::{Direction, Rows};

/// The first byte of a fingerprint: the version of its encoding.
const VERSION: u8 = 1;

/// Returns bytes that are equal for all pages of a project's read, whatever their selected fields, includes and limit,
/// and that differ for a read with other tables, joins, conditions or order. `select` must not have the condition of a
/// page cursor yet.
#[must_use]
pub fn fingerprint(project: &ProjectName, select: &Select, scope: &Scope<'_>) -> Vec<u8> {
    let mut bytes = Writer { out: vec![VERSION], scope };
    bytes.text(project.as_str()).text(scope.root().database().as_str()).list(0..scope.size(), |bytes, source| {
        let (table, name) = (scope.table(source).name(), scope.name(source));
        bytes.text(table.as_str()).text(name.as_str())
    });
    bytes.list(&select.joins, |bytes, join| {
        let kind = match join.kind {
            JoinKind::Inner => b'i',
            JoinKind::Left => b'l',
            JoinKind::Right => b'r',
        };
        bytes.byte(kind).predicate(&join.on)
    });
    bytes.list(&select.filter, Writer::predicate);
    let terms = select.keyset().map_or(&[][..], Keyset::terms);
    bytes.list(terms, |bytes, term| {
        let direction = match term.direction() {
            Direction::Ascending => b'a',
            Direction::Descending => b'd',
        };
        bytes.expression(term.expression()).byte(direction)
    });
    if !select.group.is_empty() {
        bytes.byte(b'G').list(&select.group, Writer::column);
    }
    if select.rows == Rows::Distinct {
        bytes.byte(b'D');
    }
    bytes.out
}

struct Writer<'a> {
    out: Vec<u8>,
    scope: &'a Scope<'a>,
}

impl Writer<'_> {
    fn byte(&mut self, byte: u8) -> &mut Self {
        self.out.push(byte);
        self
    }

    fn number(&mut self, number: usize) -> &mut Self {
        self.out.extend_from_slice(&(number as u64).to_be_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len());
        self.out.extend_from_slice(text.as_bytes());
        self
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
        mut write: impl for<'w> FnMut(&'w mut Self, T) -> &'w mut Self,
    ) -> &mut Self {
        let items = items.into_iter();
        self.number(items.len());
        for item in items {
            write(self, item);
        }
        self
    }

    fn column(&mut self, column: &ColumnRef) -> &mut Self {
        self.number(column.source);
        self.text(self.scope.column(*column).name.as_str())
    }

    fn predicate(&mut self, predicate: &Predicate) -> &mut Self {
        match predicate {
            Predicate::Compare(column, comparison, operand) => {
                self.byte(b'c').column(column).comparison(*comparison).operand(operand)
            }
            Predicate::Same(one, other) => self.byte(b's').column(one).column(other),
            Predicate::In(column, operands) => self.byte(b'i').column(column).list(operands, Self::operand),
            Predicate::Between(column, low, high) => self.byte(b'b').column(column).operand(low).operand(high),
            Predicate::IsNull(column) => self.byte(b'n').column(column),
            Predicate::Like(column, LikePattern::Raw, operand) => self.byte(b'l').column(column).operand(operand),
            Predicate::Like(column, LikePattern::Literal, operand) => self.byte(b't').column(column).operand(operand),
            Predicate::Regexp(column, operand) => self.byte(b'r').column(column).operand(operand),
            Predicate::Match(search) => self.byte(b'm').search(search),
            Predicate::Ordered(expression, comparison, operand) => {
                self.byte(b'o').expression(expression).comparison(*comparison).operand(operand)
            }
            Predicate::OrderedNull(expression) => self.byte(b'z').expression(expression),
            Predicate::All(parts) => self.byte(b'&').list(parts, Self::predicate),
            Predicate::Any(parts) => self.byte(b'|').list(parts, Self::predicate),
            Predicate::Not(part) => self.byte(b'!').predicate(part),
            Predicate::Guarded(guard, part) => self.byte(b'g').predicate(guard).predicate(part),
            Predicate::Untrue(part) => self.byte(b'u').predicate(part),
            Predicate::Exists(exists) => self.byte(b'x').exists(exists),
        }
    }

    fn exists(&mut self, exists: &Exists) -> &mut Self {
        self.text(&exists.table.relation().spelling);
        let scope = exists.table.scope(&exists.name);
        let mut inner = Writer { out: std::mem::take(&mut self.out), scope: &scope };
        inner.list(&exists.filter, Writer::predicate);
        self.out = inner.out;
        self
    }

    fn comparison(&mut self, comparison: Comparison) -> &mut Self {
        self.byte(match comparison {
            Comparison::Equal => b'=',
            Comparison::NotEqual => b'!',
            Comparison::Greater => b'>',
            Comparison::GreaterOrEqual => b'g',
            Comparison::Less => b'<',
            Comparison::LessOrEqual => b'l',
            Comparison::NullSafeEqual => b'n',
        })
    }

    fn operand(&mut self, operand: &Operand) -> &mut Self {
        match operand.form {
            Form::Plain => self.byte(b'p'),
            Form::Decimal { scale } => self.byte(b'd').byte(scale),
            Form::GeoJson => self.byte(b'g'),
            Form::Unicode(_) => self.byte(b'u'),
            Form::Json => self.byte(b'j'),
        };
        value::write(&operand.param, &mut self.out);
        self
    }

    fn search(&mut self, search: &Search) -> &mut Self {
        self.list(&search.columns, Self::column);
        self.byte(match search.mode {
            MatchMode::Natural => b'n',
            MatchMode::Boolean => b'b',
            MatchMode::Expansion => b'e',
        });
        value::write(&search.term, &mut self.out);
        self
    }

    fn expression(&mut self, expression: &Expression) -> &mut Self {
        match expression {
            Expression::Column(column) => self.byte(b'c').column(column),
            Expression::Beginning(column, chars) => self.byte(b'b').column(column).number((*chars).into()),
            Expression::Ordinal(column) => self.byte(b'o').column(column),
            Expression::Aggregate(aggregate, column) => {
                let aggregate = match aggregate {
                    Aggregate::Count => b'C',
                    Aggregate::CountDistinct => b'D',
                    Aggregate::Sum => b'S',
                    Aggregate::Avg => b'V',
                    Aggregate::Min => b'N',
                    Aggregate::Max => b'X',
                };
                self.byte(aggregate).column(column)
            }
            Expression::CountAll => self.byte(b'n'),
            Expression::Number(number) => self.byte(b'#').number(*number),
            Expression::Score(search) => self.byte(b's').search(search),
            Expression::Presence(columns) => self.byte(b'p').list(columns, Self::column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::plan::access::Rights;
    use crate::query::plan::{self, Plan, PlanLimits};
    use crate::query::sql::golden;
    use shared::operation::{Operation, parse_head};
    use shared::request::RequestHead;

    #[test]
    fn the_bytes_of_a_read_stay_as_they_are() {
        let head = RequestHead {
            method: "GET",
            path: "/api/v1/crud/demo/posts",
            query: Some(r#"limit=2&order={"field":"title","strategy":"DESC"}&query={"views":7}"#),
            ..RequestHead::default()
        };
        let operation = parse_head(&head).unwrap().finish(b"").unwrap();
        let access = Rights::Full.of(&golden::posts()).unwrap();
        let scope = Scope::of(&access);
        let Operation::Records(operation) = operation else { panic!("a list is read from records") };
        let limits = PlanLimits { batch_max_rows: 1, read_max_rows: None };
        let Plan::Select(select, _) = plan::build(&operation, &scope, limits).unwrap() else {
            panic!("a list is read by a Select");
        };
        let project = ProjectName::parse("shop").unwrap();
        let bytes = fingerprint(&project, &select, &scope);
        let n = |number: u8| [0, 0, 0, 0, 0, 0, 0, number];
        let expected = [
            &[VERSION][..],
            &n(4),
            b"shop",
            &n(4),
            b"demo",
            // One table: its name, and its name in the statement.
            &n(1),
            &n(5),
            b"posts",
            &n(5),
            b"posts",
            // No join; one condition.
            &n(0),
            &n(1),
            b"c",
            &n(0),
            &n(5),
            b"views",
            b"=",
            b"p",
            b"i",
            &n(7),
            // Two steps of ORDER BY.
            &n(2),
            b"c",
            &n(0),
            &n(5),
            b"title",
            b"d",
            b"c",
            &n(0),
            &n(2),
            b"id",
            b"d",
        ];
        assert_eq!(bytes, expected.concat());
    }
}
