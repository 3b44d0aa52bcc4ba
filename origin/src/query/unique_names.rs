//! Numbers repeated names, in linear time: a caller may repeat one name tens of thousands of times.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The names in use, each with the next number to try for a repetition.
#[derive(Default)]
pub struct UniqueNames(HashMap<String, usize, foldhash::fast::RandomState>);

impl UniqueNames {
    /// Returns the name or, if it is in use, the name with `separator` and the first free number from 2 on.
    pub fn unique(&mut self, name: &str, separator: &str) -> String {
        let Some(mut number) = self.0.get(name).copied() else {
            self.0.insert(name.to_owned(), 2);
            return name.to_owned();
        };
        loop {
            let unique = format!("{name}{separator}{number}");
            number += 1;
            if let Entry::Vacant(free) = self.0.entry(unique.clone()) {
                free.insert(2);
                self.0.insert(name.to_owned(), number);
                return unique;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_name_gets_the_first_free_number() {
        let mut names = UniqueNames::default();
        let unique: Vec<_> = ["a", "a_3", "a", "a", "a_2", "b", "a"].map(|name| names.unique(name, "_")).into();
        assert_eq!(unique, ["a", "a_3", "a_2", "a_4", "a_2_2", "b", "a_5"]);
    }

    #[test]
    fn a_name_may_be_repeated_as_often_as_a_result_has_columns() {
        // Counting from 2 for each name would take very long.
        let mut names = UniqueNames::default();
        let last = (0..65_535).map(|_| names.unique("a", "_")).last();
        assert_eq!(last.as_deref(), Some("a_65535"));
    }
}
