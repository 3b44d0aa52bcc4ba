//! An object of the body, whose members are taken one by one. Each problem names its key by the path in the body.

use crate::error::{ErrorCode, Problem, nearest};
use crate::ident::{FieldName, KeyName, shown};
use crate::json::{self, Value};
use crate::limits::FIELDS_MAX_COUNT;
use std::borrow::Cow;

pub(super) struct Part {
    /// Empty for the body.
    path: String,
    members: Vec<(String, Value)>,
}

pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::InvalidBody, message)
}

impl Part {
    pub(super) fn of_body(members: Vec<(String, Value)>) -> Self {
        Self { path: String::new(), members }
    }

    pub(super) fn of(path: &str, value: Value) -> Result<Self, Problem> {
        let Value::Object(text) = value else {
            return Err(invalid(format!("{path} must be an object, not {}.", value.shown())));
        };
        let members = json::members(&text).map_err(|fault| invalid(format!("{path} can't be read: {fault}.")))?;
        let members = members.into_iter().map(|(name, value)| (name.into_owned(), value)).collect();
        Ok(Self { path: path.to_owned(), members })
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Takes the value; `None` if the key is missing or null.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        let at = self.members.iter().position(|(name, _)| name == key)?;
        Some(self.members.swap_remove(at).1).filter(|value| *value != Value::Null)
    }

    /// Takes the key if its value is null.
    pub(super) fn take_null(&mut self, key: &str) -> bool {
        let at = self.members.iter().position(|(name, value)| name == key && *value == Value::Null);
        at.map(|at| self.members.swap_remove(at)).is_some()
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<Box<str>>, Problem> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Text(text)) if text.contains('\0') => {
                Err(invalid(format!("{} holds a NUL character.", self.path_of(key))))
            }
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong(key, "a string", &other)),
        }
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<bool, Problem> {
        match self.take(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.wrong(key, "true or false", &other)),
        }
    }

    /// Takes one of a few words, in any case.
    pub(super) fn word<T: Copy>(&mut self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Problem> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let is_meant = |word: &str| matches!(&value, Value::Text(text) if text.eq_ignore_ascii_case(word));
        match words.iter().find(|(word, _)| is_meant(word)) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                Err(self.wrong(key, &format!("one of {}", words.join(", ")), &value))
            }
        }
    }

    /// Parses each item of a list; none if the key is missing.
    pub(super) fn each<T>(
        &mut self,
        key: &str,
        parse: impl Fn(&str, Value) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        let path = self.path_of(key);
        let items = match self.take(key) {
            None => Vec::new(),
            Some(Value::List(text)) => json::items(&text, FIELDS_MAX_COUNT)
                .map_err(|fault| invalid(format!("{path} can't be read: {fault}.")))?,
            Some(other) => return Err(self.wrong(key, "a list", &other)),
        };
        if items.len() > FIELDS_MAX_COUNT {
            return Err(invalid(format!("{path} has more than {FIELDS_MAX_COUNT} items.")));
        }
        items.into_iter().enumerate().map(|(at, item)| parse(&format!("{path}[{at}]"), item)).collect()
    }

    pub(super) fn names(&mut self, key: &str) -> Result<Option<Vec<FieldName>>, Problem> {
        let is_given = self.members.iter().any(|(name, value)| name == key && *value != Value::Null);
        let names = self.each(key, |path, value| FieldName::parse(name(path, &value)?))?;
        Ok(is_given.then_some(names))
    }

    pub(super) fn key_names(&mut self, key: &str) -> Result<Vec<KeyName>, Problem> {
        self.each(key, |path, value| KeyName::parse(name(path, &value)?))
    }

    pub(super) fn wrong(&self, key: &str, expected: &str, got: &Value) -> Problem {
        invalid(format!("{} must be {expected}, not {}.", self.path_of(key), got.shown()))
    }

    pub(super) fn missing(&self, key: &str) -> Problem {
        let owner = if self.path.is_empty() { "The body" } else { &self.path };
        invalid(format!("{owner} needs {key}."))
    }

    /// Refuses members that were not taken.
    pub(super) fn end(self, known: &[&str]) -> Result<(), Problem> {
        let Some((name, _)) = self.members.first() else {
            return Ok(());
        };
        let owner = if self.path.is_empty() { "the body" } else { &self.path };
        let problem = invalid(format!("There is no key {} in {owner}.", shown(name)));
        Err(match nearest(name, known.iter().copied()) {
            Some(near) => problem.with_hint(format!("Did you mean {}?", shown(near))),
            None => problem.with_hint(format!("Keys: {}.", known.join(", "))),
        })
    }
}

fn name<'a>(path: &str, value: &'a Value) -> Result<&'a str, Problem> {
    match value {
        Value::Text(name) => Ok(name),
        other => Err(invalid(format!("{path} must be a name, not {}.", other.shown()))),
    }
}
