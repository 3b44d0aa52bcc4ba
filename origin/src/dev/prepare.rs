//! What a first start finds ready: the project, its demo database, and two keys.

use shared::key::{KeySet, SigningKey};

use super::environment::Environment;
use crate::config::Config;
use crate::installation::Installation;

/// The project that is always there.
const PROJECT: &str = "default";

/// The database with something in it.
const DATABASE: &str = "demo";

/// Why it can't be made ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {}

/// What is ready.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) project: String,
    pub(super) database: String,
    pub(super) full_key: String,
    pub(super) read_key: String,
    pub(super) jwks: String,
}

pub(super) async fn prepare(
    config: &Config,
    installation: &Installation,
    remembered: &Environment,
) -> Result<Prepared, PrepareError> {
    let _ = (config, remembered);
    let signing = SigningKey::from_seed("dev", &installation.secret.derive("dev"));
    let jwks = KeySet::new(vec![signing.public()]).map(|keys| keys.to_jwks());
    Ok(Prepared {
        project: PROJECT.to_owned(),
        database: DATABASE.to_owned(),
        full_key: "full".to_owned(),
        read_key: "read".to_owned(),
        jwks: jwks.unwrap_or_default(),
    })
}
