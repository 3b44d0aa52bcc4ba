//! The JSON keys of a row's cells, escaped once for all rows, and the nested objects that group some of the cells.

use super::text::{write_csv, write_string};
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Label<'a> {
    Field(&'a str),
    /// A nested object: `"author":{"id":1,"name":"x"}`, or `"author":null`.
    Object {
        name: &'a str,
        fields: Vec<&'a str>,
        /// The cell that is NULL if and only if the object is null. The cell need not be one of `fields`.
        presence: usize,
    },
}

/// The keys of all cells, including those of nested objects, as bytes to write, such as `{"id":` and `,"title":`.
#[derive(Clone, Debug, Default)]
pub struct ColumnLabels {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    objects: Vec<Object>,
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) key: Vec<u8>,
    pub(super) cells: Range<usize>,
    pub(super) presence: usize,
}

impl ColumnLabels {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut keys = Self::default();
        for name in names {
            keys.cell(if keys.is_empty() { b'{' } else { b',' }, name);
        }
        keys
    }

    pub fn nested<'a>(parts: impl IntoIterator<Item = Label<'a>>) -> Self {
        let mut keys = Self::default();
        let mut lead = b'{';
        for part in parts {
            match part {
                Label::Field(name) => keys.cell(lead, name),
                Label::Object { name, fields, presence } => {
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

    #[inline]
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start..self.ends[at]]
    }

    /// Returns the name of a cell outside of nested objects, as a JSON string.
    pub fn name(&self, at: usize) -> &[u8] {
        let label = self.get(at);
        label.get(1..label.len() - 1).unwrap_or_default()
    }

    #[inline]
    pub(super) fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Returns bytes that are equal for two rows without nested objects if and only if their cells have equal names.
    pub fn layout_id(&self) -> &[u8] {
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Writes the header row of CSV. A cell of a nested object is named `author.name`.
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

fn name(key: &[u8]) -> String {
    let string = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
    // The key was written by `write_string`, so it is valid JSON.
    serde_json::from_slice(string).unwrap_or_default()
}
