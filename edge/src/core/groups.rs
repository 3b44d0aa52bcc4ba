//! What the groups of callers use of a limited resource. A group is a project, an issuer's users, or a client address.

/// The groups that use something, by the index that their entries hold.
#[derive(Debug)]
pub(super) struct Groups<T> {
    all: Vec<(Box<str>, T)>,
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<T: Default + PartialEq> Groups<T> {
    /// Returns the index of the group with this name. It is valid as long as the group uses something: the index of a
    /// group that uses nothing is given to the next new group.
    pub(super) fn index(&mut self, name: &str) -> usize {
        let unused = T::default();
        let known = self.all.iter().position(|(known, used)| *used != unused && **known == *name);
        let reused = || self.all.iter().position(|(_, used)| *used == unused);
        let index = known.or_else(reused).unwrap_or(self.all.len());
        match self.all.get_mut(index) {
            Some(_) if known.is_some() => {}
            Some(reused) => *reused = (name.into(), unused),
            None => self.all.push((name.into(), unused)),
        }
        index
    }

    pub(super) fn of(&mut self, index: usize) -> &mut T {
        &mut self.all[index].1
    }

    /// Returns what each group uses, at the group's index.
    pub(super) fn used(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|(_, used)| used)
    }
}
