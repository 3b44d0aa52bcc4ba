//! The demo's words and sentences, from the text files beside this file, and a generator that picks among them.

use std::iter::once;

const TOPICS: &str = include_str!("topics.txt");
const PEOPLE: &str = include_str!("people.txt");
const REMARKS: &str = include_str!("comments.txt");

const SEASONS: [&str; 4] = ["spring", "summer", "autumn", "winter"];

#[derive(Default)]
pub(super) struct Topic {
    pub(super) category: &'static str,
    pub(super) tags: Vec<&'static str>,
    subjects: Vec<&'static str>,
    places: Vec<&'static str>,
    titles: Vec<&'static str>,
    openings: Vec<&'static str>,
    middles: Vec<&'static str>,
    closings: Vec<&'static str>,
}

pub(super) struct Scene {
    pub(super) subject: &'static str,
    pub(super) place: &'static str,
    season: &'static str,
}

pub(super) struct Remarks {
    pub(super) first: Vec<&'static str>,
    pub(super) answers: Vec<&'static str>,
}

pub(super) fn topics() -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for (mark, text) in marked_lines(TOPICS) {
        if mark == "=" {
            topics.push(Topic { category: text, ..Topic::default() });
            continue;
        }
        let Some(topic) = topics.last_mut() else {
            continue;
        };
        match mark {
            "s" => topic.subjects.extend(text.split('|')),
            "p" => topic.places.extend(text.split('|')),
            "k" => topic.tags.extend(text.split('|')),
            "t" => topic.titles.push(text),
            "o" => topic.openings.push(text),
            "m" => topic.middles.push(text),
            _ => topic.closings.push(text),
        }
    }
    topics
}

pub(super) fn people() -> Vec<(&'static str, &'static str)> {
    PEOPLE.lines().filter_map(|line| line.split_once('|')).collect()
}

pub(super) fn remarks() -> Remarks {
    let mut remarks = Remarks { first: Vec::new(), answers: Vec::new() };
    for (mark, text) in marked_lines(REMARKS) {
        if mark == "r" {
            remarks.first.push(text);
        } else {
            remarks.answers.push(text);
        }
    }
    remarks
}

fn marked_lines(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '))
}

impl Topic {
    pub(super) fn scene(&self, dice: &mut Dice) -> Scene {
        Scene { subject: dice.pick(&self.subjects), place: dice.pick(&self.places), season: dice.pick(&SEASONS) }
    }

    pub(super) fn title(&self, scene: &Scene, dice: &mut Dice) -> String {
        let pattern = dice.pick(&self.titles);
        scene.fill(pattern, dice)
    }

    pub(super) fn body(&self, scene: &Scene, dice: &mut Dice) -> String {
        let count = 1 + dice.below(6);
        let middles = dice.some_of(&self.middles, count);
        let sentences: Vec<&str> =
            once(dice.pick(&self.openings)).chain(middles).chain(once(dice.pick(&self.closings))).collect();
        sentences.iter().map(|sentence| scene.fill(sentence, dice)).collect::<Vec<_>>().join(" ")
    }
}

impl Scene {
    pub(super) fn fill(&self, pattern: &str, dice: &mut Dice) -> String {
        let number = (3 + dice.below(57)).to_string();
        let text = pattern
            .replace("{subject}", self.subject)
            .replace("{place}", self.place)
            .replace("{season}", self.season)
            .replace("{n}", &number);
        let mut letters = text.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }
}

/// A linear congruential generator (with the constants of Knuth's MMIX), so that the demo is the same on every machine.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new() -> Self {
        Self(20_231_120)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The low bits of the generator have short periods, so the high bits are used.
        usize::try_from(self.0 >> 33).unwrap_or(0) % n.max(1)
    }

    /// Picks an item of `list`, which must not be empty.
    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Picks `count` items, in the order of `list`; all items if there are fewer.
    pub(super) fn some_of<T: Copy>(&mut self, list: &[T], count: usize) -> Vec<T> {
        let mut left = count.min(list.len());
        let mut chosen = Vec::with_capacity(left);
        for (index, item) in list.iter().enumerate() {
            if self.below(list.len() - index) < left {
                chosen.push(*item);
                left -= 1;
            }
        }
        chosen
    }
}
