//! The server to compare with: axum and mysql_async, written by hand for exactly these requests. It checks no key,
//! reads no schema and has no limits. See [`Style`] for its two styles.

mod hello;
mod rows;
pub(crate) mod statement;

use std::{io::Write as _, net::SocketAddr, process::Stdio, sync::Arc};

use anyhow::{Context as _, Result, bail};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt as _,
};
use mysql_async::{OptsBuilder, Params, Pool, PoolConstraints, PoolOpts, Value, prelude::Queryable as _};
use serde::Deserialize;
use tokio::{net::TcpListener, process::Command};

use crate::{
    arguments::{Serve, Style},
    data::DATABASE,
    mariadb,
    process::Started,
    request::{Dialect, Requests},
    selkie::Endpoint,
};

struct Server {
    pool: Pool,
    style: Style,
}

pub(crate) async fn start(configure: impl FnOnce(&mut Command)) -> Result<(Started, Endpoint)> {
    let mut process = Started::new(&std::env::current_exe()?, |command| {
        configure(command);
        command.stdout(Stdio::piped());
    })?;
    let address: SocketAddr = process.first_line().await?.parse().context("the hand-written server's address")?;
    let requests = Requests {
        dialect: Dialect::Handwritten,
        host: format!("{address}"),
        // The key is as long as a real key, so that all servers read the same number of bytes.
        key: "x".repeat(300),
        database: DATABASE.to_owned(),
    };
    Ok((process, Endpoint { address, requests }))
}

pub(crate) async fn serve(serve: Serve) -> Result<()> {
    listen(serve.listen, router(&serve)?).await
}

/// Serves one fixed record without a database: the maximum of any HTTP server on this machine.
pub(crate) async fn serve_hello(address: SocketAddr) -> Result<()> {
    listen(address, hello::router()).await
}

async fn listen(address: SocketAddr, router: Router) -> Result<()> {
    if !address.ip().is_loopback() {
        bail!("this server checks no keys, so it listens on loopback only");
    }
    let listener = TcpListener::bind(address).await?;
    writeln!(std::io::stdout().lock(), "{}", listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, router).await?)
}

fn router(serve: &Serve) -> Result<Router> {
    let Some(constraints) = PoolConstraints::new(usize::from(serve.pool), usize::from(serve.pool)) else {
        bail!("a pool of none");
    };
    // Returned connections are not reset, which would cost half of the throughput.
    let pool_options = PoolOpts::default().with_constraints(constraints).with_reset_connection(false);
    let options = OptsBuilder::from_opts(mariadb::options(&serve.socket, Some(DATABASE))).pool_opts(pool_options);
    let server = Arc::new(Server { pool: Pool::new(options), style: serve.style });
    Ok(Router::new()
        .route("/api/v1/crud/{database}/{table}/{id}", get(read_one))
        .route("/api/v1/crud/{database}/{table}", get(read_many).post(insert))
        .route("/api/v1/sql", post(sql))
        .with_state(server))
}

#[derive(Deserialize)]
struct Listing {
    category: Option<String>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct NewPost {
    title: String,
    body: String,
    category: String,
    price: String,
    is_published: u8,
    views: u32,
    published_at: String,
}

impl NewPost {
    fn values(self) -> [Value; 7] {
        [
            self.title.into(),
            self.body.into(),
            self.category.into(),
            self.price.into(),
            self.is_published.into(),
            self.views.into(),
            self.published_at.into(),
        ]
    }
}

#[derive(Deserialize)]
struct Batch {
    #[serde(rename = "batchData")]
    rows: Vec<NewPost>,
}

#[derive(Deserialize)]
struct Sql {
    query: String,
}

struct Failure(StatusCode);

impl<E: std::error::Error> From<E> for Failure {
    fn from(_: E) -> Self {
        Self(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, [(CONTENT_TYPE, "application/json")], r#"{"success":false,"payload":null}"#).into_response()
    }
}

async fn read_one(
    State(server): State<Arc<Server>>,
    Path((_, _, id)): Path<(String, String, u32)>,
) -> Result<Response, Failure> {
    let connection = server.pool.get_conn().await?;
    let (text, params) = (statement::BY_ID, Params::from((id,)));
    match server.style {
        Style::Values => match rows::values(connection, text, params).await?.pop() {
            Some(row) => Ok(json(&serde_json::json!({"success": true, "payload": row}))),
            None => Err(Failure(StatusCode::NOT_FOUND)),
        },
        Style::Streamed => Ok(json_body(rows::streamed_record(connection, text, params).await?)),
    }
}

async fn read_many(
    State(server): State<Arc<Server>>,
    Path((_, table)): Path<(String, String)>,
    Query(listing): Query<Listing>,
) -> Result<Response, Failure> {
    let (text, params) = match (listing.category, table.as_str()) {
        (Some(category), "posts") => (statement::LISTING, Params::from((category, listing.limit.unwrap_or(20)))),
        (None, "posts") => (statement::ALL_POSTS, Params::Empty),
        (None, "million") => (statement::ALL_MILLION, Params::Empty),
        _ => return Err(Failure(StatusCode::NOT_FOUND)),
    };
    let connection = server.pool.get_conn().await?;
    match server.style {
        Style::Values => {
            let rows = rows::values(connection, text, params).await?;
            Ok(json(&serde_json::json!({"success": true, "payload": rows})))
        }
        Style::Streamed => Ok(json_body(rows::streamed_list(connection, text, params).await?)),
    }
}

/// Inserts one record or a batch, depending on how the body begins.
async fn insert(State(server): State<Arc<Server>>, body: Bytes) -> Result<Response, Failure> {
    if body.starts_with(b"{\"batchData\"") {
        let new: Batch = serde_json::from_slice(&body)?;
        return insert_batch(&server, new.rows).await;
    }
    let new: NewPost = serde_json::from_slice(&body)?;
    let mut connection = server.pool.get_conn().await?;
    let values = Params::Positional(new.values().into());
    connection.exec_drop(statement::INSERT, values).await?;
    Ok(json(&serde_json::json!({"success": true, "payload": connection.last_insert_id()})))
}

/// Inserts a batch, which must have as many rows as the statement has parameters for.
async fn insert_batch(server: &Server, rows: Vec<NewPost>) -> Result<Response, Failure> {
    let count = rows.len() as u64;
    let mut connection = server.pool.get_conn().await?;
    let values = rows.into_iter().flat_map(NewPost::values).collect();
    connection.exec_drop(statement::INSERT_BATCH.as_str(), Params::Positional(values)).await?;
    // InnoDB gives the rows of such a statement consecutive ids.
    let first = connection.last_insert_id().unwrap_or(0);
    let ids: Vec<u64> = (first..first + count).collect();
    Ok(json(&serde_json::json!({"success": true, "payload": ids})))
}

async fn sql(State(server): State<Arc<Server>>, body: Bytes) -> Result<Response, Failure> {
    let sql: Sql = serde_json::from_slice(&body)?;
    let connection = server.pool.get_conn().await?;
    let rows = rows::values(connection, &sql.query, Params::Empty).await?;
    Ok(json(&serde_json::json!({"success": true, "payload": rows})))
}

fn json(value: &serde_json::Value) -> Response {
    json_body(Body::from(value.to_string()))
}

fn json_body(body: Body) -> Response {
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}
