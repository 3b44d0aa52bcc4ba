//! Parses conditions: named operators, scalar or list operands, nested groups, conditions on related records.

use super::operator::{Operator, operator, short_name_of, short_names, short_operator};
use super::{Comparison, Condition, Joiner, Quantifier, Related, Test};
use crate::error::{ErrorCode, Problem};
use crate::ident::{TableName, shown};
use crate::json::{self, Value};
use crate::limits::{CONDITION_MAX_COUNT, LIST_MAX_VALUES, RELATED_CONDITION_MAX_COUNT, RELATION_NAME_MAX_BYTES};
use crate::operation::field::FieldRef;
use crate::operation::options;
use std::borrow::Cow;

impl Joiner {
    fn join(self, mut conditions: Vec<Condition>) -> Condition {
        match (conditions.len(), self) {
            (1, _) => conditions.remove(0),
            (_, Self::And) => Condition::All(conditions),
            (_, Self::Or) => Condition::Any(conditions),
        }
    }
}

pub(in crate::operation) fn joiner(name: &str, value: &Value) -> Result<Joiner, Problem> {
    match value {
        Value::Text(word) if word.eq_ignore_ascii_case("AND") => Ok(Joiner::And),
        Value::Text(word) if word.eq_ignore_ascii_case("OR") => Ok(Joiner::Or),
        other => Err(options::wrong(name, "AND or OR", other)),
    }
}

pub(super) fn invalid(message: String) -> Problem {
    Problem::new(ErrorCode::InvalidFilter, message)
}

#[derive(Default)]
struct FilterParser {
    count: usize,
    related: usize,
}

impl Condition {
    /// Parses `query`; `None` without conditions. Fails with `invalid_filter` or `invalid_identifier`.
    pub fn from_query(query: &Value, joiner: Joiner) -> Result<Option<Self>, Problem> {
        let text = match query {
            Value::Object(text) => text,
            // PHP writes an empty map like an empty list.
            Value::List(text) if json::items(text, 0).is_ok_and(|items| items.is_empty()) => return Ok(None),
            other => {
                return Err(invalid(format!(
                    "The option query must be an object of conditions, not {}.",
                    other.kind()
                )));
            }
        };
        let conditions = FilterParser::default().group(text)?;
        Ok((!conditions.is_empty()).then(|| joiner.join(conditions)))
    }

    /// Parses a list of `{key, value?, operator?}`, which must not be empty.
    pub(in crate::operation) fn from_key_values(name: &str, list: &Value, joiner: Joiner) -> Result<Self, Problem> {
        let expected = format!("{name} must be a list of {{key, value, operator?}}");
        let Value::List(text) = list else {
            return Err(invalid(format!("{expected}, not {}.", list.kind())));
        };
        let items = json::items(text, CONDITION_MAX_COUNT)
            .map_err(|fault| invalid(format!("{name} can't be read: {fault}.")))?;
        if items.is_empty() {
            return Err(invalid(format!("{name} is empty: it must say which records are meant.")).with_hint(
                "Give at least one {key, value}; no request changes or deletes a whole table by omission.",
            ));
        }
        if items.len() > CONDITION_MAX_COUNT {
            return Err(too_many());
        }
        let conditions = items
            .into_iter()
            .map(|item| match item {
                Value::Object(text) => key_value(name, &text),
                other => Err(invalid(format!("{expected}; it holds {}.", other.kind()))),
            })
            .collect::<Result<_, _>>()?;
        Ok(joiner.join(conditions))
    }
}

/// The hint is for a JSON object that was parsed as a condition.
const AS_VALUE: &str = "To compare with a JSON object or GeoJSON, give it as the condition's value: {\"value\": {…}}.";

fn too_many() -> Problem {
    invalid(format!("There are more than {CONDITION_MAX_COUNT} conditions."))
}

impl FilterParser {
    fn group(&mut self, text: &str) -> Result<Vec<Condition>, Problem> {
        let members =
            json::members(text).map_err(|fault| invalid(format!("The conditions can't be read: {fault}.")))?;
        members.into_iter().map(|(label, value)| self.condition(&label, value)).collect()
    }

    fn condition(&mut self, label: &str, value: Value) -> Result<Condition, Problem> {
        self.count += 1;
        if self.count > CONDITION_MAX_COUNT {
            return Err(too_many());
        }
        match value {
            Value::Object(text) => {
                let members = json::members(&text)
                    .map_err(|fault| invalid(format!("The condition {} can't be read: {fault}.", shown(label))))?;
                match members.first() {
                    _ if members.iter().any(|(name, _)| name == "__query") => self.nested(label, members),
                    Some((name, _)) if quantifier(name).is_some() => self.related(label, members),
                    _ => self.on_field(label, members),
                }
            }
            bare => {
                let test = resolve(label, Operator::Compare(Comparison::Equal), bare, Joiner::Or)?;
                Ok(test.of(FieldRef::parse(label)?, false))
            }
        }
    }

    /// Parses a nested group: `{"__query": {…}, "operator": "OR", "not": true}`
    fn nested(&mut self, label: &str, members: Vec<(Cow<'_, str>, Value)>) -> Result<Condition, Problem> {
        let (mut inner, mut how, mut negated) = (Vec::new(), Joiner::And, false);
        for (name, value) in members {
            match (&*name, &value) {
                ("__query", Value::Object(text)) => inner = self.group(text)?,
                ("operator", _) => how = joiner_of(label, &value)?,
                ("not", _) => negated = flag("not", label, &value)?,
                ("__query", other) => {
                    return Err(invalid(format!(
                        "__query of {} must be an object, not {}.",
                        shown(label),
                        other.kind()
                    )));
                }
                (other, _) => {
                    return Err(unknown_part(label, other, &["__query", "operator", "not"]));
                }
            }
        }
        if inner.is_empty() {
            return Err(invalid(format!("The group {} holds no condition.", shown(label))));
        }
        Ok(negate(how.join(inner), negated))
    }

    fn related(&mut self, label: &str, members: Vec<(Cow<'_, str>, Value)>) -> Result<Condition, Problem> {
        if label.len() > RELATION_NAME_MAX_BYTES {
            return Err(invalid(format!("A relation's name has more than {RELATION_NAME_MAX_BYTES} bytes.")));
        }
        let mut conditions = Vec::with_capacity(members.len());
        for (name, value) in members {
            let Some(quantifier) = quantifier(&name) else {
                return Err(unknown_part(label, &name, &["some", "none", "every"]));
            };
            let Value::Object(text) = &value else {
                let found = value.kind();
                return Err(invalid(format!(
                    "{name} of {} must be an object of conditions, not {found}.",
                    shown(label)
                )));
            };
            self.related += 1;
            if self.related > RELATED_CONDITION_MAX_COUNT {
                return Err(invalid(format!(
                    "There are more than {RELATED_CONDITION_MAX_COUNT} conditions on related records."
                )));
            }
            let inner = self.group(text)?;
            let condition = (!inner.is_empty()).then(|| Box::new(Joiner::And.join(inner)));
            conditions.push(Condition::Related(Related { relation: label.into(), quantifier, condition }));
        }
        Ok(Joiner::And.join(conditions))
    }

    fn on_field(&mut self, label: &str, members: Vec<(Cow<'_, str>, Value)>) -> Result<Condition, Problem> {
        let mut other_than_parts = members.iter().map(|(name, _)| &**name).filter(|name| !PARTS.contains(name));
        if let Some(unknown) = other_than_parts.clone().find(|name| short_operator(name).is_none()) {
            return Err(not_a_part(label, unknown));
        }
        match (other_than_parts.clone().count(), other_than_parts.next()) {
            (_, None) => spelled(label, members),
            (count, Some(_)) if count == members.len() => self.short(label, members),
            (_, Some(operator)) => Err(invalid(format!(
                "The condition {} mixes the operator {operator} with parts of the long form.",
                shown(label)
            ))
            .with_hint(format!(
                "Write {{{}: {{\"{operator}\": …}}}}, or {{\"value\": …, \"equality\": …}} alone.",
                shown(label)
            ))),
        }
    }

    fn short(&mut self, label: &str, members: Vec<(Cow<'_, str>, Value)>) -> Result<Condition, Problem> {
        self.count += members.len() - 1;
        if self.count > CONDITION_MAX_COUNT {
            return Err(too_many());
        }
        let field = FieldRef::parse(label)?;
        let parse = |(name, value): (Cow<'_, str>, Value)| {
            let (operator, negated) = short_operator(&name).ok_or_else(|| not_a_part(label, &name))?;
            let negated = match operator {
                Operator::IsNull => !flag(&name, label, &value)?,
                _ => negated,
            };
            Ok(resolve(label, operator, value, Joiner::Or)?.of(field.clone(), negated))
        };
        Ok(Joiner::And.join(members.into_iter().map(parse).collect::<Result<_, _>>()?))
    }
}

const PARTS: [&str; 6] = ["value", "equality", "operator", "tableName", "fieldName", "not"];

fn not_a_part(label: &str, name: &str) -> Problem {
    let problem = invalid(format!("The condition {} has no part {}.", shown(label), shown(name)));
    match short_name_of(name) {
        Some(meant) => problem.with_hint(format!("Write {{{}: {{\"{meant}\": …}}}}.", shown(label))),
        None => {
            let (parts, operators) = (PARTS.join(", "), short_names().collect::<Vec<_>>().join(", "));
            problem.with_hint(format!("Its parts are {parts}. Or give operators alone: {operators}. {AS_VALUE}"))
        }
    }
}

/// Parses a condition in the long form: `{value?, equality?, operator?, tableName?, fieldName?, not?}`
fn spelled(label: &str, members: Vec<(Cow<'_, str>, Value)>) -> Result<Condition, Problem> {
    let (mut table, mut field, mut value) = (None, None, None);
    let (mut negated, mut how) = (false, Joiner::Or);
    let mut equality = (Operator::Compare(Comparison::Equal), false);
    for (name, part) in members {
        match (&*name, &part) {
            ("value", _) => value = Some(part),
            ("equality", Value::Text(word)) => equality = operator(word)?,
            ("operator", _) => how = joiner_of(label, &part).map_err(|problem| as_equality(problem, &part))?,
            ("not", _) => negated = flag("not", label, &part)?,
            ("fieldName", Value::Text(name)) => field = Some(FieldRef::parse(name)?),
            ("tableName", Value::Text(name)) => table = Some(TableName::parse(name)?),
            (known, other) if PARTS.contains(&known) => {
                return Err(invalid(format!(
                    "{known} of the condition {} must be a string, not {}.",
                    shown(label),
                    other.kind()
                )));
            }
            (other, _) => return Err(not_a_part(label, other)),
        }
    }
    let value = match (value, equality.0) {
        (Some(value), _) => value,
        (None, Operator::IsNull) => Value::Null,
        (None, _) => {
            return Err(invalid(format!("The condition {} has no value.", shown(label))).with_hint(AS_VALUE));
        }
    };
    let field = match field {
        Some(field) => field,
        None => FieldRef::parse(label)?,
    };
    let field = match table {
        Some(table) => FieldRef::of(table, field.field().clone()),
        None => field,
    };
    let test = resolve(label, equality.0, value, how)?;
    Ok(negate(test.of(field, equality.1), negated))
}
fn quantifier(name: &str) -> Option<Quantifier> {
    match name {
        "some" => Some(Quantifier::Some),
        "none" => Some(Quantifier::None),
        "every" => Some(Quantifier::Every),
        _ => None,
    }
}

fn key_value(list: &str, text: &str) -> Result<Condition, Problem> {
    let members = json::members(text).map_err(|fault| invalid(format!("{list} can't be read: {fault}.")))?;
    let (mut key, mut value) = (None, None);
    let mut equality = (Operator::Compare(Comparison::Equal), false);
    for (name, part) in members {
        match (&*name, &part) {
            ("key", Value::Text(name)) => key = Some(FieldRef::parse(name)?),
            ("value", _) => value = Some(part),
            ("operator", Value::Text(word)) => equality = operator(word)?,
            ("key" | "operator", other) => {
                return Err(invalid(format!("{name} of {list} must be a string, not {}.", other.kind())));
            }
            (other, _) => {
                return Err(unknown_part(list, other, &["key", "value", "operator"]));
            }
        }
    }
    let key = key.ok_or_else(|| invalid(format!("An item of {list} has no key.")))?;
    let value = match (value, equality.0) {
        (Some(value), _) => value,
        (None, Operator::IsNull) => Value::Null,
        (None, _) => {
            return Err(invalid(format!("The item {} of {list} has no value.", shown(&key.to_string()))));
        }
    };
    if matches!(&value, Value::List(text) if json::items(text, 0).is_ok_and(|items| items.is_empty())) {
        return Err(invalid(format!("The list of {} in {list} is empty.", shown(&key.to_string()))));
    }
    let test = resolve(&key.to_string(), equality.0, value, Joiner::Or)?;
    Ok(test.of(key, equality.1))
}

fn unknown_part(label: &str, part: &str, known: &[&str]) -> Problem {
    invalid(format!("The condition {} has no part {}.", shown(label), shown(part)))
        .with_hint(format!("Its parts are {}.", known.join(", ")))
}

fn joiner_of(label: &str, value: &Value) -> Result<Joiner, Problem> {
    joiner("operator", value)
        .map_err(|_| invalid(format!("operator of the condition {} must be AND or OR.", shown(label))))
}

fn as_equality(problem: Problem, operator: &Value) -> Problem {
    match operator {
        Value::Text(word) if self::operator(word).is_ok() => problem.with_hint(format!(
            "Give the comparison as equality: {{\"value\": …, \"equality\": {}}}; operator joins the values of a list.",
            shown(word)
        )),
        _ => problem.with_hint("The comparison is given as equality; operator joins the values of a list."),
    }
}

fn flag(part: &str, label: &str, value: &Value) -> Result<bool, Problem> {
    // In query parameters in bracket form (`a[b]=c`), all values are text.
    options::boolean(value).ok_or_else(|| {
        invalid(format!("{part} of the condition {} must be true or false, not {}.", shown(label), value.kind()))
    })
}

fn negate(condition: Condition, negated: bool) -> Condition {
    match (condition, negated) {
        (condition, false) => condition,
        (Condition::Not(inner), true) => *inner,
        (condition, true) => Condition::Not(Box::new(condition)),
    }
}

enum Tests {
    One(Test),
    Not(Test),
    Several(Joiner, Vec<Test>),
}

impl Tests {
    fn of(self, field: FieldRef, negated: bool) -> Condition {
        match self {
            Self::One(test) => negate(Condition::Test(field, test), negated),
            Self::Not(test) => negate(Condition::Test(field, test), !negated),
            Self::Several(how, tests) => {
                how.join(tests.into_iter().map(|test| negate(Condition::Test(field.clone(), test), negated)).collect())
            }
        }
    }
}

fn resolve(label: &str, operator: Operator, value: Value, how: Joiner) -> Result<Tests, Problem> {
    use Comparison::{Equal, NotEqual, NullSafeEqual};
    if let Value::List(text) = &value {
        let values = json::items(text, LIST_MAX_VALUES)
            .map_err(|fault| invalid(format!("The list of {} can't be read: {fault}.", shown(label))))?;
        return resolve_list(label, operator, values, how);
    }
    Ok(Tests::One(match (operator, value) {
        (Operator::IsNull, _) | (Operator::Compare(Equal | NullSafeEqual), Value::Null) => Test::IsNull,
        (Operator::Compare(NotEqual), Value::Null) => return Ok(Tests::Not(Test::IsNull)),
        (_, Value::Null) => {
            return Err(invalid(format!("The condition {} compares to null, which is never true.", shown(label)))
                .with_hint("Use IS NULL or IS NOT NULL."));
        }
        (Operator::Compare(comparison), value) => Test::Compare(comparison, value),
        (Operator::In, value) => Test::In(vec![value]),
        (Operator::Between, _) => return Err(needs_two(label)),
        (Operator::Like, value) => Test::Like(value),
        (Operator::Regexp, value) => Test::Regexp(value),
        (Operator::Text(position), value) => Test::Text(position, literal(label, &value)?),
        (Operator::Match(mode), value) => Test::Match(mode, literal(label, &value)?),
    }))
}

fn resolve_list(label: &str, operator: Operator, mut values: Vec<Value>, how: Joiner) -> Result<Tests, Problem> {
    if values.len() > LIST_MAX_VALUES {
        return Err(invalid(format!("The list of {} has more than {LIST_MAX_VALUES} values.", shown(label))));
    }
    if values.iter().any(|value| matches!(value, Value::List(_))) {
        return Err(invalid(format!("The list of {} holds a list.", shown(label))));
    }
    match operator {
        Operator::Between => match (values.pop(), values.pop(), values.is_empty()) {
            (Some(high), Some(low), true) if high != Value::Null && low != Value::Null => {
                Ok(Tests::One(Test::Between(low, high)))
            }
            _ => Err(needs_two(label)),
        },
        Operator::In | Operator::Compare(Comparison::Equal) => Ok(Tests::One(Test::In(values))),
        Operator::Compare(Comparison::NotEqual) => Ok(Tests::Not(Test::In(values))),
        _ if values.is_empty() => Err(invalid(format!("The list of {} is empty.", shown(label)))),
        _ => {
            let mut tests = Vec::with_capacity(values.len());
            for value in values {
                match resolve(label, operator, value, how)? {
                    Tests::One(test) => tests.push(test),
                    Tests::Not(_) | Tests::Several(..) => return Err(needs_two(label)),
                }
            }
            Ok(Tests::Several(how, tests))
        }
    }
}

fn needs_two(label: &str) -> Problem {
    invalid(format!("BETWEEN of the condition {} takes a list of two values.", shown(label)))
}

fn literal(label: &str, value: &Value) -> Result<String, Problem> {
    match value {
        Value::Text(text) | Value::Number(text) => Ok(text.to_string()),
        other => Err(invalid(format!("The condition {} takes text, not {}.", shown(label), other.kind()))),
    }
}
