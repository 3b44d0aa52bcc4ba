//! Which parts of the language the test asks for: the table in which a new one is switched on.

pub(super) struct Features {
    pub(super) aliases: bool,
    pub(super) distinct: bool,
    pub(super) count: bool,
    pub(super) aggregates: bool,
    pub(super) joins: bool,
    pub(super) nest: bool,
    pub(super) keyset: bool,
}

pub(super) const FEATURES: Features = Features {
    aliases: true,
    distinct: true,
    count: true,
    aggregates: true,
    joins: true,
    nest: true,
    keyset: true,
};
