//! The names of a chart's series beside their colours, in as many rows as they need.

use anyhow::Result;
use plotters::{
    element::{Rectangle, Text},
    style::{Color as _, text_anchor::HPos},
};

use super::{Area, LABEL_SIZE, colour, label};

/// Pixels of one row.
pub(super) const ROW_PIXELS: u32 = 20;

const SWATCH_PIXELS: i32 = 12;
const GAP_PIXELS: i32 = 18;

/// Draw them at the top of `area`; how many rows they took.
pub(super) fn draw(area: &Area<'_>, names: &[&str]) -> Result<u32> {
    let places = places(names, area.dim_in_pixel().0);
    for (number, (name, &(x, row))) in names.iter().zip(&places).enumerate() {
        let middle = (row * ROW_PIXELS + ROW_PIXELS / 2) as i32;
        let half = SWATCH_PIXELS / 2;
        let corners = [(x, middle - half), (x + SWATCH_PIXELS, middle + half)];
        area.draw(&Rectangle::new(corners, colour(number).filled()))?;
        let at = (x + SWATCH_PIXELS + 6, middle);
        area.draw(&Text::new(*name, at, label(HPos::Left)))?;
    }
    Ok(places.last().map_or(0, |(_, row)| row + 1))
}

/// Where each begins: pixels from the left, and the row.
fn places(names: &[&str], width: u32) -> Vec<(i32, u32)> {
    let (mut x, mut row) = (LABEL_SIZE as i32, 0);
    let mut places = Vec::new();
    for name in names {
        // No letters are measured here: the reader's font is not known. Most are half as wide as high.
        let letters = i32::try_from(name.chars().count()).unwrap_or(i32::MAX / 64);
        let needs = SWATCH_PIXELS + 6 + letters * LABEL_SIZE as i32 * 11 / 20;
        if x + needs > width as i32 && x > LABEL_SIZE as i32 {
            (x, row) = (LABEL_SIZE as i32, row + 1);
        }
        places.push((x, row));
        x += needs + GAP_PIXELS;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn names_that_find_no_room_begin_a_row() {
        let left = |row| (super::LABEL_SIZE as i32, row);
        let long = "x".repeat(80);
        let rows = places(&["floor", &long, &long, "selkie"], 600);
        assert_eq!(rows[0], left(0));
        assert_eq!(rows[1..3], [left(1), left(2)]);
        assert_eq!(rows[3], left(3));
    }

    #[test]
    fn a_name_wider_than_the_chart_still_has_a_row() {
        assert_eq!(places(&["x".repeat(900).as_str()], 600).len(), 1);
    }
}
