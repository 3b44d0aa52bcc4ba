//! Tests the parsing of role files: the parsed rules, and the errors of invalid files.

use super::*;

/// The role that docs/roles.md shows, with its claims written in full.
const CUSTOMER: &str = r#"{"tables": {
    "shop.products": {"read": {"fields": {"omit": ["cost"]}}},
    "shop.orders": {
        "read":   {"rows": {"customer_id": {"value": {"claim": "sub"}}}},
        "insert": {"fields": ["product_id", "amount"], "set": {"customer_id": {"claim": "sub"}}},
        "update": {"fields": ["amount"], "rows": {"customer_id": {"value": {"claim": "sub"}}, "status": "open"}},
        "delete": {"rows": {"customer_id": {"value": {"claim": "sub"}}, "status": "open"}}},
    "shop.*": {"read": {}}},
  "media": {"read": "own", "upload": {"folder": "avatars/{sub}", "types": ["image/*"], "maxBytes": 5000000}, "delete": "own"},
  "maxRows": 500, "timeout": "5s", "rateLimit": "100/1s"}"#;

fn names(database: &str, table: &str) -> (DatabaseName, TableName) {
    (DatabaseName::parse(database).unwrap(), TableName::parse(table).unwrap())
}

fn field_name(name: &str) -> FieldName {
    FieldName::parse(name).unwrap()
}

#[test]
fn the_most_specific_rule_holds() {
    let role = Role::parse(CUSTOMER).unwrap();
    let rule = |database, table| {
        let (database, table) = names(database, table);
        role.rule(&database, &table).cloned()
    };
    let orders = rule("shop", "orders").unwrap();
    assert_eq!(orders.insert.unwrap().fields, Fields::Only(vec![field_name("product_id"), field_name("amount")]));
    assert_eq!(orders.update.unwrap().rows.unwrap().claims(), ["sub"]);
    let products = rule("shop", "products").unwrap();
    assert!(!products.read.as_ref().unwrap().fields.has(&field_name("cost")));
    assert!(products.read.unwrap().fields.has(&field_name("name")) && products.insert.is_none());
    assert!(rule("shop", "other").unwrap().read.is_some());
    assert_eq!(rule("Shop", "ORDERS"), rule("shop", "orders"), "may be the same table");
    assert_eq!(rule("bank", "accounts"), None);
    assert!(!role.only_reads());
    assert_eq!((role.max_rows(), role.timeout()), (Some(500), Some(Duration::from_secs(5))));
    assert_eq!(role.media().delete, MediaDeletion::Own);
}

#[test]
fn of_databases_that_differ_in_case_the_exact_name_comes_first() {
    let role = Role::parse(r#"{"tables": {"shop.*": {}, "Shop.*": {"read": true}}}"#).unwrap();
    for (database, is_readable) in [("shop", false), ("Shop", true)] {
        let (database, table) = names(database, "orders");
        assert_eq!(role.rule(&database, &table).is_some(), is_readable, "{database}");
    }
}

/// A server with `lower_case_table_names=1` reads `İ` in a name as `i`.
#[test]
fn no_letter_leads_past_the_rule_of_a_table() {
    let role = Role::parse(r#"{"tables": {"shop.items": {}, "shop.*": {"read": true}}}"#).unwrap();
    for (table, is_readable) in [("items", false), ("İtems", false), ("others", true)] {
        let (database, table) = names("shop", table);
        assert_eq!(role.rule(&database, &table).is_some(), is_readable, "{table:?}");
    }
}

#[test]
fn an_omitted_field_is_omitted_in_any_case() {
    let role = Role::parse(r#"{"tables": {"*": {"read": {"fields": {"omit": ["Password", "ÄRGER"]}}}}}"#).unwrap();
    let (database, table) = names("shop", "users");
    let read = role.rule(&database, &table).unwrap().read.clone().unwrap();
    for (name, has) in [("password", false), ("PASSWORD", false), ("ärger", false), ("pass", true), ("name", true)] {
        assert_eq!(read.fields.has(&field_name(name)), has, "{name}");
    }
}

#[test]
fn an_empty_rule_hides_a_table_of_a_pattern() {
    let role =
        Role::parse(r#"{"tables": {"*": {"read": true}, "shop.secrets": {}, "bank.*": {"read": false}}}"#).unwrap();
    for (database, table, may) in [("shop", "orders", true), ("shop", "secrets", false), ("bank", "a", false)] {
        let (database, table) = names(database, table);
        assert_eq!(role.rule(&database, &table).is_some(), may, "{table}");
    }
    assert!(role.only_reads());
}

#[test]
fn an_empty_rule_hides_a_database_of_which_no_table_is_allowed() {
    let role = Role::parse(
        r#"{"tables": {"*": {"read": true}, "bank.*": {}, "hr.*": {"read": false}, "hr.jobs": {"read": true},
            "shop.secrets": {}, "log.*": {"insert": true}}}"#,
    )
    .unwrap();
    for (database, known) in
        [("bank", false), ("BANK", false), ("hr", true), ("shop", true), ("log", true), ("other", true)]
    {
        assert_eq!(role.knows_database(&DatabaseName::parse(database).unwrap()), known, "{database}");
    }
}

#[test]
fn a_fault_is_named_with_its_place() {
    for (text, said) in [
        ("[]", "the role: it must be an object, not a list"),
        ("{", "the role: it is no JSON"),
        (r#"{"table": {}}"#, "the role: it has no part \"table\""),
        (r#"{"tables": {"orders": {}}}"#, "tables.\"orders\": it must be a table with its database"),
        (r#"{"tables": {"mysql.user": {}}}"#, "tables.\"mysql.user\": no key reaches"),
        (r#"{"tables": {"*": {}, "*.*": {}}}"#, "another entry stands for the same tables"),
        (r#"{"tables": {"a.b": {"write": {}}}}"#, "tables.\"a.b\": it has no part \"write\""),
        (r#"{"tables": {"a.b": {"read": 1}}}"#, "tables.\"a.b\".read: it must be an object, not a number"),
        (r#"{"tables": {"a.b": {"read": {"set": {}}}}}"#, "tables.\"a.b\".read: it has no part \"set\""),
        (r#"{"tables": {"a.b": {"read": {"fields": "x"}}}}"#, "tables.\"a.b\".read.fields: it must be an object"),
        (r#"{"tables": {"a.b": {"read": {"fields": {"without": []}}}}}"#, "it must be a list of fields, or"),
        (
            r#"{"tables": {"a.b": {"read": {"rows": {"x": {"value": 1, "equality": "~"}}}}}}"#,
            "tables.\"a.b\".read.rows: ",
        ),
        (r#"{"tables": {"a.b": {"read": {"rows": {"x": {"claim": 1}}}}}}"#, "takes the claim's name"),
        (
            r#"{"tables": {"a.b": {"insert": {"fields": ["x"], "set": {"x": 1}}}}}"#,
            "\"x\" is both in fields and in set",
        ),
        (r#"{"tables": {"a.b": {}, "a.b": {}}}"#, "the key \"a.b\" is repeated"),
        (r#"{"media": {"delete": true}}"#, "media.delete: "),
        (r#"{"media": {"read": "all"}}"#, "media.read: it must be true, false, \"own\""),
        (r#"{"media": {"read": {"folder": "/"}}}"#, "media.read.folder: it is empty"),
        (r#"{"media": {"read": {"folder": "a/{sub"}}}"#, "media.read.folder: a claim in it"),
        (r#"{"media": {"read": [{"folders": ["a"]}]}}"#, "media.read: an object in it"),
        (r#"{"media": {"upload": {"types": ["image"]}}}"#, "media.upload.types: \"image\" is no media type"),
        (r#"{"maxRows": 0}"#, "maxRows: "),
        (r#"{"timeout": "soon"}"#, "timeout: "),
        (r#"{"rateLimit": "fast"}"#, "rateLimit: "),
    ] {
        let message = Role::parse(text).unwrap_err().to_string();
        assert!(message.contains(said), "{text}: {message}");
    }
}
