//! The relations between the tables of a database, derived from its foreign keys, and their names for callers.

use shared::error::{ErrorCode, Problem, nearest};
use shared::ident::{FieldName, TableName, shown};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub name: String,
    pub table: TableName,
    pub columns: Vec<FieldName>,
    pub target: TableName,
    pub target_columns: Vec<FieldName>,
}

#[derive(Debug, Default)]
pub struct Relations {
    by_table: HashMap<TableName, Vec<Arc<Relation>>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub name: String,
    /// The name in messages and descriptions: `name`, or an alias if another relation of the table has the same `name`.
    pub spelling: String,
    pub kind: RelationKind,
    pub table: TableName,
    pub columns: Vec<FieldName>,
    /// The columns of the link table or, without a link, the related table that equal `columns`, in the same order.
    pub matches: Vec<FieldName>,
    pub link: Option<Link>,
    /// Further names, tried after `spelling` and `name`. Other relations may have the same aliases, except the last.
    aliases: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    One,
    Many,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub table: TableName,
    pub columns: Vec<FieldName>,
    pub matches: Vec<FieldName>,
}

impl Relations {
    /// Returns `None` if the relations have more than `max_bytes`: the foreign keys of one link table may form millions.
    pub fn new(
        keys: &[ForeignKey],
        primary: &HashMap<TableName, Vec<FieldName>>,
        max_bytes: usize,
    ) -> Option<(Self, usize)> {
        let mut by_table: HashMap<&TableName, Vec<Relation>> = HashMap::new();
        let mut bytes = 0;
        let links = links(keys);
        let pairs =
            keys.iter().flat_map(|near| far_keys(near, &links, primary).into_iter().map(move |far| (near, far)));
        let to_one = keys.iter().map(|key| (&key.table, to_one(key)));
        let to_many = keys.iter().map(|key| (&key.target, to_many(key)));
        let through = pairs.map(|(near, far)| (&near.target, through(near, far)));
        for (table, relation) in to_one.chain(to_many).chain(through) {
            bytes += relation.bytes();
            if bytes > max_bytes {
                return None;
            }
            by_table.entry(table).or_default().push(relation);
        }
        let by_table = by_table.into_iter().map(|(table, relations)| (table.clone(), spelled(relations))).collect();
        Some((Self { by_table }, bytes))
    }

    /// Returns a table's visible relations: to one record, to many, by a link table. Hidden ones change no spelling.
    pub fn of(&self, table: &TableName, is_visible: impl Fn(&Relation) -> bool) -> Vec<Arc<Relation>> {
        let all = self.by_table.get(table).map_or(&[][..], Vec::as_slice);
        let visible: Vec<_> = all.iter().filter(|relation| is_visible(relation)).map(Arc::clone).collect();
        if visible.len() == all.len() {
            return visible;
        }
        // A name that only a hidden relation shares is not ambiguous.
        spelled(visible.iter().map(|relation| Relation::clone(relation)).collect())
    }
}

/// Sets each `spelling`: the name, or if another relation has the same name, the first alias that no other one uses.
fn spelled(mut relations: Vec<Relation>) -> Vec<Arc<Relation>> {
    let (mut names, mut aliases): (HashMap<&str, usize>, HashMap<&str, usize>) = Default::default();
    for relation in &relations {
        *names.entry(&relation.name).or_default() += 1;
        for alias in relation.aliases.iter().collect::<HashSet<_>>() {
            *aliases.entry(alias).or_default() += 1;
        }
    }
    let spellings = relations.iter().map(|own| {
        let is_free = |alias: &&String| {
            aliases.get(alias.as_str()) == Some(&1) && (own.name == **alias || !names.contains_key(alias.as_str()))
        };
        match names.get(own.name.as_str()) {
            Some(1) => own.name.clone(),
            _ => own.aliases.iter().find(is_free).or(own.aliases.last()).unwrap_or(&own.name).clone(),
        }
    });
    let spellings: Vec<_> = spellings.collect();
    relations.iter_mut().zip(spellings).for_each(|(relation, spelling)| relation.spelling = spelling);
    relations.into_iter().map(Arc::new).collect()
}

type Links<'a> = HashMap<(&'a TableName, Vec<&'a FieldName>), Vec<&'a ForeignKey>>;

/// Returns a map from a table and its sorted columns to the foreign keys that these columns have there.
fn links(keys: &[ForeignKey]) -> Links<'_> {
    let mut links = Links::new();
    for key in keys {
        links.entry((&key.table, sorted(key.columns.iter()))).or_default().push(key);
    }
    links
}

fn sorted<'a>(fields: impl Iterator<Item = &'a FieldName>) -> Vec<&'a FieldName> {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable_by_key(|field| field.as_str());
    fields
}

/// Returns the foreign keys that, with `near`, form the primary key of `near`'s table, which is then a link table.
fn far_keys<'a>(
    near: &'a ForeignKey,
    links: &Links<'a>,
    primary: &'a HashMap<TableName, Vec<FieldName>>,
) -> Vec<&'a ForeignKey> {
    let primary = primary.get(&near.table).map_or(&[][..], Vec::as_slice);
    let others = sorted(primary.iter().filter(|column| !near.columns.contains(column)));
    if others.is_empty() || others.len() + near.columns.len() != primary.len() {
        return Vec::new();
    }
    links.get(&(&near.table, others)).cloned().unwrap_or_default()
}

pub fn find<'a>(
    relations: &'a [Arc<Relation>],
    table: &TableName,
    name: &str,
    code: ErrorCode,
) -> Result<&'a Arc<Relation>, Problem> {
    let by = |found: &dyn Fn(&Relation) -> bool| relations.iter().filter(|one| found(one)).collect::<Vec<_>>();
    let mut candidates = by(&|one| one.spelling == name);
    if candidates.is_empty() {
        candidates = by(&|one| one.name == name);
    }
    if candidates.is_empty() {
        candidates = by(&|one| one.aliases.iter().any(|alias| alias == name));
    }
    match candidates.as_slice() {
        [one] => Ok(one),
        [] => {
            let table = shown(table.as_str());
            let problem = Problem::new(code, format!("The table {table} has no relation {}.", shown(name)));
            let names: Vec<_> = relations.iter().map(|one| one.spelling.as_str()).collect();
            Err(match nearest(name, names.iter().copied()) {
                Some(near) => problem.with_hint(format!("Did you mean {}?", shown(near))),
                None if names.is_empty() => problem.with_hint("No foreign key leads to it or from it."),
                None => problem.with_hint(format!("Its relations are {}.", names.join(", "))),
            })
        }
        several => {
            let names: Vec<_> = several.iter().map(|one| one.spelling.as_str()).collect();
            Err(Problem::new(
                ErrorCode::AmbiguousRelation,
                format!("The relation name {} of {} is ambiguous.", shown(name), shown(table.as_str())),
            )
            .with_hint(format!("Use one of {}.", names.join(", "))))
        }
    }
}

fn to_one(key: &ForeignKey) -> Relation {
    let target = key.target.as_str().to_owned();
    let (name, aliases) = match key.columns.as_slice() {
        [column] => {
            let column = column.as_str();
            let base = column.strip_suffix("_id").or_else(|| column.strip_suffix("Id"));
            let name = base.filter(|base| !base.is_empty()).unwrap_or(column);
            (name.to_owned(), vec![column.to_owned(), target, key.name.clone()])
        }
        _ => (target, vec![key.name.clone()]),
    };
    Relation {
        name,
        spelling: String::new(),
        kind: RelationKind::One,
        table: key.target.clone(),
        columns: key.columns.clone(),
        matches: key.target_columns.clone(),
        link: None,
        aliases,
    }
}

impl Relation {
    /// The approximate memory, with an entry in each of two lists.
    fn bytes(&self) -> usize {
        const STRING_BYTES: usize = size_of::<String>() + 16;
        let names = self.columns.iter().chain(&self.matches);
        let names = names.chain(self.link.iter().flat_map(|link| link.columns.iter().chain(&link.matches)));
        let names: usize = names.map(|name| STRING_BYTES + name.as_str().len()).sum();
        let texts = self.aliases.iter().chain([&self.name, &self.name]);
        let texts: usize = texts.map(|text| STRING_BYTES + text.len()).sum();
        size_of::<Self>() + 2 * size_of::<Arc<Self>>() + names + texts
    }
}

fn qualified(key: &ForeignKey) -> String {
    match key.columns.as_slice() {
        [column] => format!("{}.{column}", key.table),
        _ => format!("{}.{}", key.table, key.name),
    }
}

fn to_many(key: &ForeignKey) -> Relation {
    Relation {
        name: key.table.as_str().to_owned(),
        spelling: String::new(),
        kind: RelationKind::Many,
        table: key.table.clone(),
        columns: key.target_columns.clone(),
        matches: key.columns.clone(),
        link: None,
        aliases: vec![qualified(key), format!("{}.{}", key.table, key.name)],
    }
}

fn through(near: &ForeignKey, far: &ForeignKey) -> Relation {
    let link = format!("{}.{}", far.target, far.table);
    Relation {
        name: far.target.as_str().to_owned(),
        aliases: vec![
            format!("{}.{}", far.target, qualified(far)),
            link.clone(),
            format!("{link}.{}.{}", near.name, far.name),
        ],
        spelling: String::new(),
        kind: RelationKind::Many,
        table: far.target.clone(),
        columns: near.target_columns.clone(),
        matches: near.columns.clone(),
        link: Some(Link {
            table: far.table.clone(),
            columns: far.columns.clone(),
            matches: far.target_columns.clone(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, from: &str, columns: &str, to: &str, targets: &str) -> ForeignKey {
        let fields = |text: &str| text.split(',').map(|name| FieldName::parse(name).unwrap()).collect();
        ForeignKey {
            name: name.to_owned(),
            table: TableName::parse(from).unwrap(),
            columns: fields(columns),
            target: TableName::parse(to).unwrap(),
            target_columns: fields(targets),
        }
    }

    fn relations() -> Relations {
        let primary = [("post_tags", "post_id,tag_id"), ("follows", "follower_id,followee_id"), ("notes", "id")];
        let fields = |text: &str| text.split(',').map(|name| FieldName::parse(name).unwrap()).collect();
        Relations::new(
            &[
                key("p1", "posts", "author_id", "users", "id"),
                key("p2", "posts", "editorId", "users", "id"),
                key("c1", "comments", "post_id", "posts", "id"),
                key("c2", "comments", "reply_to", "posts", "id"),
                key("e1", "staff", "manager_id", "staff", "id"),
                key("t1", "post_tags", "post_id", "posts", "id"),
                key("t2", "post_tags", "tag_id", "tags", "id"),
                key("f1", "follows", "follower_id", "users", "id"),
                key("f2", "follows", "followee_id", "users", "id"),
                key("n1", "notes", "post_id", "posts", "id"),
                key("s1", "seats", "hall,row", "rows", "hall,number"),
                key("o1", "stars", "owner_id", "posts", "id"),
                key("o2", "stars", "owner_id", "notes", "id"),
                key("d1", "likes", "post_id", "posts", "id"),
                key("d2", "likes", "post_id", "posts", "id"),
            ],
            &primary.map(|(table, columns)| (TableName::parse(table).unwrap(), fields(columns))).into(),
            usize::MAX,
        )
        .unwrap()
        .0
    }

    fn spellings(table: &str) -> Vec<String> {
        let relations = relations().of(&TableName::parse(table).unwrap(), |_| true);
        relations.iter().map(|one| format!("{}={}", one.name, one.spelling)).collect()
    }

    #[test]
    fn relations_are_named_by_their_keys_and_tables() {
        for (table, expected) in [
            (
                "posts",
                "author=author editor=editor comments=comments.post_id comments=comments.reply_to \
                 post_tags=post_tags notes=notes stars=stars likes=likes.d1 likes=likes.d2 tags=tags",
            ),
            ("stars", "owner=posts owner=notes"),
            ("likes", "post=d1 post=d2"),
            ("comments", "post=post reply_to=reply_to"),
            ("staff", "manager=manager staff=staff"),
            ("tags", "post_tags=post_tags posts=posts"),
            (
                "users",
                "posts=posts.author_id posts=posts.editorId follows=follows.follower_id follows=follows.followee_id \
                 users=users.follows.followee_id users=users.follows.follower_id",
            ),
            ("seats", "rows=rows"),
            ("rows", "seats=seats"),
        ] {
            assert_eq!(spellings(table).join(" "), expected, "{table}");
        }
    }

    #[test]
    fn a_name_finds_one_relation_or_the_spellings_of_all() {
        let relations = relations();
        let found = |table: &str, name: &str| {
            let table = TableName::parse(table).unwrap();
            let of = relations.of(&table, |_| true);
            match find(&of, &table, name, ErrorCode::InvalidQueryOption) {
                Ok(one) => one.spelling.clone(),
                Err(problem) => format!("{} {}", problem.code().as_str(), problem.hint().unwrap_or_default()),
            }
        };
        for (table, name, expected) in [
            ("posts", "author", "author"),
            ("posts", "author_id", "author"),
            ("posts", "users", "ambiguous_relation Use one of author, editor."),
            ("comments", "posts", "ambiguous_relation Use one of post, reply_to."),
            ("posts", "comments", "ambiguous_relation Use one of comments.post_id, comments.reply_to."),
            ("posts", "comments.reply_to", "comments.reply_to"),
            ("posts", "tags", "tags"),
            ("posts", "tags.post_tags", "tags"),
            ("posts", "tag", "invalid_query_option Did you mean \"tags\"?"),
            ("staff", "staff", "staff"),
            ("users", "users.follows.followee_id", "users.follows.followee_id"),
            ("seats", "rows", "rows"),
            ("stars", "owner_id", "ambiguous_relation Use one of posts, notes."),
            ("stars", "notes", "notes"),
            ("likes", "d2", "d2"),
            ("nothing", "x", "invalid_query_option No foreign key leads to it or from it."),
        ] {
            assert_eq!(found(table, name), expected, "{table} {name}");
        }
    }

    #[test]
    fn a_link_table_with_many_foreign_keys_is_refused() {
        let to = |column: &'static str| move |n: usize| key(&format!("{column}{n}"), "links", column, "nodes", "id");
        let keys: Vec<_> = (0..2_000).map(to("a")).chain((0..2_000).map(to("b"))).collect();
        let primary =
            [(TableName::parse("links").unwrap(), ["a", "b"].map(|name| FieldName::parse(name).unwrap()).into())];
        assert!(Relations::new(&keys, &primary.into(), 32 * 1024 * 1024).is_none());
    }

    #[test]
    fn relations_of_one_name_are_spelled_at_once() {
        // A comparison of each two would take very long.
        let keys: Vec<_> = (0..20_000).map(|n| key(&format!("k{n}"), "lines", "order_id", "orders", "id")).collect();
        let (relations, bytes) = Relations::new(&keys, &HashMap::new(), usize::MAX).unwrap();
        let orders = relations.of(&TableName::parse("orders").unwrap(), |_| true);
        assert_eq!(orders.last().unwrap().spelling, "lines.k19999");
        assert!((4_000_000..40_000_000).contains(&bytes), "{bytes}");
    }
}
