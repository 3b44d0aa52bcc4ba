//! The names of a row's cells, escaped once and for all rows, and the objects that some of them are in.

use super::text::{write_csv, write_string};
use std::ops::Range;

/// What a row is made of, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// One cell: `"id":1`.
    Field(&'a str),
    /// Several cells in an object of their own: `"author":{"id":1,"name":"x"}`, or `"author":null`.
    Object {
        /// The object's name.
        name: &'a str,
        /// Its cells.
        fields: Vec<&'a str>,
        /// The cell of the row that tells whether the object is there: NULL makes the whole object
        /// null. It may lie behind the cells that are written.
        presence: usize,
    },
}

/// The names of a row's cells, which are numbered flat in order of appearance. Each is escaped once:
/// `{"id":` and `,"title":`.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    objects: Vec<Object>,
}

/// Cells that come out in an object of their own.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// `{"author":` or `,"author":`
    pub(super) key: Vec<u8>,
    pub(super) cells: Range<usize>,
    pub(super) presence: usize,
}

impl Keys {
    /// Prepares the keys of a flat row. An empty list makes rows `{}`.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys = Self::default();
        for name in names {
            keys.cell(if keys.is_empty() { b'{' } else { b',' }, name);
        }
        keys
    }

    /// Prepares the keys of a row in which some cells may be in objects.
    pub fn nested<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Self {
        let mut keys = Self::default();
        let mut lead = b'{';
        for part in parts {
            match part {
                Part::Field(name) => keys.cell(lead, name),
                Part::Object { name, fields, presence } => {
                    let first = keys.len();
                    for (at, field) in fields.into_iter().enumerate() {
                        keys.cell(if at == 0 { b'{' } else { b',' }, field);
                    }
                    let mut key = vec![lead];
                    write_string(&mut key, name);
                    key.push(b':');
                    let cells = first..keys.len();
                    keys.objects.push(Object { key, cells, presence });
                }
            }
            lead = b',';
        }
        keys
    }

    fn cell(&mut self, lead: u8, name: &str) {
        self.bytes.push(lead);
        write_string(&mut self.bytes, name);
        self.bytes.push(b':');
        self.ends.push(self.bytes.len());
    }

    /// What is written before a cell's value.
    #[inline]
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    #[inline]
    pub(super) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// How many cells a row has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether rows have no cells.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends the names as a row of CSV; a cell in an object is `author.name`.
    pub(super) fn write_header(&self, out: &mut Vec<u8>) {
        for at in 0..self.len() {
            if at > 0 {
                out.push(b',');
            }
            let object = self.objects.iter().find(|object| object.cells.contains(&at));
            let name = match object {
                Some(object) => format!("{}.{}", name(&object.key), name(self.get(at))),
                None => name(self.get(at)),
            };
            write_csv(out, &name);
        }
    }
}

/// The name that a key was made of.
fn name(key: &[u8]) -> String {
    let string = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    // Written by `write_string`, so it reads back.
    serde_json::from_slice(string).unwrap_or_default()
}
