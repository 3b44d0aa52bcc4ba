//! `/api/v1/sql`: runs a statement that the caller wrote.

use super::records::Failure;
use super::request_context::RequestContext;
use super::respond;
use crate::database::errno;
use crate::database::error::no_database;
use crate::database::retry::{Repeatable, retry_once};
use crate::database::user_sql::{self, UserSql};
use crate::query::sql::drops::Dropped;
use crate::query::sql::secrets::{shows_password_hash, shows_statements};
use crate::query::sql::session::{Effects, Results, Schema, Session, effects, names_any, only_reads};
use crate::query::sql::xa::holds_xa;
use crate::query::sql::{self, Statement};
use crate::service_state::ServiceState;
use crate::system::keys::Caller;
use axum::response::Response;
use shared::error::{ErrorCode, Problem, ShownToRoles};
use shared::format::Format;
use shared::ident::{DatabaseName, shown};
use shared::json::Value;
use shared::key::Access;
use shared::operation::sql::SqlCall;
use shared::policy::{Action, role_forbids};
use std::sync::Arc;

/// Larger texts are read on a thread for blocking work, since reading 16 MiB takes about a second.
const READ_AT_ONCE_MAX_BYTES: usize = 64 * 1024;

/// What the text of the caller's SQL tells.
struct SqlFacts {
    holds_xa: bool,
    shows_password_hash: bool,
    effects: Option<Effects>,
    dropped: Option<Dropped>,
    statement: Statement,
}

impl SqlFacts {
    async fn of(call: SqlCall, schema: Option<DatabaseName>) -> Result<(SqlCall, Self), Problem> {
        let params = call.params.iter().map(|value| if let Value::Text(text) = value { text.len() } else { 0 });
        let is_large = call.query.len() + params.sum::<usize>() > READ_AT_ONCE_MAX_BYTES;
        let read = move || {
            let mut effects = effects(&call.query);
            if let Some(effects) = effects.as_mut().filter(|_| is_large) {
                // A large text counts as stateful, which saves the search for views in it.
                effects.session = Session::Stateful;
            }
            let drops = effects.is_some_and(|effects| effects.schema == Schema::Changed);
            let facts = Self {
                holds_xa: holds_xa(&call),
                shows_password_hash: shows_password_hash(&call),
                effects,
                dropped: drops.then(|| sql::drops::databases(&call.query, &call.params)).flatten(),
                statement: sql::verbatim(&call, schema.as_ref()),
            };
            (call, facts)
        };
        if !is_large {
            return Ok(read());
        }
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|error| Problem::internal("The statement can't be read.", format!("its task failed: {error}")))
    }
}

pub(super) async fn run(context: &RequestContext, call: SqlCall) -> Result<Response, Problem> {
    let (app, caller) = (context.app(), context.caller());
    let account = caller.sql_account().ok_or_else(|| role_forbids(Action::Sql.description()))?;
    let max_rows = match account {
        Access::Full => None,
        Access::Read => {
            check_read(&call)?;
            context.plan_limits().read_max_rows
        }
    };
    if max_rows.is_some() && call.format != Format::Envelope {
        return Err(role_forbids("run SQL for an answer other than JSON, which could not tell that maxRows cuts it"));
    }
    let schema = match &call.database {
        Some(name) if name.is_system() => return Err(no_database(name, &[])),
        Some(name) => Some(name.clone()),
        None => app.schema_cache.only_database(caller.project()).await?,
    };
    let (call, facts) = SqlFacts::of(call, schema.clone()).await?;
    if facts.holds_xa {
        return Err(no_xa());
    }
    if facts.shows_password_hash {
        return Err(Problem::new(
            ErrorCode::PermissionDenied,
            "SHOW GRANTS and SHOW CREATE USER are not possible here: they show the hash of a password.",
        )
        .with_hint("The account's rights are in information_schema.SCHEMA_PRIVILEGES."));
    }
    let no_statement = || Problem::new(ErrorCode::InvalidBody, "The query holds no statement.");
    let mut effects = facts.effects.ok_or_else(no_statement)?;
    if effects.session == Session::Stateless {
        let views = app.schema_cache.views(caller.project()).await?;
        if names_any(&call.query, |name| views.has(name)) {
            effects.session = Session::Stateful;
        }
    }
    // Only the envelope format supports several results.
    let format = match effects.results {
        Results::One => call.format,
        Results::Any => Format::Envelope,
    };
    drop(call);
    if let Some(dropped) = &facts.dropped {
        refuse_drop(app, caller, dropped).await?;
    }
    let limit = context.limit();
    context.progress().begin("SQL", None);
    let attempt = async || {
        let lease = context.lease_as(account).await?;
        let change = (effects.schema == Schema::Changed).then(|| app.schema_cache.change_guard(caller.project()));
        let statement = facts.statement.clone();
        let call = UserSql { statement, schema: schema.clone(), effects, change, format, max_rows };
        let chunks = user_sql::run(lease, call, limit, Arc::clone(context.progress()));
        respond::chunks(chunks, format, || context.stream()).await
    };
    let work = match effects.results {
        Results::One => Repeatable::UserSql,
        // CALL and compound statements can commit before they fail.
        Results::Any => Repeatable::No,
    };
    let outcome = attempt().await;
    let answer = retry_once(work, outcome, |_, _| attempt()).await;
    answer.map_err(|failure| match failure {
        // The records API gets this error only for a view whose definer is gone, which `DbError` handles.
        Failure::Database(error) if error.errno() == Some(errno::ACCESS_DENIED) && effects.results == Results::Any => {
            Problem::new(
                ErrorCode::PermissionDenied,
                "The statement needs a right on the whole server, which no key has, or it uses a view \
                 whose definer is no MariaDB account any more.",
            )
            .with_details(errno::ACCESS_DENIED, "28000")
        }
        failure => match (account, failure.into_problem()) {
            // A role with SQL reads all that MariaDB's message may name.
            (Access::Read, problem) if problem.details().is_some() => problem.shown_to_roles(ShownToRoles::Everything),
            (_, problem) => problem,
        },
    })
}

/// Refuses statements of a role that do more than read. MariaDB's grants decide which data the account reads.
fn check_read(call: &SqlCall) -> Result<(), Problem> {
    match only_reads(&call.query) {
        true if shows_statements(&call.query) => Err(role_forbids("see the statements of other callers")),
        true => Ok(()),
        false => Err(role_forbids("run this SQL: it may only read").with_hint(
            "Use SELECT, WITH, VALUES, SHOW, EXPLAIN or DESCRIBE, without INTO, locks and executable comments.",
        )),
    }
}

/// Refuses to drop an adopted database (one that existed before the project got it) unless its operator allowed that.
async fn refuse_drop(app: &Arc<ServiceState>, caller: &Caller, dropped: &Dropped) -> Result<(), Problem> {
    let adopted = app.undroppable(caller.project()).await?;
    let Some(name) = adopted.iter().find(|name| dropped.may_be(name)) else {
        return Ok(());
    };
    let shown = shown(name.as_str());
    let (message, hint) = if dropped.names(name) {
        (
            format!("The database {shown} was adopted: no key may drop it."),
            "Its operator can release it, or allow this by `selkie database adopt --allow-drop database`.",
        )
    } else {
        (
            format!("The statement could drop {shown}, an adopted database: its text does not show what it drops."),
            "Give EXECUTE IMMEDIATE and PREPARE their statement as one parameter, or one string literal without a \
             backslash, and drop databases outside of these and of executable comments.",
        )
    };
    Err(Problem::new(ErrorCode::PermissionDenied, message).with_hint(hint))
}

fn no_xa() -> Problem {
    Problem::new(
        ErrorCode::PermissionDenied,
        "XA transactions are not possible here: a prepared one would outlive its connection and keep its locks.",
    )
    .with_hint(
        "Use /api/v1/batch, or START TRANSACTION and COMMIT inside BEGIN NOT ATOMIC … END. A column that is named xa goes into backticks.",
    )
}
