//! Handles the methods of the Model Context Protocol, which `rmcp` calls.

use super::api::{Agent, ApiAnswer, Truncation};
use super::tools::{ToolName, offered_to};
use super::{arguments, cut, listing, resources};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use shared::error::Problem;
use shared::ident::shown;

const INSTRUCTIONS: &str = "Tables of MariaDB databases, through a key that may be limited to some tables, fields and rows. \
    Start with list_tables, then describe_table before you read or write a table. Read with conditions, selectFields and \
    limit rather than whole tables; follow `next` with `after`, `nextOffset` with `offset`. Before a write of many records, call write_records with \
    dry_run: true and tell the user the number. Errors have a code, a message and often a hint: mend the call by the hint. \
    What is not listed may not be used with this key; don't look for a way around it.";

/// The methods whose wrong params reach `on_custom_request`: `rmcp` passes every request there that it can't parse.
const METHODS: [&str; 4] = ["initialize", "tools/call", "resources/read", "server/discover"];

impl ServerHandler for Agent {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("selkie", env!("CARGO_PKG_VERSION")).with_title("Selkie");
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(offered_to(self.caller())))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::parse(&call.name) else {
            let names = ToolName::ALL.map(ToolName::as_str).join(", ");
            let message = format!("There is no tool {}. Tools: {names}.", shown(&call.name));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = call.arguments.unwrap_or_default();
        let mut offset = 0;
        let answer = match tool {
            ToolName::ListTables if arguments.is_empty() => listing::all_tables(self).await,
            _ => match arguments::request(tool, arguments) {
                Ok(request) => {
                    offset = request.offset();
                    self.call(request).await
                }
                Err(problem) => Err(problem),
            },
        };
        let result = match answer {
            Ok(answer) => self.result(tool, answer, offset),
            Err(problem) => self.failed(&problem),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self, page.and_then(|page| page.cursor).as_deref()).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, &request.uri).await.map(ReadResourceResponse::from)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = shown(&request.method);
        Err(match METHODS.contains(&&*request.method) {
            true => {
                ErrorData::invalid_params(format!("The params of {method} are not of the form that it needs."), None)
            }
            false => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("There is no method {method}."), None),
        })
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}
}

impl Agent {
    /// Builds a tool's result. A long list is truncated after its last whole record; another long payload is an error.
    fn result(&self, tool: ToolName, answer: ApiAnswer, offset: u64) -> CallToolResult {
        let text = match answer.extent {
            Truncation::Whole => String::from_utf8(answer.body).ok().map(|text| cut::continued(text, offset)),
            Truncation::Beginning => cut::cut(&answer.body, |records| tool.rest_hint(Some(records))),
        };
        let Some(text) = text else {
            let message = "The answer is larger than a tool may return, and is no list that could be truncated.";
            return self.failed(
                &Problem::new(shared::error::ErrorCode::BodyTooLarge, message).with_hint(tool.rest_hint(None)),
            );
        };
        self.with_structure(text, answer.status.is_success())
    }

    fn with_structure(&self, text: String, is_success: bool) -> CallToolResult {
        let structure = self.takes_structured().then(|| serde_json::from_str(&text).ok()).flatten();
        let content = vec![ContentBlock::text(text)];
        let mut result = match is_success {
            true => CallToolResult::success(content),
            false => CallToolResult::error(content),
        };
        result.structured_content = structure;
        result
    }

    fn failed(&self, problem: &Problem) -> CallToolResult {
        if let Some(cause) = problem.cause() {
            tracing::error!(id = self.request_id(), code = problem.code().as_str(), cause, "a tool call failed");
        }
        let text = String::from_utf8_lossy(&problem.to_json(self.request_id())).into_owned();
        self.with_structure(text, false)
    }
}
