//! From where to where an axis goes, and which figures are written along it.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};

/// How figures lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// From nought, in even steps.
    Linear,
    /// By powers of ten.
    Logarithmic,
}

/// An axis' scale and ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Extent {
    scale: Scale,
    start: f64,
    end: f64,
}

impl Extent {
    /// Room for all `values` and for figures at either end: a linear one from nought, a logarithmic one from power of
    /// ten to power of ten.
    pub(super) fn around(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let Some((least, most)) = ends(scale, values) else {
            return Self::nothing(scale);
        };
        match scale {
            Scale::Linear => {
                let step = step(most, 8);
                Self {
                    scale,
                    start: 0.0,
                    end: (most / step).ceil() * step,
                }
            }
            Scale::Logarithmic => {
                let start = least.log10().floor();
                // At least one power of ten, or a single value had no axis.
                let end = most.log10().ceil().max(start + 1.0);
                Self {
                    scale,
                    start: 10_f64.powf(start),
                    end: 10_f64.powf(end),
                }
            }
        }
    }

    /// From the least of `values` to the most, without more: for the axis along which something grows.
    pub(super) fn between(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        match ends(scale, values) {
            Some((start, end)) if start < end => Self { scale, start, end },
            Some((only, _)) => Self {
                scale,
                start: only / 2.0,
                end: only * 2.0,
            },
            None => Self::nothing(scale),
        }
    }

    const fn nothing(scale: Scale) -> Self {
        Self {
            scale,
            start: 1.0,
            end: 10.0,
        }
    }

    pub(super) const fn start(&self) -> f64 {
        self.start
    }

    /// Has this value a place on the axis?
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.start..=self.end).contains(&value)
    }

    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).log10(),
        }
    }
}

impl Ranged for Extent {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let (start, end) = (self.place(self.start), self.place(self.end));
        let share = (self.place(*value) - start) / (end - start);
        first + (f64::from(last - first) * share.clamp(0.0, 1.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        let most = hint.max_num_points().max(1);
        let (start, end, step) = match self.scale {
            Scale::Linear => (self.start, self.end, step(self.end - self.start, most)),
            Scale::Logarithmic => {
                let (start, end) = (self.start.log10(), self.end.log10());
                (start, end, ((end - start) / most as f64).ceil().max(1.0))
            }
        };
        // A little is forgiven, for powers and quotients are not exact.
        let (first, last) = (
            (start / step - 1e-9).ceil() as i64,
            (end / step + 1e-9).floor() as i64,
        );
        let values = (first..=last).map(|index| index as f64 * step);
        match self.scale {
            Scale::Linear => values.collect(),
            Scale::Logarithmic => values
                .map(|exponent| 10_f64.powf(exponent).clamp(self.start, self.end))
                .collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.start..self.end
    }
}

/// The least and the most of what a scale has a place for.
fn ends(scale: Scale, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|value| match scale {
            Scale::Linear => value.is_finite() && *value >= 0.0,
            Scale::Logarithmic => value.is_finite() && *value > 0.0,
        })
        .fold(None, |ends, value| match ends {
            None => Some((value, value)),
            Some((least, most)) => Some((value.min(least), value.max(most))),
        })
}

/// 1, 2 or 5 times a power of ten, so that no more than `most` of them cover `length`.
fn step(length: f64, most: usize) -> f64 {
    let least = length / most as f64;
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= least)
        .unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use plotters::coord::ranged1d::{BoldPoints, Ranged as _};

    use super::{Extent, Scale, step};

    #[test]
    fn steps_are_round_and_no_more_than_asked_for() {
        for (length, most, expected) in [(1.3, 8, 0.2), (84_500.0, 8, 20_000.0), (8.0, 8, 1.0)] {
            assert!((step(length, most) - expected).abs() < 1e-9 * expected);
        }
    }

    #[test]
    fn a_linear_axis_begins_at_nought_and_ends_above_the_most() {
        let axis = Extent::around(Scale::Linear, [1.13, 0.4].into_iter());
        assert_eq!(axis.range().start, 0.0);
        assert!((axis.range().end - 1.2).abs() < 1e-9);
        assert_eq!(axis.key_points(BoldPoints(8)).len(), 7);
    }

    #[test]
    fn a_logarithmic_axis_goes_from_power_to_power_and_names_each() {
        let axis = Extent::around(Scale::Logarithmic, [0.06, 31.0].into_iter());
        let points = axis.key_points(BoldPoints(8));
        let expected = [0.01, 0.1, 1.0, 10.0, 100.0];
        assert_eq!(points.len(), expected.len(), "{points:?}");
        for (point, expected) in points.iter().zip(expected) {
            assert!((point / expected - 1.0).abs() < 1e-9, "{points:?}");
        }
    }

    #[test]
    fn powers_are_left_out_where_there_is_no_room_for_all() {
        let axis = Extent::between(Scale::Logarithmic, [1.0, 1e6].into_iter());
        assert_eq!(axis.key_points(BoldPoints(10)).len(), 7);
        assert_eq!(axis.key_points(BoldPoints(3)).len(), 4);
    }

    #[test]
    fn each_power_of_ten_is_as_long_as_the_next() {
        let axis = Extent::between(Scale::Logarithmic, [1.0, 1e6].into_iter());
        let at = |value| axis.map(&value, (0, 600));
        assert_eq!([at(1.0), at(10.0), at(1e3), at(1e6)], [0, 100, 300, 600]);
    }

    #[test]
    fn nothing_to_draw_and_a_single_value_have_an_axis_too() {
        for values in [vec![], vec![f64::NAN], vec![0.0], vec![7.0]] {
            for scale in [Scale::Linear, Scale::Logarithmic] {
                for axis in [
                    Extent::around(scale, values.iter().copied()),
                    Extent::between(scale, values.iter().copied()),
                ] {
                    assert!(axis.end.is_finite());
                    assert!(axis.key_points(BoldPoints(8)).len() < 20);
                }
            }
        }
    }
}
