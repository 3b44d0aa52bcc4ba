//! Checks GeoJSON geometries (RFC 7946, section 3.1) before MariaDB gets them: MariaDB's errors don't name the field,
//! and MariaDB stores a point with a height, for example, without the height.

use serde_json::{Value, json};
use shared::ident::shown;
use std::borrow::Cow;

const NESTING_MAX_LEVELS: u8 = 16;
const LINE_MIN_POSITIONS: usize = 2;
const RING_MIN_POSITIONS: usize = 4;

/// Why a geometry is invalid, worded to follow a colon in an error message.
pub(super) type Fault = Cow<'static, str>;

/// Checks a geometry and drops further members, which MariaDB may reject.
pub(super) fn geometry(text: &str) -> Result<String, Fault> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    shape(&value, NESTING_MAX_LEVELS).map(|shape| shape.to_string())
}

fn shape(value: &Value, levels: u8) -> Result<Value, Fault> {
    let kind = value["type"].as_str().ok_or("it has no type")?;
    let coordinates = &value["coordinates"];
    let (fits, are) = match kind {
        "Point" => (is_position(coordinates), "two numbers, [x, y]"),
        "MultiPoint" => (is_list(coordinates, 1, is_position), "a list of positions [x, y]"),
        "LineString" => (is_line(coordinates), "two or more positions [x, y]"),
        "MultiLineString" => (is_list(coordinates, 1, is_line), "a list of lines of two or more positions [x, y]"),
        "Polygon" => {
            (is_polygon(coordinates), "a list of rings of four or more positions [x, y], the last like the first")
        }
        "MultiPolygon" => (
            is_list(coordinates, 1, is_polygon),
            "a list of polygons: lists of rings of four or more positions [x, y], the last like the first",
        ),
        "GeometryCollection" => {
            let levels = levels.checked_sub(1).ok_or("its collections nest too deep")?;
            let members = value["geometries"].as_array();
            let members = members.ok_or("a GeometryCollection has a list of geometries")?;
            let shapes = members.iter().map(|part| shape(part, levels));
            let shapes = shapes.collect::<Result<Vec<_>, _>>()?;
            return Ok(json!({"type": kind, "geometries": shapes}));
        }
        "Feature" | "FeatureCollection" => {
            return Err(format!("a {kind} is none, but has one in its member geometry").into());
        }
        _ => {
            return Err(format!(
                "its type {} is none of Point, MultiPoint, LineString, MultiLineString, Polygon, MultiPolygon, \
                 GeometryCollection",
                shown(kind)
            )
            .into());
        }
    };
    match fits {
        true => Ok(json!({"type": kind, "coordinates": coordinates})),
        false => Err(format!("the coordinates of a {kind} are {are}").into()),
    }
}

fn is_list(value: &Value, least: usize, is_part: fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|parts| parts.len() >= least && parts.iter().all(is_part))
}

fn is_position(value: &Value) -> bool {
    is_list(value, 2, Value::is_number) && value.as_array().is_some_and(|parts| parts.len() == 2)
}

fn is_line(value: &Value) -> bool {
    is_list(value, LINE_MIN_POSITIONS, is_position)
}

fn is_polygon(value: &Value) -> bool {
    is_list(value, 1, is_ring)
}

fn is_ring(value: &Value) -> bool {
    is_list(value, RING_MIN_POSITIONS, is_position)
        && value.as_array().is_some_and(|ring| ends(ring.first()) == ends(ring.last()))
}

/// Returns the first two coordinates as floats, so that 1 equals 1.0.
fn ends(position: Option<&Value>) -> Option<(f64, f64)> {
    let position = position?;
    Some((position[0].as_f64()?, position[1].as_f64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometries_are_told_from_nonsense() {
        for text in [
            r#"{"type":"Point","coordinates":[1,2]}"#,
            r#"{"type":"LineString","coordinates":[[1,2],[1.5,2]]}"#,
            r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0.0,0]]]]}"#,
            r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2.5]}]}"#,
            r#"{"type":"GeometryCollection","geometries":[]}"#,
        ] {
            let same = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            assert_eq!(geometry(text).as_deref().map(same), Ok(same(text)));
        }
        for text in [
            "{}",
            r#"{"type":"Circle"}"#,
            r#"{"type":"point","coordinates":[1,2]}"#,
            r#"{"type":"Point"}"#,
            r#"{"type":"Point","coordinates":["a",1]}"#,
            r#"{"type":"Point","coordinates":[1,2,3]}"#,
            r#"{"type":"Point","coordinates":[1,1e999]}"#,
            r#"{"type":"Point","coordinates":[]}"#,
            r#"{"type":"MultiPoint","coordinates":[]}"#,
            r#"{"type":"LineString","coordinates":[1,2]}"#,
            r#"{"type":"LineString","coordinates":[[1,2]]}"#,
            r#"{"type":"Polygon","coordinates":[[[0,0],[1,0],[1,1],[0,1]]]}"#,
            r#"{"type":"GeometryCollection","geometries":[1]}"#,
            r#"{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{}}"#,
        ] {
            assert!(geometry(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_fault_says_what_is_missing() {
        for (text, fault) in [
            ("{}", "it has no type"),
            (r#"{"type":"Point"}"#, "the coordinates of a Point are two numbers, [x, y]"),
            (r#"{"type":"Point","coordinates":[1,2,3]}"#, "the coordinates of a Point are two numbers, [x, y]"),
            (
                r#"{"type":"point","coordinates":[1,2]}"#,
                "its type \"point\" is none of Point, MultiPoint, LineString, MultiLineString, Polygon, MultiPolygon, \
                 GeometryCollection",
            ),
            (
                r#"{"type":"GeometryCollection","geometries":[{"type":"LineString","coordinates":[[1,2]]}]}"#,
                "the coordinates of a LineString are two or more positions [x, y]",
            ),
            (r#"{"type":"Feature"}"#, "a Feature is none, but has one in its member geometry"),
        ] {
            assert_eq!(geometry(text).unwrap_err(), fault, "{text}");
        }
    }

    #[test]
    fn other_members_are_left_out() {
        let text = r#"{"bbox":[0,0,1,1],"coordinates":[44.074259984492556,5e-324],"type":"Point","crs":null}"#;
        let kept = r#"{"coordinates":[44.074259984492556,5e-324],"type":"Point"}"#;
        assert_eq!(geometry(text).as_deref(), Ok(kept));
    }
}
