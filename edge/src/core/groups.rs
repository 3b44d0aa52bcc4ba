//! Counts how much of a limited resource each group of callers uses, and each member of a group.

/// The usage of each group and member. [`Member`] has the indexes. A place with zero usage is reused.
#[derive(Debug)]
pub(super) struct Groups<T> {
    groups: Vec<(Box<str>, T)>,
    /// Each member with the index of its group.
    members: Vec<((usize, Box<str>), T)>,
}

/// The index of a member and of its group. Valid only while the member uses something, since the indexes of unused
/// members are given to new ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    group: usize,
    member: usize,
}

/// The usage of a group, and the part of it by one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Used<T> {
    pub(super) by_group: T,
    pub(super) by_member: T,
}

impl<T> Used<T> {
    pub(super) fn map<U>(self, of: impl Fn(T) -> U) -> Used<U> {
        Used { by_group: of(self.by_group), by_member: of(self.by_member) }
    }
}

impl<T> Default for Groups<T> {
    fn default() -> Self {
        Self { groups: Vec::new(), members: Vec::new() }
    }
}

impl<T: Copy + Default + PartialEq> Groups<T> {
    pub(super) fn member(&mut self, group: &str, name: &str) -> Member {
        let group = index(&mut self.groups, |known| **known == *group, || group.into());
        let is_known = |known: &(usize, Box<str>)| known.0 == group && *known.1 == *name;
        let member = index(&mut self.members, is_known, || (group, name.into()));
        Member { group, member }
    }

    pub(super) fn used(&self, of: Member) -> Used<T> {
        Used { by_group: self.groups[of.group].1, by_member: self.members[of.member].1 }
    }

    /// Applies the same change to the usage of a member and of its group.
    pub(super) fn change(&mut self, of: Member, change: impl Fn(&mut T)) {
        change(&mut self.groups[of.group].1);
        change(&mut self.members[of.member].1);
    }

    /// Returns the number of groups with usage, and the number of members with usage in this member's group.
    pub(super) fn count(&self, of: Member) -> Used<usize> {
        let of_group = self.members.iter().filter(|((group, _), _)| *group == of.group);
        let groups = self.groups.iter().map(|(_, used)| used);
        Used { by_group: in_use(groups), by_member: in_use(of_group.map(|(_, used)| used)) }
    }
}

fn in_use<'a, T: Default + PartialEq + 'a>(all: impl Iterator<Item = &'a T>) -> usize {
    all.filter(|used| **used != T::default()).count()
}

fn index<N, T: Default + PartialEq>(
    all: &mut Vec<(N, T)>,
    is_known: impl Fn(&N) -> bool,
    name: impl FnOnce() -> N,
) -> usize {
    let unused = T::default();
    if let Some(known) = all.iter().position(|(known, used)| *used != unused && is_known(known)) {
        return known;
    }
    let new = (name(), T::default());
    match all.iter().position(|(_, used)| *used == unused) {
        Some(reused) => {
            all[reused] = new;
            reused
        }
        None => {
            all.push(new);
            all.len() - 1
        }
    }
}
