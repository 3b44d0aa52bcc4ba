//! Shares the texts of columns with one type: each of 1,000 columns of a view may have an ENUM of 12,000 members.

use crate::query::catalog::Members;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Types {
    known: HashMap<Arc<str>, Arc<Members>>,
}

impl Types {
    pub(super) fn share(&mut self, data_type: &str, type_text: String) -> (Arc<str>, Arc<Members>) {
        if let Some((text, members)) = self.known.get_key_value(type_text.as_str()) {
            return (Arc::clone(text), Arc::clone(members));
        }
        let members = if matches!(data_type, "enum" | "set") { listed(&type_text) } else { Members::default() };
        let (text, members): (Arc<str>, _) = (type_text.into(), Arc::new(members));
        self.known.insert(Arc::clone(&text), Arc::clone(&members));
        (text, members)
    }
}

fn listed(type_text: &str) -> Members {
    let Some((_, rest)) = type_text.split_once('(') else {
        return Members::default();
    };
    let mut values = Vec::new();
    let mut value = String::new();
    let mut inside = false;
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, inside) {
            ('\'', true) if chars.peek() == Some(&'\'') => {
                value.push('\'');
                chars.next();
            }
            ('\'', true) => {
                values.push(std::mem::take(&mut value));
                inside = false;
            }
            ('\'', false) => inside = true,
            (c, true) => value.push(c),
            (_, false) => {}
        }
    }
    values.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_enum_are_read_from_its_type() {
        assert_eq!(listed("enum('a','b''c','d,e','')").iter().collect::<Vec<_>>(), ["a", "b'c", "d,e", ""]);
    }

    #[test]
    fn columns_of_one_type_share_its_text_and_members() {
        let mut types = Types::default();
        let mut share = |text: &str| types.share(&text[..4], text.to_owned());
        let (one, again, other) = (share("enum('a','b')"), share("enum('a','b')"), share("enum('a')"));
        assert!(Arc::ptr_eq(&one.0, &again.0) && Arc::ptr_eq(&one.1, &again.1));
        assert_eq!(one.1.iter().chain(other.1.iter()).collect::<Vec<_>>(), ["a", "b", "a"]);
    }
}
