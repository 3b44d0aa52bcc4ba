//! Tests the problem responses for MariaDB's errors.

use super::*;

#[test]
fn faults_of_a_cluster_are_no_faults_of_the_statement() {
    let (deadlock, lost) = (ErrorCode::Deadlock, ErrorCode::DatabaseUnavailable);
    let errors = [
        (1047, "08S01", "WSREP has not yet prepared node for application use", Recovery::OtherHost, lost),
        (1290, "HY000", "The MariaDB server is running with the --read-only option", Recovery::OtherHost, lost),
        (1180, "HY000", "Got error 5 \"Input/output error\" during COMMIT", Recovery::Lost, lost),
        (1105, "HY000", "WSREP replication failed.", Recovery::Lost, lost),
        (1213, "40001", "WSREP detected deadlock/conflict", Recovery::Again, deadlock),
        (1020, "HY000", "Record has changed since last read in table 't'", Recovery::Again, deadlock),
        (1105, "HY000", "Maximum writeset size exceeded", Recovery::None, ErrorCode::SqlError),
        (1146, "42S02", "Table 'd.t' doesn't exist", Recovery::Schema, ErrorCode::TableNotFound),
    ];
    for (code, state, message, recovery, expected) in errors {
        let error: DbError = mysql_async::Error::Server(mysql_async::ServerError {
            code,
            message: message.to_owned(),
            state: state.to_owned(),
        })
        .into();
        assert_eq!(error.recovery(), recovery, "{message}");
        let problem = error.into_problem();
        assert_eq!(problem.code(), expected, "{message}");
        assert_eq!(problem.code().retryable(), [deadlock, lost].contains(&expected));
    }
}

#[test]
fn a_refused_login_is_no_error_of_the_statement() {
    for (errno, expected) in [(1045, ErrorCode::DatabaseUnavailable), (1040, ErrorCode::Overloaded)] {
        let (state, message) = ("28000".to_owned(), "Access denied for user 'selkie-a'".to_owned());
        let problem = DbError::Refused(errno, Refusal { state, message, row: None }).connecting().into_problem();
        assert_eq!(problem.code(), expected);
        assert!(!problem.message().contains("selkie-a"), "{problem:?}");
    }
}

#[test]
fn what_quotes_a_value_stays_word_for_word() {
    for (errno, state, message, shown) in [
        (1644, "45000", "Not for user bob see /a/b/c", "Not for user bob see /a/b/c"),
        (1644, "23000", "No", "No"),
        (1062, "45000", "No", "No"),
        (
            1062,
            "23000",
            "Duplicate entry '/a/b for user x' for key 'k'",
            "Duplicate entry '/a/b for user x' for key 'k'.",
        ),
        (
            1064,
            "42000",
            "You have an error near '/a/b for user x' at line 1",
            "You have an error near '/a/b for user x' at line 1.",
        ),
    ] {
        let (state, message) = (state.to_owned(), message.to_owned());
        let problem = DbError::Refused(errno, Refusal { state, message, row: None }).into_problem();
        assert_eq!(problem.message(), shown);
    }
}

#[test]
fn a_message_about_a_row_of_a_list_has_no_number_of_mariadb() {
    let message = "Incorrect integer value: 'x at row 5' for column `d`.`t`.`a` at row 1000";
    let shown = "Incorrect integer value: 'x at row 5' for column `d`.`t`.`a`";
    for (row, message, shown) in [
        (None, message, format!("{message}.")),
        (Some(2999), message, format!("{shown}.")),
        (Some(1), "Duplicate entry ' at row 5' for key 'k'", "Duplicate entry ' at row 5' for key 'k'.".to_owned()),
    ] {
        let (state, message) = ("22007".to_owned(), message.to_owned());
        let problem = DbError::Refused(1366, Refusal { state, message, row }).into_problem();
        assert_eq!(problem.message(), shown);
    }
}

#[test]
fn a_signal_says_nothing_of_the_schema_or_of_locks() {
    for errno in [1054, 1062, 1213] {
        let (state, message) = (SIGNALLED.to_owned(), String::new());
        let error = DbError::Refused(errno, Refusal { state, message, row: None });
        assert_eq!(error.errno(), None);
        assert_eq!(error.into_problem().code(), ErrorCode::RejectedByDatabase);
    }
}

#[test]
fn messages_lose_account_names_and_paths() {
    assert_eq!(
        sentence("SELECT command denied to user 'selkie-a-ro'@'localhost' for table `x`.`t`"),
        "SELECT command denied for table `x`.`t`."
    );
    assert_eq!(sentence("Can't create file '/var/lib/mysql/x' (errno: 13)"), "Can't create file … (errno: 13).");
}

#[test]
fn a_missing_definer_is_told_as_such_and_without_account_names() {
    let refusals = [
        (1045, "28000", "Access denied for user 'selkie-a-ro'@'localhost' (using password: YES)"),
        (1449, "HY000", "The user specified as a definer ('gone'@'%') does not exist"),
    ];
    for (errno, state, message) in refusals {
        let (state, message) = (state.to_owned(), message.to_owned());
        let problem = DbError::Refused(errno, Refusal { state, message, row: None }).into_problem();
        assert_eq!(problem.code(), ErrorCode::SqlError);
        assert!(problem.message().contains("definer"), "{problem:?}");
        assert!(!problem.message().contains("gone"), "{problem:?}");
    }
}
