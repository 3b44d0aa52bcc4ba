//! Parses requests for the changes of tables: `GET /api/v1/changes/{db}/{table}` and `POST /api/v1/changes`.

use super::TablePath;
use super::options::{self, Options};
use super::read::{Draft, Read};
use crate::error::Problem;
use crate::format::Format;
use crate::ident::{DatabaseName, TableName, shown};
use crate::json::Value;
use crate::limits::{
    CHANGES_PAGE_MAX_ROWS, CHANGES_TOKEN_MAX_BYTES, CHANGES_WAIT_MAX, SUBSCRIPTION_ID_MAX_BYTES,
    SUBSCRIPTIONS_MAX_COUNT,
};
use crate::request::RequestHead;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Hash)]
pub struct ChangesCall {
    /// At least one subscription. No two have the same id.
    pub subscriptions: Vec<Subscription>,
    /// The token `next` of an earlier answer.
    pub since: Option<Box<str>>,
    /// How long a request waits for a change if the page has none.
    pub wait: Duration,
    pub limit: usize,
    /// Whether the response begins with every matching record as it is now.
    pub snapshot: bool,
    pub form: ChangesForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangesForm {
    Page,
    /// NDJSON: one message in each line. The last line has the token.
    Lines,
    /// Server-sent events, without end.
    Events,
}

#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Subscription {
    /// `None` for the only subscription of a GET.
    pub id: Option<Box<str>>,
    /// A read without joins. The order and the limit apply to a snapshot only.
    pub read: Read,
}

const CALL_OPTIONS: [&str; 4] = ["since", "wait", "limit", "snapshot"];
const READ_OPTIONS: [&str; 6] = ["query", "searchOperator", "selectFields", "omitFields", "order", "limit"];
const GET_OPTIONS: [&str; 8] =
    ["query", "searchOperator", "selectFields", "omitFields", "since", "wait", "limit", "snapshot"];
const POST_OPTIONS: [&str; 5] = ["subscriptions", "since", "wait", "limit", "snapshot"];
const SUBSCRIPTION_OPTIONS: [&str; 9] =
    ["id", "database", "table", "query", "searchOperator", "selectFields", "omitFields", "order", "limit"];

impl ChangesCall {
    pub(super) fn from_pairs(table: TablePath, head: &ChangesHead, options: Options) -> Result<Self, Problem> {
        let mut draft = Draft::collect(options, &GET_OPTIONS)?;
        let call = draft.take(&CALL_OPTIONS);
        Self::new(vec![Subscription::new(None, table, draft)?], head, &call)
    }

    pub(super) fn from_body(head: &ChangesHead, body: &[u8]) -> Result<Self, Problem> {
        let draft = Draft::collect(options::members(body)?, &POST_OPTIONS)?;
        let subscriptions = subscriptions(draft.get("subscriptions"), &SUBSCRIPTION_OPTIONS)?;
        Self::new(subscriptions.into_iter().map(|(subscription, _)| subscription).collect(), head, &draft)
    }

    fn new(subscriptions: Vec<Subscription>, head: &ChangesHead, options: &Draft) -> Result<Self, Problem> {
        let since = match options.get("since") {
            None | Some(Value::Null) => None,
            Some(Value::Text(token)) if (1..=CHANGES_TOKEN_MAX_BYTES).contains(&token.len()) => Some(token.clone()),
            Some(other) => return Err(options::wrong("since", "the next of an earlier answer", other)),
        };
        let since = head.last_event_id.clone().or(since);
        let wait = options.get("wait").map(wait).transpose()?.unwrap_or_default();
        let limit = options.get("limit").map(limit).transpose()?.unwrap_or(CHANGES_PAGE_MAX_ROWS);
        let snapshot = options.get("snapshot").map(|value| options::flag("snapshot", value)).transpose()?;
        // An EventSource that connects again sends the same URL, with `snapshot`, and the token of its last event.
        let snapshot = snapshot.unwrap_or_default() && head.last_event_id.is_none();
        if snapshot && since.is_some() {
            return Err(options::invalid("The option since excludes snapshot, which begins with all records."));
        }
        let form = if snapshot && head.form == ChangesForm::Page { ChangesForm::Lines } else { head.form };
        Ok(Self { subscriptions, since, wait, limit, snapshot, form })
    }
}

const SUBSCRIPTIONS: &str = "a list of objects {id, database, table, query, selectFields}";

/// Parses a list of subscriptions. Also returns the members of each that are not the subscription's own.
pub(super) fn subscriptions(
    list: Option<&Value>,
    known: &'static [&'static str],
) -> Result<Vec<(Subscription, Draft)>, Problem> {
    let list = match list {
        Some(Value::List(list)) => options::items("subscriptions", list, SUBSCRIPTIONS_MAX_COUNT)?,
        Some(other) => return Err(options::wrong("subscriptions", SUBSCRIPTIONS, other)),
        None => return Err(options::invalid(format!("The option subscriptions is missing: {SUBSCRIPTIONS}."))),
    };
    if list.is_empty() || list.len() > SUBSCRIPTIONS_MAX_COUNT {
        let count = list.len();
        return Err(options::invalid(format!(
            "The option subscriptions must have 1 to {SUBSCRIPTIONS_MAX_COUNT} items, not {count}."
        )));
    }
    let mut subscriptions: Vec<(Subscription, Draft)> = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        let (subscription, others) = Subscription::from_item(at, item, known)?;
        if let Some(id) = &subscription.id
            && subscriptions.iter().any(|(other, _)| other.id.as_ref() == Some(id))
        {
            return Err(options::invalid(format!("Two subscriptions have the id {}.", shown(id))));
        }
        subscriptions.push((subscription, others));
    }
    Ok(subscriptions)
}

impl Subscription {
    fn new(id: Option<Box<str>>, table: TablePath, draft: Draft) -> Result<Self, Problem> {
        let read = draft.into_read(table, Format::Envelope)?;
        if read.filter.as_ref().is_some_and(|filter| !filter.related().is_empty()) {
            return Err(options::invalid("The option query of changes takes no conditions on related records.")
                .with_hint("Subscribe to the related table too, or filter by the fields of this table."));
        }
        Ok(Self { id, read })
    }

    fn from_item(at: usize, item: &Value, known: &'static [&'static str]) -> Result<(Self, Draft), Problem> {
        let Value::Object(text) = item else {
            return Err(options::wrong("subscriptions", SUBSCRIPTIONS, item));
        };
        let members = options::object("subscriptions", text)?;
        let members = members.into_iter().map(|(name, value)| (name.into_owned(), value)).collect();
        let mut others = Draft::collect(members, known)?;
        let (read, draft) = (others.take(&READ_OPTIONS), others.take(&["id", "database", "table"]));
        let text = |name: &'static str| match draft.get(name) {
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(options::wrong(name, "a string", other)),
            None => Err(options::invalid(format!("The subscription {at} has no {name}."))),
        };
        let table =
            TablePath { database: DatabaseName::parse(text("database")?)?, table: TableName::parse(text("table")?)? };
        let id = match draft.get("id") {
            None => at.to_string().into(),
            Some(Value::Text(id)) if (1..=SUBSCRIPTION_ID_MAX_BYTES).contains(&id.len()) => id.clone(),
            Some(other) => {
                let expected = format!("a string of 1 to {SUBSCRIPTION_ID_MAX_BYTES} bytes");
                return Err(options::wrong("id", &expected, other));
            }
        };
        Ok((Self::new(Some(id), table, read)?, others))
    }
}

/// The form of the response and the token that the headers of a request ask for.
#[derive(Clone, Debug)]
pub(super) struct ChangesHead {
    form: ChangesForm,
    last_event_id: Option<Box<str>>,
}

impl ChangesHead {
    pub(super) fn new(head: &RequestHead<'_>) -> Result<Self, Problem> {
        const EVENTS: &str = "text/event-stream";
        let accepts_events = head.accept.unwrap_or_default().split(',').any(|range| {
            range.split(';').next().is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case(EVENTS))
        });
        let form = match Format::from_accept(head.accept) {
            _ if accepts_events => ChangesForm::Events,
            Format::NdJson => ChangesForm::Lines,
            Format::Envelope | Format::Csv => ChangesForm::Page,
        };
        let last_event_id = head.last_event_id.filter(|id| form == ChangesForm::Events && !id.is_empty());
        if last_event_id.is_some_and(|id| id.len() > CHANGES_TOKEN_MAX_BYTES) {
            return Err(options::invalid("The header Last-Event-ID is not the token of an event."));
        }
        Ok(Self { form, last_event_id: last_event_id.map(Into::into) })
    }
}

/// Parses a time such as `20s`, `500ms` or `20`, in seconds.
fn wait(value: &Value) -> Result<Duration, Problem> {
    let parsed = match value {
        Value::Number(text) | Value::Text(text) => {
            let (digits, millis) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
                (Some(digits), _) => (digits, 1),
                (None, Some(digits)) => (digits, 1_000),
                (None, None) => (&**text, 1_000),
            };
            options::parse_whole(digits).map(|number| Duration::from_millis(number.saturating_mul(millis)))
        }
        _ => None,
    };
    parsed.filter(|wait| *wait <= CHANGES_WAIT_MAX).ok_or_else(|| {
        options::wrong("wait", &format!("a time from 0s to {}s, such as 20s", CHANGES_WAIT_MAX.as_secs()), value)
    })
}

fn limit(value: &Value) -> Result<usize, Problem> {
    let number = options::whole_number("limit", value)?;
    let number = usize::try_from(number).ok().filter(|number| (1..=CHANGES_PAGE_MAX_ROWS).contains(number));
    number.ok_or_else(|| options::wrong("limit", &format!("a whole number from 1 to {CHANGES_PAGE_MAX_ROWS}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Operation, parse_head};

    fn get(query: &str, accept: Option<&str>, last_event_id: Option<&str>) -> Result<ChangesCall, String> {
        let path = "/api/v1/changes/shop/orders";
        let query = Some(query).filter(|query| !query.is_empty());
        let head = RequestHead { method: "GET", path, query, accept, last_event_id, ..RequestHead::default() };
        call(&head, b"")
    }

    fn post(body: &str) -> Result<ChangesCall, String> {
        call(&RequestHead { method: "POST", path: "/api/v1/changes", ..RequestHead::default() }, body.as_bytes())
    }

    fn call(head: &RequestHead<'_>, body: &[u8]) -> Result<ChangesCall, String> {
        let operation = parse_head(head).and_then(|pending| pending.finish(body));
        match operation.map_err(|problem| problem.message().to_owned())? {
            Operation::Changes(call) => Ok(call),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_and_headers_say_what_is_asked() {
        let plain = get("", None, None).unwrap();
        let common = (plain.since.as_deref(), plain.wait, plain.limit, plain.snapshot, plain.form);
        assert_eq!(common, (None, Duration::ZERO, CHANGES_PAGE_MAX_ROWS, false, ChangesForm::Page));
        assert_eq!(plain.subscriptions[0].id, None);
        let asked = get("since=abc&wait=20s&limit=5&query={\"total\":{\"gt\":5}}", None, None).unwrap();
        assert_eq!((asked.since.as_deref(), asked.wait.as_secs(), asked.limit), (Some("abc"), 20, 5));
        assert!(asked.subscriptions[0].read.filter.is_some() && asked.subscriptions[0].read.window.limit.is_none());
        let events = get("snapshot=true&since=", Some("text/event-stream"), Some("tok"));
        assert_eq!(events.unwrap_err(), "The option since must be the next of an earlier answer, not \"\".");
        let events = get("snapshot=true", Some("text/event-stream"), Some("tok")).unwrap();
        assert_eq!((events.form, events.snapshot, events.since.as_deref()), (ChangesForm::Events, false, Some("tok")));
        assert_eq!(get("snapshot=true", None, None).unwrap().form, ChangesForm::Lines);
        assert_eq!(get("", None, Some("tok")).unwrap().since, None);
    }

    #[test]
    fn a_wait_is_a_short_time() {
        for (text, millis) in [("0", 0), ("20", 20_000), ("25s", 25_000), ("1500ms", 1_500)] {
            assert_eq!(get(&format!("wait={text}"), None, None).unwrap().wait.as_millis(), millis);
        }
        for text in ["26s", "-1", "s", "1m", "25001ms", "1h", "99999999999999999999s"] {
            assert!(get(&format!("wait={text}"), None, None).unwrap_err().contains("a time from 0s to 25s"), "{text}");
        }
    }

    #[test]
    fn subscriptions_of_a_body_have_ids() {
        let body = r#"{"subscriptions":[{"id":"a","database":"shop","table":"orders"},{"database":"d","table":"t"}]}"#;
        let ordered = r#"{"subscriptions":[{"database":"d","table":"t","order":"-id","limit":5}],"limit":7}"#;
        let call = post(ordered).unwrap();
        let Read { order, window, .. } = &call.subscriptions[0].read;
        assert_eq!((order.len(), window.limit, call.limit), (1, Some(5), 7));
        let ids: Vec<_> = post(body).unwrap().subscriptions.into_iter().map(|one| one.id.unwrap()).collect();
        assert_eq!(ids, ["a".into(), "1".into()] as [Box<str>; 2]);
        for (body, message) in [
            ("{}", "The option subscriptions is missing"),
            (r#"{"subscriptions":[]}"#, "must have 1 to 100 items, not 0"),
            (r#"{"subscriptions":[5]}"#, "must be a list of objects"),
            (r#"{"subscriptions":[{"table":"t"}]}"#, "The subscription 0 has no database."),
            (r#"{"subscriptions":[{"id":"","database":"d","table":"t"}]}"#, "a string of 1 to 64 bytes"),
            (r#"{"subscriptions":[{"database":"d","table":"t","offset":1}]}"#, "offset"),
            (
                r#"{"subscriptions":[{"id":"1","database":"d","table":"t"},{"database":"d","table":"t"}]}"#,
                "Two subscriptions have the id \"1\".",
            ),
            (r#"{"subscriptions":[{"database":"d","table":"t"}],"limit":1001}"#, "a whole number from 1 to 1000"),
            (r#"{"subscriptions":[{"database":"d","table":"t"}],"limit":0}"#, "a whole number from 1 to 1000"),
            (
                r#"{"subscriptions":[{"database":"d","table":"t"}],"since":"x","snapshot":true}"#,
                "The option since excludes snapshot",
            ),
        ] {
            let found = post(body).unwrap_err();
            assert!(found.contains(message), "{body}: {found}");
        }
    }
}
