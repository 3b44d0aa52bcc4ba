//! Follows a read by `next`, or by `more` and `offset`, from page to page: all pages together must be the whole answer, each row once.

use super::Stage;
use super::dice::Dice;
use super::evaluate::evaluate;
use super::json::Json;
use super::read::Read;
use super::spell::{self, STYLES};
use super::verdict::{differs, envelope, rows};
use serde_json::json;

/// Returns a description of the fault in the pages of a read; `None` if they are right.
pub(super) async fn fault(stage: &Stage, read: &Read, dice: &mut Dice) -> Option<String> {
    let expected = evaluate(read, &stage.world);
    let total: usize = expected.ties.iter().map(Vec::len).sum();
    let table = read.table(&stage.world, 0);
    let (mut read, mut came, mut after) = (read.clone(), Vec::new(), None);
    let mut answers = String::new();
    loop {
        let limit = read.window.limit.unwrap_or_default();
        let mut options = spell::options(&read, &stage.world);
        if let Some(after) = &after {
            options.push(("after", json!(after)));
        }
        let style = *dice.pick(&STYLES);
        let answer = spell::request(&stage.db, table, &options, style, dice).key(&stage.key).send().await;
        answers.push_str(&format!("{answer}\n"));
        let body = match envelope(&answer) {
            Ok(body) => body,
            Err(fault) => return Some(format!("{fault}\n{answers}")),
        };
        let count = read.count.then(|| Json::Number(total.to_string()));
        if body.member("count") != count.as_ref() {
            return Some(format!("the count should be {count:?}\n{answers}"));
        }
        let page = rows(&read, &stage.world, &body);
        let wanted = limit.min(total.saturating_sub(came.len()));
        if page.len() != wanted {
            return Some(format!("{} rows on a page of {wanted}\n{answers}", page.len()));
        }
        came.extend(page);
        let (next, more) = (body.member("next"), body.member("more"));
        if (next.is_some() || more.is_some()) != (came.len() < total) || (next.is_some() && more.is_some()) {
            return Some(format!("{} of {total} records, next {next:?}, more {more:?}\n{answers}", came.len()));
        }
        let keyed = (0..=read.joins.len()).all(|at| !read.table(&stage.world, at).key.is_empty());
        (after, read.window.offset) = match (next, more) {
            (None, None) => break,
            (Some(Json::Text(next)), _) => (Some(next.clone()), None),
            (None, Some(_)) if keyed && !read.distinct && !read.is_aggregated() => {
                return Some(format!("no cursor over keys\n{answers}"));
            }
            (None, Some(Json::Bool(true))) => (None, Some(came.len())),
            (next, more) => return Some(format!("{next:?} is no cursor, or {more:?} not true\n{answers}")),
        };
        // The limit may change from page to page.
        if dice.chance(30) {
            read.window.limit = Some(dice.between(1, 9));
        }
    }
    differs(&expected, 0, usize::MAX, &came).map(|fault| format!("{fault}\n{answers}"))
}
