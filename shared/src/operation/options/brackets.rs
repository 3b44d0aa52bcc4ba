//! Query parameters in bracket form, `a[b]=c`, `a[]=x`, `a[0]=x`, as axios, qs and PHP's `http_build_query` write
//! objects and lists. Builds a tree of the parameters and converts it to JSON.

use super::{Options, repeated};
use crate::error::{ErrorCode, Problem};
use crate::ident::shown;
use crate::json::Value;
use crate::limits::JSON_NESTING_MAX_LEVELS;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Brackets(Vec<(String, Node)>);

impl Brackets {
    /// Adds a parameter. Returns `false` if the name is not in bracket form or nests too deep. A parameter without `=`
    /// is null, as qs writes null with `strictNullHandling`.
    pub(super) fn take(&mut self, name: &str, value: Option<&str>) -> Result<bool, Problem> {
        let Some((root, path)) = split(name) else {
            return Ok(false);
        };
        let known = self.0.iter().position(|(known, _)| known == root);
        let at = known.unwrap_or_else(|| {
            self.0.push((root.to_owned(), Node::Map(NodeMap::default())));
            self.0.len() - 1
        });
        match self.0[at].1.insert(&path, value) {
            Ok(()) => Ok(true),
            Err(BracketFault::Repeated) => Err(repeated(name)),
            Err(BracketFault::Unnumbered) => Err(unnumbered(name)),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_options(self) -> Options {
        let read = |(name, node): (String, Node)| (name, node.into_value());
        self.0.into_iter().map(read).collect()
    }
}

enum BracketFault {
    Repeated,
    Unnumbered,
}

fn unnumbered(name: &str) -> Problem {
    Problem::new(
        ErrorCode::InvalidQueryOption,
        format!("The part {} does not say which object of its list it belongs to.", shown(name)),
    )
    .with_hint("Number the objects: name[0][key]=…&name[1][key]=… (in qs: arrayFormat indices).")
}

/// `a[b][c]` → `a`, [`b`, `c`]; `None` for other forms and too deep nesting.
fn split(name: &str) -> Option<(&str, Vec<&str>)> {
    let (root, rest) = name.split_once('[')?;
    let inner = rest.strip_suffix(']')?;
    let path: Vec<&str> = inner.split("][").collect();
    let sound = !root.is_empty() && path.len() < JSON_NESTING_MAX_LEVELS;
    sound.then_some((root, path))
}

/// A value or a map of nodes. A map from `a[]=…` or from `a[0]=…&a[1]=…` is converted to a list.
enum Node {
    Leaf(Option<String>),
    Map(NodeMap),
}

#[derive(Default)]
struct NodeMap {
    list: Vec<(String, Node)>,
    /// Indexes in `list`, since a URL has room for hundreds of members of one object.
    by_name: HashMap<Box<str>, usize>,
}

impl NodeMap {
    fn push(&mut self, name: String, node: Node) {
        self.by_name.insert(name.as_str().into(), self.list.len());
        self.list.push((name, node));
    }
}

impl Node {
    fn insert(&mut self, path: &[&str], value: Option<&str>) -> Result<(), BracketFault> {
        let (Self::Map(members), Some((key, rest))) = (self, path.split_first()) else {
            return Err(BracketFault::Repeated);
        };
        // `a[]=x&a[]=y` appends to a list. A name without `[]` may occur only once.
        let key = if key.is_empty() {
            if let Some(inner) = rest.first()
                && !members.list.iter().all(|(_, member)| member.has(inner))
            {
                // `a[][b]=x&a[][c]=y` may mean one object or two: only a repeated `b` would show that the next object
                // begins.
                return Err(BracketFault::Unnumbered);
            }
            members.list.len().to_string()
        } else {
            (*key).to_owned()
        };
        match (members.by_name.get(&*key).copied(), rest) {
            (Some(_), []) => Err(BracketFault::Repeated),
            (None, []) => {
                members.push(key, Self::Leaf(value.map(str::to_owned)));
                Ok(())
            }
            (Some(at), rest) => members.list[at].1.insert(rest, value),
            (None, rest) => {
                let mut child = Self::Map(NodeMap::default());
                child.insert(rest, value)?;
                members.push(key, child);
                Ok(())
            }
        }
    }

    fn has(&self, key: &str) -> bool {
        match self {
            Self::Leaf(_) => false,
            Self::Map(members) => members.by_name.contains_key(key),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Leaf(None) => Value::Null,
            Self::Leaf(Some(text)) => Value::Text(text.into()),
            Self::Map(_) => {
                let json = self.to_json();
                if json.starts_with('[') { Value::List(json.into()) } else { Value::Object(json.into()) }
            }
        }
    }

    fn to_json(&self) -> String {
        match self {
            Self::Leaf(None) => "null".to_owned(),
            Self::Leaf(Some(text)) => quoted(text),
            Self::Map(NodeMap { list: members, .. }) if is_list(members) => {
                let mut items: Vec<_> = members.iter().collect();
                items.sort_by_key(|(index, _)| index.parse::<usize>().unwrap_or_default());
                let items: Vec<_> = items.into_iter().map(|(_, item)| item.to_json()).collect();
                format!("[{}]", items.join(","))
            }
            Self::Map(NodeMap { list: members, .. }) => {
                let members: Vec<_> =
                    members.iter().map(|(name, member)| format!("{}:{}", quoted(name), member.to_json())).collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn index(name: &str) -> Option<usize> {
    let index: usize = name.parse().ok()?;
    (index.to_string() == name).then_some(index)
}

fn is_list(members: &[(String, Node)]) -> bool {
    let mut is_there = vec![false; members.len()];
    members.iter().all(|(name, _)| {
        let seen = index(name).and_then(|index| is_there.get_mut(index));
        seen.is_some_and(|seen| !std::mem::replace(seen, true))
    })
}

#[cfg(test)]
mod tests {
    use super::super::pairs;
    use crate::json::Value;
    use crate::limits::JSON_NESTING_MAX_LEVELS;

    /// Returns the options of a query string as text, or the message of the problem.
    fn read(query: &str) -> String {
        match pairs(Some(query), &[]) {
            Ok(options) => {
                let json = |(name, value): (String, Value)| format!("{name}={}", value.to_json());
                options.into_iter().map(json).collect::<Vec<_>>().join(" ")
            }
            Err(problem) => problem.message().to_owned(),
        }
    }

    #[test]
    fn brackets_become_objects_and_lists() {
        for (query, expected) in [
            ("a[b]=c", r#"a={"b":"c"}"#),
            ("a%5Bb%5D%5Bc%5D=d+e", r#"a={"b":{"c":"d e"}}"#),
            ("a[]=x&a[]=y", r#"a=["x","y"]"#),
            ("a[1]=y&a[0]=x", r#"a=["x","y"]"#),
            ("a[0][f]=x&a[0][g]=y&a[1][f]=z", r#"a=[{"f":"x","g":"y"},{"f":"z"}]"#),
            ("a[][f]=x&a[][f]=y", r#"a=[{"f":"x"},{"f":"y"}]"#),
            ("a[b]=&c=", r#"a={"b":""} c="""#),
            ("a[b]&a[c]=d", r#"a={"b":null,"c":"d"}"#),
            ("a[b]=%5B1%5D", r#"a={"b":"[1]"}"#),
            ("a[%2B0]=x", r#"a={"+0":"x"}"#),
            ("a[00]=x", r#"a={"00":"x"}"#),
        ] {
            let ordered = |text: String| {
                let mut parts: Vec<_> = text.split(' ').map(str::to_owned).collect();
                parts.sort();
                parts.join(" ")
            };
            assert_eq!(ordered(read(query)), ordered(expected.to_owned()), "{query}");
        }
    }

    #[test]
    fn what_brackets_leave_open_is_refused() {
        for (query, part) in [
            ("a[b]=1&a[b]=2", "more than once"),
            ("a[0]=1&a[0]=2", "more than once"),
            ("a[b]=1&a[b][c]=2", "more than once"),
            ("a=1&a[b]=2", "more than once"),
            ("a=1&a=2", "more than once"),
            ("a[][f]=x&a[][g]=y", "which object"),
            ("a[][]=x&a[][]=y", "which object"),
            ("a[]=x&a[][f]=y", "which object"),
        ] {
            assert!(read(query).contains(part), "{query}: {}", read(query));
        }
    }

    #[test]
    fn brackets_nest_as_deep_as_json() {
        let nested = |levels: usize| format!("a{}=c", "[b]".repeat(levels));
        let most = JSON_NESTING_MAX_LEVELS - 1;
        let object = format!("{}\"c\"{}", "{\"b\":".repeat(most), "}".repeat(most));
        assert_eq!(read(&nested(most)), format!("a={object}"));
        let name = "[b]".repeat(most + 1);
        assert_eq!(read(&nested(most + 1)), format!("a{name}=\"c\""));
    }

    #[test]
    fn lists_have_as_many_items_as_are_written() {
        let long: Vec<String> = (0..200).rev().map(|n| format!("a[{n}]={n}")).collect();
        let items: Vec<String> = (0..200).map(|n| format!("\"{n}\"")).collect();
        assert_eq!(read(&long.join("&")), format!("a=[{}]", items.join(",")));
    }
}
