//! The system schema `selkie`, version by version.
//!
//! A version that was released is never edited: what changes is a further one. Every statement may run
//! twice, because a crash between a statement and its record repeats it. Times are whole seconds since
//! 1970, as the tokens have them.

use crate::database::ask;
use mysql_async::prelude::Queryable;

use super::{Admin, AdminError};
use crate::clock::now;

struct Migration {
    name: &'static str,
    statements: &'static [&'static str],
}

/// In order; the version of each is its place, counted from 1.
const MIGRATIONS: &[Migration] = &[PROJECTS, MEDIA, DROPS, INSTALLATION];

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
        // One row, changed with every change of keys: what an origin asks for each second.
        "CREATE TABLE IF NOT EXISTS selkie.key_changes (
            id TINYINT UNSIGNED NOT NULL PRIMARY KEY,
            version BIGINT UNSIGNED NOT NULL
        ) ENGINE = InnoDB",
        "INSERT IGNORE INTO selkie.key_changes VALUES (1, 1)",
    ],
};

/// Names of media differ as soon as their bytes do: by case, by accents, and by spaces at their end.
const MEDIA: Migration = Migration {
    name: "media",
    statements: &[
        // The names take 2,072 bytes of the 3,072 that an index of InnoDB may have. Kinds stand in the order of the
        // alphabet, so that they sort as words.
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
        // Objects that no row names, or not yet; 0 for those that none may name any more.
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

/// Databases that were recorded before may have been adopted: they count as such.
const DROPS: Migration = Migration {
    name: "what may be dropped in a database",
    statements: &["ALTER TABLE selkie.`databases` ADD COLUMN IF NOT EXISTS
            drops ENUM('nothing', 'tables', 'database') CHARACTER SET ascii COLLATE ascii_bin
            NOT NULL DEFAULT 'tables'"],
};

/// One row: what a store of media is marked with, so that no other installation sweeps it.
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

/// The version of the system schema that this program reads and writes.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// MariaDB's numbers for "no such database" and "no such table".
const ABSENT: [u16; 2] = [1049, 1146];

impl Admin {
    /// Brings the system schema to this program's version. Several origins may do so at once.
    ///
    /// # Errors
    /// A newer schema is refused and not touched; MariaDB may be out of reach or deny the rights.
    pub async fn migrate(&self) -> Result<(), AdminError> {
        if self.is_current().await? {
            return Ok(());
        }
        let lock = self.lock().await?;
        let outcome = self.migrate_locked().await;
        lock.release().await;
        outcome
    }

    /// The version found; `None` without a system schema.
    ///
    /// # Errors
    /// MariaDB is out of reach or denies the right.
    pub async fn schema_version(&self) -> Result<Option<u32>, AdminError> {
        let mut conn = self.conn().await?;
        let found = self.within(ask::first(conn.query_iter("SELECT MAX(version) FROM selkie.migrations"))).await;
        match found {
            Ok(version) => Ok(version.flatten()),
            Err(error) if error.errno().is_some_and(|errno| ABSENT.contains(&errno)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn is_current(&self) -> Result<bool, AdminError> {
        match self.schema_version().await {
            Ok(Some(found)) if found > SCHEMA_VERSION => Err(AdminError::SchemaTooNew { found, known: SCHEMA_VERSION }),
            Ok(found) => Ok(found == Some(SCHEMA_VERSION)),
            // An account without any right on `selkie` yet may still be allowed to create it.
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
        // Asked again: another origin may have been first.
        if self.is_current().await? {
            return Ok(());
        }
        let done = self.schema_version().await?.unwrap_or(0);
        for (version, migration) in (1_u32..).zip(MIGRATIONS).filter(|(version, _)| *version > done) {
            self.apply(version, migration).await?;
        }
        Ok(())
    }

    async fn create_schema(&self) -> Result<(), AdminError> {
        let created =
            self.run("CREATE DATABASE IF NOT EXISTS selkie CHARACTER SET utf8mb4 COLLATE utf8mb4_bin".to_owned()).await;
        match created {
            // Perhaps somebody made it for us; if not, the first table says so.
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
