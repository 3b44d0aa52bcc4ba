//! MCP resources: the description of each table at `selkie://schema/{database}/{table}`.

use super::api::{Agent, ApiAnswer, ApiRequest};
use super::arguments::{DATABASES, path};
use super::listing::{names, payload};
use percent_encoding::percent_decode_str;
use rmcp::ErrorData;
use rmcp::model::{ErrorCode, ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::Value;
use shared::error::Problem;
use shared::ident::shown;

const PREFIX: &str = "selkie://schema/";
const MIME: &str = "application/json";

pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{PREFIX}{{database}}/{{table}}"), "schema")
        .with_title("Description of a table")
        .with_description("Fields, keys and relations of a table or view, as describe_table returns them.")
        .with_mime_type(MIME)
}

/// Lists the tables of the database that `cursor` names, or of the first database.
pub(super) async fn list(agent: &Agent, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let answer = call(agent, DATABASES.to_owned()).await?;
    let databases = names(&answer).ok_or_else(|| failure(&answer))?;
    let at = match cursor {
        None => 0,
        Some(cursor) => databases
            .iter()
            .position(|name| name == cursor)
            .ok_or_else(|| ErrorData::invalid_params(format!("{} is no cursor of this list.", shown(cursor)), None))?,
    };
    for (at, database) in databases.iter().enumerate().skip(at) {
        let answer = call(agent, path([&**database])).await?;
        let tables = names(&answer).ok_or_else(|| failure(&answer))?;
        // A client may take an empty page for the end of the list.
        if tables.is_empty() {
            continue;
        }
        let resources = tables.iter().map(|table| {
            let uri = path([&**database, &**table]).replacen(DATABASES, PREFIX.trim_end_matches('/'), 1);
            Resource::new(uri, format!("{database}.{table}")).with_mime_type(MIME)
        });
        let mut result = ListResourcesResult::with_all_items(resources.collect());
        result.next_cursor = databases.get(at + 1).cloned();
        return Ok(result);
    }
    Ok(ListResourcesResult::with_all_items(Vec::new()))
}

pub(super) async fn read(agent: &Agent, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let Some(target) = target(uri) else {
        let message = format!("There is no resource {}; those here are {PREFIX}{{database}}/{{table}}.", shown(uri));
        return Err(ErrorData::resource_not_found(message, None));
    };
    let answer = call(agent, target).await?;
    let text = payload(&answer).ok_or_else(|| failure(&answer))?.get();
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(MIME)]))
}

fn target(uri: &str) -> Option<String> {
    let (database, table) = uri.strip_prefix(PREFIX)?.split_once('/')?;
    if database.is_empty() || table.is_empty() || table.contains('/') {
        return None;
    }
    let [database, table] = [database, table].map(|name| percent_decode_str(name).decode_utf8().ok());
    Some(path([&*database?, &*table?]) + "/_schema")
}

async fn call(agent: &Agent, target: String) -> Result<ApiAnswer, ErrorData> {
    agent.call(ApiRequest::get(target)).await.map_err(|problem| of_problem(&problem))
}

fn of_problem(problem: &Problem) -> ErrorData {
    ErrorData::internal_error(problem.message().to_owned(), None)
}

fn failure(answer: &ApiAnswer) -> ErrorData {
    let mut body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let error = body["error"].take();
    let message = error["message"].as_str().unwrap_or("The description is too large for a resource.").to_owned();
    let code = match answer.status.as_u16() {
        404 => ErrorCode::RESOURCE_NOT_FOUND,
        400..500 => ErrorCode::INVALID_REQUEST,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, message, Some(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_a_database_and_a_table() {
        for (uri, expected) in [
            ("selkie://schema/demo/posts", Some("/api/v1/crud/demo/posts/_schema")),
            ("selkie://schema/a%2Fb/caf%C3%A9", Some("/api/v1/crud/a%2Fb/caf%C3%A9/_schema")),
            ("selkie://schema/demo/%2E%2E", Some("/api/v1/crud/demo/%2E%2E/_schema")),
            ("selkie://schema/demo", None),
            ("selkie://schema/demo/", None),
            ("selkie://schema//t", None),
            ("selkie://schema/demo/posts/x", None),
            ("selkie://schema/demo/%FF", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(target(uri).as_deref(), expected, "{uri}");
        }
    }
}
