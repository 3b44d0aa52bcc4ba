//! The SQL statements of the demo database: the same in each run, and not run here.

mod material;
mod schema;

use std::fmt::Write as _;

use material::{Dice, Scene, Topic};

/// The number of rows of an INSERT, whose text is then about 150 kB: far below `max_allowed_packet` (by default 16 MB).
const ROWS_PER_INSERT: usize = 200;
const POSTS: usize = 1_200;
const COMMENTS: usize = 3_000;
const DAYS: usize = 36 * 28;

/// Returns SQL without semicolons and backslashes, which means the same in every `sql_mode` and client.
pub fn statements() -> impl Iterator<Item = String> {
    let mut dice = Dice::new();
    let topics = material::topics();
    let people = material::people();
    let tags = tag_names(&topics);

    let authors = author_rows(&people, &mut dice);
    let (posts, post_tags, subjects) = post_rows(&topics, &tags, people.len(), &mut dice);
    let comments = comment_rows(&subjects, &people, &mut dice);
    let tags: Vec<_> =
        tags.iter().enumerate().map(|(index, name)| SqlTuple::new().number(index + 1).text(name).done()).collect();

    let mut statements: Vec<String> = schema::TABLES.iter().map(ToString::to_string).collect();
    statements.extend(inserts("authors (id, name, email, country, bio, joined_on)", &authors));
    statements.extend(inserts("tags (id, name)", &tags));
    statements.extend(inserts(
        "posts (id, author_id, title, body, category, licence, price, is_published, views, meta, published_at, created_at)",
        &posts,
    ));
    statements.extend(inserts("post_tags (post_id, tag_id)", &post_tags));
    statements.extend(inserts("comments (id, post_id, parent_id, author_name, body, rating, created_at)", &comments));
    statements.into_iter()
}

fn tag_names(topics: &[Topic]) -> Vec<&'static str> {
    let mut names: Vec<_> = topics.iter().flat_map(|topic| topic.tags.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn author_rows(people: &[(&str, &str)], dice: &mut Dice) -> Vec<String> {
    let bios =
        ["Writes slowly.", "Used to be an engineer.", "Walks, reads, writes about both.", "Edits the autumn issue."];
    let row = |(index, (name, country)): (usize, &(&str, &str))| {
        let id = index + 1;
        let bio = (id % 5 != 0).then(|| dice.pick(&bios));
        let joined = format!("20{}-{:02}-{:02}", 15 + dice.below(8), 1 + dice.below(12), 1 + dice.below(28));
        let email = format!("author{id}@example.org");
        SqlTuple::new().number(id).text(name).text(&email).text(country).optional(bio).text(&joined).done()
    };
    people.iter().enumerate().map(row).collect()
}

/// Returns the rows of the posts, and for each post its scene and the number of its day (see [`moment`]).
fn post_rows(
    topics: &[Topic],
    tags: &[&str],
    authors: usize,
    dice: &mut Dice,
) -> (Vec<String>, Vec<String>, Vec<(Scene, usize)>) {
    let (mut posts, mut links, mut subjects) = (Vec::new(), Vec::new(), Vec::new());
    for id in 1..=POSTS {
        let topic = &topics[dice.below(topics.len())];
        let scene = topic.scene(dice);
        let day = (id - 1) * DAYS / POSTS;
        posts.push(post_row(id, topic, &scene, day, 1 + dice.below(authors), dice));
        let count = 1 + dice.below(3);
        for name in dice.some_of(&topic.tags, count) {
            let tag = tags.iter().position(|tag| *tag == name).unwrap_or(0) + 1;
            links.push(SqlTuple::new().number(id).number(tag).done());
        }
        subjects.push((scene, day));
    }
    (posts, links, subjects)
}

fn post_row(id: usize, topic: &Topic, scene: &Scene, day: usize, author: usize, dice: &mut Dice) -> String {
    let title = topic.title(scene, dice);
    let body = topic.body(scene, dice);
    let published = dice.below(6) != 0;
    // A third of the posts are free; the rest cost between 0.50 and 24.99.
    let cents = if dice.below(3) == 0 { 0 } else { 50 + dice.below(2_450) };
    let meta = format!(
        r#"{{"lang":"en","place":"{}","readingMinutes":{},"featured":{}}}"#,
        scene.place,
        1 + body.len() / 220,
        dice.below(12) == 0
    );
    let created = moment(day, dice);
    let published_at = moment(day + 1, dice);
    SqlTuple::new()
        .number(id)
        .number(author)
        .text(&title)
        .text(&body)
        .text(topic.category)
        .text(dice.pick(&["all-rights-reserved", "cc-by", "cc-by-sa"]))
        .raw(&format!("{}.{:02}", cents / 100, cents % 100))
        .number(usize::from(published))
        .number(if published { dice.below(90) * dice.below(90) } else { 0 })
        .text(&meta)
        .optional(published.then_some(published_at.as_str()))
        .text(&created)
        .done()
}

fn comment_rows(subjects: &[(Scene, usize)], people: &[(&str, &str)], dice: &mut Dice) -> Vec<String> {
    let remarks = material::remarks();
    let mut first_on_post: Vec<Option<usize>> = vec![None; subjects.len()];
    let row = |id| {
        let post = dice.below(subjects.len());
        let (scene, day) = &subjects[post];
        let parent = first_on_post[post].filter(|_| dice.below(5) < 3);
        let pattern = dice.pick(if parent.is_some() { &remarks.answers } else { &remarks.first });
        first_on_post[post].get_or_insert(id);
        let rating = (parent.is_none() && dice.below(2) == 0).then(|| (3 + dice.below(3)).to_string());
        let age = 2 + id * 20 / COMMENTS + dice.below(5);
        SqlTuple::new()
            .number(id)
            .number(post + 1)
            .raw(&parent.map_or_else(|| "NULL".to_owned(), |parent| parent.to_string()))
            .text(dice.pick(people).0)
            .text(&scene.fill(pattern, dice))
            .raw(rating.as_deref().unwrap_or("NULL"))
            .text(&moment(day + age, dice))
            .done()
    };
    (1..=COMMENTS).map(row).collect()
}

/// Returns a random time on a day, counted from 1 January 2023 in a calendar of months with 28 days.
fn moment(day: usize, dice: &mut Dice) -> String {
    let (year, month, day) = (2023 + day / 336, day / 28 % 12 + 1, day % 28 + 1);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02}", 6 + dice.below(16), dice.below(60), dice.below(60))
}

fn inserts(into: &str, rows: &[String]) -> Vec<String> {
    rows.chunks(ROWS_PER_INSERT).map(|rows| format!("INSERT INTO {into} VALUES\n{}", rows.join(",\n"))).collect()
}

struct SqlTuple(String);

impl SqlTuple {
    fn new() -> Self {
        Self(String::from("("))
    }

    fn raw(mut self, literal: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push_str(", ");
        }
        self.0.push_str(literal);
        self
    }

    fn number(self, number: usize) -> Self {
        self.raw(&number.to_string())
    }

    /// Appends a string literal. The demo's text contains no backslash (a test checks it), so only quotes are escaped.
    fn text(self, text: &str) -> Self {
        let mut literal = String::with_capacity(text.len() + 2);
        let _ = write!(literal, "'{}'", text.replace('\'', "''"));
        self.raw(&literal)
    }

    fn optional(self, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(text),
            None => self.raw("NULL"),
        }
    }

    fn done(self) -> String {
        self.0 + ")"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the rows inserted into a table: each is on its own line, and no other line begins with a parenthesis.
    fn rows(table: &str) -> usize {
        let prefix = format!("INSERT INTO {table} (");
        let inserts = statements().filter(|statement| statement.starts_with(&prefix));
        inserts.map(|insert| insert.lines().filter(|line| line.starts_with('(')).count()).sum()
    }

    #[test]
    fn the_demo_has_the_promised_number_of_rows() {
        assert_eq!(rows("authors"), 40);
        assert_eq!(rows("posts"), POSTS);
        assert_eq!(rows("comments"), COMMENTS);
        assert!(rows("tags") >= 30);
        assert!(rows("post_tags") > POSTS);
    }

    #[test]
    fn two_runs_give_the_same_statements() {
        assert!(statements().eq(statements()));
    }

    #[test]
    fn no_statement_holds_a_character_that_reads_differently_elsewhere() {
        for statement in statements() {
            let odd = statement.chars().find(|c| matches!(c, '\\' | '`' | ';') || (c.is_control() && *c != '\n'));
            assert_eq!(odd, None, "in {statement}");
            for slot in ["{subject}", "{place}", "{season}", "{n}"] {
                assert!(!statement.contains(slot), "{slot} is left in {statement}");
            }
        }
    }

    #[test]
    fn a_body_has_three_to_eight_sentences() {
        let (topics, mut dice) = (material::topics(), Dice::new());
        for topic in &topics {
            for _ in 0..50 {
                let scene = topic.scene(&mut dice);
                let body = topic.body(&scene, &mut dice);
                let sentences = body.matches(". ").count() + 1;
                assert!((3..=8).contains(&sentences), "{sentences} sentences: {body}");
                assert!(topic.title(&scene, &mut dice).len() <= 200);
            }
        }
    }

    #[test]
    fn every_moment_is_a_date_that_exists() {
        let mut dice = Dice::new();
        assert!(moment(0, &mut dice).starts_with("2023-01-01 "));
        assert!(moment(DAYS - 1, &mut dice).starts_with("2025-12-28 "));
    }
}
