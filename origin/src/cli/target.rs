//! The API that import, export, changes, webhook and types call: at a URL, with a key, or an origin within this process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use secrecy::SecretString;
use shared::ident::ProjectName;
use shared::key::Grant;
use tokio_util::sync::CancellationToken;

use super::serve::listen;
use super::system::{note, project};
use super::{CliError, Context};
use crate::config::{AccessConfig, Config};
use crate::serve::{self, Deliveries};
use crate::system::System;
use crate::transfer::Api;

const KEY_VARIABLE: &str = "SELKIE_KEY";

const KEY_NAME: &str = "selkie import, export, changes, webhook or types";

/// The lifetime of the key, if the command ends without having revoked it.
const KEY_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// The maximum wait for the next bytes, longer than a statement may run by default (`query_timeout`).
const READ_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Args)]
pub(super) struct TargetArgs {
    /// The origin or edge to call, as `https://api.example.org`; needs no access to MariaDB, but a key: SELKIE_KEY in
    /// the environment, or --key-file [default: MariaDB itself, as the configuration names it]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// A file with the key
    #[arg(long, value_name = "FILE", requires = "url")]
    key_file: Option<PathBuf>,
    /// The project of the tables or webhooks
    #[arg(long, value_name = "PROJECT", default_value = "default", conflicts_with = "url", value_parser = project)]
    project: ProjectName,
}

pub(super) struct ApiTarget {
    pub(super) api: Api,
    /// The target's identity, the same in each run: [`Api::identity`] or, for the origin in this process, the project.
    pub(super) identity: String,
}

impl TargetArgs {
    pub(super) async fn run<T, W: Future<Output = Result<T, CliError>>>(
        &self,
        context: &Context,
        work: impl FnOnce(ApiTarget) -> W,
    ) -> Result<T, CliError> {
        self.run_for(context, Some(KEY_LIFETIME), work).await
    }

    /// Runs work that may last for `lifetime`.
    pub(super) async fn run_for<T, W: Future<Output = Result<T, CliError>>>(
        &self,
        context: &Context,
        lifetime: Option<Duration>,
        work: impl FnOnce(ApiTarget) -> W,
    ) -> Result<T, CliError> {
        match &self.url {
            Some(url) => {
                let api = self.remote(url).await?;
                let identity = api.identity();
                work(ApiTarget { api, identity }).await
            }
            None => self.local(context, lifetime, work).await,
        }
    }

    async fn remote(&self, url: &str) -> Result<Api, CliError> {
        let key = key(self.key_file.as_deref())?;
        if url.starts_with("http://")
            && !["http://localhost", "http://127.0.0.1", "http://[::1]"].iter().any(|local| url.starts_with(local))
        {
            note("selkie: warning: the key is sent without encryption; use https://");
        }
        let url = url.to_owned();
        let made = tokio::task::spawn_blocking(move || Api::new(&url, key, Some(READ_TIMEOUT))).await;
        Ok(made.map_err(|error| CliError::Failed { message: error.to_string(), hint: None })??)
    }

    async fn local<T, W: Future<Output = Result<T, CliError>>>(
        &self,
        context: &Context,
        lifetime: Option<Duration>,
        work: impl FnOnce(ApiTarget) -> W,
    ) -> Result<T, CliError> {
        let installation = context.open().await?;
        let system = System::new(&installation.database, installation.secret.clone(), &context.config);
        let outcome = async {
            system.prepare().await?;
            let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "listen").await?;
            let address = listener.local_addr().map_err(CliError::Output)?;
            let key = system.keys.issue(&self.project, Grant::Full, KEY_NAME, lifetime).await?;
            let token = SecretString::from(key.token);
            let made = tokio::task::spawn_blocking(move || Api::new(&format!("http://{address}"), token, None)).await;
            let api = made.map_err(|error| CliError::Failed { message: error.to_string(), hint: None })??;
            let config = own_origin(&context.config);
            let stop = CancellationToken::new();
            let served = serve::run(
                &config,
                &system,
                installation.database_health(),
                (listener, None),
                Deliveries::Never,
                stop.clone(),
            );
            let work = work(ApiTarget { api, identity: format!("project {}", self.project) });
            tokio::pin!(served, work);
            let outcome = tokio::select! {
                served = &mut served => served.map_err(CliError::from).and_then(|()| Err(CliError::Failed {
                    message: "the command's own origin stopped".to_owned(),
                    hint: None,
                })),
                outcome = &mut work => {
                    stop.cancel();
                    served.await?;
                    outcome
                }
            };
            system.keys.revoke(key.id, None).await?;
            outcome
        };
        let outcome = Box::pin(outcome).await;
        system.close().await;
        installation.close().await;
        outcome
    }
}

/// Returns the settings of the origin of this command: without rate limits, limits of rows and restriction of callers.
fn own_origin(config: &Config) -> Config {
    let mut config = config.clone();
    config.access = AccessConfig::Open;
    config.rate_limit = None;
    config.max_rows = None;
    config.query_timeout = config.query_timeout.max(STATEMENT_TIMEOUT);
    config.stream_timeout = config.stream_timeout.max(STATEMENT_TIMEOUT);
    config.shutdown_grace = config.shutdown_grace.min(Duration::from_secs(1));
    config
}

fn key(file: Option<&Path>) -> Result<SecretString, CliError> {
    let text = match file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| CliError::Usage {
            message: format!("the key file {} can't be read: {error}", path.display()),
            hint: None,
        })?,
        None => std::env::var(KEY_VARIABLE).map_err(|_| CliError::Usage {
            message: format!("--url needs a key, and {KEY_VARIABLE} is not set"),
            hint: Some("set it in the environment, or name a file with the key by --key-file".to_owned()),
        })?,
    };
    match text.trim() {
        "" => Err(CliError::Usage { message: "the key is empty".to_owned(), hint: None }),
        key => Ok(SecretString::from(key.to_owned())),
    }
}
