//! Chooses the rate at which latencies are compared.

/// Returns about half of the lowest throughput in `reached`, rounded down to two digits, so that no contender is near
/// its limit. `None` if there is no throughput.
pub(super) fn carried_by_all(reached: &[f64]) -> Option<u32> {
    let slowest = reached.iter().copied().min_by(f64::total_cmp)?;
    let half = slowest / 2.0;
    if half.is_nan() || half < 1.0 {
        return None;
    }
    let digit = 10_f64.powf(half.log10().floor() - 1.0).max(1.0);
    Some(((half / digit).floor() * digit) as u32)
}

#[cfg(test)]
mod tests {
    use super::carried_by_all;

    #[test]
    fn all_are_sent_half_of_what_the_slowest_carries() {
        assert_eq!(carried_by_all(&[84_512.0, 40_422.7, 56_700.0]), Some(20_000));
        assert_eq!(carried_by_all(&[19_377.0, 18_950.0]), Some(9_400));
        assert_eq!(carried_by_all(&[7.0, 500.0]), Some(3));
    }

    #[test]
    fn who_carries_nothing_is_sent_nothing() {
        for reached in [&[][..], &[0.0], &[1.5, 40_000.0], &[f64::NAN]] {
            assert_eq!(carried_by_all(reached), None);
        }
    }
}
