//! Matches patterns of LIKE, and the few forms of regular expressions that the test generates.

pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    like(&text, &pattern)
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match (pattern, text) {
        ([], text) => text.is_empty(),
        (['%', pattern @ ..], text) => (0..=text.len()).any(|skipped| like(&text[skipped..], pattern)),
        (['_', pattern @ ..], [_, text @ ..]) => like(text, pattern),
        (['\\', wanted, pattern @ ..], [c, text @ ..]) => wanted == c && like(text, pattern),
        ([wanted, pattern @ ..], [c, text @ ..]) => wanted == c && like(text, pattern),
        (_, []) => false,
    }
}

pub(super) fn matches_regexp(text: &str, pattern: &str) -> bool {
    let (pattern, begins) = match pattern.strip_prefix('^') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let (pattern, ends) = match pattern.strip_suffix('$') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let atoms = atoms(pattern);
    let text: Vec<char> = text.chars().collect();
    let Some(last) = text.len().checked_sub(atoms.len()) else {
        return false;
    };
    let fits = |start: usize| atoms.iter().zip(&text[start..]).all(|(atom, c)| atom.takes(*c));
    (0..=last).filter(|start| (!begins || *start == 0) && (!ends || *start == last)).any(fits)
}

enum Atom {
    Any,
    One(char),
    Of(Vec<char>),
}

impl Atom {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any => true,
            Self::One(wanted) => *wanted == c,
            Self::Of(class) => class.contains(&c),
        }
    }
}

fn atoms(pattern: &str) -> Vec<Atom> {
    let mut atoms = Vec::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        atoms.push(match c {
            '.' => Atom::Any,
            '[' => Atom::Of(rest.by_ref().take_while(|c| *c != ']').collect()),
            c => Atom::One(c),
        });
    }
    atoms
}
