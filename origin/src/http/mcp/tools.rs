//! The MCP tools: their descriptions (`tools.json`), and which of them a caller is offered.

use crate::system::keys::Caller;
use rmcp::model::Tool;
use shared::operation::filter::short_names;
use shared::operation::read::select::AGGREGATES;
use shared::policy::{Action, permit};
use std::sync::LazyLock;

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| serde_json::from_str(&descriptions()).unwrap_or_default());

/// Returns `tools.json` with `{operators}` and `{aggregates}` replaced by lists.
fn descriptions() -> String {
    let operators: Vec<_> = short_names().collect();
    let aggregates = AGGREGATES.map(|(name, _)| name);
    include_str!("tools.json")
        .replace("{operators}", &operators.join(", "))
        .replace("{aggregates}", &aggregates.join(", "))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolName {
    ListTables,
    DescribeTable,
    ReadRecords,
    WriteRecords,
    RunSql,
    UploadFile,
}

impl ToolName {
    pub(super) const ALL: [Self; 6] =
        [Self::ListTables, Self::DescribeTable, Self::ReadRecords, Self::WriteRecords, Self::RunSql, Self::UploadFile];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::ListTables => "list_tables",
            Self::DescribeTable => "describe_table",
            Self::ReadRecords => "read_records",
            Self::WriteRecords => "write_records",
            Self::RunSql => "run_sql",
            Self::UploadFile => "upload_file",
        }
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    pub(super) fn arguments(self) -> impl Iterator<Item = &'static str> {
        let tool = TOOLS.iter().find(|tool| tool.name == self.as_str());
        let properties = tool.and_then(|tool| tool.input_schema.get("properties")?.as_object());
        let described = properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str));
        described.chain(self.undescribed().iter().copied())
    }

    /// Arguments that a schema need not spend tokens on: another argument does the same.
    const fn undescribed(self) -> &'static [&'static str] {
        match self {
            Self::ReadRecords => &["where", "select", "page"],
            Self::WriteRecords => &["where"],
            _ => &[],
        }
    }

    /// Tells how to get the rest after `items` items of a truncated list; `items` is `None` for other responses.
    pub(super) const fn rest_hint(self, items: Option<usize>) -> &'static str {
        match self {
            Self::ListTables => "Name a `database`, or describe a table that you know by name.",
            Self::DescribeTable => "Read the table's columns from information_schema.COLUMNS, if you may run SQL.",
            Self::ReadRecords if items.is_none() => {
                "Leave the long fields of this record out by `omitFields` or `selectFields`."
            }
            Self::ReadRecords if matches!(items, Some(0)) => {
                "Leave the long fields of this record out by `omitFields` or `selectFields`. To pass it over, read it with \
                 `limit` 1 and only short fields, and go on with the `next` or `nextOffset` of that answer and all fields."
            }
            Self::ReadRecords => {
                "Call again with `limit` set to the number of `records` here, which gives `next` or `nextOffset`; or name \
                 only the fields that you need in `selectFields`, or narrow `query`."
            }
            Self::WriteRecords => "The write is done; only its answer is truncated. Read the records if you need them.",
            Self::RunSql => {
                "Add LIMIT and OFFSET, or select fewer columns. The statement has already run: its changes are made."
            }
            Self::UploadFile => "The file is stored.",
        }
    }

    /// Whether the caller is offered the tool. Not a complete check: the API request of a call checks the rest.
    fn may_be_used_by(self, caller: &Caller) -> bool {
        let permitted = |action| permit(action, caller.grant()).is_ok();
        let role = caller.rights().role().map(|role| role.role());
        match self {
            Self::ListTables | Self::DescribeTable | Self::ReadRecords => true,
            Self::WriteRecords => permitted(Action::Insert) && role.is_none_or(|role| !role.only_reads()),
            Self::RunSql => caller.sql_account().is_some(),
            Self::UploadFile => permitted(Action::Upload) && caller.upload_rights().is_ok(),
        }
    }
}

pub(super) fn offered_to(caller: &Caller) -> Vec<Tool> {
    let may_use = |tool: &&Tool| ToolName::parse(&tool.name).is_some_and(|name| name.may_be_used_by(caller));
    TOOLS.iter().filter(may_use).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_described_with_its_arguments() {
        let described: Vec<_> = TOOLS.iter().map(|tool| &*tool.name).collect();
        assert_eq!(described, ToolName::ALL.map(ToolName::as_str));
        for tool in &*TOOLS {
            let name = ToolName::parse(&tool.name).unwrap();
            assert!(name.arguments().count() > 0 && tool.description.is_some(), "{}", tool.name);
            let annotations = tool.annotations.as_ref().unwrap();
            let reads = matches!(name, ToolName::ListTables | ToolName::DescribeTable | ToolName::ReadRecords);
            assert_eq!(annotations.read_only_hint, Some(reads), "{}", tool.name);
            assert_eq!(annotations.destructive_hint, (!reads).then_some(true), "{}", tool.name);
        }
    }

    #[test]
    fn the_descriptions_name_all_operators_and_aggregates() {
        let reads = TOOLS.iter().find(|tool| tool.name == "read_records").unwrap();
        let described = |name: &str| reads.input_schema["properties"][name]["description"].as_str().unwrap();
        assert!(described("query").contains("Operators: eq, ne, gt, gte, lt, lte, in, notIn, between,"));
        assert!(described("selectFields").contains("with COUNT, COUNT_DISTINCT, SUM,"));
    }

    #[test]
    fn the_examples_of_a_tool_are_calls_of_it() {
        for tool in &*TOOLS {
            let name = ToolName::parse(&tool.name).unwrap();
            let (_, examples) = tool.description.as_ref().unwrap().split_once("Example").unwrap();
            let (_, examples) = examples.split_once(": ").unwrap();
            let mut count = 0;
            for example in examples.split("; ").flat_map(|part| part.split(" or ")) {
                let mut arguments: serde_json::Map<_, _> = serde_json::from_str(example).expect(example);
                for required in tool.input_schema.get("required").and_then(|all| all.as_array()).into_iter().flatten() {
                    arguments.entry(required.as_str().unwrap()).or_insert("x".into());
                }
                crate::http::mcp::arguments::request(name, arguments).expect(example);
                count += 1;
            }
            assert!(count > 0, "{}", tool.name);
        }
    }

    #[test]
    fn the_tools_take_few_tokens() {
        let bytes = serde_json::to_string(&*TOOLS).unwrap().len();
        assert!(bytes < 8_500, "{bytes} bytes");
    }
}
