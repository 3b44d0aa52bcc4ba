//! Lists the tables of all databases for the tool `list_tables`, which takes several API requests.

use super::api::{Agent, ApiAnswer, ApiRequest, Truncation};
use super::arguments::{DATABASES, path};
use super::{ANSWER_MAX_BYTES, cut};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use shared::error::Problem;

/// Maximum databases that one call lists: each takes an API request.
const DATABASES_MAX_COUNT: usize = 8;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct ListedName {
    name: String,
}

pub(super) fn payload(answer: &ApiAnswer) -> Option<&RawValue> {
    let is_whole = answer.status == StatusCode::OK && answer.extent == Truncation::Whole;
    let envelope = is_whole.then(|| serde_json::from_slice::<Envelope<'_>>(&answer.body).ok())?;
    envelope.map(|envelope| envelope.payload)
}

/// Returns the names in a list, or in the beginning of a truncated list.
pub(super) fn names(answer: &ApiAnswer) -> Option<Vec<String>> {
    let listed: Vec<ListedName> = match answer.extent {
        Truncation::Whole => serde_json::from_str(payload(answer)?.get()).ok()?,
        Truncation::Beginning => {
            let beginning = cut::cut(&answer.body, |_| "")?;
            let envelope: Envelope<'_> = serde_json::from_str(&beginning).ok()?;
            serde_json::from_str(envelope.payload.get()).ok()?
        }
    };
    Some(listed.into_iter().map(|named| named.name).collect())
}

/// Lists the tables of all databases; `truncated` names databases left out. Returns the response of a failed request.
pub(super) async fn all_tables(agent: &Agent) -> Result<ApiAnswer, Problem> {
    let databases = agent.call(ApiRequest::get(DATABASES.to_owned())).await?;
    let Some(names) = names(&databases) else {
        return Ok(databases);
    };
    let (mut lists, mut bytes) = (Vec::new(), 0);
    for name in names.iter().take(DATABASES_MAX_COUNT) {
        let tables = agent.call(ApiRequest::get(path([&**name]))).await?;
        let list = match payload(&tables) {
            Some(list) => list.get(),
            None if tables.status == StatusCode::OK => break,
            None => return Ok(tables),
        };
        bytes += list.len();
        if bytes > ANSWER_MAX_BYTES {
            break;
        }
        lists.push(format!("{{\"database\":{},\"tables\":{list}}}", json!(name)));
    }
    let left_out: Vec<_> = names.iter().skip(lists.len()).collect();
    let note = match left_out.is_empty() {
        true => String::new(),
        false => format!(
            ",\"truncated\":{}",
            json!({"databases": left_out, "hint": "List these one by one: name a database."})
        ),
    };
    let body = format!("{{\"success\":true,\"payload\":[{}]{note}}}", lists.join(","));
    Ok(ApiAnswer { status: StatusCode::OK, body: body.into_bytes(), extent: Truncation::Whole })
}
