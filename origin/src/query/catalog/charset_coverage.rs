//! The characters that a character set of MariaDB can hold. Does no I/O.

/// Code points in Unicode's first plane. Only character sets of all of Unicode have characters of other planes.
const PLANE: u32 = 0x1_0000;
const WORD_BITS: u32 = u64::BITS;

#[derive(Debug)]
pub struct CharsetCoverage {
    charset: Box<str>,
    held: Box<[u64]>,
}

impl CharsetCoverage {
    pub fn first_plane(charset: &str) -> Self {
        let words = (PLANE / WORD_BITS) as usize;
        Self { charset: charset.into(), held: vec![u64::MAX; words].into() }
    }

    /// Finds the characters of a character set: `converted` is `sample` as MariaDB converted it to the set and back,
    /// replacing missing characters.
    pub fn compared(charset: &str, sample: &str, converted: &str) -> Self {
        let mut coverage = Self::first_plane(charset);
        coverage.held.fill(0);
        for (c, _) in sample.chars().zip(converted.chars()).filter(|(c, back)| c == back) {
            if let Some((word, bit)) = bit_of(c) {
                coverage.held[word] |= bit;
            }
        }
        coverage
    }

    pub fn sample() -> String {
        (0..PLANE).filter_map(char::from_u32).collect()
    }

    pub fn charset(&self) -> &str {
        &self.charset
    }

    pub fn holds(&self, text: &str) -> bool {
        text.chars().all(|c| bit_of(c).is_some_and(|(word, bit)| self.held[word] & bit != 0))
    }
}

fn bit_of(c: char) -> Option<(usize, u64)> {
    let code = u32::from(c);
    (code < PLANE).then(|| ((code / WORD_BITS) as usize, 1 << (code % WORD_BITS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_back_changed_is_not_held() {
        let some = CharsetCoverage::compared("latin1", "aé日?", "aé??");
        assert!(some.holds("aé?") && some.holds(""));
        assert!(!some.holds("日") && !some.holds("b") && !some.holds("🦭"));
    }

    #[test]
    fn the_first_plane_ends_before_the_second() {
        let plane = CharsetCoverage::first_plane("utf8mb3");
        assert!(plane.holds("\0é日\u{ffff}"));
        assert!(!plane.holds("\u{10000}"));
        assert!(plane.holds(&CharsetCoverage::sample()));
    }
}
