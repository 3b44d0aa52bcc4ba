//! GeoJSON geometries (RFC 7946, section 3.1), judged before MariaDB sees them: its refusals do not name
//! the field, and what it does not refuse it stores as something else, such as a point without its height.

use serde_json::{Value, json};

/// Collections in collections.
const NESTING_MAX_LEVELS: u8 = 16;
/// A line's fewest positions, and those of a ring, which ends where it began.
const LINE_MIN_POSITIONS: usize = 2;
const RING_MIN_POSITIONS: usize = 4;

/// The geometry, without members of other names, which MariaDB would trip over. `None` if it is none,
/// or one that MariaDB has no room for: of three dimensions, or a list of nothing.
pub(super) fn geometry(text: &str) -> Option<String> {
    let value = serde_json::from_str(text).ok()?;
    shape(&value, NESTING_MAX_LEVELS).map(|shape| shape.to_string())
}

fn shape(value: &Value, levels: u8) -> Option<Value> {
    let kind = value["type"].as_str()?;
    let coordinates = &value["coordinates"];
    let fits = match kind {
        "Point" => is_position(coordinates),
        "MultiPoint" => is_list(coordinates, 1, is_position),
        "LineString" => is_line(coordinates),
        "MultiLineString" => is_list(coordinates, 1, is_line),
        "Polygon" => is_polygon(coordinates),
        "MultiPolygon" => is_list(coordinates, 1, is_polygon),
        "GeometryCollection" => {
            let levels = levels.checked_sub(1)?;
            let members = value["geometries"].as_array()?;
            let shapes: Option<Vec<_>> = members.iter().map(|part| shape(part, levels)).collect();
            return shapes.map(|shapes| json!({"type": kind, "geometries": shapes}));
        }
        _ => false,
    };
    fits.then(|| json!({"type": kind, "coordinates": coordinates}))
}

fn is_list(value: &Value, least: usize, is_part: fn(&Value) -> bool) -> bool {
    value
        .as_array()
        .is_some_and(|parts| parts.len() >= least && parts.iter().all(is_part))
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
        && value
            .as_array()
            .is_some_and(|ring| ends(ring.first()) == ends(ring.last()))
}

/// A position's numbers: 1 and 1.0 are the same place.
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
            assert_eq!(geometry(text).as_deref().map(same), Some(same(text)));
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
            assert_eq!(geometry(text), None, "{text}");
        }
    }

    #[test]
    fn other_members_are_left_out() {
        let text = r#"{"bbox":[0,0,1,1],"coordinates":[44.074259984492556,5e-324],"type":"Point","crs":null}"#;
        let kept = r#"{"coordinates":[44.074259984492556,5e-324],"type":"Point"}"#;
        assert_eq!(geometry(text).as_deref(), Some(kept));
    }
}
