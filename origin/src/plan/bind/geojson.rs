//! Whether a JSON object has the shape of a GeoJSON geometry (RFC 7946, section 3.1). MariaDB judges the
//! rest, such as whether a polygon is closed, but its refusals do not name the field.

use serde_json::Value;

/// Collections in collections.
const NESTING_MAX_LEVELS: u8 = 16;

/// Looks at the shape alone.
pub(super) fn is_geometry(text: &str) -> bool {
    serde_json::from_str(text).is_ok_and(|value| geometry(&value, NESTING_MAX_LEVELS))
}

fn geometry(value: &Value, levels: u8) -> bool {
    let depth = match value["type"].as_str() {
        Some("Point") => 0,
        Some("LineString" | "MultiPoint") => 1,
        Some("Polygon" | "MultiLineString") => 2,
        Some("MultiPolygon") => 3,
        Some("GeometryCollection") => {
            let members = value["geometries"].as_array();
            return levels > 0
                && members.is_some_and(|members| {
                    members.iter().all(|member| geometry(member, levels - 1))
                });
        }
        _ => return false,
    };
    coordinates(&value["coordinates"], depth)
}

/// Positions, in so many levels of lists.
fn coordinates(value: &Value, depth: u8) -> bool {
    let Some(parts) = value.as_array() else {
        return false;
    };
    match depth {
        0 => parts.len() >= 2 && parts.iter().all(Value::is_number),
        depth => parts.iter().all(|part| coordinates(part, depth - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometries_are_told_from_nonsense() {
        for text in [
            r#"{"type":"Point","coordinates":[1,2]}"#,
            r#"{"type":"MultiPolygon","coordinates":[[[[0,0],[1,0],[1,1],[0,0]]]]}"#,
            r#"{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2.5]}]}"#,
        ] {
            assert!(is_geometry(text), "{text}");
        }
        for text in [
            "{}",
            r#"{"type":"Circle"}"#,
            r#"{"type":"Point"}"#,
            r#"{"type":"Point","coordinates":["a",1]}"#,
            r#"{"type":"LineString","coordinates":[1,2]}"#,
            r#"{"type":"GeometryCollection","geometries":[1]}"#,
        ] {
            assert!(!is_geometry(text), "{text}");
        }
    }
}
