//! Tests of limits and shares, and of the table in docs/limits.md that lists them.

mod table;

use super::*;

fn project(name: &str) -> ProjectName {
    ProjectName::parse(name).unwrap()
}

#[test]
fn a_project_gets_no_more_than_its_share_and_leaves_the_rest_to_others() {
    let (shares, one, other) = (ProjectQuota::new(10, 6), project("one"), project("other"));
    let mut held = shares.try_take(&one, 4).unwrap();
    held.grow(2).unwrap();
    let refused = Refused::Share { limit: 6 };
    assert_eq!(shares.try_take(&one, 1).unwrap_err(), refused);
    assert_eq!(held.grow(1), Err(refused));
    let others = shares.try_take(&other, 4).unwrap();
    let refused = Refused::Whole { limit: 10 };
    assert_eq!(shares.try_take(&other, 1).unwrap_err(), refused);
    drop(held);
    shares.try_take(&one, 6).unwrap();
    drop(others);
}

#[test]
fn nothing_is_kept_of_a_project_that_holds_nothing() {
    let (shares, one) = (ProjectQuota::new(10, 6), project("one"));
    let guards = [1, 2].map(|amount| shares.try_take(&one, amount).unwrap());
    assert_eq!(shares.inner.taken().by_project.len(), 1);
    drop(guards);
    assert_eq!(shares.try_take(&one, 7).unwrap_err(), Refused::Share { limit: 6 });
    let taken = shares.inner.taken();
    assert!(taken.by_project.is_empty());
    assert_eq!(taken.whole, 0);
}

#[test]
fn what_can_not_be_given_up_counts_beyond_the_share() {
    let (shares, one, caller) = (ProjectQuota::with_callers(10, 6), project("one"), Uuid::from_u128(1));
    let held = shares.take_beyond(&one, caller, 5);
    shares.check_as(&one, caller).unwrap();
    let more = shares.take_beyond(&one, caller, 5);
    assert_eq!(shares.check_as(&one, caller), Err(Refused::Share { limit: 6 }));
    assert_eq!(shares.check_as(&project("other"), caller), Err(Refused::Whole { limit: 10 }));
    drop(more);
    shares.check_as(&one, caller).unwrap();
    drop(held);
    assert!(shares.inner.taken().by_project.is_empty());
}

#[tokio::test]
async fn one_that_waits_takes_what_is_given_back() {
    let (shares, one) = (ProjectQuota::new(2, 1), project("one"));
    let held = shares.try_take(&one, 1).unwrap();
    let waiting = tokio::spawn({
        let (shares, one) = (shares.clone(), one.clone());
        async move { shares.take(&one, 1).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(held);
    drop(waiting.await.unwrap());
    assert!(shares.try_take(&one, 1).is_ok());
}

#[test]
fn a_refusal_names_the_limit_and_whose_it_is() {
    let share = Refused::Share { limit: 7 }.into_problem("uploads");
    assert_eq!(share.code(), ErrorCode::RateLimited);
    assert!(share.message().contains("7 uploads, the most that one project may have"));
    let whole = Refused::Whole { limit: 9 }.into_problem("uploads");
    assert_eq!(whole.code(), ErrorCode::Overloaded);
    assert!(whole.message().contains("9 uploads, the most that all projects together may have"));
}

#[test]
fn one_caller_may_use_the_whole_share_and_leaves_room_for_others() {
    let (shares, one) = (ProjectQuota::with_callers(100, 8), project("one"));
    let [greedy, second, third] = [1, 2, 3].map(Uuid::from_u128);
    let take = |caller| shares.try_take_as(&one, caller, 1);
    let held: Vec<_> = std::iter::from_fn(|| take(greedy).ok()).collect();
    assert_eq!(held.len(), 8);
    let others: Vec<_> = [second, second, second, third, third].map(take).into_iter().collect();
    assert_eq!(others.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false, true, false]);
    drop(held);
    assert!(take(greedy).is_ok());
}

#[tokio::test]
async fn projects_that_wait_take_turns_and_the_caller_with_least_comes_first() {
    let shares = ProjectQuota::with_callers(2, 2);
    let [one, other] = ["one", "other"].map(project);
    let [greedy, modest] = [1, 2].map(Uuid::from_u128);
    let mut held = VecDeque::from([shares.take_as(&one, greedy, 1).await, shares.take_as(&one, greedy, 1).await]);
    let (order, mut served) = tokio::sync::mpsc::unbounded_channel();
    for (name, project, caller) in
        [("a", &one, greedy), ("b", &one, greedy), ("c", &one, modest), ("d", &other, greedy), ("e", &other, greedy)]
    {
        let (shares, project, order) = (shares.clone(), project.clone(), order.clone());
        tokio::spawn(async move {
            let guard = shares.take_as(&project, caller, 1).await;
            let _ = order.send((name, guard));
        });
        tokio::task::yield_now().await;
    }
    let mut names = String::new();
    for _ in 0..5 {
        held.pop_front();
        let (name, guard) = served.recv().await.unwrap();
        names += name;
        held.push_back(guard);
    }
    assert_eq!(names, "cdaeb");
}

#[tokio::test]
async fn one_that_leaves_the_queue_takes_nothing() {
    let (shares, one) = (ProjectQuota::new(1, 1), project("one"));
    let held = shares.take(&one, 1).await;
    let left = tokio::time::timeout(std::time::Duration::ZERO, shares.take(&one, 1)).await;
    assert!(left.is_err());
    assert_eq!(shares.waiting(), 0);
    drop(held);
    drop(shares.try_take(&one, 1).unwrap());
    assert!(shares.inner.taken().by_project.is_empty());
}
