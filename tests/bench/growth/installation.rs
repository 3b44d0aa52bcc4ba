//! Creates keys, accounts and projects by the thousand, directly in MariaDB, since the installation's commands create
//! only one at a time. The rows are the same as those of the commands, and are derived from the installation's secret.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hmac::{Hmac, KeyInit as _, Mac as _};
use mysql_async::{Value, prelude::Queryable as _};
use sha2::Sha256;
use shared::{
    ident::ProjectName,
    key::{Access, KeyClaims, SigningKey},
};
use uuid::Uuid;

use super::ground::Ground;

/// Creation time of all rows, in seconds since 1970.
const MADE_AT: u64 = 1_750_000_000;
/// Rows per INSERT.
const ROWS_AT_ONCE: usize = 1_000;

pub(super) struct Installation {
    secret: Vec<u8>,
    kid: String,
    issued: AtomicU64,
}

impl Installation {
    /// Opens the installation of the origins of `ground`, one of which must have been started.
    pub(super) async fn open(ground: &mut Ground) -> Result<Self> {
        let text = fs::read_to_string(ground.mariadb.directory().join("selkie/secret"))?;
        let kid = ground
            .admin
            .query_first("SELECT kid FROM selkie.signing_keys ORDER BY created_at DESC, kid DESC")
            .await?
            .context("no signing key")?;
        let recorded: Option<u64> = ground.admin.query_first("SELECT COUNT(*) FROM selkie.`keys`").await?;
        let recorded = recorded.unwrap_or_default();
        Ok(Self { secret: STANDARD.decode(text.trim())?, kid, issued: AtomicU64::new(recorded) })
    }

    /// Returns a UUIDv7 from a counter instead of random bits.
    fn next_id(&self) -> Uuid {
        let mut rest = [0; 10];
        rest[2..].copy_from_slice(&self.issued.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(MADE_AT * 1_000, &rest).into_uuid()
    }

    fn derive(&self, label: &str) -> Result<[u8; 32]> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret)?;
        mac.update(label.as_bytes());
        Ok(mac.finalize().into_bytes().into())
    }

    /// Records and signs a full key for each of these projects.
    pub(super) async fn keys(&self, ground: &mut Ground, projects: &[String]) -> Result<Vec<String>> {
        let seed = self.derive(&format!("signing-key:{}", self.kid))?;
        let signing = SigningKey::from_seed(&self.kid, &seed);
        let mut tokens = Vec::new();
        for some in projects.chunks(ROWS_AT_ONCE) {
            let mut values = Vec::new();
            for name in some {
                let id = self.next_id();
                let project = ProjectName::parse(name).map_err(|_| anyhow::anyhow!("{name}"))?;
                let claims = KeyClaims::new(id, &project, Access::Full, MADE_AT, None);
                tokens.push(signing.sign(&claims)?);
                values.extend([id.to_string(), name.clone()].map(Value::from));
                values.extend([Value::from(&self.kid), Value::from(MADE_AT)]);
            }
            let rows = vec!["(?, ?, '', 'full', ?, ?)"; some.len()].join(", ");
            let insert =
                format!("INSERT INTO selkie.`keys` (id, project, name, access, kid, created_at) VALUES {rows}");
            ground.admin.exec_drop(insert, values).await?;
        }
        Ok(tokens)
    }

    /// Creates projects with accounts and rights like those of `model`, which a command created.
    pub(super) async fn projects(&self, ground: &mut Ground, model: &str, names: &[String]) -> Result<()> {
        ground
            .sql(&["CREATE TEMPORARY TABLE selkie.made (
                    project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
                    kind CHAR(2) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
                    password VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
                    PRIMARY KEY (project, kind)
                ) ENGINE=MEMORY"
                .to_owned()])
            .await?;
        for some in names.chunks(ROWS_AT_ONCE) {
            let mut values = Vec::new();
            for name in some {
                for kind in ["rw", "ro"] {
                    let label = format!("account:{name}:{kind}");
                    let password = URL_SAFE_NO_PAD.encode(self.derive(&label)?) + "-Aa1";
                    values.extend([Value::from(name), Value::from(kind), Value::from(password)]);
                }
            }
            let rows = vec!["(?, ?, ?)"; some.len() * 2].join(", ");
            let insert = format!("INSERT INTO selkie.made VALUES {rows}");
            ground.admin.exec_drop(insert, values).await?;
        }
        let rights: Vec<String> = ground
            .admin
            .query(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS
                 WHERE TABLE_SCHEMA = 'mysql' AND TABLE_NAME = 'db' AND COLUMN_NAME LIKE '%\\_priv'",
            )
            .await?;
        let rights = rights.join(", ");
        ground
            .sql(&[
                format!(
                    "INSERT INTO selkie.projects SELECT project, {MADE_AT} FROM selkie.made WHERE kind = 'rw'"
                ),
                format!(
                    "INSERT INTO mysql.global_priv
                     SELECT Host, CONCAT('selkie-', made.project, '-', made.kind),
                       JSON_SET(Priv, '$.authentication_string', PASSWORD(made.password))
                     FROM selkie.made JOIN mysql.global_priv ON User = CONCAT('selkie-{model}-', made.kind)"
                ),
                format!(
                    "INSERT INTO mysql.db (Host, Db, User, {rights})
                     SELECT Host, CONCAT(made.project, '\\\\_%'), CONCAT('selkie-', made.project, '-', made.kind), {rights}
                     FROM selkie.made JOIN mysql.db ON User = CONCAT('selkie-{model}-', made.kind)"
                ),
                "DROP TEMPORARY TABLE selkie.made".to_owned(),
                "FLUSH PRIVILEGES".to_owned(),
            ])
            .await
    }
}
