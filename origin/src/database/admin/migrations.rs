//! The migrations of the system schema `selkie`. A released migration is never edited; a change is a new migration.
//! Each statement must be repeatable, since a migration runs again if the program crashed before recording it. All
//! times are whole seconds since 1970.

use crate::database::{errno, typed_rows};
use mysql_async::prelude::Queryable;

use super::{Admin, AdminError};
use crate::clock::now;

struct Migration {
    name: &'static str,
    statements: &'static [&'static str],
}

/// All migrations. The version of a migration is its position in this list, counted from 1.
const MIGRATIONS: &[Migration] = &[PROJECTS, MEDIA, DROPS, INSTALLATION, ROLES, KEYS, UPLOADERS, WEBHOOKS, CLIENTS];

const PROJECTS: Migration = Migration {
    name: "projects, databases and keys",
    statements: &[
        "CREATE TABLE IF NOT EXISTS selkie.projects (
            name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
            created_at BIGINT UNSIGNED NOT NULL
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.`databases` (
            name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            KEY by_project (project),
            CONSTRAINT databases_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.signing_keys (
            kid CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
            created_at BIGINT UNSIGNED NOT NULL,
            retired_at BIGINT UNSIGNED NULL
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.`keys` (
            id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            access ENUM('full', 'read') CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            kid CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            expires_at BIGINT UNSIGNED NULL,
            revoked_at BIGINT UNSIGNED NULL,
            last_used_at BIGINT UNSIGNED NULL,
            KEY by_project (project),
            KEY by_kid (kid),
            CONSTRAINT keys_project FOREIGN KEY (project) REFERENCES selkie.projects (name),
            CONSTRAINT keys_kid FOREIGN KEY (kid) REFERENCES selkie.signing_keys (kid)
        ) ENGINE = InnoDB",
        // One row with a version, which is incremented by the changes that `keys::CHANGED` lists. Origins poll it each
        // second.
        "CREATE TABLE IF NOT EXISTS selkie.key_changes (
            id TINYINT UNSIGNED NOT NULL PRIMARY KEY,
            version BIGINT UNSIGNED NOT NULL
        ) ENGINE = InnoDB",
        "INSERT IGNORE INTO selkie.key_changes (id, version) VALUES (1, 1)",
    ],
};

/// Creates the media tables. Folder and file names are compared byte by byte: case, accents and trailing spaces matter.
const MEDIA: Migration = Migration {
    name: "media",
    statements: &[
        // A key of the index `by_path` takes up to 2,072 of InnoDB's maximum 3,072 bytes. Kinds are listed
        // alphabetically, since ENUMs sort by their position in the list.
        "CREATE TABLE IF NOT EXISTS selkie.media (
            id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            folder VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
            name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
            kind ENUM('audio', 'file', 'image', 'video') CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            private BOOLEAN NOT NULL,
            width INT UNSIGNED NULL,
            height INT UNSIGNED NULL,
            duration DOUBLE NULL,
            object BINARY(16) NOT NULL,
            mime VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            size BIGINT UNSIGNED NOT NULL,
            sha256 BINARY(32) NOT NULL,
            thumbnail_object BINARY(16) NULL,
            thumbnail_mime VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
            thumbnail_size BIGINT UNSIGNED NULL,
            thumbnail_sha256 BINARY(32) NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            updated_at BIGINT UNSIGNED NOT NULL,
            UNIQUE KEY by_path (project, folder, name),
            UNIQUE KEY by_object (object),
            UNIQUE KEY by_thumbnail (thumbnail_object),
            KEY by_folder (project, folder),
            KEY by_project (project),
            CONSTRAINT media_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
        "CREATE TABLE IF NOT EXISTS selkie.media_folders (
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            folder VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
            private BOOLEAN NOT NULL,
            PRIMARY KEY (project, folder),
            CONSTRAINT media_folders_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
        // The ledger of objects that no file refers to; see `database::media`. `due_at` = 0 marks an object for
        // deletion.
        "CREATE TABLE IF NOT EXISTS selkie.media_due (
            object BINARY(16) NOT NULL PRIMARY KEY,
            due_at BIGINT UNSIGNED NOT NULL,
            KEY by_due (due_at)
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.media_uploads (
            id BINARY(16) NOT NULL PRIMARY KEY,
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            length BIGINT UNSIGNED NOT NULL,
            received BIGINT UNSIGNED NOT NULL,
            metadata TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
            media_id BIGINT UNSIGNED NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            expires_at BIGINT UNSIGNED NOT NULL,
            KEY by_expiry (expires_at),
            KEY by_project (project),
            CONSTRAINT media_uploads_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB",
    ],
};

/// Adds the column `drops`, which says what a project's keys may drop in a database: nothing, only tables and views, or
/// also the database itself. Rows that exist before this migration get `tables`, since such a database may have existed
/// before the project got it, and must then not be dropped by a key.
const DROPS: Migration = Migration {
    name: "what may be dropped in a database",
    statements: &["ALTER TABLE selkie.`databases` ADD COLUMN IF NOT EXISTS
            drops ENUM('nothing', 'tables', 'database') CHARACTER SET ascii COLLATE ascii_bin
            NOT NULL DEFAULT 'tables'"],
};

/// Creates the installation's id, a UUID. The id is also written to the media store, so that no other installation
/// deletes files there.
const INSTALLATION: Migration = Migration {
    name: "the id of the installation",
    statements: &[
        "CREATE TABLE IF NOT EXISTS selkie.installation (
            id TINYINT UNSIGNED NOT NULL PRIMARY KEY,
            uuid CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
        ) ENGINE = InnoDB",
        "INSERT IGNORE INTO selkie.installation VALUES (1, UUID())",
    ],
};

/// Creates roles and issuers. Issuers and their audiences are compared byte by byte. An issuer has either `jwks_url` or
/// `jwks`.
const ROLES: Migration = Migration {
    name: "roles and issuers",
    statements: &[
        "CREATE TABLE IF NOT EXISTS selkie.roles (
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            definition MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            updated_at BIGINT UNSIGNED NOT NULL,
            PRIMARY KEY (project, name),
            CONSTRAINT roles_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB",
        "ALTER TABLE selkie.`keys` ADD COLUMN IF NOT EXISTS
            role VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL AFTER access",
        "CREATE TABLE IF NOT EXISTS selkie.issuers (
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            issuer VARCHAR(255) CHARACTER SET ascii COLLATE ascii_nopad_bin NOT NULL,
            audience VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL,
            jwks_url TEXT CHARACTER SET ascii COLLATE ascii_bin NULL,
            jwks MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
            role_claim VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL,
            role VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
            role_map MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            PRIMARY KEY (project, issuer),
            CONSTRAINT issuers_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB",
        // The hash (SHA-256) that identifies the uploader; NULL for files uploaded without a role.
        "ALTER TABLE selkie.media ADD COLUMN IF NOT EXISTS uploader VARBINARY(32) NULL",
        "ALTER TABLE selkie.media_uploads ADD COLUMN IF NOT EXISTS uploader VARBINARY(32) NULL",
    ],
};

/// Adds the creator of a key: the id of the key, or of the user, that created the key over HTTP. Also adds for each
/// project the version of its last change, and the number of changes that each concerned a single project.
const KEYS: Migration = Migration {
    name: "creators of keys, and changes by project",
    statements: &[
        "ALTER TABLE selkie.`keys` ADD COLUMN IF NOT EXISTS
            created_by CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NULL",
        "ALTER TABLE selkie.`keys` ADD KEY IF NOT EXISTS by_creator (created_by)",
        "ALTER TABLE selkie.key_changes ADD COLUMN IF NOT EXISTS of_projects BIGINT UNSIGNED NOT NULL DEFAULT 0",
        // Not a column of `projects`, whose rows are locked by each transaction that adds a row of a project.
        "CREATE TABLE IF NOT EXISTS selkie.project_key_changes (
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
            version BIGINT UNSIGNED NOT NULL
        ) ENGINE = InnoDB",
    ],
};

/// Adds the index for the lists of callers whose role reads their own files.
const UPLOADERS: Migration = Migration {
    name: "files by uploader",
    statements: &["ALTER TABLE selkie.media ADD KEY IF NOT EXISTS by_uploader (project, uploader)"],
};

pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// Adds to an issuer the console's client id, and whether its keys are fetched from public addresses only.
const CLIENTS: Migration = Migration {
    name: "clients of issuers",
    statements: &[
        "ALTER TABLE selkie.issuers ADD COLUMN IF NOT EXISTS
            client_id VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL",
        "ALTER TABLE selkie.issuers ADD COLUMN IF NOT EXISTS public_only BOOLEAN NOT NULL DEFAULT FALSE",
    ],
};

const WEBHOOKS: Migration = Migration {
    name: "webhooks, their positions and deliveries, and the lease of the origin that delivers",
    statements: &[
        "CREATE TABLE IF NOT EXISTS selkie.webhooks (
            id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
            project VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            name VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            url VARCHAR(2048) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            subscriptions MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            paused BOOLEAN NOT NULL,
            pause_reason VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
            version BIGINT UNSIGNED NOT NULL,
            secret_number INT UNSIGNED NOT NULL,
            secret_renewed_at BIGINT UNSIGNED NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            updated_at BIGINT UNSIGNED NOT NULL,
            UNIQUE KEY by_name (project, name),
            CONSTRAINT webhooks_project FOREIGN KEY (project) REFERENCES selkie.projects (name)
        ) ENGINE = InnoDB",
        // Positions are apart from definitions, and bodies from deliveries, since the binary log gets whole rows.
        "CREATE TABLE IF NOT EXISTS selkie.webhook_positions (
            webhook CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
            token TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            token_at BIGINT UNSIGNED NOT NULL,
            failing_since BIGINT UNSIGNED NULL,
            fault VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
            attempts BIGINT UNSIGNED NOT NULL DEFAULT 0,
            delivered_at BIGINT UNSIGNED NULL,
            CONSTRAINT positions_webhook FOREIGN KEY (webhook) REFERENCES selkie.webhooks (id) ON DELETE CASCADE
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.webhook_deliveries (
            id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
            webhook CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            message VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            state ENUM('delivered', 'waiting', 'failed') CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            changes INT UNSIGNED NOT NULL,
            attempts INT UNSIGNED NOT NULL,
            status SMALLINT UNSIGNED NULL,
            response TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            millis INT UNSIGNED NOT NULL,
            created_at BIGINT UNSIGNED NOT NULL,
            attempted_at BIGINT UNSIGNED NOT NULL,
            next_attempt_at BIGINT UNSIGNED NULL,
            since TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            next TEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            KEY by_webhook (webhook, state, id),
            CONSTRAINT deliveries_webhook FOREIGN KEY (webhook) REFERENCES selkie.webhooks (id) ON DELETE CASCADE
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.webhook_bodies (
            delivery BIGINT UNSIGNED NOT NULL PRIMARY KEY,
            body LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
            CONSTRAINT bodies_delivery FOREIGN KEY (delivery) REFERENCES selkie.webhook_deliveries (id) ON DELETE CASCADE
        ) ENGINE = InnoDB",
        "CREATE TABLE IF NOT EXISTS selkie.webhook_lease (
            id TINYINT UNSIGNED NOT NULL PRIMARY KEY,
            holder CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
            until DATETIME(6) NOT NULL
        ) ENGINE = InnoDB",
        "INSERT IGNORE INTO selkie.webhook_lease (id, holder, until) VALUES (1, '', '2000-01-01')",
    ],
};

impl Admin {
    /// Migrates the system schema to [`SCHEMA_VERSION`], creating it if it does not exist. Several origins may call
    /// this at the same time. After an error, some migrations may be applied.
    pub async fn migrate(&self) -> Result<(), AdminError> {
        if self.is_current().await? {
            return Ok(());
        }
        self.locked(self.migrate_locked()).await
    }

    /// Returns the version of the system schema; `None` if the schema or its table `migrations` does not exist, or no
    /// migration is recorded.
    pub async fn schema_version(&self) -> Result<Option<u32>, AdminError> {
        let mut conn = self.conn().await?;
        let found = self.within(typed_rows::first(conn.query_iter("SELECT MAX(version) FROM selkie.migrations"))).await;
        match found {
            Ok(version) => Ok(version.flatten()),
            Err(error) if matches!(error.errno(), Some(errno::BAD_DB | errno::NO_SUCH_TABLE)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn is_current(&self) -> Result<bool, AdminError> {
        match self.schema_version().await {
            Ok(Some(found)) if found > SCHEMA_VERSION => Err(AdminError::SchemaTooNew { found, known: SCHEMA_VERSION }),
            Ok(found) => Ok(found == Some(SCHEMA_VERSION)),
            // An account without privileges on `selkie` may still be allowed to create the schema.
            Err(AdminError::Denied { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn migrate_locked(&self) -> Result<(), AdminError> {
        self.create_schema().await?;
        self.run(
            "CREATE TABLE IF NOT EXISTS selkie.migrations (
                version INT UNSIGNED NOT NULL PRIMARY KEY,
                name VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL,
                applied_at BIGINT UNSIGNED NOT NULL
            ) ENGINE = InnoDB"
                .to_owned(),
        )
        .await?;
        // Another origin may have migrated before this one got the lock.
        if self.is_current().await? {
            return Ok(());
        }
        let done = self.schema_version().await?.unwrap_or(0);
        for (version, migration) in (1_u32..).zip(MIGRATIONS).filter(|(version, _)| *version > done) {
            self.apply(version, migration).await?;
        }
        Ok(())
    }

    pub async fn create_schema(&self) -> Result<(), AdminError> {
        let created =
            self.run("CREATE DATABASE IF NOT EXISTS selkie CHARACTER SET utf8mb4 COLLATE utf8mb4_bin".to_owned()).await;
        match created {
            // The operator may have created the schema. If the account may not use it, the first CREATE TABLE fails.
            Err(AdminError::Denied { .. }) if self.exists("selkie").await? => Ok(()),
            outcome => outcome,
        }
    }

    async fn apply(&self, version: u32, migration: &Migration) -> Result<(), AdminError> {
        let mut conn = self.conn().await?;
        for statement in migration.statements {
            self.within(conn.query_drop(*statement)).await?;
        }
        self.within(conn.exec_drop(
            "INSERT IGNORE INTO selkie.migrations (version, name, applied_at) VALUES (?, ?, ?)",
            (version, migration.name, now()),
        ))
        .await
    }
}

#[cfg(test)]
mod tests;
