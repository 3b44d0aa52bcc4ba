//! Resolves expressions over numbers. SQL computes whole numbers as decimals, so that no sum or product overflows, and
//! no difference of unsigned numbers is refused.

use super::scope::Scope;
use super::{ColumnRef, Operand, Param, SqlConversion};
use crate::query::catalog::Kind;
use shared::error::{ErrorCode, Problem};
use shared::ident::shown;
use shared::operation::read::arithmetic::{Arithmetic as Asked, Token};
use shared::operation::read::select::DatePart;

#[derive(Clone, Debug, PartialEq)]
pub enum Arithmetic {
    Column(ColumnRef),
    Part(DatePart, ColumnRef),
    Number(Operand),
    Binary(Operator, Box<[Self; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    fn of(sign: char) -> Option<Self> {
        Some(match sign {
            '+' => Self::Add,
            '-' => Self::Subtract,
            '*' => Self::Multiply,
            '/' => Self::Divide,
            _ => return None,
        })
    }

    /// Whether an operator that follows another is computed after it: all operators are left-associative.
    fn follows(self, before: Self) -> bool {
        let is_product = |operator| matches!(operator, Self::Multiply | Self::Divide);
        is_product(before) || !is_product(self)
    }
}

/// Operands and operators that wait for their right side; `None` is an open parenthesis.
#[derive(Default)]
struct Stacks {
    operands: Vec<Arithmetic>,
    waiting: Vec<Option<Operator>>,
}

impl Stacks {
    /// Applies the operators since the last open parenthesis, as long as they come first.
    fn apply(&mut self, comes_first: impl Fn(Operator) -> bool) {
        while let Some(Some(operator)) = self.waiting.last().copied()
            && comes_first(operator)
        {
            self.waiting.pop();
            if let (Some(right), Some(left)) = (self.operands.pop(), self.operands.pop()) {
                self.operands.push(Arithmetic::Binary(operator, Box::new([left, right])));
            }
        }
    }
}

impl Arithmetic {
    pub(super) fn resolve(asked: &Asked, scope: &Scope<'_>, home: usize) -> Result<Self, Problem> {
        let mut stacks = Stacks::default();
        for token in asked.tokens()? {
            match token {
                Token::Number(digits) => stacks.operands.push(Self::Number(number(digits))),
                Token::Field(field) => {
                    let column_ref = scope.resolve_from(home, &field, ErrorCode::InvalidQueryOption)?;
                    stacks.operands.push(Self::Column(numeric(column_ref, scope)?));
                }
                Token::Sign('(') => stacks.waiting.push(None),
                Token::Sign(sign) => match Operator::of(sign) {
                    Some(operator) => {
                        stacks.apply(|before| operator.follows(before));
                        stacks.waiting.push(Some(operator));
                    }
                    None => {
                        stacks.apply(|_| true);
                        stacks.waiting.pop();
                    }
                },
            }
        }
        stacks.apply(|_| true);
        let none = || Problem::new(ErrorCode::InvalidQueryOption, "An expression can't be read.");
        stacks.operands.pop().ok_or_else(none)
    }

    /// Whether the value is a decimal of all its digits, which compares equal when it is computed again.
    pub(super) fn is_exact(&self, scope: &Scope<'_>) -> bool {
        match self {
            Self::Column(at) => matches!(scope.column(*at).kind, Kind::Integer | Kind::Bit | Kind::Decimal),
            Self::Part(..) | Self::Number(_) => true,
            Self::Binary(Operator::Divide, _) => false,
            Self::Binary(_, parts) => parts.iter().all(|part| part.is_exact(scope)),
        }
    }
}

fn numeric(column_ref: ColumnRef, scope: &Scope<'_>) -> Result<ColumnRef, Problem> {
    let column = scope.column(column_ref);
    if column.kind.is_number() {
        return Ok(column_ref);
    }
    let (name, of_type) = (shown(column.name.as_str()), &column.type_text);
    let message = format!("The field {name} ({of_type}) of an expression is no number.");
    Err(Problem::new(ErrorCode::InvalidQueryOption, message))
}

fn number(digits: &str) -> Operand {
    let scale = digits.split_once('.').map_or(0, |(_, fraction)| u8::try_from(fraction.len()).unwrap_or(0));
    Operand { param: Param::Text(digits.into()), form: SqlConversion::Decimal { scale } }
}
