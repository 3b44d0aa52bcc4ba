//! Who waits for which number. Pure.

/// Reads that one statement serves, by their numbers; several may ask for the same.
#[derive(Debug)]
pub(super) struct Batch<C> {
    /// In the order of their numbers. A caller is gone once it has its answer.
    callers: Vec<(i64, Option<C>)>,
}

impl<C> Batch<C> {
    pub(super) fn of(callers: impl IntoIterator<Item = (i64, C)>) -> Self {
        let mut callers: Vec<_> = callers
            .into_iter()
            .map(|(number, caller)| (number, Some(caller)))
            .collect();
        callers.sort_unstable_by_key(|(number, _)| *number);
        Self { callers }
    }

    /// The numbers, each once, in order.
    pub(super) fn numbers(&self) -> Vec<i64> {
        let mut numbers: Vec<i64> = self.callers.iter().map(|(number, _)| *number).collect();
        numbers.dedup();
        numbers
    }

    /// Takes those who asked for a number; none, if nobody did or they have their answer.
    pub(super) fn take(&mut self, number: i64) -> impl Iterator<Item = C> {
        let from = self.callers.partition_point(|(other, _)| *other < number);
        self.callers[from..]
            .iter_mut()
            .take_while(move |(other, _)| *other == number)
            .filter_map(|(_, caller)| caller.take())
    }

    /// Takes those who have no answer yet.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = C> {
        self.callers
            .iter_mut()
            .filter_map(|(_, caller)| caller.take())
    }

    /// Those who have no answer yet.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = &mut C> {
        self.callers
            .iter_mut()
            .filter_map(|(_, caller)| caller.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Batch<char> {
        Batch::of([(9, 'a'), (2, 'b'), (9, 'c'), (5, 'd')])
    }

    #[test]
    fn a_number_is_asked_for_once() {
        assert_eq!(batch().numbers(), [2, 5, 9]);
        assert!(Batch::<char>::of([]).numbers().is_empty());
    }

    #[test]
    fn all_who_asked_for_a_number_are_given_it_once() {
        let mut batch = batch();
        let mut nine: Vec<_> = batch.take(9).collect();
        nine.sort_unstable();
        assert_eq!(nine, ['a', 'c']);
        assert_eq!(batch.take(9).count(), 0);
        assert_eq!(batch.take(2).collect::<Vec<_>>(), ['b']);
    }

    #[test]
    fn a_number_that_nobody_asked_for_is_nobodys() {
        let mut batch = batch();
        for number in [i64::MIN, 1, 3, 10, i64::MAX] {
            assert_eq!(batch.take(number).count(), 0, "{number}");
        }
        assert_eq!(batch.waiting().count(), 4);
    }

    #[test]
    fn the_rest_are_those_without_an_answer() {
        let mut batch = batch();
        assert_eq!(batch.take(9).count(), 2);
        assert_eq!(batch.waiting().count(), 2);
        assert_eq!(batch.rest().collect::<Vec<_>>(), ['b', 'd']);
        assert_eq!(batch.rest().count(), 0);
    }
}
