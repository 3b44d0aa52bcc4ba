//! Tests of limits and shares, and of the table in docs/limits.md that lists them.

mod table;

use super::*;

fn project(name: &str) -> ProjectName {
    ProjectName::parse(name).unwrap()
}

#[test]
fn a_project_gets_no_more_than_its_share_and_leaves_the_rest_to_others() {
    let (shares, one, other) = (Shares::new(10, 6), project("one"), project("other"));
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
    let (shares, one) = (Shares::new(10, 6), project("one"));
    let guards = [1, 2].map(|amount| shares.try_take(&one, amount).unwrap());
    assert_eq!(shares.inner.taken().by_project.len(), 1);
    drop(guards);
    assert_eq!(shares.try_take(&one, 7).unwrap_err(), Refused::Share { limit: 6 });
    let taken = shares.inner.taken();
    assert!(taken.by_project.is_empty());
    assert_eq!(taken.whole, 0);
}

#[tokio::test]
async fn one_that_waits_takes_what_is_given_back() {
    let (shares, one) = (Shares::new(2, 1), project("one"));
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
