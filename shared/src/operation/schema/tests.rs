//! Tests of parsing changes of tables.

use super::*;

fn parse(change: &str) -> Result<TableChange, String> {
    let body = format!("{{\"database\":\"shop\",\"table\":\"posts\",{change}}}");
    let call = SchemaCall::from_body(body.as_bytes());
    call.map(|call| call.change).map_err(|problem| problem.message().to_owned())
}

fn column(members: &str) -> Result<ColumnDefinition, String> {
    match parse(&format!("\"alter\":{{\"addColumns\":[{{\"name\":\"x\",{members}}}]}}"))? {
        TableChange::Alter(change) => Ok(change.added_columns[0].0.clone()),
        _ => unreachable!(),
    }
}

#[test]
fn a_body_has_one_change() {
    assert_eq!(parse("\"drop\":true").unwrap(), TableChange::Drop);
    assert_eq!(parse("\"drop\":false,\"truncate\":true,\"alter\":null").unwrap(), TableChange::Truncate);
    for (body, message) in [
        ("\"drop\":false", "The body has no change: give one of create, alter, truncate and drop."),
        (
            "\"drop\":true,\"truncate\":true",
            "The body has several changes: give one of create, alter, truncate and drop.",
        ),
        ("\"drop\":1", "drop must be true, not 1."),
        ("\"drop\":true,\"force\":true", "There is no key \"force\" in the body."),
        ("\"create\":[]", "create must be an object, not a list."),
        ("\"create\":{}", "create.columns must have a column."),
        ("\"alter\":{}", "alter has no change."),
        ("\"alter\":{\"algorithm\":\"copy\"}", "alter has no change."),
        (
            "\"alter\":{\"comment\":\"\",\"algorithm\":\"fast\"}",
            "alter.algorithm must be one of instant, nocopy, inplace, copy, not \"fast\".",
        ),
        ("\"alter\":{\"primaryKey\":[]}", "alter.primaryKey must have a column; null drops the key."),
        ("\"alter\":{\"dropColumns\":[5]}", "alter.dropColumns[0] must be a name, not 5."),
        ("\"alter\":{\"dropColumns\":\"a\"}", "alter.dropColumns must be a list, not \"a\"."),
        ("\"alter\":{\"addColumns\":[{\"type\":\"int\"}]}", "alter.addColumns[0] needs name."),
        ("\"alter\":{\"changeColumns\":[{\"name\":\"a\",\"type\":\"int\"}]}", "alter.changeColumns[0] needs column."),
        (
            "\"create\":{\"columns\":[{\"name\":\"a\",\"type\":\"int\",\"first\":true}]}",
            "There is no key \"first\" in create.columns[0].",
        ),
        ("\"alter\":{\"rename\":\"a \"}", "The table name \"a \" ends with a space."),
    ] {
        assert_eq!(parse(body).unwrap_err(), message, "{body}");
    }
}

#[test]
fn a_null_drops_the_primary_key() {
    let TableChange::Alter(change) = parse("\"alter\":{\"primaryKey\":null}").unwrap() else { unreachable!() };
    assert_eq!(change.primary_key, PrimaryKeyChange::Dropped);
}

#[test]
fn a_type_is_a_word_with_numbers_or_texts() {
    for (text, name, arguments, words) in [
        ("INT", "int", 0, 0),
        ("varchar( 200 )", "varchar", 1, 0),
        ("decimal(10,2) unsigned zerofill", "decimal", 2, 2),
        (r"enum('a','it''s','\\','(;')", "enum", 4, 0),
        ("text compressed", "text", 0, 1),
    ] {
        let made = SqlType::parse(text).unwrap();
        assert_eq!((&*made.name, made.arguments.len(), made.words.len()), (name, arguments, words), "{text}");
    }
    let members = SqlType::parse(r"enum('it''s','\\','\n')").unwrap().arguments;
    assert_eq!(members, ["it's", "\\", "\n"].map(|text| TypeArgument::Member(text.into())));
    for text in [
        "",
        "5",
        "`int`",
        "int, add y int",
        "int not null",
        "int primary key",
        "int default 5",
        "int)",
        "varchar(20",
        "varchar()",
        "varchar(20,)",
        "varchar(-1)",
        "varchar(1.5)",
        "varchar(2) (3)",
        "varchar(a)",
        "enum('a)",
        "enum('a\\')",
        "enum('a' 'b')",
        "enum('a\\x')",
        "int unsigned unsigned",
        "int /* x */",
        "int -- x",
        "int;",
        "int unsigned; DROP TABLE t",
        "double precision",
    ] {
        assert!(SqlType::parse(text).is_err(), "{text}");
    }
}

#[test]
fn an_expression_stays_within_its_parentheses() {
    let made = |text: &str| {
        let text = Value::Text(text.into());
        column(&format!("\"type\":\"int\",\"default\":{{\"expression\":{}}}", text.to_json()))
    };
    for text in ["uuid()", " a + 1 ", "concat('a;', `b)`, \"--\\\"\")", "(1) - (2)", "if(a, 'it''s', '\\'')", "`a```"] {
        let ColumnSource::Default { value: Some(DefaultValue::Expression(expression)), .. } =
            made(text).unwrap().source
        else {
            unreachable!()
        };
        assert_eq!(expression.as_str(), text.trim());
    }
    for (text, fault) in [
        ("", "is empty"),
        ("1), ADD y INT", "has a closing parenthesis too many"),
        ("1) -- ", "has a closing parenthesis too many"),
        ("(1", "has a parenthesis that is not closed"),
        ("1; DROP TABLE t", "has a ;"),
        ("1 -- x", "has a comment (--); write - - for two signs"),
        ("1 # x", "has a comment (#)"),
        ("1 /* x", "has a comment (/*)"),
        ("1 /*! x */", "has a comment (/*)"),
        ("1 */ x", "has the end of a comment (*/)"),
        ("'a", "has a quote that is not closed"),
        ("'a\\'", "has a quote that is not closed"),
        ("`a\\``", "has a quote that is not closed"),
        ("'a'' )", "has a quote that is not closed"),
        ("a, b", "has a comma outside of parentheses"),
        ("?", "has a ?, but takes no values"),
        ("\\N", "has a \\ outside of a string"),
        ("1\0", "holds a NUL character"),
    ] {
        let message = format!("alter.addColumns[0].default.expression {fault}.");
        assert_eq!(made(text).unwrap_err(), message, "{text}");
    }
}

#[test]
fn a_column_has_one_source_of_its_values() {
    let number = ColumnSource::Default { value: Some(DefaultValue::Number("1".into())), on_update: None };
    assert_eq!(column("\"type\":\"int\",\"default\":true").unwrap().source, number);
    let touched = ColumnSource::Default { value: None, on_update: Some(6) };
    assert_eq!(column("\"type\":\"datetime\",\"onUpdate\":\"CURRENT_TIMESTAMP(6)\"").unwrap().source, touched);
    assert_eq!(column("\"type\":\"int\",\"autoIncrement\":true").unwrap().source, ColumnSource::AutoIncrement);
    for (members, message) in [
        ("\"type\":5", "alter.addColumns[0].type must be a string, not 5."),
        ("\"type\":\"int\",\"nullable\":1", "alter.addColumns[0].nullable must be true or false, not 1."),
        (
            "\"type\":\"int\",\"autoIncrement\":true,\"default\":1",
            "alter.addColumns[0].autoIncrement excludes default, onUpdate and generated.",
        ),
        (
            "\"type\":\"int\",\"generated\":{\"expression\":\"a\"},\"default\":1",
            "alter.addColumns[0].generated excludes default, onUpdate and autoIncrement.",
        ),
        ("\"type\":\"int\",\"generated\":{}", "alter.addColumns[0].generated needs expression."),
        (
            "\"type\":\"int\",\"default\":[]",
            "alter.addColumns[0].default must be a string, a number, a boolean or {\"expression\": …}, not a list.",
        ),
        (
            "\"type\":\"int\",\"onUpdate\":\"now(7)\"",
            "alter.addColumns[0].onUpdate must be current_timestamp(), or with digits in ().",
        ),
        (
            "\"type\":\"int\",\"charset\":\"utf8 x\"",
            "alter.addColumns[0].charset must be a word of letters, digits and _.",
        ),
        ("\"type\":\"int\",\"first\":true,\"after\":\"a\"", "alter.addColumns[0].first and after exclude each other."),
        ("\"type\":\"int\",\"lenght\":5", "There is no key \"lenght\" in alter.addColumns[0]."),
    ] {
        assert_eq!(column(members).unwrap_err(), message, "{members}");
    }
}

#[test]
fn keys_name_their_columns() {
    let body = "\"alter\":{\"addIndexes\":[{\"columns\":[\"a\",{\"column\":\"b\",\"length\":10,\"descending\":true}],\"kind\":\"UNIQUE\"}],\
        \"addForeignKeys\":[{\"columns\":[\"a\"],\"references\":{\"table\":\"t\",\"columns\":[\"id\"]},\"onDelete\":\"SET NULL\"}]}";
    let TableChange::Alter(change) = parse(body).unwrap() else { unreachable!() };
    assert_eq!((change.added_indexes[0].kind, change.added_indexes[0].parts[1].length), (IndexKind::Unique, Some(10)));
    assert_eq!(change.added_foreign_keys[0].on_delete, Some(ReferenceAction::SetNull));
    for (of, message) in [
        ("\"addIndexes\":[{}]", "alter.addIndexes[0] needs columns."),
        (
            "\"addIndexes\":[{\"columns\":[{\"column\":\"a\",\"length\":0}]}]",
            "alter.addIndexes[0].columns[0].length must be a whole number from 1, not 0.",
        ),
        (
            "\"addIndexes\":[{\"columns\":[\"a\"],\"kind\":\"hash\"}]",
            "alter.addIndexes[0].kind must be one of index, unique, fulltext, not \"hash\".",
        ),
        ("\"addForeignKeys\":[{\"columns\":[\"a\"]}]", "alter.addForeignKeys[0] needs references."),
        (
            "\"addForeignKeys\":[{\"columns\":[\"a\"],\"references\":{\"table\":\"t\",\"columns\":[]}}]",
            "alter.addForeignKeys[0].columns and alter.addForeignKeys[0].references.columns must have equally many columns.",
        ),
    ] {
        assert_eq!(parse(&format!("\"alter\":{{{of}}}")).unwrap_err(), message, "{of}");
    }
}
