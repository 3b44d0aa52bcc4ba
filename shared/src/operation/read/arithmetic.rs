//! Checks the form of an expression over numbers, such as `price * (1 - discount)`. The origin's planner, which alone
//! gives the operators a meaning, checks the fields.

use crate::error::Problem;
use crate::ident::shown;
use crate::limits::{EXPRESSION_MAX_BYTES, EXPRESSION_NUMBER_MAX_DIGITS};
use crate::operation::field::FieldRef;
use crate::operation::options;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arithmetic(Box<str>);

#[derive(Clone, Debug, PartialEq)]
pub enum Token<'a> {
    Field(FieldRef),
    /// Digits, with at most one point between them.
    Number(&'a str),
    /// One of `+ - * / ( )`.
    Sign(char),
}

impl Arithmetic {
    pub fn tokens(&self) -> Result<Vec<Token<'_>>, Problem> {
        let mut tokens = Vec::new();
        scan(&self.0, &mut |token| tokens.push(token))?;
        Ok(tokens)
    }

    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        scan(text, &mut |_| {})?;
        Ok(Self(text.into()))
    }
}

/// Operands are numbers and fields; a field is a bare word, or any name in backticks.
fn scan<'a>(text: &'a str, add: &mut dyn FnMut(Token<'a>)) -> Result<(), Problem> {
    let (mut rest, mut depth, mut has_field, mut needs_operand) = (text, 0, false, true);
    if text.len() > EXPRESSION_MAX_BYTES {
        return Err(options::invalid(format!("An expression has more than {EXPRESSION_MAX_BYTES} bytes.")));
    }
    while let Some(sign) = rest.chars().next() {
        let mut after = rest.get(1..).unwrap_or_default();
        match (sign, needs_operand) {
            (' ', _) => {
                rest = after;
                continue;
            }
            ('(', true) => depth += 1,
            (')', false) if depth > 0 => depth -= 1,
            ('+' | '-' | '*' | '/', false) => needs_operand = true,
            (_, true) => {
                let is_part = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "_$.".contains(c);
                let bare = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
                let (word, behind) = if sign == '`' { after.split_once('`').unwrap_or_default() } else { bare };
                needs_operand = false;
                add(match sign {
                    '0'..='9' if is_number(word) => Token::Number(word),
                    '0'..='9' | '.' => return Err(wrong(text, rest)),
                    _ if word.is_empty() => return Err(wrong(text, rest)),
                    _ => {
                        has_field = true;
                        Token::Field(FieldRef::parse(word)?)
                    }
                });
                rest = behind;
                continue;
            }
            _ => return Err(wrong(text, rest)),
        }
        add(Token::Sign(sign));
        rest = std::mem::take(&mut after);
    }
    match needs_operand || depth > 0 || !has_field {
        true => Err(wrong(text, rest)),
        false => Ok(()),
    }
}

fn is_number(word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    word.len() <= EXPRESSION_NUMBER_MAX_DIGITS
        && word.chars().all(is_part)
        && word.matches('.').count() < 2
        && !word.ends_with('.')
}

fn wrong(text: &str, rest: &str) -> Problem {
    options::invalid(format!("The expression {} can't be read at {}.", shown(text), shown(rest)))
        .with_hint("Use fields, numbers, + - * / and parentheses; a name of other signs goes into backticks.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let expression = match Arithmetic::parse(text) {
            Ok(expression) => expression,
            Err(problem) => return problem.message().to_owned(),
        };
        let words = expression.tokens().unwrap().into_iter().map(|token| match token {
            Token::Field(field) => field.to_string(),
            Token::Number(number) => number.to_owned(),
            Token::Sign(sign) => sign.to_string(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_expression_has_fields_numbers_and_signs() {
        for (text, expected) in [
            ("a", "a"),
            ("a*b", "a * b"),
            (" a + b * 2 ", "a + b * 2"),
            ("a-2.50-b/c", "a - 2.50 - b / c"),
            ("(a - b) * (1 - d)", "( a - b ) * ( 1 - d )"),
            ("((a))", "( ( a ) )"),
            ("o.a*`unit price`", "o.a * unit price"),
            ("`a*b`-é$", "a*b - é$"),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_place() {
        for (text, rest) in [
            ("", ""),
            ("1", ""),
            ("a b", "b"),
            ("a*", ""),
            ("a**b", "*b"),
            ("-a", "-a"),
            ("(a", ""),
            ("a)", ")"),
            ("()", ")"),
            ("sleep(9)", "(9)"),
            ("a;b", ";b"),
            ("a*'1'", "'1'"),
            ("a*1.", "1."),
            ("a*1.2.3", "1.2.3"),
            ("a*.5", ".5"),
            ("a*1e9", "1e9"),
            ("a*2b", "2b"),
            ("`a", "`a"),
            ("``", "``"),
            ("a%b", "%b"),
            ("a -- b", "- b"),
            ("é é", "é"),
            ("a*1234567890123456789012345678901", "1234567890123456789012345678901"),
        ] {
            let said = format!("The expression {} can't be read at {}.", shown(text), shown(rest));
            assert_eq!(words(text), said, "{text}");
        }
        assert!(words(&"(".repeat(5000)).contains("more than"));
    }
}
