//! Charts of what was measured, as SVG for the docs: bars side by side, and lines over something that grows. Draws what it
//! is given; knows nothing of where the figures come from.

mod extent;
mod legend;

use anyhow::{Context as _, Result};
use plotters::{
    chart::{ChartBuilder, ChartContext},
    coord::{Shift, types::RangedCoordf64},
    drawing::{DrawingArea, IntoDrawingArea as _},
    element::{Circle, PathElement, Rectangle, Text},
    prelude::{Cartesian2d, SVGBackend},
    style::{
        BLACK, Color as _, IntoFont as _, RGBColor, TextStyle, WHITE,
        text_anchor::{HPos, Pos, VPos},
    },
};

use self::extent::Extent;
pub(crate) use self::extent::Scale;

const WIDTH: u32 = 960;
const HEIGHT: u32 = 460;
const FONT: &str = "sans-serif";
/// Pixels of the labels; the title's are half as many again.
const LABEL_SIZE: u32 = 13;
/// What a group of bars leaves free on either side, of its width.
const GAP: f64 = 0.1;

/// Colours that the colour-blind tell apart (Okabe and Ito's), dark enough for lines on white.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x66, 0x66, 0x66),
    RGBColor(0xb8, 0xab, 0x18),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// An axis with its unit.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

/// What belongs together, with its name in the legend.
#[derive(Debug, Clone)]
pub(crate) struct Series<T> {
    pub(crate) name: String,
    pub(crate) values: Vec<T>,
}

/// Groups of bars: in each group one bar a series.
#[derive(Debug, Clone)]
pub(crate) struct Bars {
    pub(crate) title: String,
    pub(crate) y: Axis,
    /// The groups' names, under them; a line end begins a second line.
    pub(crate) groups: Vec<String>,
    /// In each series one value a group, in their order; none where a series has no part in a group.
    pub(crate) series: Vec<Series<Option<f64>>>,
}

/// Lines over something that grows.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Points of x and y, by rising x.
    pub(crate) series: Vec<Series<(f64, f64)>>,
}

impl Bars {
    /// The whole chart as a file's text.
    pub(crate) fn svg(&self) -> Result<String> {
        let values = self.series.iter().flat_map(|series| &series.values);
        let extent = Extent::around(self.y.scale, values.flatten().copied());
        let base = extent.start();
        sheet(&self.title, &names(&self.series), |area| {
            let mut chart = ChartBuilder::on(area)
                .margin_left(LABEL_SIZE)
                .margin_right(LABEL_SIZE)
                .x_label_area_size(LABEL_SIZE * 4)
                .y_label_area_size(LABEL_SIZE * 6)
                .build_cartesian_2d(0.0..self.groups.len() as f64, extent)?;
            let format = |value: &f64| short(*value);
            chart
                .configure_mesh()
                .disable_x_mesh()
                .x_labels(0)
                .y_labels(8)
                .y_max_light_lines(1)
                .bold_line_style(BLACK.mix(0.15))
                .label_style((FONT, LABEL_SIZE))
                .y_label_formatter(&format)
                .y_desc(self.y.label.as_str())
                .draw()?;
            let width = (1.0 - 2.0 * GAP) / self.series.len().max(1) as f64;
            for (number, series) in self.series.iter().enumerate() {
                let bars = series
                    .values
                    .iter()
                    .enumerate()
                    .filter_map(|(group, value)| {
                        let left = group as f64 + GAP + number as f64 * width;
                        let corners = [(left, base), (left + width * 0.92, (*value)?)];
                        Some(Rectangle::new(corners, colour(number).filled()))
                    });
                chart.draw_series(bars)?;
            }
            self.name_groups(area, &chart)
        })
    }

    fn name_groups(
        &self,
        area: &Area<'_>,
        chart: &ChartContext<'_, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Extent>>,
    ) -> Result<()> {
        let plot = chart.plotting_area();
        let (left, top) = area.get_base_pixel();
        let bottom = plot.get_pixel_range().1.end;
        for (group, name) in self.groups.iter().enumerate() {
            let (x, _) = plot.map_coordinate(&(group as f64 + 0.5, plot.get_y_range().start));
            for (line, text) in (0..).zip(name.lines()) {
                let y = bottom - top + 8 + line * 16;
                area.draw(&Text::new(text, (x - left, y), label(HPos::Center)))?;
            }
        }
        Ok(())
    }
}

impl Lines {
    /// The whole chart as a file's text.
    pub(crate) fn svg(&self) -> Result<String> {
        let points = || self.series.iter().flat_map(|series| &series.values);
        let x = Extent::between(self.x.scale, points().map(|point| point.0));
        let y = Extent::around(self.y.scale, points().map(|point| point.1));
        // What a logarithm has no place for is left out rather than drawn at a border.
        let (holds_x, holds_y) = (x.clone(), y.clone());
        let drawn = |point: &&(f64, f64)| holds_x.holds(point.0) && holds_y.holds(point.1);
        sheet(&self.title, &names(&self.series), |area| {
            let mut chart = ChartBuilder::on(area)
                .margin_left(LABEL_SIZE)
                .margin_right(LABEL_SIZE * 2)
                .x_label_area_size(LABEL_SIZE * 4)
                .y_label_area_size(LABEL_SIZE * 6)
                .build_cartesian_2d(x.clone(), y.clone())?;
            let format = |value: &f64| short(*value);
            chart
                .configure_mesh()
                .x_labels(10)
                .y_labels(8)
                .max_light_lines(1)
                .bold_line_style(BLACK.mix(0.15))
                .label_style((FONT, LABEL_SIZE))
                .x_label_formatter(&format)
                .y_label_formatter(&format)
                .x_desc(self.x.label.as_str())
                .y_desc(self.y.label.as_str())
                .draw()?;
            for (number, series) in self.series.iter().enumerate() {
                let points: Vec<(f64, f64)> = series.values.iter().filter(drawn).copied().collect();
                let dots: Vec<_> = points
                    .iter()
                    .map(|point| Circle::new(*point, 3, colour(number).filled()))
                    .collect();
                let path = PathElement::new(points, colour(number).stroke_width(2));
                chart.draw_series([path])?;
                chart.draw_series(dots)?;
            }
            Ok(())
        })
    }
}

/// A white sheet (who reads in the dark sees it too) with title and legend; `draw` gets what is left.
fn sheet(
    title: &str,
    names: &[&str],
    draw: impl FnOnce(&Area<'_>) -> Result<()>,
) -> Result<String> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE)?;
        let title_style = TextStyle::from((FONT, LABEL_SIZE * 3 / 2).into_font())
            .pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(title, (LABEL_SIZE as i32, 22), title_style))?;
        let (_, below) = root.split_vertically(40);
        let rows = legend::draw(&below, names)?;
        let (_, rest) = below.split_vertically(rows * legend::ROW_PIXELS + 10);
        draw(&rest)?;
        root.present().context("drawing a chart")?;
    }
    text.push('\n');
    Ok(text)
}

fn names<T>(series: &[Series<T>]) -> Vec<&str> {
    series.iter().map(|series| series.name.as_str()).collect()
}

fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
}

fn label(side: HPos) -> TextStyle<'static> {
    TextStyle::from((FONT, LABEL_SIZE).into_font()).pos(Pos::new(side, VPos::Center))
}

/// A figure as short as an axis wants it: 1500 is `1.5k`.
fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e3.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // Steps such as 0.1 + 0.2 are not exact; nobody reads an axis to four digits.
    let rounded = format!("{scaled:.3}");
    let text = rounded.trim_end_matches('0').trim_end_matches('.');
    format!("{}{unit}", if text.is_empty() { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(scale: Scale) -> Axis {
        Axis {
            label: "requests/s".to_owned(),
            scale,
        }
    }

    #[test]
    fn figures_of_an_axis_are_short() {
        let cases = [
            (0.0, "0"),
            (0.30000000000000004, "0.3"),
            (1.0, "1"),
            (100.0, "100"),
            (1_500.0, "1.5k"),
            (1_000_000.0, "1M"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }

    #[test]
    fn a_missing_bar_leaves_its_place_free() {
        let bars = |second| Bars {
            title: "Throughput & more".to_owned(),
            y: axis(Scale::Linear),
            groups: vec!["one".to_owned(), "twenty\nfiltered".to_owned()],
            series: vec![Series {
                name: "floor".to_owned(),
                values: vec![Some(3.0), second],
            }],
        };
        let count = |svg: String| svg.matches("<rect").count();
        let both = bars(Some(1.0)).svg().unwrap();
        assert!(both.contains("twenty") && both.contains("filtered"));
        assert!(both.contains("Throughput &amp; more"), "{both}");
        assert_eq!(count(both), count(bars(None).svg().unwrap()) + 1);
    }

    #[test]
    fn points_without_a_logarithm_are_left_out() {
        let lines = Lines {
            title: "Growth".to_owned(),
            x: axis(Scale::Logarithmic),
            y: axis(Scale::Logarithmic),
            series: vec![Series {
                name: "rows".to_owned(),
                values: vec![(0.0, 1.0), (10.0, 0.0), (100.0, 5.0), (1_000.0, 7.0)],
            }],
        };
        let svg = lines.svg().unwrap();
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
