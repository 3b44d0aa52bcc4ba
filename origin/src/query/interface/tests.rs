//! Checks the OpenAPI document and the types for tables and fields with unusual names.

use super::*;
use crate::query::catalog::{CaseSensitivity, Charset, Kind, Traits};
use std::collections::BTreeSet;

fn column(name: &str, kind: Kind, type_text: &str) -> Column {
    Column {
        name: FieldName::parse(name).unwrap(),
        kind,
        charset: Charset::Unicode,
        case_sensitivity: CaseSensitivity::Insensitive,
        type_text: type_text.into(),
        nullable: name != "id",
        default: None,
        auto_increment: name == "id",
        generated: false,
        on_update: false,
        invisible: false,
        primary: name == "id",
        unique: (name == "id").then(|| "PRIMARY".to_owned()).into_iter().collect(),
        checks: Vec::new(),
        values: Arc::default(),
        references: None,
        comment: String::new(),
        full_text: Vec::new(),
        indexed: false,
        sorted_chars: None,
    }
}

/// Returns the interface of a full key to one table.
fn interface(database: &str, table: &str, columns: Vec<Column>) -> Interface {
    let mut interface =
        Interface::new(Grant::Full, MediaInterface { read: true, upload: true, delete: true }, Some(Access::Full));
    let database = DatabaseName::parse(database).unwrap();
    let name = TableName::parse(table).unwrap();
    let table = Arc::new(Table::new(database.clone(), name, columns, vec![0], Vec::new(), Traits::default()));
    interface.add(database, &[table], &Relations::default(), &Rights::Full);
    interface
}

fn orders() -> Interface {
    interface(
        "shop",
        "order lines",
        vec![
            column("id", Kind::Integer, "int(11)"),
            column("total", Kind::Decimal, "decimal(10,2)"),
            column("big", Kind::Integer, "bigint(20) unsigned"),
            column("made at", Kind::DateTime, "datetime(3)"),
        ],
    )
}

#[test]
fn the_document_is_json_without_placeholders_and_every_reference_leads_somewhere() {
    let text = String::from_utf8(openapi::document(&orders()).unwrap()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(!text.contains("@T@") && !text.contains("@N@"));
    let references = text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next());
    let references: std::collections::BTreeSet<_> = references.collect();
    assert!(references.len() > 40, "{references:?}");
    for pointer in references {
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
    // Generators and testers fail at lists of types, and leave out parameters that are no plain values.
    assert!(!text.contains("\"type\":[") && !text.contains("\"in\":\"query\",\"content\""));
    let record = &document["components"]["schemas"]["shop.order-20lines"]["properties"];
    assert_eq!(record["total"]["anyOf"][0]["pattern"], "^-?[0-9]+\\.[0-9]{2}$");
    assert_eq!(record["big"]["anyOf"][0]["maximum"], 9_007_199_254_740_991_u64);
    assert!(document["paths"]["/crud/shop/order%20lines/{id}"]["patch"].is_object());
}

#[test]
fn operation_ids_are_unique() {
    let mut interface = orders();
    for (database, names) in [("a.b", vec!["c"]), ("a", vec!["b.c", "b_c", "list", "tables"]), ("a_b", vec!["c"])] {
        let database = DatabaseName::parse(database).unwrap();
        let tables = names.into_iter().map(|name| {
            let columns = vec![column("id", Kind::Integer, "int(11)")];
            let name = TableName::parse(name).unwrap();
            Arc::new(Table::new(database.clone(), name, columns, vec![0], Vec::new(), Traits::default()))
        });
        let tables: Vec<_> = tables.collect();
        interface.add(database.clone(), &tables, &Relations::default(), &Rights::Full);
    }
    let text = String::from_utf8(openapi::document(&interface).unwrap()).unwrap();
    let ids: Vec<_> = text.split("\"operationId\":\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
}

#[test]
fn types_quote_names_that_are_no_identifiers() {
    let text = typescript::types(&orders()).unwrap();
    let row = "row: { id: number; total?: string | null";
    assert!(!text.contains(row));
    assert!(text.contains(
        "    \"order lines\": {\n      row: { id: number; total: string | null; big: number | string | null; \
         \"made at\": string | null };\n      insert: { id?: number; total?: string | null;"
    ));
    assert!(text.contains("      key: number;\n      relations: {};\n"));
    assert!(
        python::types(&orders())
            .unwrap()
            .contains("ShopOrderLines = TypedDict(\"ShopOrderLines\", {\n    \"id\": int,\n")
    );
    assert!(
        rust::types(&orders())
            .unwrap()
            .contains("    #[serde(rename = \"made at\")]\n    pub made_at: Option<String>,\n")
    );
}

#[test]
fn a_description_that_is_too_long_is_refused() {
    let written = |interface: &Interface| {
        let types = [typescript::types(interface), python::types(interface), rust::types(interface)];
        types.map(|types| types.is_ok())
    };
    let members = Arc::new(std::iter::once("x".repeat(1024 * 1024)).collect());
    let wide = Column { values: members, ..column("c", Kind::Enum, "enum('x')") };
    let mut interface = interface("d", "wide", vec![wide]);
    assert_eq!(interface.max_bytes, API_DESCRIPTION_MAX_BYTES);
    assert!(openapi::document(&interface).is_ok());
    assert_eq!(written(&interface), [true; 3]);
    interface.max_bytes = 1024 * 1024;
    let problem = openapi::document(&interface).unwrap_err();
    assert!(problem.message().contains("64 MiB") && problem.hint().unwrap().contains("?database="));
    assert_eq!(written(&interface), [false; 3]);
}

#[test]
fn rust_fields_of_reserved_words_are_unique() {
    let columns = ["self", "self_", "Self", "type"].map(|name| column(name, Kind::Integer, "int(11)"));
    let text = rust::types(&interface("d", "t", columns.into())).unwrap();
    let record = text.split("pub struct DTInsert").next().unwrap();
    let fields: Vec<_> = record.split("    pub ").skip(1).filter_map(|field| field.split(':').next()).collect();
    assert_eq!(fields, ["self_", "self_2", "self_3", "r#type"]);
    assert!(record.contains("    #[serde(rename = \"self\")]\n    pub self_:"), "{record}");
    assert!(record.contains("    #[serde(rename = \"self_\")]\n    pub self_2:"), "{record}");
}

#[test]
fn the_schema_of_conditions_has_all_operators() {
    let components: serde_json::Value = serde_json::from_str(include_str!("openapi/components.json")).unwrap();
    let forms = components["schemas"]["Condition"]["anyOf"].as_array().unwrap();
    let short = forms.iter().find(|form| form["properties"]["eq"].is_object()).unwrap();
    let described: BTreeSet<_> = short["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let operators: BTreeSet<_> = shared::operation::filter::short_names().collect();
    assert_eq!(described, operators);
    let equality =
        &forms.iter().find(|form| form["properties"]["equality"].is_object()).unwrap()["properties"]["equality"];
    let equalities: Vec<_> = shared::operation::filter::equalities().collect();
    assert_eq!(equality["description"], format!("{}; = by default", equalities.join(", ")));
}

#[test]
fn the_schema_of_select_has_all_aggregates() {
    let components = include_str!("openapi/components.json");
    let aggregates = shared::operation::read::select::AGGREGATES.map(|(name, _)| name);
    let listed =
        format!("\"aggregate\": {{\"anyOf\": [{{\"type\": \"string\", \"enum\": [\"{}\"]}}", aggregates.join("\", \""));
    assert!(components.contains(&listed), "components.json must hold {listed}");
}

#[test]
fn errors_have_one_schema_and_each_table_the_same_few() {
    let mut interface = orders();
    let schemas = |interface: &Interface| -> BTreeSet<String> {
        let document: serde_json::Value = serde_json::from_slice(&openapi::document(interface).unwrap()).unwrap();
        // Generators make a model of each error that has a schema of its own.
        let paths = document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap());
        let responses = paths.filter_map(|(_, operation)| operation["responses"].as_object()).flatten();
        let is_error = |status: &str| !status.starts_with(['2', '3']);
        let errors: Vec<_> = responses.filter(|(status, _)| is_error(status)).collect();
        assert!(errors.len() > 100, "{errors:?}");
        for (status, error) in errors {
            assert_eq!(error["$ref"], format!("#/components/responses/E{status}"), "{error}");
            let content = &document["components"]["responses"][format!("E{status}")]["content"];
            assert_eq!(content["application/json"]["schema"]["$ref"], "#/components/schemas/Failure", "{content}");
        }
        document["components"]["schemas"].as_object().unwrap().keys().cloned().collect()
    };
    let before = schemas(&interface);
    let database = DatabaseName::parse("more").unwrap();
    let tables = ["a", "b"].map(|name| {
        let columns = vec![column("id", Kind::Integer, "int(11)")];
        let name = TableName::parse(name).unwrap();
        Arc::new(Table::new(database.clone(), name, columns, vec![0], Vec::new(), Traits::default()))
    });
    interface.add(database, &tables, &Relations::default(), &Rights::Full);
    let parts = ["", ".insert", ".inserted", ".selected", ".update", ".written", ".writtenMany"];
    let expected = ["a", "b"].map(|name| parts.map(|part| format!("more.{name}{part}")));
    let added: Vec<_> = schemas(&interface).difference(&before).cloned().collect();
    assert_eq!(added, expected.concat());
}
