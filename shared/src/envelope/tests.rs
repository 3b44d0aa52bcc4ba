//! Tests of rows, nested objects and the members after `payload`.

use super::*;

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn row(encoder: &mut Encoder, keys: &ColumnLabels, cells: &[&str]) {
    let csv = encoder.format() == Format::Csv;
    encoder.row(
        keys,
        |at| cells[at].is_empty(),
        |at, out| match cells[at] {
            "" if !csv => out.extend_from_slice(b"null"),
            cell => out.extend_from_slice(cell.as_bytes()),
        },
    );
}

#[test]
fn no_rows_make_an_empty_list() {
    for shape in [Shape::Rows, Shape::Sets] {
        assert_eq!(text(Encoder::begin(shape, 0).finish()), r#"{"success":true,"payload":[]}"#);
    }
}

#[test]
fn rows_are_separated_also_across_chunks() {
    let keys = ColumnLabels::new(["id", "a\"b"]);
    let mut encoder = Encoder::begin(Shape::Rows, 16);
    let mut chunks = Vec::new();
    for cells in [["0", "1"], ["10", "11"], ["20", ""]] {
        row(&mut encoder, &keys, &cells);
        chunks.extend(encoder.take());
        assert_eq!((encoder.len(), encoder.is_empty()), (0, true));
    }
    chunks.extend(encoder.finish());
    assert_eq!(
        text(chunks),
        r#"{"success":true,"payload":[{"id":0,"a\"b":1},{"id":10,"a\"b":11},{"id":20,"a\"b":null}]}"#
    );
}

#[test]
fn result_sets_are_lists_in_a_list() {
    let keys = ColumnLabels::new(["a"]);
    let mut encoder = Encoder::begin(Shape::Sets, 0);
    encoder.next_set();
    row(&mut encoder, &keys, &["1"]);
    row(&mut encoder, &keys, &["2"]);
    encoder.next_set();
    let written = r#"{"success":true,"payload":[[{"a":1},{"a":2}],["#;
    assert_eq!(
        (encoder.len(), encoder.is_empty(), encoder.rows(), encoder.result_set_count()),
        (written.len(), false, 2, 2)
    );
    assert_eq!(text(encoder.finish()), r#"{"success":true,"payload":[[{"a":1},{"a":2}],[]]}"#);
}

/// Returns the labels of a post with its author. Cell 4, which is not written, decides whether the author is null.
fn nested() -> ColumnLabels {
    ColumnLabels::nested([
        Label::Field("id"),
        Label::Object { name: "aut\"hor", fields: vec!["id", "name"], presence: 4 },
        Label::Field("title"),
    ])
}

#[test]
fn an_object_is_written_where_it_stands_and_null_where_it_is_not_there() {
    let mut encoder = Encoder::begin(Shape::Rows, 0);
    row(&mut encoder, &nested(), &["1", "7", "", "3", "7"]);
    row(&mut encoder, &nested(), &["2", "", "", "4", ""]);
    assert_eq!(
        text(encoder.finish()),
        r#"{"success":true,"payload":[{"id":1,"aut\"hor":{"id":7,"name":null},"title":3},{"id":2,"aut\"hor":null,"title":4}]}"#
    );
}

#[test]
fn objects_may_come_first_last_alone_side_by_side_and_empty() {
    let object = |name, fields: &[&'static str], presence| Label::Object { name, fields: fields.to_vec(), presence };
    for (parts, cells, expected) in [
        (vec![object("u", &["a"], 0)], vec!["1"], r#"{"u":{"a":1}}"#),
        (vec![object("u", &["a"], 0)], vec![""], r#"{"u":null}"#),
        (vec![object("u", &[], 0)], vec!["1"], r#"{"u":{}}"#),
        (
            vec![object("u", &["a", "b"], 0), object("v", &["a"], 2)],
            vec!["1", "2", ""],
            r#"{"u":{"a":1,"b":2},"v":null}"#,
        ),
        (vec![object("u", &["a"], 0), Label::Field("x")], vec!["", "5"], r#"{"u":null,"x":5}"#),
        (vec![], vec![], "{}"),
    ] {
        let keys = ColumnLabels::nested(parts);
        let mut encoder = Encoder::begin_as(Format::NdJson, Shape::Rows, &keys, 0);
        row(&mut encoder, &keys, &cells);
        assert_eq!(text(encoder.finish()), format!("{expected}\n"));
    }
}

#[test]
fn a_flat_row_is_the_same_by_either_way() {
    let names = ["id", "title"];
    let parts = names.map(Label::Field);
    for keys in [ColumnLabels::new(names), ColumnLabels::nested(parts)] {
        let mut encoder = Encoder::begin(Shape::Row, 0);
        row(&mut encoder, &keys, &["1", "2"]);
        assert_eq!(text(encoder.finish()), r#"{"success":true,"payload":{"id":1,"title":2}}"#);
    }
}

#[test]
fn what_an_envelope_tells_beside_its_payload_comes_after_it() {
    let trailer = |count, next: Option<&str>| Trailer { count, next: next.map(str::to_owned), ..Trailer::default() };
    let limited = |next| Trailer { limited: true, ..trailer(None, next) };
    for (trailer, end) in [
        (trailer(None, None), "}"),
        (trailer(Some(12), None), r#","count":12}"#),
        (trailer(None, Some("a\"b")), r#","next":"a\"b"}"#),
        (trailer(Some(0), Some("x")), r#","count":0,"next":"x"}"#),
        (limited(None), r#","limited":true}"#),
        (limited(Some("x")), r#","limited":true,"next":"x"}"#),
        (Trailer { more: true, ..limited(None) }, r#","limited":true,"more":true}"#),
        (Trailer { more: true, cut: vec![1, 12], ..trailer(None, None) }, r#","more":true,"cut":[1,12]}"#),
    ] {
        let mut encoder = Encoder::begin(Shape::Rows, 0);
        row(&mut encoder, &ColumnLabels::new(["id"]), &["1"]);
        let expected = format!(r#"{{"success":true,"payload":[{{"id":1}}]{end}"#);
        assert_eq!(text(success_with(br#"[{"id":1}]"#, &trailer)), expected);
        assert_eq!(text(encoder.finish_with(&trailer)), expected);
    }
    assert_eq!(text(success(b"5")), r#"{"success":true,"payload":5}"#);
}

#[test]
fn bare_rows_have_no_envelope_and_end_their_lines() {
    let rows = [["1", "7", "8", "3", "7"], ["2", "", "", "4", ""]];
    for (format, expected) in [
        (
            Format::NdJson,
            "{\"id\":1,\"aut\\\"hor\":{\"id\":7,\"name\":8},\"title\":3}\n{\"id\":2,\"aut\\\"hor\":null,\"title\":4}\n",
        ),
        (Format::Csv, "id,\"aut\"\"hor.id\",\"aut\"\"hor.name\",title\r\n1,7,8,3\r\n2,,,4\r\n"),
    ] {
        let mut encoder = Encoder::begin_as(format, Shape::Rows, &nested(), 0);
        for cells in &rows {
            row(&mut encoder, &nested(), cells);
        }
        assert_eq!(encoder.rows(), 2);
        assert_eq!(text(encoder.finish()), expected);
    }
}

#[test]
fn bare_rows_of_which_there_are_none_leave_only_the_header() {
    let keys = ColumnLabels::new(["id"]);
    let none = |format| text(Encoder::begin_as(format, Shape::Rows, &keys, 0).finish());
    assert_eq!(none(Format::Csv), "id\r\n");
    assert_eq!(none(Format::NdJson), "");
    assert_eq!(none(Format::Envelope), r#"{"success":true,"payload":[]}"#);
}
