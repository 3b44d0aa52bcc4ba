//! Counts the changes of each project's keys, roles and issuers that this origin has noticed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use shared::ident::ProjectName;

/// The present generation of each project; [`Generations::begin`] ends it, so that what was looked up before no longer
/// counts. Unbounded, but only an administrator creates projects.
#[derive(Debug, Default)]
pub(super) struct Generations(RwLock<HashMap<ProjectName, Arc<AtomicU64>>>);

#[derive(Debug)]
pub(super) struct Generation {
    number: u64,
    present: Arc<AtomicU64>,
}

impl Generation {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn is_present(&self) -> bool {
        self.number == self.present.load(Ordering::Acquire)
    }

    pub(super) fn ended(self) -> Self {
        Self { number: self.number.wrapping_sub(1), ..self }
    }
}

impl Generations {
    pub(super) fn of(&self, project: &ProjectName) -> Generation {
        // The map is valid after every step, so a poisoned lock can be used.
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(project).cloned();
        let present = known.unwrap_or_else(|| {
            let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(project.clone()).or_default())
        });
        Generation { number: present.load(Ordering::Acquire), present }
    }

    pub(super) fn begin(&self, concerns: impl Fn(&ProjectName) -> bool) {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        for (_, present) in all.iter().filter(|(project, _)| concerns(project)) {
            present.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_ends_when_its_project_changes() {
        let [one, other] = ["one", "other"].map(|name| ProjectName::parse(name).unwrap());
        let generations = Generations::default();
        let (before, of_other) = (generations.of(&one), generations.of(&other));
        generations.begin(|project| *project == one);
        assert!(!before.is_present() && of_other.is_present() && generations.of(&one).is_present());
        assert!(!generations.of(&one).ended().is_present());
    }
}
