//! When a failed delivery is tried again, and when it is given up. Knows no clock.

/// The seconds before the attempts after the first. The last one counts for all further attempts.
const DELAYS: [u64; 5] = [5, 30, 2 * 60, 10 * 60, 60 * 60];
/// The seconds after the first attempt from which on a failed delivery is not tried again.
const GIVE_UP_AFTER: u64 = 3 * 24 * 60 * 60;
/// Maximum delay that an endpoint may ask for, in seconds.
const RETRY_AFTER_MAX: u64 = 24 * 60 * 60;
/// By which part of itself, at most, a delay is shorter or longer.
const JITTER: f64 = 0.1;

/// Returns the time of the next attempt, in seconds, or `None` if there is none. `attempts` have failed, the first at
/// `first` and the last at `now`. `chance` is a random number from 0 to 1.
pub(super) fn next_attempt(
    attempts: u32,
    (first, now): (u64, u64),
    retry_after: Option<u64>,
    chance: f64,
) -> Option<u64> {
    if now.saturating_sub(first) >= GIVE_UP_AFTER {
        return None;
    }
    let at = usize::try_from(attempts.saturating_sub(1)).unwrap_or(usize::MAX).min(DELAYS.len() - 1);
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
    let delay = (DELAYS[at] as f64 * (1.0 - JITTER + 2.0 * JITTER * chance)).round() as u64;
    Some(now + delay.max(retry_after.unwrap_or(0).min(RETRY_AFTER_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_until_a_delivery_is_given_up() {
        let three_days = 3 * 24 * 3_600;
        for (attempts, passed, retry_after, chance, expected) in [
            (1, 0, None, 0.5, Some(5)),
            (2, 5, None, 0.5, Some(30)),
            (3, 35, None, 0.5, Some(120)),
            (4, 155, None, 0.5, Some(600)),
            (5, 755, None, 0.5, Some(3_600)),
            (60, 200_000, None, 0.5, Some(3_600)),
            (5, 755, None, 0.0, Some(3_240)),
            (5, 755, None, 1.0, Some(3_960)),
            (1, 0, Some(60), 0.5, Some(60)),
            (5, 755, Some(60), 0.5, Some(3_600)),
            (1, 0, Some(1_000_000), 0.5, Some(86_400)),
            (76, three_days - 1, None, 0.5, Some(3_600)),
            (77, three_days, None, 0.5, None),
        ] {
            let now = 1_000 + passed;
            let found = next_attempt(attempts, (1_000, now), retry_after, chance);
            assert_eq!(found, expected.map(|delay| now + delay), "{attempts} {passed} {retry_after:?} {chance}");
        }
    }
}
